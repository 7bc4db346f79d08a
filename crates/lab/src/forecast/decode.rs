//! Drawing futures value by value, all trajectories of all windows in one batch.
//!
//! Keys and values of what was read stay in memory, so a step reads one token. This is the
//! transformer of [`Forecaster::hidden`] in plain tensors; a test holds the two together.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData, activation};
use overtone_core::seed::Generator;
use overtone_kernels::{Form, layer_norm};
use overtone_model::{
    head::{BinsHead, fourier},
    transformer_block::TransformerBlock,
};
use rand::RngExt;

use super::forecaster::{Forecaster, Tokens, cycle_before_next};

/// Keys and values of a layer's tokens, each `[rows, n_heads, tokens, d_head]`.
#[derive(Clone)]
struct Memory {
    keys: Tensor<4>,
    values: Tensor<4>,
}

/// A forecaster in the middle of its sequences.
pub struct Decoder<'a> {
    model: &'a Forecaster,
    layers: Vec<Option<Memory>>,
    /// Tokens read of each sequence.
    n_read: usize,
}

impl<'a> Decoder<'a> {
    /// At the beginning. `model` is without autodiff.
    pub fn new(model: &'a Forecaster) -> Self {
        Self { model, layers: vec![None; model.blocks.len()], n_read: 0 }
    }

    /// Reads tokens and returns the transformer's output at each, `[rows, time, d_model]`.
    pub fn read(&mut self, tokens: &Tokens) -> Tensor<3> {
        let [_, time] = tokens.values.dims();
        let mut x = self.model.embed(tokens, self.n_read);
        for (block, memory) in self.model.blocks.iter().zip(&mut self.layers) {
            x = step(block, self.model.config.n_heads, x, memory);
        }
        self.n_read += time;
        self.model.normalize(x)
    }

    /// Goes on with `n` copies of each sequence, copies side by side.
    pub fn fork(&mut self, n: usize) {
        for memory in self.layers.iter_mut().flatten() {
            let copies = |tensor: &Tensor<4>| {
                let [rows, heads, tokens, d_head] = tensor.dims();
                tensor.clone().unsqueeze_dim::<5>(1).repeat_dim(1, n).reshape([
                    rows * n,
                    heads,
                    tokens,
                    d_head,
                ])
            };
            *memory = Memory { keys: copies(&memory.keys), values: copies(&memory.values) };
        }
    }
}

/// One block on new tokens `[rows, time, d]`, which see the remembered ones.
fn step(
    block: &TransformerBlock,
    n_heads: usize,
    x: Tensor<3>,
    memory: &mut Option<Memory>,
) -> Tensor<3> {
    let [rows, time, d] = x.dims();
    let d_head = d / n_heads;
    let affine = |x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>| -> Tensor<3> {
        let width = weight.dims()[1];
        let flat = x.clone().reshape([-1, weight.dims()[0] as i32]);
        (flat.matmul(weight) + bias.unsqueeze()).reshape([x.dims()[0], x.dims()[1], width])
    };
    let normal =
        layer_norm(x.clone(), block.norm_1_weight.val(), block.norm_1_bias.val(), Form::Auto);
    let qkv = affine(normal, block.qkv_weight.val(), block.qkv_bias.val());
    let [queries, keys, values] = [0, 1, 2].map(|part| {
        let part = qkv.clone().narrow(2, part * d, d);
        part.reshape([rows, time, n_heads, d_head]).swap_dims(1, 2)
    });
    let all = match memory.take() {
        None => Memory { keys, values },
        Some(past) => Memory {
            keys: Tensor::cat(vec![past.keys, keys], 2),
            values: Tensor::cat(vec![past.values, values], 2),
        },
    };
    let mut scores =
        queries.matmul(all.keys.clone().swap_dims(2, 3)) * (d_head as f64).sqrt().recip();
    if time > 1 {
        let hidden = later(time, all.keys.dims()[2], &x.device());
        let shape = scores.dims();
        scores = scores.mask_fill(hidden.expand(shape), f32::NEG_INFINITY);
    }
    let mixed = activation::softmax(scores, 3).matmul(all.values.clone());
    *memory = Some(all);
    let mixed = mixed.swap_dims(1, 2).reshape([rows, time, d]);
    let x = x + affine(mixed, block.projection_weight.val(), block.projection_bias.val());
    let normal =
        layer_norm(x.clone(), block.norm_2_weight.val(), block.norm_2_bias.val(), Form::Auto);
    let up = activation::gelu(affine(normal, block.mlp_1_weight.val(), block.mlp_1_bias.val()));
    x + affine(up, block.mlp_2_weight.val(), block.mlp_2_bias.val())
}

