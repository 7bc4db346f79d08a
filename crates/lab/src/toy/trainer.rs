//! Training a toy network: minibatches, Adam (Kingma and Ba 2015), and the two schedules of
//! the paper's experiments.

use multiversion::multiversion;
use overtone_core::seed::Generator;
use overtone_kernels::clip_factor;
use rand::seq::SliceRandom;

use super::data::{BINS, Samples, bin_centre};
use super::head::{Head, HeadKind, Targets};
use super::network::{INPUTS, Network};
use super::number::Number;
use super::product::LANES;

/// Rows of a step.
pub const BATCH: usize = 32;
/// The learning rate, at the start of a schedule or throughout.
pub const LEARNING_RATE: f64 = 1e-3;
/// PyTorch's defaults of Adam: β₁, β₂, ε.
const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;
/// Likelihood heads: the largest norm of the gradient over all parameters.
const MAX_NORM: f64 = 0.1;
/// Likelihood heads: the learning rate that the cosine ends at.
const LAST_RATE: f64 = 1e-6;

impl HeadKind {
    /// Whether it learns `z` itself, from `x` and `y` themselves.
    pub fn is_likelihood(self) -> bool {
        matches!(self, Self::FourierLikelihood { .. } | Self::GmmLikelihood { .. })
    }

    /// The learning rate of an epoch, from 0: constant, or for likelihood heads a cosine that
    /// ends after `epochs`.
    pub fn learning_rate(self, epoch: usize, epochs: usize) -> f64 {
        if !self.is_likelihood() {
            return LEARNING_RATE;
        }
        let turn = std::f64::consts::PI * epoch as f64 / epochs as f64;
        LAST_RATE + (LEARNING_RATE - LAST_RATE) * (1.0 + turn.cos()) / 2.0
    }
}

/// Rows of a dataset as a network sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    /// `[rows, 2]`: the *numbers* of the bins of `x` and `y`, as in the released code, or for
    /// likelihood heads `x` and `y` in single precision.
    pub inputs: Vec<T>,
    /// The bin of `z`.
    pub bins: Vec<usize>,
    /// `z` in single precision for likelihood heads, else the centre of its bin.
    pub values: Vec<T>,
}

impl<T: Number> Rows<T> {
    /// The rows of `samples` that `rows` names, for a kind of head.
    pub fn new(samples: &Samples, rows: &[usize], kind: HeadKind) -> Self {
        let mut all = Self { inputs: Vec::new(), bins: Vec::new(), values: Vec::new() };
        for &row in rows {
            let bins = samples.bins(row);
            let numbers = if kind.is_likelihood() {
                samples.rows[row].map(|value| f64::from(value as f32))
            } else {
                [bins[0] as f64, bins[1] as f64, bin_centre(bins[2], BINS)]
            };
            all.inputs.extend(numbers[..INPUTS].iter().map(|&value| T::of(value)));
            all.bins.push(bins[2]);
            all.values.push(T::of(numbers[INPUTS]));
        }
        all
    }

    /// Their number.
    fn len(&self) -> usize {
        self.bins.len()
    }

    /// Appends a row of another set.
    fn push(&mut self, from: &Self, row: usize) {
        self.inputs.extend_from_slice(&from.inputs[INPUTS * row..][..INPUTS]);
        self.bins.push(from.bins[row]);
        self.values.push(from.values[row]);
    }

    fn clear(&mut self) {
        self.inputs.clear();
        self.bins.clear();
        self.values.clear();
    }
}

/// A network, its head and the optimizer's memory.
#[derive(Clone, Debug)]
pub struct Trainer<T> {
    /// The network.
    pub network: Network<T>,
    kind: HeadKind,
    head: Head<T>,
    /// Running means of gradients and of their squares.
    first: Vec<T>,
    second: Vec<T>,
    steps: i32,
    batch: Rows<T>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The mean loss of the batch before the step, regulariser included.
    pub loss: f64,
    /// The gradient's norm before it is clipped; `None` where nothing is clipped.
    pub gradient_norm: Option<f64>,
}

impl<T: Number> Trainer<T> {
    /// A network with initial weights.
    pub fn new(kind: HeadKind, generator: &mut Generator) -> Self {
        let head = Head::new(kind);
        let network = Network::init(head.outputs(), &head.free(), head.divisor(), generator);
        let zeros = vec![T::ZERO; network.parameters.len()];
        let batch = Rows { inputs: Vec::new(), bins: Vec::new(), values: Vec::new() };
        Self { network, kind, head, first: zeros.clone(), second: zeros, steps: 0, batch }
    }

