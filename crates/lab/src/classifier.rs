//! A transformer encoder that puts a sequence of vectors into one of several classes: the network
//! of series, of images in patches and of spectrograms.

use burn::{
    module::{Module, Param, ParamId},
    nn::Linear,
    tensor::{Bool, Device, Int, Tensor, TensorData, activation::softmax},
};
use overtone_model::{
    Init, Matrices,
    head::{BinsOptions, FourierHead, FourierHeadConfig, cross_entropy},
};

use crate::comparison::{Comparison, Metric, Run};
use crate::grid::Grid;
use crate::learning::{self, Cost, Order, Training};
use crate::transformer::{EMBEDDING, Kind, Sight, Size, Transformer, linear};

/// Sequences of vectors, padded to one length, and their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequences {
    /// `[n, time, width]`, flat; padding is at the end and arbitrary.
    pub values: Vec<f32>,
    /// Real steps of each.
    pub lengths: Vec<usize>,
    /// The class of each, from 0.
    pub classes: Vec<usize>,
    /// Steps, with padding.
    pub time: usize,
    /// Numbers of a step.
    pub width: usize,
}

impl Sequences {
    /// Moves every number of a step by `-mean` and divides it by the deviation, those of `of`'s
    /// real steps.
    pub fn standardize(&mut self, of: &Self) {
        for feature in 0..self.width {
            let real: overtone_eval::Pooled = of.real(feature).collect();
            let sd = real.sd().filter(|sd| *sd > 0.0).unwrap_or(1.0);
            for value in self.values.iter_mut().skip(feature).step_by(self.width) {
                *value = ((f64::from(*value) - real.mean) / sd) as f32;
            }
        }
    }

    /// A number of all real steps.
    fn real(&self, feature: usize) -> impl Iterator<Item = f64> {
        let size = self.time * self.width;
        let rows = self.values.chunks_exact(size).zip(&self.lengths);
        rows.flat_map(move |(row, &length)| {
            let real = row[..length * self.width].iter().skip(feature).step_by(self.width);
            real.map(|value| f64::from(*value))
        })
    }

    /// Some of the sequences on a device.
    pub fn batch(&self, rows: &[usize], device: &Device) -> Batch {
        let Self { time, width, .. } = *self;
        let size = time * width;
        let values: Vec<f32> =
            rows.iter().flat_map(|&row| &self.values[row * size..][..size]).copied().collect();
        let padded = rows.iter().any(|&row| self.lengths[row] < time);
        let valid = padded.then(|| {
            let real = |&row: &usize| (0..time).map(move |t| t < self.lengths[row]);
            let real: Vec<bool> = rows.iter().flat_map(real).collect();
            Tensor::from_data(TensorData::new(real, [rows.len(), time]), device)
        });
        let classes: Vec<i32> = rows.iter().map(|&row| self.classes[row] as i32).collect();
        Batch {
            x: Tensor::from_data(TensorData::new(values, [rows.len(), time, width]), device),
            valid,
            classes: Tensor::from_data(TensorData::new(classes, [rows.len()]), device),
        }
    }
}

/// Sequences on a device.
pub struct Batch {
    /// `[batch, time, width]`
    pub x: Tensor<3>,
    /// `[batch, time]`, `true` where a step is real; `None` where all are.
    pub valid: Option<Tensor<2, Bool>>,
    /// `[batch]`
    pub classes: Tensor<1, Int>,
}

/// From a vector to classes.
#[derive(Module, Debug)]
pub enum Head {
    /// A linear layer.
    Linear(Linear),
    /// A Fourier head, for which neighbouring classes are alike.
    Fourier(FourierHead),
}

/// What a classifier is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Attention.
    pub kind: Kind,
    /// Of the transformer.
    pub size: Size,
    /// The Fourier head's options; `None` for a linear head.
    pub head: Option<FourierHeadConfig>,
    /// Classes.
    pub n_classes: usize,
}

/// Linear layer, learned positions, transformer, the mean over real steps, head.
#[derive(Module, Debug)]
pub struct Classifier {
    input: Linear,
    positions: Param<Tensor<2>>,
    transformer: Transformer,
    head: Head,
}

impl Matrices for Classifier {
    fn matrices(&self) -> Vec<ParamId> {
        let head = match &self.head {
            Head::Linear(head) => head.matrices(),
            Head::Fourier(head) => head.matrices(),
        };
        [self.input.matrices(), self.transformer.matrices(), head].concat()
    }
}

