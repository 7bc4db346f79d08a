//! What is measured of networks: on the test rows of a draw, and on its example.

use burn::tensor::{Device, Tensor, TensorData};
use overtone_eval::{Pooled, Smoothness};

use super::data::{BINS, Draw, Row, bin_centre};
use super::head::HeadKind;
use super::stack::{Batch, Stack};
use crate::classifier::likeliest;

/// Points at which densities without bins are compared: centres of as many bins, the reference's.
const GRID: usize = 1000;
/// Added to a probability, or the least one, before its logarithm, as in the reference.
const FLOOR: f64 = 1e-10;
/// Test rows that are evaluated at once: of all, a grid would fill 100 MB.
const ROWS: usize = 100;

/// The numbers on bins, and without bins.
pub const METRICS: [&[&str]; 2] =
    [&["KL", "MSE", "MSE (argmax)", "smoothness"], &["KL", "perplexity"]];
/// The place of smoothness; KL's is 0, and the squared errors stand between.
pub const SMOOTHNESS: usize = 3;

/// Whether a number says something about a head: of pointwise regression only squared errors do.
pub fn fits(metric: usize, head: HeadKind) -> bool {
    head != HeadKind::Pointwise || (1..SMOOTHNESS).contains(&metric)
}

impl Batch {
    /// Appends a row: the *numbers* of the bins of `x` and `y`, as in the released code, or
    /// without bins `x` and `y` themselves.
    pub fn push(&mut self, row: &Row, likelihood: bool) {
        let ([x, y, z], [x_bin, y_bin, z_bin]) = (row.values, row.bins);
        self.bins.push(z_bin.into());
        let binned = [x_bin.into(), y_bin.into(), bin_centre(z_bin.into(), BINS) as f32];
        let [x, y, z] = if likelihood { [x, y, z] } else { binned };
        self.inputs.extend([x, y]);
        self.values.push(z);
    }
}

/// A draw, and the true distributions of its test rows.
pub struct Judge {
    /// The draw.
    pub draw: Draw,
    /// Bins, or points of the grid.
    pub m: usize,
    likelihood: bool,
    /// `[rows, m]`
    truth: Vec<f32>,
    smoothness: Smoothness,
}

impl Judge {
    /// Of a draw.
    pub fn new(draw: &Draw, likelihood: bool) -> Self {
        let (m, floor) = if likelihood { (GRID, FLOOR) } else { (BINS, 0.0) };
        let truths = draw.test.iter().map(|row| draw.dataset.truth(row.at(), m));
        let truth = truths.flatten().map(|t| t.max(floor) as f32).collect();
        let smoothness = Smoothness::new(BINS);
        Self { draw: draw.clone(), m, likelihood, truth, smoothness }
    }

    /// KL(truth ‖ `probs`) of a test row in nats. On bins the floor is added, without bins it is
    /// the least probability.
    fn divergence(&self, row: usize, probs: &[f64]) -> f64 {
        let log = |p: f64| if self.likelihood { p.max(FLOOR).ln() } else { (p + FLOOR).ln() };
        let truth = self.truth[row * self.m..][..self.m].iter().map(|t| f64::from(*t));
        truth.zip(probs).filter(|(t, _)| *t > 0.0).map(|(t, p)| t * (t.ln() - log(*p))).sum()
    }

    /// The numbers of a test row's distribution, in the order of [`METRICS`]; its `loss` in place
    /// of the perplexity.
    fn numbers(&self, row: usize, probs: &[f64], loss: f64) -> [f64; 4] {
        let divergence = self.divergence(row, probs);
        if self.likelihood {
            return [divergence, loss, 0.0, 0.0];
        }
        let truth = bin_centre(self.draw.test[row].bins[2].into(), BINS);
        let error = |guess: usize| (bin_centre(guess, BINS) - truth).powi(2);
        let expected: f64 = probs.iter().enumerate().map(|(j, p)| j as f64 * p).sum();
        let expected = error(expected.round_ties_even() as usize);
        [divergence, expected, error(likeliest(probs)), self.smoothness.l2(probs)]
    }
}

/// The numbers of every run of a stack over its test rows, in the order of [`METRICS`].
pub fn evaluate(head: HeadKind, stack: &Stack, judges: &[&Judge]) -> Vec<[Pooled; 4]> {
    let (m, n_rows) = (judges[0].m, judges[0].draw.test.len());
    let mut pooled = vec![[Pooled::default(); 4]; judges.len()];
    for first in (0..n_rows).step_by(ROWS) {
        let n = ROWS.min(n_rows - first);
        let mut batch = Batch::default();
        for judge in judges {
            let rows = &judge.draw.test[first..first + n];
            rows.iter().for_each(|row| batch.push(row, judge.likelihood));
        }
        let (inputs, targets) = batch.load(judges.len(), &Device::flex());
        let outputs = stack.forward(inputs);
        let losses = head.losses(outputs.clone(), &targets).0.into_data();
        let probs = head.probs(outputs, m);
        for (i, (probs, loss)) in probs.chunks(m).zip(losses.iter::<f64>()).enumerate() {
            let numbers = judges[i / n].numbers(first + i % n, probs, loss);
            pooled[i / n].iter_mut().zip(numbers).for_each(|(pooled, x)| pooled.add(x));
        }
    }
    pooled
}

/// The distribution of each draw's example by each run; of pointwise regression the prediction.
pub fn examples(head: HeadKind, stack: &Stack, judges: &[&Judge]) -> Vec<Vec<f64>> {
    let mut batch = Batch::default();
    for judge in judges {
        batch.push(&judge.draw.test[judge.draw.example()], judge.likelihood);
    }
    let inputs = TensorData::new(batch.inputs, [judges.len(), 1, 2]);
    let outputs = stack.forward(Tensor::from_data(inputs, &Device::flex()));
    match head {
        HeadKind::Pointwise => outputs.into_data().iter::<f64>().map(|at| vec![at]).collect(),
        _ => head.probs(outputs, judges[0].m).chunks(judges[0].m).map(<[f64]>::to_vec).collect(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
pub(super) mod tests {
    use super::super::data::Dataset;
    use super::*;
    use crate::data_file::shipped;

    pub(in crate::toy) fn judge(dataset: Dataset, likelihood: bool) -> Judge {
        let draws = Draw::read(&shipped("lab/toy.safetensors"), &[dataset], &[1]).unwrap();
        Judge::new(&draws[0], likelihood)
    }

    #[test]
    fn the_truth_itself_has_no_divergence() {
        for likelihood in [false, true] {
            let judge = judge(Dataset::Gmm2, likelihood);
            for (row, truth) in judge.truth.chunks(judge.m).enumerate() {
                let probs: Vec<f64> = truth.iter().map(|&t| t.into()).collect();
                let divergence = judge.divergence(row, &probs);
                assert!(divergence.abs() < 1e-6, "{divergence}");
            }
        }
    }

    #[test]
    fn errors_are_between_centres_of_bins() {
        let mut judge = judge(Dataset::Gmm2, false);
        judge.draw.test[0].bins[2] = 10;
        // Expected bin 0.3·20 + 0.7·27.5 = 25.25: 25, 15 bins of 0.04 away. Likeliest: 27, the
        // first of two, 17 bins away.
        let mut probs = vec![0.0; BINS];
        (probs[20], probs[27], probs[28]) = (0.3, 0.35, 0.35);
        let [_, mse, mse_argmax, _] = judge.numbers(0, &probs, 0.0);
        assert!((mse - 0.36).abs() < 1e-12 && (mse_argmax - 0.4624).abs() < 1e-12);
    }
}