    /// The mean loss of `rows`; leaves its gradient in the network.
    pub fn loss(&mut self, rows: &Rows<T>) -> f64 {
        self.network.forward(&rows.inputs);
        let targets = Targets { bins: &rows.bins, values: &rows.values };
        let loss = self.head.loss(self.network.for_loss(), targets);
        self.network.backward(&rows.inputs);
        loss
    }

    /// One step of Adam on `rows`.
    pub fn step(&mut self, rows: &Rows<T>, learning_rate: f64) -> Step {
        let loss = self.loss(rows);
        let gradient_norm =
            self.kind.is_likelihood().then(|| square_sum(&self.network.gradients).sqrt());
        let scale = gradient_norm.map_or(1.0, |norm| clip_factor(norm, MAX_NORM));
        self.steps += 1;
        let bias = BETAS.map(|beta| 1.0 - beta.powi(self.steps));
        let factors = [
            scale,
            BETAS[0],
            1.0 - BETAS[0],
            BETAS[1],
            1.0 - BETAS[1],
            learning_rate / bias[0],
            1.0 / bias[1].sqrt(),
            EPSILON,
        ];
        adam(
            &mut self.network.parameters,
            &self.network.gradients,
            &mut self.first,
            &mut self.second,
            factors.map(T::of),
        );
        Step { loss, gradient_norm }
    }

    /// One epoch: every row once, in an order drawn from `generator`, [`BATCH`] rows a step.
    /// The mean loss over steps.
    pub fn epoch(&mut self, rows: &Rows<T>, learning_rate: f64, generator: &mut Generator) -> f64 {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.shuffle(generator);
        let mut batch = std::mem::replace(
            &mut self.batch,
            Rows { inputs: Vec::new(), bins: Vec::new(), values: Vec::new() },
        );
        let steps = order.len().div_ceil(BATCH);
        let mut total = 0.0;
        for chosen in order.chunks(BATCH) {
            batch.clear();
            chosen.iter().for_each(|&row| batch.push(rows, row));
            total += self.step(&batch, learning_rate).loss;
        }
        self.batch = batch;
        total / steps as f64
    }

    /// [`Head::probs`] of every row.
    pub fn probs(&mut self, inputs: &[T], m: usize) -> Vec<f64> {
        let mut probs = Vec::with_capacity(inputs.len() / INPUTS * m);
        for inputs in inputs.chunks(INPUTS * BATCH) {
            let columns = self.network.columns();
            self.network.forward(inputs);
            let (outputs, free) = (self.network.outputs(), self.network.free());
            probs.extend(self.head.probs(outputs, columns, free, m));
        }
        probs
    }

    /// [`Head::densities`] of every row at its own point.
    pub fn densities(&mut self, inputs: &[T], points: &[f64]) -> Option<Vec<f64>> {
        let columns = self.network.columns();
        self.network.forward(inputs);
        self.head.densities(self.network.outputs(), columns, self.network.free(), points)
    }

    /// What the network answers, without a head: for pointwise regression the prediction.
    pub fn predictions(&mut self, inputs: &[T]) -> Vec<f64> {
        let columns = self.network.columns();
        self.network.forward(inputs).chunks_exact(columns).map(|row| row[0].wide()).collect()
    }
}

/// Zero in place of what is too small to move a parameter. The means of a dead unit's
/// gradients, which are zero, would else shrink to subnormal numbers and stay there, and
/// arithmetic on those takes a hundred times as long.
#[inline(always)]
fn settle<T: Number>(mean: T) -> T {
    let size = if mean < T::ZERO { -mean } else { mean };
    if size < T::of(1e-30) { T::ZERO } else { mean }
}

/// `factors`: gradient's scale, β₁, 1 - β₁, β₂, 1 - β₂, rate over its bias, one over the
/// root of the bias of squares, ε.
#[multiversion(targets = "simd")]
fn adam<T: Number>(
    parameters: &mut [T],
    gradients: &[T],
    first: &mut [T],
    second: &mut [T],
    factors: [T; 8],
) {
    let [scale, keep, take, keep_squares, take_squares, rate, unbias, epsilon] = factors;
    let parameters = parameters.iter_mut().zip(gradients);
    for ((parameter, gradient), (first, second)) in parameters.zip(first.iter_mut().zip(second)) {
        let gradient = *gradient * scale;
        *first = settle(keep * *first + take * gradient);
        *second = settle(keep_squares * *second + take_squares * (gradient * gradient));
        *parameter = *parameter - rate * *first / (second.sqrt() * unbias + epsilon);
    }
}

