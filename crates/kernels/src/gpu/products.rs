//! Products of `bf16` matrices on tensor cores, and the gradients by their factors. The launches at
//! the end also run kernels for `f32`, of which the encoder has some.
//!
//! Tensors are contiguous, on a device for which [`is_possible`] holds, and of sizes that [`fits`].

use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;

use super::empty_like;
use super::epilogues::Masked;
use super::source::{THREADS, launch};
pub(crate) use super::source::{is_possible, is_possible_on};
use super::sources::{self, Factor, Source};

/// Rows and columns of a block of a product.
const BLOCK: [usize; 2] = [128, 64];

/// Rows of a step of [`outer`].
const STEP: usize = 32;

/// Blocks at which the rows of [`outer`] are split no further: two for each of an H100's 132
/// multiprocessors. Three would run at the same time, but more splits are more partial sums.
pub(crate) const SPLIT_UNTIL: usize = 264;

impl Factor {
    /// The type in which factors are stored.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::Bf16 => DType::BF16,
            Self::Tf32 => DType::F32,
        }
    }
}

/// The operation on the sums of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Epilogue<'a> {
    /// A bias; the result is `bf16`.
    Bias(&'a CubeTensor),
    /// A bias and GELU; results are `bf16`, what GELU got is the second.
    BiasGelu(&'a CubeTensor),
    /// A bias and ReLU; the result is `bf16`.
    BiasRelu(&'a CubeTensor),
    /// A bias, dropout and a residual stream; the result is `f32`.
    Residual(Residual<'a>),
}

/// A sum that is added to rows of the residual stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residual<'a> {
    pub bias: &'a CubeTensor,
    /// `[m * step, n]`
    pub x: &'a CubeTensor,
    /// Row `r` of the product is added to row `step * r + first`.
    pub step: usize,
    pub first: usize,
    /// `[2]`: the low and the high word of the step's seed. Without dropout it is not read.
    pub seed: &'a CubeTensor,
    pub mask: Option<Masked>,
}

/// The operation on the gradient by a product's left factor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slope<'a> {
    /// None; the result is `bf16`.
    None,
    /// Times GELU's slope at what it got; the result is `bf16`.
    Gelu(&'a CubeTensor),
    /// Zero where ReLU's result is zero; the result is `bf16`.
    Relu(&'a CubeTensor),
}

/// Whether the kernels compute products of `[m, k]` and `[k, n]`, and their gradients.
pub(crate) fn fits(m: usize, n: usize, k: usize) -> bool {
    let is_width = |width: usize| width > 0 && width.is_multiple_of(8) && width < 1 << 20;
    let is_height = (1..=65_535 * BLOCK[0]).contains(&m);
    is_height && is_width(n) && is_width(k) && n * k < 1 << 31
}

/// `epilogue(a b)`: `[m, k]`, `[k, n]` → `[m, n]`; with [`Epilogue::BiasGelu`], two of them.
pub(crate) fn product(a: &CubeTensor, b: &CubeTensor, epilogue: Epilogue<'_>) -> Vec<CubeTensor> {
    let [m, k] = a.shape().dims();
    let [_, n] = b.shape().dims();
    let (half, full) = ([DType::BF16].as_slice(), [DType::F32].as_slice());
    let mut words = product_words(m, n, k);
    let (source, others, dtypes): (&'static Source, Vec<&CubeTensor>, _) = match epilogue {
        Epilogue::Bias(bias) => (&sources::BIAS, vec![bias], half),
        Epilogue::BiasGelu(bias) => {
            (&sources::BIAS_GELU, vec![bias], [DType::BF16, DType::BF16].as_slice())
        }
        Epilogue::BiasRelu(bias) => (&sources::BIAS_RELU, vec![bias], half),
        Epilogue::Residual(residual) => {
            let Residual { bias, x, step, first, seed, mask } = residual;
            [words[3], words[4]] = [step as u64, first as u64];
            if let Some(Masked { nth, threshold, scale, .. }) = mask {
                words[5..].copy_from_slice(&[
                    1,
                    nth.into(),
                    threshold.into(),
                    scale.to_bits().into(),
                ]);
            }
            (&sources::RESIDUAL, vec![bias, x, seed], full)
        }
    };
    let shape = Shape::new([m, n]);
    let outputs: Vec<_> = dtypes.iter().map(|dtype| empty_like(a, shape.clone(), *dtype)).collect();
    let inputs = [&[a, b], others.as_slice()].concat();
    launch_product(source, &inputs, &outputs.iter().collect::<Vec<_>>(), words);
    outputs
}

/// `g bᵀ` and a slope: `[m, n]`, `[k, n]` → `[m, k]`, the gradient by the left factor.
pub(crate) fn product_transposed(g: &CubeTensor, b: &CubeTensor, slope: Slope<'_>) -> CubeTensor {
    let [m, n] = g.shape().dims();
    let [k, _] = b.shape().dims();
    let (source, other, dtype) = match slope {
        Slope::None => (&sources::TRANSPOSED, None, DType::BF16),
        Slope::Gelu(before) => (&sources::TRANSPOSED_GELU, Some(before), DType::BF16),
        Slope::Relu(active) => (&sources::TRANSPOSED_RELU.bf16, Some(active), DType::BF16),
    };
    let out = empty_like(g, Shape::new([m, k]), dtype);
    let inputs: Vec<_> = [g, b].into_iter().chain(other).collect();
    launch_product(source, &inputs, &[&out], product_words(m, k, n));
    out
}

/// The words of a product `[m, k] [k, n]` without dropout.
pub(crate) fn product_words(m: usize, n: usize, k: usize) -> [u64; 9] {
    [m, n, k, 1, 0, 0, 0, 0, 0].map(|word| word as u64)
}

/// Runs a variant of `products.cuh`.
pub(crate) fn launch_product(
    source: &'static Source,
    inputs: &[&CubeTensor],
    outputs: &[&CubeTensor],
    words: [u64; 9],
) {
    let [m, n] = [words[0] as usize, words[1] as usize];
    // Neighbouring blocks read the same rows.
    let blocks = [n.div_ceil(BLOCK[1]), m.div_ceil(BLOCK[0]), 1];
    launch(source, blocks, inputs, outputs, &words);
}

/// Partial sums of `aᵀ g` and of the columns of `g`, in `f32`, the gradients by weight and bias:
/// `[m, k]`, `[m, n]` → `[splits, (k + 1) * n]`.
pub(crate) fn outer_of_layer(a: &CubeTensor, g: &CubeTensor) -> CubeTensor {
    let [m, k] = a.shape().dims();
    let [_, n] = g.shape().dims();
    outer_parts(&sources::OUTER.bf16, a, g, [m, n, k])
}

/// Partial sums of a variant of `outer.cuh`: `[splits, (k + 1) * n]`.
pub(crate) fn outer_parts(
    source: &'static Source,
    a: &CubeTensor,
    g: &CubeTensor,
    [m, n, k]: [usize; 3],
) -> CubeTensor {
    let tiles = [n.div_ceil(BLOCK[1]), k.div_ceil(BLOCK[0])];
    let splits = (SPLIT_UNTIL / (tiles[0] * tiles[1])).clamp(1, m.div_ceil(STEP));
    let rows = m.div_ceil(splits).next_multiple_of(STEP);
    let splits = m.div_ceil(rows);
    let parts = empty_like(a, Shape::new([splits, (k + 1) * n]), DType::F32);
    let words = [m, n, k, rows].map(|word| word as u64);
    launch(source, [tiles[0], tiles[1], splits], &[a, g], &[&parts], &words);
    parts
}

/// Adds partial sums in their order; the weight's are multiplied by `factor`.
pub(crate) fn add_parts(
    source: &'static Source,
    parts: &CubeTensor,
    weight: &CubeTensor,
    bias: &CubeTensor,
    factor: f32,
) {
    let [splits, size] = parts.shape().dims();
    let of_weight = weight.shape().num_elements();
    let blocks = [size.div_ceil(THREADS as usize), 1, 1];
    let words = [splits as u64, of_weight as u64, size as u64, factor.to_bits().into()];
    launch(source, blocks, &[parts], &[weight, bias], &words);
}
