//! A small decoder-only forecaster: a language model of binned values, as Chronos is one
//! (Ansari et al. 2024), with any head on bins.
//!
//! Differs from Chronos, and from what the Fourier head's paper trains:
//! - Decoder only, GPT-like and learned positions; theirs is T5, an encoder and a decoder.
//! - No tokens for padding or the end: every context is full.
//! - The linear head has weights of its own; theirs shares them with the token embedding.
//! - With each value it reads the value one cycle before the *next* one; where no cycle has
//!   passed, the value again. The length of the cycle is known, as it is to the seasonal naive
//!   forecast. A few hundred steps are too few to learn to look back by the length of a cycle.
//! - Embeddings of values, of values a cycle before, and of positions begin as waves and not as
//!   noise, each in its part of the width, so that neighbouring bins are alike from the start,
//!   whatever the head; nor can the order of a thousand bins be found in so few steps. Training
//!   moves them like all weights.

use std::ops::Range;

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, TensorData},
};
use overtone_core::seed::Generator;
use overtone_kernels::{Activation, Form, Queries, layer_norm};
use overtone_model::{
    AttentionConfig, Init,
    head::{BinsHead, BinsHeadConfig, cross_entropy},
    transformer_block::{BlockOptions, TransformerBlock, TransformerConfig},
};

use super::binning::Binning;
use super::tokens::Window;

/// The parts of a forecaster.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecasterConfig {
    /// Bins, which are the tokens.
    pub bins: usize,
    /// Values that are known.
    pub context: usize,
    /// Values to forecast.
    pub horizon: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// From a token to the next one's distribution.
    pub head: BinsHeadConfig,
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct Forecaster {
    /// `[bins, d_model]`
    pub token_embedding: Param<Tensor<2>>,
    /// `[bins, d_model]`: of the value one cycle before the next.
    pub seasonal_embedding: Param<Tensor<2>>,
    /// `[context + horizon, d_model]`
    pub position_embedding: Param<Tensor<2>>,
    /// The transformer.
    pub blocks: Vec<TransformerBlock>,
    /// `[d_model]`
    pub final_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub final_norm_bias: Param<Tensor<1>>,
    /// From a token to the next one's distribution.
    pub head: BinsHead,
    /// Its configuration.
    #[module(skip)]
    pub config: ForecasterConfig,
}

/// The input of a forecaster: bins of values in the order of time, each `[batch, time]`.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The values.
    pub values: Tensor<2, Int>,
    /// One cycle before the next value.
    pub seasonal: Tensor<2, Int>,
}

impl Tokens {
    /// Rows of one length, each with the length of its cycle.
    ///
    /// # Panics
    /// When the rows differ in length.
    pub fn new(rows: &[Vec<i32>], seasons: &[usize], device: &Device) -> Self {
        let shape = [rows.len(), rows.first().map_or(0, Vec::len)];
        let load = |tokens: Vec<i32>| Tensor::from_data(TensorData::new(tokens, shape), device);
        let seasonal = rows.iter().zip(seasons).flat_map(|(row, &season)| {
            (0..row.len()).map(move |at| cycle_before_next(row, at, season))
        });
        Self { values: load(rows.concat()), seasonal: load(seasonal.collect()) }
    }

    /// Windows of one length, `[windows, context + horizon]`.
    pub fn of(windows: &[Window], binning: &Binning, device: &Device) -> Self {
        let rows: Vec<Vec<i32>> = windows.iter().map(|window| window.tokens(binning)).collect();
        let seasons: Vec<usize> = windows.iter().map(|window| window.season).collect();
        Self::new(&rows, &seasons, device)
    }

    /// `n` tokens of each row from place `first` on.
    pub fn narrow(&self, first: usize, n: usize) -> Self {
        let part = |tokens: &Tensor<2, Int>| tokens.clone().narrow(1, first, n);
        Self { values: part(&self.values), seasonal: part(&self.seasonal) }
    }
}