impl Classifier {
    /// For sequences as these.
    ///
    /// # Panics
    /// When the Fourier head's options do not fit its classes.
    pub fn new(config: &Config, data: &Sequences, init: &mut Init<'_>) -> Self {
        let Config { kind, size, ref head, n_classes } = *config;
        let d = size.d_model;
        let input = linear(data.width, d, init);
        let positions = init.normal([data.time, d], EMBEDDING);
        let transformer = Transformer::new(kind, size, Sight::All, init);
        let head = match head {
            None => Head::Linear(linear(d, n_classes, init)),
            Some(options) => {
                options.validate(n_classes).expect("a Fourier head fits its classes");
                Head::Fourier(options.init(d, n_classes, init))
            }
        };
        Self { input, positions, transformer, head }
    }

    /// The mean of the transformer's real steps, `[batch, d_model]`.
    fn pooled(&self, batch: &Batch) -> Tensor<2> {
        let x = self.input.forward(batch.x.clone()) + self.positions.val().unsqueeze_dim::<3>(0);
        let out = self.transformer.forward(x, batch.valid.clone());
        match &batch.valid {
            None => out.mean_dim(1).squeeze_dim::<2>(1),
            Some(valid) => {
                let real = valid.clone().float().unsqueeze_dim::<3>(2);
                let n = real.clone().sum_dim(1).squeeze_dim::<2>(1);
                (out * real).sum_dim(1).squeeze_dim::<2>(1) / n
            }
        }
    }

    /// Logits of classes, `[batch, classes]`.
    pub fn logits(&self, batch: &Batch) -> Tensor<2> {
        let pooled = self.pooled(batch);
        match &self.head {
            Head::Linear(head) => head.forward(pooled),
            Head::Fourier(head) => head.logits(pooled),
        }
    }

    /// Mean cross-entropy in nats, and the Fourier head's regulariser.
    pub fn loss(&self, batch: &Batch) -> Tensor<1> {
        match &self.head {
            Head::Linear(_) => cross_entropy(self.logits(batch), batch.classes.clone()).mean(),
            Head::Fourier(head) => head.mean_loss(self.pooled(batch), batch.classes.clone()),
        }
    }

    /// Probabilities of classes of all sequences, a row each.
    pub fn probs(&self, data: &Sequences) -> Vec<Vec<f64>> {
        let rows: Vec<usize> = (0..data.lengths.len()).collect();
        let part = |rows: &[usize]| -> Vec<Vec<f64>> {
            let probs = softmax(self.logits(&data.batch(rows, &Device::flex())), 1);
            let [_, n_classes] = probs.dims();
            let probs: Vec<f64> = probs.into_data().iter::<f64>().collect();
            probs.chunks_exact(n_classes).map(<[f64]>::to_vec).collect()
        };
        rows.chunks(64).flat_map(part).collect()
    }
}

/// The first of the largest.
pub fn likeliest(probs: &[f64]) -> usize {
    (1..probs.len()).fold(0, |best, j| if probs[j] > probs[best] { j } else { best })
}

/// The percentage of sequences whose likeliest class is theirs.
pub fn accuracy(probs: &[Vec<f64>], classes: &[usize]) -> f64 {
    let right = probs.iter().zip(classes).filter(|(probs, class)| likeliest(probs) == **class);
    100.0 * right.count() as f64 / classes.len() as f64
}

/// Training and test sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// To learn.
    pub train: Sequences,
    /// To be judged by.
    pub test: Sequences,
    /// Classes.
    pub n_classes: usize,
}

/// Trains one classifier from a seed and measures it: `scores` of the test set's probabilities,
/// the first of which is the curve's, then the training loss.
pub fn train(
    config: &Config,
    split: &Split,
    training: Training,
    seed: u64,
    scores: &dyn Fn(&[Vec<f64>]) -> Vec<f64>,
) -> (Run, Classifier) {
    let network = learning::network(seed, |init| Classifier::new(config, &split.train, init));
    let mut order = Order::new(split.train.lengths.len(), seed);
    let judge = |network: &Classifier| scores(&network.probs(&split.test));
    let trained = learning::train(
        network,
        training,
        |network, device| network.loss(&split.train.batch(&order.next(training.batch), device)),
        |network| judge(network)[0],
    );
    let mut scores = judge(&trained.network);
    scores.push(trained.loss);
    (Run { seed, scores, curve: trained.curve, detail: Vec::new() }, trained.network)
}

