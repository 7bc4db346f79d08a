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
    /// A hash of the text, for caches that outlive the program.
    pub version: u64,
}

impl Source {
    /// The text that NVRTC compiles.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.definitions {
            text += &format!("#define {name} {value}\n");
        }
        // `KERNEL` stands for the name.
        text + &self.files.concat().replace("KERNEL(", &format!("{}(", self.name))
    }
}

/// The type of the factors of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Factor {
    Bf16,
    /// `f32` with the 10 bits of mantissa of TF32. Sums of products are `f32`, as for `bf16`.
    Tf32,
}

/// A kernel for each type of factors.
#[derive(Debug)]
pub(crate) struct ByFactor {
    pub bf16: Source,
    pub tf32: Source,
}

impl ByFactor {
    pub fn of(&'static self, factor: Factor) -> &'static Source {
        match factor {
            Factor::Bf16 => &self.bf16,
            Factor::Tf32 => &self.tf32,
        }
    }
}

/// FNV-1a, computed by the compiler: a launch only reads it.
const fn hash_of(definitions: &[(&str, &str)], files: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut nth = 0;
    while nth < definitions.len() {
        let (name, value) = definitions[nth];
        hash = hashed(hashed(hash, name), value);
        nth += 1;
    }
    let mut nth = 0;
    while nth < files.len() {
        hash = hashed(hash, files[nth]);
        nth += 1;
    }
    hash
}

const fn hashed(mut hash: u64, text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut nth = 0;
    while nth < bytes.len() {
        hash = (hash ^ bytes[nth] as u64).wrapping_mul(0x100_0000_01b3);
        nth += 1;
    }
    hash
}

const WARP_TEXT: &str = include_str!("cuda/warp.cuh");
const MASK_TEXT: &str = include_str!("cuda/mask.cuh");
const PLACES_TEXT: &str = include_str!("cuda/places.cuh");
const PRODUCT_TEXT: &str = include_str!("cuda/products.cuh");
const PRODUCT_TEXTS: [&str; 4] = [WARP_TEXT, MASK_TEXT, PLACES_TEXT, PRODUCT_TEXT];
const OUTER_TEXTS: [&str; 3] = [WARP_TEXT, PLACES_TEXT, include_str!("cuda/outer.cuh")];
const ORDERS_TEXT: &str = include_str!("cuda/orders.cuh");
const SUMS_TEXTS: [&str; 3] = [WARP_TEXT, ORDERS_TEXT, include_str!("cuda/sums.cuh")];
const CONV1_TEXT: &str = include_str!("cuda/conv1.cuh");

/// One source.
macro_rules! source {
    ($name:expr, [$($macro:ident = $value:expr),*], $files:expr) => {
        Source {
            name: $name,
            definitions: &[$((stringify!($macro), stringify!($value))),*],
            files: &$files,
            version: hash_of(&[$((stringify!($macro), stringify!($value))),*], &$files),
        }
    };
}

/// Declares sources for `bf16` or without factors, sources for each type of factors, and `ALL` of
/// them.
macro_rules! sources {
    (
        one {$(
            $(#[$doc:meta])*
            $id:ident: $name:literal, [$($macro:ident = $value:expr),*], $files:expr;
        )*}
        each {$(
            $(#[$each_doc:meta])*
            $each:ident: $each_name:literal, [$($each_macro:ident = $each_value:expr),*],
            $each_files:expr;
        )*}
    ) => {
        $($(#[$doc])*
        pub(crate) const $id: Source = source!($name, [$($macro = $value),*], $files);)*
        $($(#[$each_doc])*
        pub(crate) const $each: ByFactor = ByFactor {
            bf16: source!($each_name, [$($each_macro = $each_value),*], $each_files),
            tf32: source!(
                concat!($each_name, "_tf32"),
                [TF32 = 1 $(, $each_macro = $each_value)*],
                $each_files
            ),
        };)*
        /// Every source.
        #[cfg(test)]
        pub(crate) const ALL: &[&Source] = &[$(&$id,)* $(&$each.bf16, &$each.tf32),*];
    };
}

sources! {
    one {
        /// `A B + bias`, `bf16`.
        BIAS: "product_bias", [EPILOGUE = BIAS], PRODUCT_TEXTS;
        /// `GELU(A B + bias)` and what GELU got, `bf16`.
        BIAS_GELU: "product_bias_gelu", [EPILOGUE = BIAS_GELU], PRODUCT_TEXTS;
        /// `ReLU(A B + bias)`, `bf16`.
        BIAS_RELU: "product_bias_relu", [EPILOGUE = BIAS_RELU], PRODUCT_TEXTS;
        /// `x + mask (A B + bias)`, `f32`.
        RESIDUAL: "product_residual", [EPILOGUE = RESIDUAL], PRODUCT_TEXTS;
        /// `G Bᵀ`, `bf16`.
        TRANSPOSED: "transposed", [TRANSPOSED = 1, EPILOGUE = PLAIN], PRODUCT_TEXTS;
        /// `G Bᵀ` times GELU's slope, `bf16`.
        TRANSPOSED_GELU: "transposed_gelu", [TRANSPOSED = 1, EPILOGUE = GELU_SLOPE], PRODUCT_TEXTS;
        /// The sums of partial sums, in the order of the first convolution's parameter.
        CONV1_SUMS: "conv1_sums", [ORDER = conv1_order], SUMS_TEXTS;
        /// The same of the second.
        CONV2_SUMS: "conv2_sums", [ORDER = conv2_order], SUMS_TEXTS;
        /// The same of the third.
        CONV3_SUMS: "conv3_sums", [ORDER = conv3_order], SUMS_TEXTS;
        /// The same of the linear layer.
        LINEAR_SUMS: "linear_sums", [ORDER = linear_order], SUMS_TEXTS;
    }
    each {
        /// `tanh(A B + bias)`, `f32`.
        BIAS_TANH: "product_bias_tanh", [EPILOGUE = BIAS_TANH], PRODUCT_TEXTS;
        /// `G Bᵀ` times ReLU's slope.
        TRANSPOSED_RELU: "transposed_relu", [TRANSPOSED = 1, EPILOGUE = RELU_SLOPE], PRODUCT_TEXTS;
        /// Partial sums of `Aᵀ G` and of `G`'s columns, `f32`.
        OUTER: "outer", [], OUTER_TEXTS;
        /// The encoder's weights in the order and type of products.
        ENCODER_WEIGHTS: "encoder_weights", [], [WARP_TEXT, ORDERS_TEXT, include_str!("cuda/weights.cuh")];
        /// The first convolution with bias and ReLU.
        CONV1: "conv1", [], [WARP_TEXT, CONV1_TEXT, include_str!("cuda/conv1_forward.cuh")];
        /// The second, over blocks of 2 × 2 pixels.
        CONV2: "conv2", [GATHER = 1, IN = 10, OUT = 9, CHANNELS = 128, EPILOGUE = BIAS_RELU], PRODUCT_TEXTS;
        /// The third.
        CONV3: "conv3", [GATHER = 1, IN = 9, OUT = 7, CHANNELS = 64, EPILOGUE = BIAS_RELU], PRODUCT_TEXTS;
        /// The gradient by what tanh got.
        TANH_SLOPE: "tanh_slope", [], [WARP_TEXT, include_str!("cuda/tanh_slope.cuh")];
        /// The gradient by the third convolution's input, times the slope of the ReLU before it.
        CONV3_INPUT: "conv3_input", [GATHER = 2, TRANSPOSED = 1, IN = 9, OUT = 7, CHANNELS = 64, EPILOGUE = RELU_SLOPE], PRODUCT_TEXTS;
        /// The same of the second.
        CONV2_INPUT: "conv2_input", [GATHER = 2, TRANSPOSED = 1, IN = 10, OUT = 9, CHANNELS = 64, EPILOGUE = RELU_SLOPE], PRODUCT_TEXTS;
        /// Partial gradients by the parameters of the first convolution.
        CONV1_OUTER: "conv1_outer", [], [WARP_TEXT, CONV1_TEXT, include_str!("cuda/conv1_weights.cuh")];
        /// The same of the second.
        CONV2_OUTER: "conv2_outer", [GATHER = 1, IN = 10, OUT = 9, CHANNELS = 128], OUTER_TEXTS;
        /// The same of the third.
        CONV3_OUTER: "conv3_outer", [GATHER = 1, IN = 9, OUT = 7, CHANNELS = 64], OUTER_TEXTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_a_name_and_a_version_of_its_own() {
        for (nth, source) in ALL.iter().enumerate() {
            assert!(
                source.text().contains(&format!(" {}(", source.name)),
                "{}: no entry point",
                source.name
            );
            for other in &ALL[..nth] {
                assert_ne!(source.name, other.name);
                assert_ne!(source.version, other.version, "{}, {}", source.name, other.name);
            }
        }
    }
}