/// The token one cycle before the one after place `at`; the token at `at` without one.
fn cycle_before_next(row: &[i32], at: usize, season: usize) -> i32 {
    row[(at + 1).checked_sub(season.max(1)).unwrap_or(at)]
}

impl Forecaster {
    /// Matrices N(0, 1/inputs), as in T5 and so in Chronos: the Decision Transformer's 0.02 is
    /// for wider models. Norms 1 and 0; embeddings are waves, each in its part of the width;
    /// the head as its options say.
    pub fn init(config: &ForecasterConfig, device: &Device, generator: &mut Generator) -> Self {
        let d = config.d_model;
        let places = config.context + config.horizon;
        let transformer = TransformerConfig {
            n_layers: config.n_layers,
            n_heads: config.n_heads,
            d_model: d,
            dropout: 0.0,
            attention: AttentionConfig::SOFTMAX,
            activation: Activation::Gelu,
        };
        let init = &mut Init::drawn(device, generator);
        // Three eighths each for both values, the rest for positions.
        let part = 3 * d / 8;
        let table =
            |n: usize, rows: Vec<f32>| Param::from_data(TensorData::new(rows, [n, d]), device);
        let block = |init: &mut Init<'_>| {
            let mut normal = |inputs: usize, outputs: usize| {
                init.normal([inputs, outputs], (inputs as f64).sqrt().recip())
            };
            let [qkv_weight, projection_weight] = [normal(d, 3 * d), normal(d, d)];
            let [mlp_1_weight, mlp_2_weight] = [normal(d, 4 * d), normal(4 * d, d)];
            TransformerBlock {
                qkv_weight,
                projection_weight,
                mlp_1_weight,
                mlp_2_weight,
                ..TransformerBlock::init(&transformer, init)
            }
        };
        Self {
            token_embedding: table(config.bins, waves(config.bins, d, 0..part, 16.0)),
            seasonal_embedding: table(config.bins, waves(config.bins, d, part..2 * part, 16.0)),
            position_embedding: table(places, waves(places, d, 2 * part..d, 4.0)),
            blocks: (0..config.n_layers).map(|_| block(init)).collect(),
            final_norm_weight: init.constant([d], 1.0),
            final_norm_bias: init.constant([d], 0.0),
            head: config.head.init(d, config.bins, init),
            config: config.clone(),
        }
    }

    /// Embedded tokens, `[batch, time, d_model]`.
    fn embed(&self, tokens: &Tokens) -> Tensor<3> {
        let [batch, time] = tokens.values.dims();
        let look_up = |table: &Param<Tensor<2>>, tokens: &Tensor<2, Int>| -> Tensor<3> {
            let rows = table.val().select(0, tokens.clone().reshape([batch * time]));
            rows.reshape([batch, time, self.config.d_model])
        };
        let positions = self.position_embedding.val().narrow(0, 0, time);
        look_up(&self.token_embedding, &tokens.values)
            + look_up(&self.seasonal_embedding, &tokens.seasonal)
            + positions.unsqueeze_dim::<3>(0)
    }

    /// The transformer's output at every token, `[batch, time, d_model]`.
    pub fn hidden(&self, tokens: &Tokens) -> Tensor<3> {
        let options = BlockOptions {
            queries: Queries::ALL,
            n_heads: self.config.n_heads,
            attention: AttentionConfig::SOFTMAX,
            activation: Activation::Gelu,
            first_token: None,
            dropout: None,
            form: Form::Auto,
        };
        let embedded = self.embed(tokens);
        let tokens = self.blocks.iter().fold(embedded, |x, block| block.forward(x, &options));
        layer_norm(tokens, self.final_norm_weight.val(), self.final_norm_bias.val(), Form::Auto)
    }

    /// The head's input before each token from place `first` on,
    /// `[batch · (time - first), d_model]`.
    fn before(&self, tokens: &Tokens, first: usize) -> Tensor<2> {
        let [batch, time] = tokens.values.dims();
        let hidden = self.hidden(&tokens.narrow(0, time - 1));
        let n = time - first;
        hidden.narrow(1, first - 1, n).reshape([batch * n, self.config.d_model])
    }

    /// Logits of each value of the horizon, given all values before it.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, context + horizon]`; result `[batch · horizon, bins]`
    pub fn logits(&self, tokens: &Tokens) -> Tensor<2> {
        self.head.forward(self.before(tokens, self.config.context)).logits
    }

    /// Next-token cross-entropy in nats over all tokens but the first, as the released code of
    /// Chronos trains decoder-only models: with the head's regulariser, which is differentiated,
    /// and without; each `[1]`.
    pub fn loss(&self, tokens: &Tokens) -> [Tensor<1>; 2] {
        let [batch, time] = tokens.values.dims();
        let output = self.head.forward(self.before(tokens, 1));
        let targets = tokens.values.clone().narrow(1, 1, time - 1).reshape([batch * (time - 1)]);
        let cross_entropy = cross_entropy(output.logits, targets).mean();
        let total = match output.regularization {
            Some(rows) => cross_entropy.clone() + rows.mean(),
            None => cross_entropy.clone(),
        };
        [total, cross_entropy.detach()]
    }
}