/// What a step costs.
pub fn cost(config: &Config, split: &Split, training: Training) -> Cost {
    let network = learning::network(0, |init| Classifier::new(config, &split.train, init));
    let mut order = Order::new(split.train.lengths.len(), 0);
    learning::cost(network, training, |network, device| {
        network.loss(&split.train.batch(&order.next(training.batch), device))
    })
}

/// What classifiers with linear heads are measured by.
const METRICS: [Metric; 2] =
    [Metric { name: "accuracy, %", digits: 2 }, Metric { name: "training loss, nats", digits: 4 }];

/// Compares kinds of attention by the accuracy of classifiers.
pub fn compare(grid: &Grid, updates: usize, split: &Split, tick: &(dyn Fn() + Sync)) -> Comparison {
    let size = grid.network.size();
    let config = |kind| Config { kind, size, head: None, n_classes: split.n_classes };
    let scores = |probs: &[Vec<f64>]| vec![accuracy(probs, &split.test.classes)];
    let train = |kind, training, seed| train(&config(kind), split, training, seed, &scores).0;
    let cost = |kind, training| cost(&config(kind), split, training);
    grid.run(updates, &METRICS, &train, &cost, tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(lengths: &[usize]) -> Sequences {
        let (time, width) = (5, 2);
        // Class 1 rises where class 0 falls.
        let value = |i: usize, t: usize| {
            let slope = if i.is_multiple_of(2) { -1.0 } else { 1.0 };
            [slope * (t as f32 - 2.0) + (i as f32).sin(), (i * i) as f32 % 3.0]
        };
        let all = (0..lengths.len()).flat_map(|i| (0..time).flat_map(move |t| value(i, t)));
        let classes = (0..lengths.len()).map(|i| i % 2).collect();
        Sequences { values: all.collect(), lengths: lengths.to_vec(), classes, time, width }
    }

    const SIZE: Size = Size { d_model: 8, n_heads: 2, n_layers: 1 };
    const FOURIER: Kind = Kind::Fourier { power: 4, initial: 1.0, vector: false };

    fn config(kind: Kind, head: Option<FourierHeadConfig>) -> Config {
        Config { kind, size: SIZE, head, n_classes: 2 }
    }

    #[test]
    fn padding_changes_nothing() {
        for kind in [Kind::Softmax, FOURIER] {
            let mut data = sequences(&[3, 5]);
            let config = config(kind, None);
            let network = learning::network(1, |init| Classifier::new(&config, &data, init));
            let network = network.valid();
            let before = network.probs(&data);
            for padding in &mut data.values[3 * 2..5 * 2] {
                *padding = 7.0;
            }
            let after = network.probs(&data);
            for (a, b) in before.concat().iter().zip(after.concat()) {
                assert!((a - b).abs() < 1e-6, "{kind}: {before:?} {after:?}");
            }
        }
    }

    #[test]
    fn real_steps_alone_are_standardized_by() {
        let mut data = Sequences {
            values: vec![1.0, 3.0, 99.0, 5.0, 7.0, 99.0],
            lengths: vec![2, 2],
            classes: vec![0, 1],
            time: 3,
            width: 1,
        };
        data.standardize(&data.clone());
        // Mean 4, sample deviation √(20/3).
        let expected = -3.0 / (20.0f32 / 3.0).sqrt();
        assert!((data.values[0] - expected).abs() < 1e-6, "{:?}", data.values);
    }

    #[test]
    fn every_kind_and_head_learns() {
        let data = sequences(&[5; 24]);
        let split = Split { train: data.clone(), test: data, n_classes: 2 };
        let training = Training {
            updates: 60,
            batch: 8,
            learning_rate: 0.01,
            weight_decay: 0.0,
            look_every: 30,
        };
        let score = |probs: &[Vec<f64>]| vec![accuracy(probs, &split.test.classes)];
        for config in [
            config(Kind::Softmax, None),
            config(FOURIER, None),
            config(Kind::Softmax, Some(FourierHeadConfig::new(1))),
        ] {
            let (run, _) = train(&config, &split, training, 3, &score);
            assert!(run.scores[0] > 90.0, "{config:?}: {run:?}");
            assert_eq!(run.curve.len(), 2);
            let again = train(&config, &split, training, 3, &score).0;
            assert_eq!(run, again, "a seed is one training");
        }
    }
}
