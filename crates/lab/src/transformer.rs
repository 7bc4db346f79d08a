//! The transformer of the experiments away from reinforcement learning: plain modules of burn, and
//! a choice between burn's softmax attention and Overtone's Fourier attention.
//!
//! Pre-norm blocks, GELU, no dropout. Encoders see every token except padding; decoders see
//! the earlier tokens, and an encoder's tokens if they have cross-attention. Both attentions have
//! the same linear layers, drawn alike (uniform within ±1/√inputs), and so begin from the same
//! weights with the same seed.

mod kind;

use burn::{
    module::{Module, Param},
    nn::{
        LayerNorm, LayerNormConfig, Linear,
        attention::{
            MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask,
        },
    },
    tensor::{Bool, Int, Tensor, activation::gelu},
};
use overtone_model::{FourierAttention, FourierAttentionConfig, Init, RShape};
use overtone_train::optimizer::scalar;

pub use kind::Kind;

/// How large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Width of a token.
    pub d_model: usize,
    /// Attention heads; divides `d_model`.
    pub n_heads: usize,
    /// Blocks.
    pub n_layers: usize,
}

/// One multi-head attention.
#[derive(Module, Debug)]
pub enum Attention {
    /// burn's.
    Softmax(MultiHeadAttention),
    /// Overtone's.
    Fourier(FourierAttention),
}

/// Standard deviation of embeddings: about that of a linear layer's output for standardized
/// numbers. With GPT's 0.02 between layers as large as these, positions hardly count at first.
pub const EMBEDDING: f64 = 0.5;

/// Embeddings of tokens and positions.
#[derive(Module, Debug)]
pub struct Embeddings {
    tokens: Param<Tensor<2>>,
    positions: Param<Tensor<2>>,
}

impl Embeddings {
    /// Embeddings of `n` tokens and so many positions.
    pub fn new(n: usize, places: usize, d_model: usize, init: &mut Init<'_>) -> Self {
        let [tokens, positions] = [n, places].map(|n| init.normal([n, d_model], EMBEDDING));
        Self { tokens, positions }
    }

    /// # Shapes
    /// - `tokens`: `[rows, time]`, `time` at most the number of places
    /// - result: `[rows, time, d_model]`
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [rows, time] = tokens.dims();
        let embedded = self.tokens.val().select(0, tokens.reshape([rows * time]));
        let [_, d_model] = embedded.dims();
        let positions = self.positions.val().narrow(0, 0, time).unsqueeze_dim::<3>(0);
        embedded.reshape([rows, time, d_model]) + positions
    }
}

/// A linear layer drawn as PyTorch draws it.
pub fn linear(inputs: usize, outputs: usize, init: &mut Init<'_>) -> Linear {
    let (weight, bias) = init.linear([inputs, outputs]);
    Linear { weight, bias: Some(bias) }
}

/// Norm of tokens of this width.
pub fn norm(d_model: usize, init: &Init<'_>) -> LayerNorm {
    LayerNormConfig::new(d_model).init(init.device())
}

impl Attention {
    fn new(kind: Kind, size: Size, causal: bool, init: &mut Init<'_>) -> Self {
        let Size { d_model, n_heads, .. } = size;
        let device = init.device().clone();
        let [query, key, value, output] = [(); 4].map(|()| linear(d_model, d_model, init));
        match kind {
            Kind::Softmax => {
                let config = MultiHeadAttentionConfig::new(d_model, n_heads).with_dropout(0.0);
                let rest = config.init(&device);
                Self::Softmax(MultiHeadAttention { query, key, value, output, ..rest })
            }
            Kind::Fourier { power, initial, vector } => {
                let config = FourierAttentionConfig::new(d_model, n_heads)
                    .with_dropout(0.0)
                    .with_causal(causal)
                    .with_power(power)
                    .with_initial_r(initial)
                    .with_r(if vector { RShape::PerDimension } else { RShape::Scalar });
                let rest = config.init(&device);
                Self::Fourier(FourierAttention { query, key, value, output, ..rest })
            }
        }
    }

    fn forward(&self, x: Tensor<3>, causal: bool, valid: Option<Tensor<2, Bool>>) -> Tensor<3> {
        match self {
            Self::Fourier(attention) => attention.forward_masked(x, valid),
            Self::Softmax(attention) => attention.forward(masked(x, causal, valid)).context,
        }
    }

    /// The weight of each key for each query, `[batch, heads, queries, keys]`.
    fn weights(&self, x: Tensor<3>, causal: bool) -> Tensor<4> {
        match self {
            Self::Fourier(attention) => attention.weights(x, None),
            Self::Softmax(attention) => attention.forward(masked(x, causal, None)).weights,
        }
    }