/// `[1, 1, time, total]`, `true` where a key comes after the query; the queries are the last
/// `time` tokens.
fn later(time: usize, total: usize, device: &Device) -> Tensor<4, Bool> {
    let past = total - time;
    let hidden: Vec<bool> =
        (0..time).flat_map(|query| (0..total).map(move |key| key > past + query)).collect();
    Tensor::from_data(TensorData::new(hidden, [1, 1, time, total]), device)
}

/// The distributions of a head's rows, on the host, row after row.
///
/// The Fourier head's logits are `ln(y + κ)`; κ keeps the training loss finite, and would mix
/// in the uniform distribution with weight `mκ`, 1 % at 1024 bins: a value from anywhere in
/// the range every hundredth step. Here it is taken off again and `y` is what remains.
///
/// # Shapes
/// - `hidden`: `[rows, d_model]`; result `rows · bins` numbers, each row's sum is 1
pub fn distributions(head: &BinsHead, hidden: Tensor<2>) -> Vec<f32> {
    let logits = head.forward(hidden).logits;
    let probs = match head {
        BinsHead::Fourier(_) => {
            let density = (logits.exp() - fourier::KAPPA).clamp_min(0.0);
            density.clone() / density.sum_dim(1)
        }
        BinsHead::Linear(_) | BinsHead::Gmm(_) => activation::softmax(logits, 1),
    };
    probs.into_data().iter::<f32>().collect()
}