/// Embeddings `[n, d]` of places in a row: zero but for `columns`, whose pairs are cosine and
/// sine of the place, times √2. The slowest pair makes half a turn on the way, the fastest one
/// every `shortest` places, the others geometrically between.
fn waves(n: usize, d: usize, columns: Range<usize>, shortest: f64) -> Vec<f32> {
    let fastest = (2.0 * n as f64 / shortest).max(1.0);
    let last_pair = (columns.len().div_ceil(2).max(2) - 1) as f64;
    let entry = |place: usize, column: usize| {
        if !columns.contains(&column) {
            return 0.0;
        }
        let column = column - columns.start;
        let position = -1.0 + (2 * place + 1) as f64 / n as f64;
        let half_turns = fastest.powf((column / 2) as f64 / last_pair);
        let angle = 0.5 * std::f64::consts::PI * half_turns * position;
        let wave = if column.is_multiple_of(2) { angle.cos() } else { angle.sin() };
        (std::f64::consts::SQRT_2 * wave) as f32
    };
    let entry = &entry;
    (0..n).flat_map(|place| (0..d).map(move |column| entry(place, column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::seed;
    use overtone_model::head::{FourierHeadConfig, LinearConfig};

    fn config(head: BinsHeadConfig) -> ForecasterConfig {
        ForecasterConfig {
            bins: 11,
            context: 5,
            horizon: 3,
            d_model: 8,
            n_layers: 2,
            n_heads: 2,
            head,
        }
    }

    fn tokens(rows: &[[i32; 8]]) -> Tokens {
        let rows: Vec<Vec<i32>> = rows.iter().map(|row| row.to_vec()).collect();
        Tokens::new(&rows, &vec![3; rows.len()], &Device::flex())
    }

    #[test]
    fn embeddings_are_no_matrices() {
        let head = BinsHeadConfig::Fourier(FourierHeadConfig::new(4));
        let generator = &mut seed::generator(1, "init");
        let forecaster = Forecaster::init(&config(head), &Device::flex(), generator);
        let matrices = overtone_model::matrices::names(&forecaster);
        assert_eq!(matrices.iter().filter(|name| name.starts_with("blocks.")).count(), 2 * 4);
        assert!(matrices.contains("head.weight"));
        assert_eq!(matrices.len(), 2 * 4 + 1);
    }

    #[test]
    fn seasonal_tokens_by_hand() {
        let device = Device::flex();
        let tokens = Tokens::new(&[vec![5, 6, 7, 8], vec![1, 2, 3, 4]], &[3, 1], &device);
        let read = |tokens: Tensor<2, Int>| -> Vec<i32> { tokens.into_data().iter().collect() };
        // After 5 and 6 no cycle of three has passed; after 7 comes what 5 was.
        assert_eq!(read(tokens.seasonal.clone()), [5, 6, 5, 6, 1, 2, 3, 4]);
        let part = tokens.narrow(1, 2);
        assert_eq!(read(part.values), [6, 7, 2, 3]);
        assert_eq!(read(part.seasonal), [6, 5, 2, 3]);
    }

    fn read(tensor: Tensor<2>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    #[test]
    fn the_future_changes_nothing_before_it_and_rows_do_not_mix() {
        let mut generator = seed::generator(1, "init");
        for head in [
            BinsHeadConfig::Linear(LinearConfig {}),
            BinsHeadConfig::Fourier(FourierHeadConfig::new(4)),
        ] {
            let model = Forecaster::init(&config(head), &Device::flex(), &mut generator);
            let one = [1, 2, 3, 4, 5, 6, 7, 8];
            let both = read(model.logits(&tokens(&[one, [1, 2, 3, 4, 5, 6, 9, 0]])));
            assert_eq!(both.len(), 2 * 3 * 11);
            let (first, second) = both.split_at(3 * 11);
            // The values at places 5 and 6 see up to five and six tokens, all alike.
            for (a, b) in first[..2 * 11].iter().zip(second) {
                assert!((a - b).abs() < 1e-6);
            }
            assert!(
                first[2 * 11..].iter().zip(&second[2 * 11..]).any(|(a, b)| (a - b).abs() > 1e-4)
            );
            for (a, b) in first.iter().zip(read(model.logits(&tokens(&[one])))) {
                assert!((a - b).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn nearer_bins_begin_more_alike() {
        let rows: Vec<Vec<f32>> =
            waves(64, 20, 0..10, 16.0).chunks(20).map(<[f32]>::to_vec).collect();
        let apart = |a: usize, b: usize| -> f32 {
            rows[a].iter().zip(&rows[b]).map(|(x, y)| (x - y).powi(2)).sum()
        };
        for bin in 0..32 {
            assert!(apart(bin, bin) < apart(bin, bin + 1));
            assert!(apart(bin, bin + 1) < apart(bin, bin + 3));
            assert!(apart(bin, bin + 3) < apart(bin, bin + 30));
        }
        let mean: f32 = rows.iter().flatten().map(|x| x * x).sum::<f32>() / 640.0;
        assert!((mean - 1.0).abs() < 1e-5, "{mean}");
        let second = waves(64, 20, 10..20, 16.0);
        for (first, second) in rows.iter().zip(second.chunks(20)) {
            assert_eq!((&first[..10], &first[10..]), (&second[10..], &second[..10]));
        }
    }

    #[test]
    fn the_loss_is_that_of_every_token_but_the_first() {
        let mut generator = seed::generator(1, "init");
        let model = Forecaster::init(
            &config(BinsHeadConfig::Linear(LinearConfig {})),
            &Device::flex(),
            &mut generator,
        );
        let rows = [[1, 2, 3, 4, 5, 6, 7, 8], [3, 1, 4, 1, 5, 9, 2, 6]];
        let hidden = model.hidden(&tokens(&rows)).reshape([16, 8]);
        let logits = read(model.head.forward(hidden).logits);
        let cost = |row: &[f64], target: i32| {
            row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[target as usize]
        };
        let places = (0..2).flat_map(|row| (0..7).map(move |place| (row, place)));
        let costs = places.map(|(row, place)| {
            cost(&logits[(8 * row + place) * 11..][..11], rows[row][place + 1])
        });
        let expected = costs.sum::<f64>() / 14.0;
        let got: f64 = model.loss(&tokens(&rows))[0].clone().into_scalar();
        assert!((got - expected).abs() < 1e-4, "{got}, not {expected}");
    }

    #[test]
    fn the_regulariser_is_in_the_loss() {
        let fourier = FourierHeadConfig { gamma: 0.5, ..FourierHeadConfig::new(4) };
        let config = config(BinsHeadConfig::Fourier(fourier));
        let mut generator = seed::generator(1, "init");
        let model = Forecaster::init(&config, &Device::flex(), &mut generator);
        let loss = model.loss(&tokens(&[[1, 2, 3, 4, 5, 6, 7, 8]]));
        let [total, plain]: [f64; 2] = loss.map(Tensor::into_scalar);
        assert!(total > plain, "{total} {plain}");
    }
}