    fn cross(&self, x: Tensor<3>, memory: &Memory) -> Tensor<3> {
        let Memory { tokens, valid } = memory.clone();
        match self {
            Self::Fourier(attention) => attention.forward_cross(x, tokens, Some(valid)),
            Self::Softmax(attention) => {
                let input = MhaInput::new(x, tokens.clone(), tokens);
                attention.forward(input.mask_pad(valid.bool_not())).context
            }
        }
    }

    /// The mean learned `R`, if there is one.
    fn radius(&self) -> Option<f64> {
        match self {
            Self::Softmax(_) => None,
            Self::Fourier(attention) => Some(scalar(attention.r.val().mean())),
        }
    }
}

/// The input of burn's self-attention.
fn masked(x: Tensor<3>, causal: bool, valid: Option<Tensor<2, Bool>>) -> MhaInput {
    let ([batch, time, _], device) = (x.dims(), x.device());
    let mut input = MhaInput::self_attn(x);
    if let Some(valid) = valid {
        input = input.mask_pad(valid.bool_not());
    }
    if causal {
        input = input.mask_attn(generate_autoregressive_mask(batch, time, &device));
    }
    input
}

/// The input of cross-attention.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `[batch, keys, d_model]`
    pub tokens: Tensor<3>,
    /// `[batch, keys]`, `true` where a token is real.
    pub valid: Tensor<2, Bool>,
}

/// Norm and attention to another sequence.
#[derive(Module, Debug)]
struct Cross {
    norm: LayerNorm,
    attention: Attention,
}

/// Attention, cross-attention where there is any, and a perceptron, each added to its input.
#[derive(Module, Debug)]
struct Block {
    norm: LayerNorm,
    attention: Attention,
    cross: Option<Cross>,
    mlp_norm: LayerNorm,
    mlp_1: Linear,
    mlp_2: Linear,
}

/// The tokens that a transformer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Everything: an encoder.
    All,
    /// The earlier tokens: a decoder.
    Past,
    /// The earlier tokens and an encoder's tokens.
    PastAndMemory,
}

/// Blocks, and a norm after them.
#[derive(Module, Debug)]
pub struct Transformer {
    blocks: Vec<Block>,
    norm: LayerNorm,
    causal: bool,
}

impl Transformer {
    /// A transformer with weights from `init`.
    pub fn new(kind: Kind, size: Size, sight: Sight, init: &mut Init<'_>) -> Self {
        let d = size.d_model;
        let causal = sight != Sight::All;
        let block = |_| Block {
            norm: norm(d, init),
            attention: Attention::new(kind, size, causal, init),
            cross: (sight == Sight::PastAndMemory).then(|| Cross {
                norm: norm(d, init),
                attention: Attention::new(kind, size, false, init),
            }),
            mlp_norm: norm(d, init),
            mlp_1: linear(d, 4 * d, init),
            mlp_2: linear(4 * d, d, init),
        };
        Self { blocks: (0..size.n_layers).map(block).collect(), norm: norm(d, init), causal }
    }

    /// # Shapes
    /// - `x` and result: `[batch, time, d_model]`
    /// - `valid`: `[batch, time]`, `true` where a token is real
    pub fn forward(&self, x: Tensor<3>, valid: Option<Tensor<2, Bool>>) -> Tensor<3> {
        self.run(x, valid, None, &mut |_, _| ())
    }

    /// The same with an encoder's tokens.
    pub fn forward_with(&self, x: Tensor<3>, memory: &Memory) -> Tensor<3> {
        self.run(x, None, Some(memory), &mut |_, _| ())
    }

    /// For each layer, the mean L2 distance between two of its heads: over pairs of heads and over
    /// sequences, of `‖A_h − A_g‖`, attention matrices `[time, time]` as vectors.
    pub fn head_distances(&self, x: Tensor<3>) -> Vec<f64> {
        let mut distances = Vec::new();
        self.run(x, None, None, &mut |block: &Block, x| {
            distances.push(mean_distance(block.attention.weights(x, self.causal)));
        });
        distances
    }

    /// The mean learned `R` of each layer's attention; empty for softmax.
    pub fn radii(&self) -> Vec<f64> {
        self.blocks.iter().filter_map(|block| block.attention.radius()).collect()
    }

    /// Calls `inspect` with each block and its attention's input.
    fn run(
        &self,
        mut x: Tensor<3>,
        valid: Option<Tensor<2, Bool>>,
        memory: Option<&Memory>,
        inspect: &mut dyn FnMut(&Block, Tensor<3>),
    ) -> Tensor<3> {
        for block in &self.blocks {
            let normal = block.norm.forward(x.clone());
            inspect(block, normal.clone());
            x = x + block.attention.forward(normal, self.causal, valid.clone());
            if let (Some(cross), Some(memory)) = (&block.cross, memory) {
                x = x.clone() + cross.attention.cross(cross.norm.forward(x), memory);
            }
            let inner = gelu(block.mlp_1.forward(block.mlp_norm.forward(x.clone())));
            x = x + block.mlp_2.forward(inner);
        }
        self.norm.forward(x)
    }
}

