//! What a head says about a batch of actions, on the host: what a policy chooses from.

use burn::tensor::Tensor;
use overtone_core::seed::Generator;
use rand::RngExt;

use super::HeadOutput;
use super::categorical;

/// What a head says about each row's action.
pub enum Decisions {
    /// How probable each of a list of actions is.
    Actions(LogitsDecisions),
    /// What each number of a real-valued action may be.
    Numbers(NumbersDecisions),
}

impl Decisions {
    /// Of a list of actions.
    pub fn actions(self) -> Option<LogitsDecisions> {
        match self {
            Self::Actions(decisions) => Some(decisions),
            Self::Numbers(_) => None,
        }
    }

    /// Of real-valued actions.
    pub fn numbers(self) -> Option<NumbersDecisions> {
        match self {
            Self::Actions(_) => None,
            Self::Numbers(decisions) => Some(decisions),
        }
    }
}

/// Logits of a list of actions, row by row.
pub struct LogitsDecisions {
    logits: Vec<f32>,
    n_actions: usize,
}

impl LogitsDecisions {
    pub(super) fn new(output: HeadOutput) -> Self {
        let [_, n_actions] = output.logits.dims();
        Self { logits: read(output.logits), n_actions }
    }

    /// Of one row, by environment action id.
    pub fn logits(&self, row: usize) -> &[f32] {
        &self.logits[row * self.n_actions..(row + 1) * self.n_actions]
    }

    /// The most probable action, of equals the first.
    pub fn mode(&self, row: usize) -> usize {
        categorical::most_probable(self.logits(row))
    }

    /// An action drawn at a softmax temperature.
    pub fn draw(&self, row: usize, temperature: f32, generator: &mut Generator) -> usize {
        let draw = generator.random::<f64>();
        categorical::sample(&categorical::weights(self.logits(row), temperature), draw)
    }

    /// What [`draw`](Self::draw) draws from, by environment action id.
    pub fn probs(&self, row: usize, temperature: f32) -> Vec<f64> {
        let weights = categorical::weights(self.logits(row), temperature);
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }
}

/// Distributions of single numbers: place `row · width + i` is number `i` of a row's action.
/// What lies outside [-1, 1] is moved to the nearer end by who asks.
pub trait Marginals {
    /// Whether the numbers that the head gave for this place are finite. Others describe nothing,
    /// and who asks is told NaN.
    fn is_finite(&self, place: usize) -> bool;

    /// The most probable value, or the prediction where there is no distribution.
    fn mode(&self, place: usize) -> f64;

    /// A draw; the prediction, and nothing drawn, where there is no distribution. Bins are drawn at
    /// the temperature; a density has none.
    fn draw(&self, place: usize, temperature: f32, generator: &mut Generator) -> f64;

    /// What lies above a share `q` of the distribution, `q` in (0, 1); the prediction where there
    /// is none.
    fn quantile(&self, place: usize, q: f64) -> f64;
}

/// Real-valued actions, row by row. A number is NaN where the head gave numbers that are not
/// finite: the weights are broken.
pub struct NumbersDecisions {
    rows: usize,
    width: usize,
    marginals: Box<dyn Marginals>,
}

impl NumbersDecisions {
    pub(super) fn new([rows, width]: [usize; 2], marginals: Box<dyn Marginals>) -> Self {
        Self { rows, width, marginals }
    }

    /// The most probable action of every row, `rows · width` numbers in [-1, 1].
    pub fn modes(&self) -> Vec<f64> {
        (0..self.rows).flat_map(|row| self.mode(row)).collect()
    }

    /// The most probable action, in [-1, 1].
    pub fn mode(&self, row: usize) -> Vec<f64> {
        self.numbers(row, |place| self.marginals.mode(place))
    }

    /// A draw, in [-1, 1]: what a Gaussian draws outside becomes the nearer end, and what lies
    /// in a bin its centre.
    pub fn draw(&self, row: usize, temperature: f32, generator: &mut Generator) -> Vec<f64> {
        self.numbers(row, |place| self.marginals.draw(place, temperature, generator))
    }

    /// The `q`-quantile of each number, in [-1, 1].
    pub fn quantile(&self, row: usize, q: f64) -> Vec<f64> {
        self.numbers(row, |place| self.marginals.quantile(place, q))
    }

    /// What `number` says at each place of a row.
    fn numbers(&self, row: usize, mut number: impl FnMut(usize) -> f64) -> Vec<f64> {
        let places = row * self.width..(row + 1) * self.width;
        // Many distributions would make a finite number of NaN.
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

    fn quantile(&self, place: usize, _q: f64) -> f64 {
        self.mode(place)
    }
}

/// A tensor's numbers on the host.
pub(super) fn read<T: burn::tensor::Element, const D: usize>(tensor: Tensor<D>) -> Vec<T> {
    tensor.into_data().iter::<T>().collect()
}