#[multiversion(targets = "simd")]
fn square_sum<T: Number>(values: &[T]) -> f64 {
    let mut sums = [T::ZERO; LANES];
    for values in values.chunks(LANES) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += *value * *value;
        }
    }
    sums.iter().map(|sum| sum.wide()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::data::{Dataset, Split};
    use overtone_core::seed;

    const KINDS: [HeadKind; 6] = [
        HeadKind::Linear,
        HeadKind::Fourier { frequencies: 5, gamma: 1.0 },
        HeadKind::Gmm { components: 2 },
        HeadKind::Pointwise,
        HeadKind::FourierLikelihood { frequencies: 5, gamma: 1.0 },
        HeadKind::GmmLikelihood { components: 2 },
    ];

    fn rows<T: Number>(kind: HeadKind, n: usize) -> Rows<T> {
        Rows::new(&Dataset::Gmm2.draw(9), &Split::default().train[..n], kind)
    }

    /// By every 37th parameter and the head's own, through network and head.
    #[test]
    fn gradients_are_central_differences() {
        for kind in KINDS {
            let mut trainer = Trainer::<f64>::new(kind, &mut seed::generator(3, "init"));
            let rows = rows(kind, 13);
            trainer.loss(&rows);
            let gradients = trainer.network.gradients.clone();
            let scale = gradients.iter().fold(0.0f64, |most, by| most.max(by.abs()));
            let free = gradients.len() - trainer.network.free().len();
            let mut n_moving = 0;
            for index in (0..free).step_by(37).chain(free..gradients.len()) {
                let at = trainer.network.parameters[index];
                let mut value = |x: f64| {
                    trainer.network.parameters[index] = x;
                    trainer.loss(&rows)
                };
                // Small: the Fourier heads' parameters begin around 1e-3.
                let step = 1e-7;
                let difference = (value(at + step) - value(at - step)) / (2.0 * step);
                value(at);
                let off = (gradients[index] - difference).abs();
                assert!(off < 1e-5 * scale, "{kind}: {} against {difference}", gradients[index]);
                n_moving += usize::from(difference.abs() > 1e-4 * scale);
            }
            assert!(n_moving > 10, "{kind}: {n_moving}");
        }
    }

    #[test]
    fn an_epoch_takes_every_row_once_and_its_seed_decides_it() {
        // 70 rows: two whole steps and one of six rows.
        for kind in KINDS {
            let train = |seed: u64| {
                let mut trainer = Trainer::<f32>::new(kind, &mut seed::generator(3, "init"));
                let mut order = seed::generator(seed, "sampling");
                let rows = rows(kind, 70);
                let losses: Vec<f64> =
                    (0..4).map(|_| trainer.epoch(&rows, 1e-3, &mut order)).collect();
                assert_eq!(trainer.steps, 12);
                assert!(trainer.network.parameters.iter().all(|p| p.is_finite()), "{kind}");
                (losses, trainer.network.parameters)
            };
            assert_eq!(train(1), train(1));
            assert_ne!(train(1).1, train(2).1);
        }
    }

    #[test]
    fn likelihood_heads_go_down_a_cosine() {
        let kind = HeadKind::GmmLikelihood { components: 1 };
        let rates = [0, 50, 100].map(|epoch| kind.learning_rate(epoch, 100));
        // The middle: half-way between 1e-3 and 1e-6.
        for (got, expected) in rates.iter().zip([1e-3, 5.005e-4, 1e-6]) {
            assert!((got - expected).abs() < 1e-12, "{rates:?}");
        }
        assert_eq!(HeadKind::Linear.learning_rate(77, 100), 1e-3);
    }

    #[test]
    fn rows_are_bins_or_numbers() {
        let samples = Dataset::Gmm2.draw(9);
        let row = Split::default().train[0];
        let [x, y, z] = samples.rows[row];
        let bins = rows::<f64>(HeadKind::Linear, 1);
        let [at_x, at_y, at_z] = samples.bins(row);
        assert_eq!(bins.inputs, [at_x as f64, at_y as f64]);
        assert_eq!((bins.bins[0], bins.values[0]), (at_z, bin_centre(at_z, BINS)));
        let numbers = rows::<f64>(HeadKind::GmmLikelihood { components: 1 }, 1);
        assert_eq!(numbers.inputs, [f64::from(x as f32), f64::from(y as f32)]);
        assert_eq!(numbers.values, [f64::from(z as f32)]);
    }

    #[test]
    fn means_that_move_nothing_become_zero() {
        let (mut p, mut m, mut v) = ([1.0f32], [1e-29f32], [1e-29f32]);
        let factors = [1.0, 0.9, 0.1, 0.999, 0.001, 1e-3, 1.0, 1e-8];
        for _ in 0..30 {
            adam(&mut p, &[0.0], &mut m, &mut v, factors);
        }
        assert_eq!((p, m), ([1.0], [0.0]));
        assert!(v[0] > 0.0);
        for _ in 0..3000 {
            adam(&mut p, &[0.0], &mut m, &mut v, factors);
        }
        assert_eq!(v, [0.0]);
    }
}