/// Over pairs of heads and sequences; `weights`: `[batch, heads, queries, keys]`.
fn mean_distance(weights: Tensor<4>) -> f64 {
    let [batch, n_heads, queries, keys] = weights.dims();
    let values: Vec<f32> = weights.into_data().iter().collect();
    let (mut sum, mut n) = (0.0, 0);
    for sequence in values.chunks_exact(n_heads * queries * keys).take(batch) {
        let heads: Vec<&[f32]> = sequence.chunks_exact(queries * keys).collect();
        for (i, a) in heads.iter().enumerate() {
            for b in &heads[..i] {
                let squares: f64 = a.iter().zip(*b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
                sum += squares.sqrt();
                n += 1;
            }
        }
    }
    sum / f64::from(n.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use overtone_core::seed;
    use overtone_model::matrices;

    const KINDS: [Kind; 2] =
        [Kind::Softmax, Kind::Fourier { power: 4, initial: 1.0, vector: true }];
    const SIZE: Size = Size { d_model: 8, n_heads: 2, n_layers: 2 };

    fn noise(shape: [usize; 3], seed: usize) -> Tensor<3> {
        let n = shape.iter().product::<usize>();
        let values = (0..n).map(|i| (1.3 * (i * i + seed) as f32).sin()).collect::<Vec<f32>>();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex())
    }

    fn network(kind: Kind, sight: Sight) -> Transformer {
        let generator = &mut seed::generator(3, "init");
        Transformer::new(kind, SIZE, sight, &mut Init::drawn(&Device::flex(), generator))
    }

    #[track_caller]
    fn assert_alike(a: Tensor<3>, b: Tensor<3>) {
        let apart: f32 = (a - b).abs().max().into_scalar();
        assert!(apart < 1e-5, "{apart}");
    }

    #[test]
    fn padding_is_not_seen_by_an_encoder() {
        for kind in KINDS {
            let network = network(kind, Sight::All);
            let x = noise([1, 5, 8], 1);
            let valid = [[true, true, true, false, false]];
            let valid = Tensor::<2, Bool>::from_data(valid, &Device::flex());
            let out = network.forward(x.clone(), Some(valid)).narrow(1, 0, 3);
            assert_alike(out.clone(), network.forward(x.clone().narrow(1, 0, 3), None));
            let all = network.forward(x, None).narrow(1, 0, 3);
            let apart: f32 = (out - all).abs().max().into_scalar();
            assert!(apart > 1e-3, "{apart}");
        }
    }

    #[test]
    fn the_future_is_not_seen_by_a_decoder_and_memory_is() {
        for kind in KINDS {
            let network = network(kind, Sight::PastAndMemory);
            let x = noise([1, 5, 8], 1);
            let real = |keys| Tensor::<2, Int>::ones([1, keys], &Device::flex()).bool();
            let memory = |seed| Memory { tokens: noise([1, 7, 8], seed), valid: real(7) };
            let out = network.forward_with(x.clone(), &memory(2));
            let start = network.forward_with(x.clone().narrow(1, 0, 2), &memory(2));
            assert_alike(out.clone().narrow(1, 0, 2), start);
            let other: f32 = (out - network.forward_with(x, &memory(5))).abs().max().into_scalar();
            assert!(other > 1e-3, "{other}");
        }
    }

    #[test]
    fn kinds_differ_in_the_radii_alone() {
        let [softmax, fourier] = KINDS.map(|kind| network(kind, Sight::Past));
        assert_eq!(fourier.num_params(), softmax.num_params() + 2 * 4);
        assert_eq!(matrices::names(&softmax).len(), 2 * 6);
        assert_eq!(matrices::names(&fourier).len(), 2 * 6);
        assert_eq!((softmax.radii(), fourier.radii()), (vec![], vec![1.0, 1.0]));
    }

    #[test]
    fn distances_between_heads_by_hand() {
        // Two heads of one query on two keys: (1, 0) and (0, 1) are √2 apart; three heads have
        // three pairs.
        let weights = |values: Vec<f32>, n_heads| -> Tensor<4> {
            let shape = [1, n_heads, 1, 2];
            Tensor::from_data(TensorData::new(values, shape), &Device::flex())
        };
        let root = 2f64.sqrt();
        assert!((mean_distance(weights(vec![1.0, 0.0, 0.0, 1.0], 2)) - root).abs() < 1e-7);
        let three = mean_distance(weights(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 3));
        assert!((three - 2.0 * root / 3.0).abs() < 1e-7, "{three}");
        for kind in KINDS {
            assert_eq!(network(kind, Sight::Past).head_distances(noise([2, 5, 8], 1)).len(), 2);
        }
    }
}
