//! A transformer encoder that puts a sequence of vectors into one of several classes: the network
//! of series, of images in patches and of spectrograms.

use burn::{
    module::{Module, Param},
    nn::Linear,
    tensor::{Bool, Device, Int, Tensor, TensorData, activation::softmax},
};
use overtone_eval::Pooled;
use overtone_model::{
    Init,
    head::{BinsHead, BinsOptions, FourierHeadConfig, LinearHead, cross_entropy},
};

use crate::comparison::{Comparison, Metric};
use crate::grid::Grid;
use crate::learning::{Order, Task};
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
        let size = of.time * of.width;
        for feature in 0..self.width {
            let mut real = Pooled::default();
            for (row, length) in of.values.chunks_exact(size).zip(&of.lengths) {
                let values = row[..length * of.width].iter().skip(feature).step_by(of.width);
                values.for_each(|value| real.add((*value).into()));
            }
            let sd = real.sd().filter(|sd| *sd > 0.0).unwrap_or(1.0);
            for value in self.values.iter_mut().skip(feature).step_by(self.width) {
                *value = ((f64::from(*value) - real.mean) / sd) as f32;
            }
        }
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

/// Linear layer, learned positions, transformer, the mean over real steps, head.
#[derive(Module, Debug)]
pub struct Classifier {
    input: Linear,
    positions: Param<Tensor<2>>,
    transformer: Transformer,
    head: BinsHead,
}

impl Classifier {
    /// For sequences as these: a linear head, or a Fourier head of so many frequencies, for which
    /// neighbouring classes are alike.
    fn new(
        (kind, frequencies): (Kind, Option<usize>),
        size: Size,
        split: &Split,
        init: &mut Init<'_>,
    ) -> Self {
        let (d, n_classes) = (size.d_model, split.n_classes);
        Self {
            input: linear(split.train.width, d, init),
            positions: init.normal([split.train.time, d], EMBEDDING),
            transformer: Transformer::new(kind, size, Sight::All, init),
            head: match frequencies {
                None => BinsHead::Linear(LinearHead { weight: init.linear([d, n_classes]).0 }),
                Some(n) => BinsHead::Fourier(FourierHeadConfig::new(n).init(d, n_classes, init)),
            },
        }
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

    /// Mean cross-entropy in nats.
    pub fn loss(&self, batch: &Batch) -> Tensor<1> {
        let logits = self.head.forward(self.pooled(batch)).logits;
        cross_entropy(logits, batch.classes.clone()).mean()
    }

    /// Probabilities of classes of all sequences, a row each.
    pub fn probs(&self, data: &Sequences) -> Vec<Vec<f64>> {
        let rows: Vec<usize> = (0..data.lengths.len()).collect();
        let part = |rows: &[usize]| -> Vec<Vec<f64>> {
            let pooled = self.pooled(&data.batch(rows, &Device::flex()));
            let probs = softmax(self.head.forward(pooled).logits, 1);
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

/// Classification, with any kind of attention and a linear or a Fourier head.
pub struct Classification<'a> {
    /// The data.
    pub split: &'a Split,
    /// The size of the transformer.
    pub size: Size,
    /// Numbers of the test set's probabilities, the first of which is the curve's.
    pub scores: &'a (dyn Fn(&[Vec<f64>]) -> Vec<f64> + Sync),
    /// The test sequence whose probabilities are shown.
    pub shown: Option<usize>,
}

impl Task for Classification<'_> {
    type Variant = (Kind, Option<usize>);
    type Network = Classifier;

    fn network(&self, variant: Self::Variant, init: &mut Init<'_>) -> Classifier {
        Classifier::new(variant, self.size, self.split, init)
    }

    fn loss(&self, seed: u64, batch: usize) -> impl FnMut(&Classifier, &Device) -> Tensor<1> {
        let train = &self.split.train;
        let mut order = Order::new(train.lengths.len(), seed);
        move |network, device| network.loss(&train.batch(&order.next(batch), device))
    }

    fn evaluate(&self, network: &Classifier) -> f64 {
        (self.scores)(&network.probs(&self.split.test))[0]
    }

    fn measure(&self, network: &Classifier, loss: f64) -> (Vec<f64>, Vec<f64>) {
        let mut probs = network.probs(&self.split.test);
        let mut scores = (self.scores)(&probs);
        scores.push(loss);
        (scores, self.shown.map(|shown| probs.swap_remove(shown)).unwrap_or_default())
    }
}

/// The numbers of classifiers with linear heads.
const METRICS: [Metric; 2] =
    [Metric { name: "accuracy, %", digits: 2 }, Metric { name: "training loss, nats", digits: 4 }];

/// Compares kinds of attention by the accuracy of classifiers.
pub fn compare(grid: &Grid, updates: usize, split: &Split, tick: &(dyn Fn() + Sync)) -> Comparison {
    let scores = |probs: &[Vec<f64>]| vec![accuracy(probs, &split.test.classes)];
    let size = grid.network.size();
    let task = Classification { split, size, scores: &scores, shown: None };
    grid.run(&task, &METRICS, updates, |kind| (kind, None), tick)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::{Training, network, train};

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

    #[test]
    fn padding_changes_nothing() {
        for kind in [Kind::Softmax, FOURIER] {
            let mut data = sequences(&[3, 5]);
            let split = Split { train: data.clone(), test: data.clone(), n_classes: 2 };
            let new = |init: &mut Init<'_>| Classifier::new((kind, None), SIZE, &split, init);
            let network = network(1, new).valid();
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
            evaluate_every: 30,
        };
        let scores = |probs: &[Vec<f64>]| vec![accuracy(probs, &split.test.classes)];
        let task = Classification { split: &split, size: SIZE, scores: &scores, shown: Some(3) };
        for variant in [(Kind::Softmax, None), (FOURIER, None), (Kind::Softmax, Some(1))] {
            let run = train(&task, variant, training, 3);
            assert!(run.scores[0] > 90.0, "{variant:?}: {run:?}");
            assert_eq!((run.curve.len(), run.detail.len()), (2, 2));
            assert_eq!(run, train(&task, variant, training, 3), "a seed is one training");
        }
    }
}
