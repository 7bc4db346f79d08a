//! A head's output for a batch of actions, on the host: the input of a policy's selection.

use burn::tensor::Tensor;
use overtone_core::seed::Generator;
use rand::RngExt;

use super::categorical;

/// A head's output for each row's action.
pub enum Decisions {
    /// Probabilities of discrete actions.
    Actions(LogitsDecisions),
    /// Distributions of the dimensions of a continuous action.
    Numbers(NumbersDecisions),
}

impl Decisions {
    /// The output for discrete actions.
    pub fn actions(self) -> Option<LogitsDecisions> {
        match self {
            Self::Actions(decisions) => Some(decisions),
            Self::Numbers(_) => None,
        }
    }

    /// The output for continuous actions.
    pub fn numbers(self) -> Option<NumbersDecisions> {
        match self {
            Self::Actions(_) => None,
            Self::Numbers(decisions) => Some(decisions),
        }
    }
}

/// Logits of discrete actions, row by row.
pub struct LogitsDecisions {
    logits: Vec<f32>,
    n_actions: usize,
}

impl LogitsDecisions {
    /// The decisions of these logits, `[rows, n_actions]`, by environment action id.
    pub fn of(logits: Tensor<2>) -> Self {
        let [_, n_actions] = logits.dims();
        Self { logits: read(logits), n_actions }
    }

    /// Leaves only the allowed actions: the logits of the others become -inf.
    ///
    /// # Shapes
    /// - `allowed`: `[rows, n_actions]`
    pub fn allow(&mut self, allowed: &[bool]) {
        for (logit, allowed) in self.logits.iter_mut().zip(allowed) {
            if !allowed {
                *logit = f32::NEG_INFINITY;
            }
        }
    }

    /// Logits of one row, by environment action id.
    pub fn logits(&self, row: usize) -> &[f32] {
        &self.logits[row * self.n_actions..(row + 1) * self.n_actions]
    }

    /// The most probable action; the first of equals.
    pub fn mode(&self, row: usize) -> usize {
        categorical::most_probable(self.logits(row))
    }

    /// An action drawn at a softmax temperature.
    pub fn draw(&self, row: usize, temperature: f32, generator: &mut Generator) -> usize {
        let draw = generator.random::<f64>();
        categorical::sample(&categorical::weights(self.logits(row), temperature), draw)
    }

    /// The probabilities of [`draw`](Self::draw), by environment action id.
    pub fn probs(&self, row: usize, temperature: f32) -> Vec<f64> {
        let weights = categorical::weights(self.logits(row), temperature);
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }
}

/// Distributions of single dimensions: place `row · width + i` is dimension `i` of a row's action.
/// The caller clamps values to [-1, 1].
pub trait Marginals {
    /// Whether the head's outputs for this place are finite. If not, the distribution is invalid,
    /// and the caller returns NaN.
    fn is_finite(&self, place: usize) -> bool;

    /// The most probable value, or the prediction of a head without distribution.
    fn mode(&self, place: usize) -> f64;

    /// A sample, or the prediction of a head without distribution, which draws no random number.
    /// Bins are sampled at the temperature; densities ignore it.
    fn draw(&self, place: usize, temperature: f32, generator: &mut Generator) -> f64;
}

/// Continuous actions, row by row. An entry is NaN if the head's outputs are not finite: the
/// weights are broken.
pub struct NumbersDecisions {
    rows: usize,
    width: usize,
    marginals: Box<dyn Marginals>,
}

impl NumbersDecisions {
    pub(super) fn new([rows, width]: [usize; 2], marginals: Box<dyn Marginals>) -> Self {
        Self { rows, width, marginals }
    }

    /// Actions `[rows, width]` without a distribution.
    pub fn of(actions: Tensor<2>) -> Self {
        Self::new(actions.dims(), Box::new(Points(read(actions))))
    }

    /// The most probable action of every row, `rows · width` numbers in [-1, 1].
    pub fn modes(&self) -> Vec<f64> {
        (0..self.rows).flat_map(|row| self.mode(row)).collect()
    }

    /// The most probable action, in [-1, 1].
    pub fn mode(&self, row: usize) -> Vec<f64> {
        self.numbers(row, |place| self.marginals.mode(place))
    }

    /// A sample in [-1, 1]. A Gaussian's sample is clamped, and a sample from a bin is the bin's
    /// centre.
    pub fn draw(&self, row: usize, temperature: f32, generator: &mut Generator) -> Vec<f64> {
        self.numbers(row, |place| self.marginals.draw(place, temperature, generator))
    }

    /// `number` at each place of a row, with NaN for invalid distributions.
    fn numbers(&self, row: usize, mut number: impl FnMut(usize) -> f64) -> Vec<f64> {
        let places = row * self.width..(row + 1) * self.width;
        // Many distributions would turn NaN into a finite number.
        let checked = |place| {
            if self.marginals.is_finite(place) { number(place).clamp(-1.0, 1.0) } else { f64::NAN }
        };
        places.map(checked).collect()
    }
}

/// Predictions without a distribution.
pub(super) struct Points(pub(super) Vec<f64>);

impl Marginals for Points {
    fn is_finite(&self, place: usize) -> bool {
        self.0[place].is_finite()
    }

    fn mode(&self, place: usize) -> f64 {
        self.0[place]
    }

    fn draw(&self, place: usize, _temperature: f32, _generator: &mut Generator) -> f64 {
        self.mode(place)
    }
}

/// A tensor's numbers on the host.
pub(super) fn read<T: burn::tensor::Element, const D: usize>(tensor: Tensor<D>) -> Vec<T> {
    tensor.into_data().iter::<T>().collect()
}