/// A bin drawn from a distribution among its `top_k` most probable bins; 0: among all.
pub fn draw(probs: &[f32], top_k: usize, generator: &mut Generator) -> usize {
    let mut least = 0.0;
    if (1..probs.len()).contains(&top_k) {
        let mut falling = probs.to_vec();
        let (_, kth, _) = falling.select_nth_unstable_by(top_k - 1, |a, b| b.total_cmp(a));
        least = *kth;
    }
    let kept = |p: &f32| if *p >= least { f64::from(*p) } else { 0.0 };
    let total: f64 = probs.iter().map(kept).sum();
    let mut left = generator.random::<f64>() * total;
    let mut last = 0;
    for (bin, p) in probs.iter().enumerate() {
        let p = kept(p);
        if p > 0.0 {
            last = bin;
            left -= p;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

/// `samples` futures of every context, as bins: trajectory after trajectory, all of the first
/// context before those of the second, each of `horizon` bins.
///
/// `contexts` are rows of `context` tokens, with the length of each one's cycle.
pub fn trajectories(
    model: &Forecaster,
    contexts: &[Vec<i32>],
    seasons: &[usize],
    samples: usize,
    top_k: usize,
    generator: &mut Generator,
) -> Vec<Vec<usize>> {
    let (bins, context, horizon) = (model.config.bins, model.config.context, model.config.horizon);
    let device = Device::flex();
    let mut decoder = Decoder::new(model);
    let tokens = Tokens::new(contexts, seasons, &device);
    let hidden = decoder.read(&tokens).narrow(1, context - 1, 1).squeeze_dim::<2>(1);
    decoder.fork(samples);
    let first = distributions(&model.head, hidden);
    // What is known of each trajectory: its context, then what was drawn.
    let mut known: Vec<(Vec<i32>, usize)> = contexts
        .iter()
        .zip(seasons)
        .flat_map(|(row, &season)| std::iter::repeat_n((row.clone(), season), samples))
        .collect();
    let of_row = first.chunks(bins).flat_map(|probs| std::iter::repeat_n(probs, samples));
    for ((row, _), probs) in known.iter_mut().zip(of_row) {
        row.push(draw(probs, top_k, generator) as i32);
    }
    for at in context..context + horizon - 1 {
        let load = |tokens: Vec<i32>| {
            let shape = [tokens.len(), 1];
            Tensor::<2, Int>::from_data(TensorData::new(tokens, shape), &device)
        };
        let seasonal = known.iter().map(|(row, season)| cycle_before_next(row, at, *season));
        let tokens = Tokens {
            values: load(known.iter().map(|(row, _)| row[at]).collect()),
            seasonal: load(seasonal.collect()),
        };
        let probs = distributions(&model.head, decoder.read(&tokens).squeeze_dim::<2>(1));
        for ((row, _), probs) in known.iter_mut().zip(probs.chunks(bins)) {
            row.push(draw(probs, top_k, generator) as i32);
        }
    }
    let drawn = |row: &[i32]| row[context..].iter().map(|&bin| bin as usize).collect();
    known.iter().map(|(row, _)| drawn(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::forecaster::ForecasterConfig;
    use overtone_core::seed;
    use overtone_model::head::{BinsHeadConfig, FourierHeadConfig, LinearConfig};

    /// Of normalized outputs, whose size is about 1.
    const TOLERANCE: f64 = 1e-4;

    fn model(head: BinsHeadConfig) -> Forecaster {
        let config = ForecasterConfig {
            bins: 11,
            context: 5,
            horizon: 3,
            d_model: 8,
            n_layers: 2,
            n_heads: 2,
            head,
        };
        let mut generator = seed::generator(1, "init");
        Forecaster::init(&config, &Device::flex(), &mut generator).unwrap()
    }

    /// With a cycle of two values.
    fn tokens(rows: &[&[i32]]) -> Tokens {
        let rows: Vec<Vec<i32>> = rows.iter().map(|row| row.to_vec()).collect();
        Tokens::new(&rows, &vec![2; rows.len()], &Device::flex())
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    #[test]
    fn step_by_step_equals_one_pass() {
        let model = model(BinsHeadConfig::Linear(LinearConfig {}));
        let [a, b] = [[1, 2, 3, 4, 5, 6, 7], [9, 0, 2, 8, 8, 1, 3]];
        let all = tokens(&[&a, &b]);
        let whole = values(model.hidden(&all));
        let mut decoder = Decoder::new(&model);
        let parts = [(0, 4), (4, 2), (6, 1)].map(|(first, n)| decoder.read(&all.narrow(first, n)));
        let stepped = values(Tensor::cat(parts.to_vec(), 1));
        assert_eq!(whole.len(), 2 * 7 * 8);
        for (got, expected) in stepped.iter().zip(&whole) {
            assert!((got - expected).abs() < TOLERANCE, "{got}, not {expected}");
        }
    }

    #[test]
    fn copies_go_on_alone() {
        let model = model(BinsHeadConfig::Linear(LinearConfig {}));
        let mut decoder = Decoder::new(&model);
        decoder.read(&tokens(&[&[1, 2, 3], &[7, 8, 9]]));
        decoder.fork(2);
        let rows = [[1, 2, 3, 4], [1, 2, 3, 5], [7, 8, 9, 4], [7, 8, 9, 5]];
        let all = tokens(&rows.each_ref().map(|row| &row[..]));
        let forked = values(decoder.read(&all.narrow(3, 1)));
        let whole = values(model.hidden(&all).narrow(1, 3, 1));
        for (got, expected) in forked.iter().zip(whole) {
            assert!((got - expected).abs() < TOLERANCE, "{got}, not {expected}");
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let probs = [0.1f32, 0.0, 0.5, 0.15, 0.25];
        let mut generator = seed::generator(2, "sampling");
        let n = 20_000;
        let mut check = |top_k: usize, expected: [f64; 5]| {
            let mut counts = [0.0; 5];
            (0..n).for_each(|_| counts[draw(&probs, top_k, &mut generator)] += 1.0 / n as f64);
            // Five standard errors: at most 5·√(¼/n).
            let close = counts.iter().zip(expected).all(|(got, want)| (got - want).abs() < 0.018);
            assert!(close, "{top_k}: {counts:?}");
        };
        check(0, [0.1, 0.0, 0.5, 0.15, 0.25]);
        check(5, [0.1, 0.0, 0.5, 0.15, 0.25]);
        check(2, [0.0, 0.0, 2.0 / 3.0, 0.0, 1.0 / 3.0]);
        check(1, [0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_fourier_heads_floor_is_taken_off() {
        let model = model(BinsHeadConfig::Fourier(FourierHeadConfig::new(3)));
        let hidden = model.hidden(&tokens(&[&[1, 2, 3]])).reshape([3, 8]);
        let probs = distributions(&model.head, hidden.clone());
        let logits = values(model.head.forward(hidden).logits);
        assert_eq!(probs.len(), 3 * 11);
        for (row, logits) in probs.chunks(11).zip(logits.chunks(11)) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (p, logit) in row.iter().zip(logits) {
                assert!((f64::from(*p) - (logit.exp() - fourier::KAPPA)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn trajectories_are_seeded_and_belong_to_their_contexts() {
        let model = model(BinsHeadConfig::Linear(LinearConfig {}));
        let contexts = [vec![1, 2, 3, 4, 5], vec![9, 9, 0, 0, 9]];
        let draw = |seed, top_k| {
            let mut generator = seed::generator(seed, "sampling");
            trajectories(&model, &contexts, &[2, 2], 3, top_k, &mut generator)
        };
        let some = draw(1, 0);
        assert_eq!((some.len(), some[0].len()), (6, 3));
        assert!(some.iter().flatten().all(|&bin| bin < 11));
        assert_eq!(some, draw(1, 0));
        assert_ne!(some, draw(2, 0));
        // The most probable bin at every step: the three trajectories of a context are one,
        // and it is what one pass over context and trajectory finds most probable.
        let greedy = draw(1, 1);
        for (i, trajectory) in greedy.iter().enumerate() {
            let mut all = contexts[i / 3].clone();
            all.extend(trajectory.iter().map(|&bin| bin as i32));
            let logits = values(model.logits(&tokens(&[&all])));
            for (row, &bin) in logits.chunks(11).zip(trajectory) {
                assert!(row.iter().all(|x| *x <= row[bin] + 1e-5), "{trajectory:?}");
            }
        }
    }
}
