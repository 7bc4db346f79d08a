//! The kernels in CUDA C++, for the tensor cores of NVIDIA GPUs: a table of sources.
//!
//! A variant of a kernel is the same text with other definitions in front. This file depends on
//! nothing else, so that tests without a GPU read the same table.

/// A kernel's source: its entry point is `name`.
#[derive(Debug)]
pub(crate) struct Source {
    pub name: &'static str,
    /// Macros and their values.
    definitions: &'static [(&'static str, &'static str)],
    files: &'static [&'static str],
}

impl Source {
    /// The text that NVRTC compiles.
    pub fn text(&self) -> String {
        let mut text = format!("#define KERNEL {}\n", self.name);
        for (name, value) in self.definitions {
            text += &format!("#define {name} {value}\n");
        }
        text + &self.files.concat()
    }
}

const WARP_TEXT: &str = include_str!("cuda/warp.cuh");
const MASK_TEXT: &str = include_str!("cuda/mask.cuh");
const PLACES_TEXT: &str = include_str!("cuda/places.cuh");
const PRODUCT_TEXT: &str = include_str!("cuda/products.cuh");
const PRODUCT_TEXTS: [&str; 4] = [WARP_TEXT, MASK_TEXT, PLACES_TEXT, PRODUCT_TEXT];
const OUTER_TEXTS: [&str; 3] = [WARP_TEXT, PLACES_TEXT, include_str!("cuda/outer.cuh")];
const SUMS_TEXTS: [&str; 2] = [WARP_TEXT, include_str!("cuda/sums.cuh")];

/// Declares sources, and `ALL` of them.
macro_rules! sources {
    ($($(#[$doc:meta])* $id:ident: $name:literal, [$($macro:ident = $value:expr),*], $files:expr;)*) => {
        $($(#[$doc])* pub(crate) const $id: Source = Source {
            name: $name,
            definitions: &[$((stringify!($macro), stringify!($value))),*],
            files: &$files,
        };)*
        /// Every source.
        pub(crate) const ALL: &[&Source] = &[$(&$id),*];
    };
}

sources! {
    /// `A B`, `bf16`.
    PLAIN: "product", [EPILOGUE = PLAIN], PRODUCT_TEXTS;
    /// `A B`, `f32`.
    PLAIN_F32: "product_f32", [EPILOGUE = PLAIN_F32], PRODUCT_TEXTS;
    /// `A B + bias`, `bf16`.
    BIAS: "product_bias", [EPILOGUE = BIAS], PRODUCT_TEXTS;
    /// `GELU(A B + bias)` and what GELU got, `bf16`.
    BIAS_GELU: "product_bias_gelu", [EPILOGUE = BIAS_GELU], PRODUCT_TEXTS;
    /// `ReLU(A B + bias)`, `bf16`.
    BIAS_RELU: "product_bias_relu", [EPILOGUE = BIAS_RELU], PRODUCT_TEXTS;
    /// `tanh(A B + bias)`, `f32`.
    BIAS_TANH: "product_bias_tanh", [EPILOGUE = BIAS_TANH], PRODUCT_TEXTS;
    /// `x + mask (A B + bias)`, `f32`.
    RESIDUAL: "product_residual", [EPILOGUE = RESIDUAL], PRODUCT_TEXTS;
    /// `G Bᵀ`, `bf16`.
    TRANSPOSED: "transposed", [TRANSPOSED = 1, EPILOGUE = PLAIN], PRODUCT_TEXTS;
    /// `G Bᵀ`, `f32`.
    TRANSPOSED_F32: "transposed_f32", [TRANSPOSED = 1, EPILOGUE = PLAIN_F32], PRODUCT_TEXTS;
    /// `G Bᵀ` times GELU's slope, `bf16`.
    TRANSPOSED_GELU: "transposed_gelu", [TRANSPOSED = 1, EPILOGUE = GELU_SLOPE], PRODUCT_TEXTS;
    /// `G Bᵀ` times ReLU's slope, `bf16`.
    TRANSPOSED_RELU: "transposed_relu", [TRANSPOSED = 1, EPILOGUE = RELU_SLOPE], PRODUCT_TEXTS;
    /// Partial sums of `Aᵀ G` and of `G`'s columns, `f32`.
    OUTER: "outer", [], OUTER_TEXTS;
    /// The sums of partial sums.
    SUMS: "sums", [], SUMS_TEXTS;
}
