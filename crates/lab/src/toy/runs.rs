//! Training the runs of a head, what is measured of them, and the spread of a number over runs.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::seed::{self, Generator};
use overtone_eval::{Pooled, Smoothness};
use rand::seq::SliceRandom;

use super::Toy;
use super::data::{BINS, Dataset, Draw, Row, bin_centre};
use super::head::HeadKind;
use super::stack::{Batch, Stack, Trainer};
use crate::classifier::likeliest;
use crate::report::plus_minus;

/// Rows of a step of one run.
pub const BATCH: usize = 32;
/// The learning rate, at the start of a schedule or throughout.
pub const LEARNING_RATE: f64 = 1e-3;
/// Likelihood heads: the learning rate that the cosine ends at.
const LAST_RATE: f64 = 1e-6;
/// Points at which densities without bins are compared: centres of as many bins, the reference's.
const GRID: usize = 1000;
/// Added to a probability, or the least one, before its logarithm, as in the reference.
const FLOOR: f64 = 1e-10;
/// Test rows that are evaluated at once: of all, a grid would fill 100 MB.
const ROWS: usize = 100;

/// The numbers of an evaluation on bins, and without bins.
pub const METRICS: [&[&str]; 2] =
    [&["KL", "MSE", "MSE (argmax)", "smoothness"], &["KL", "perplexity"]];
/// The place of MSE among the numbers on bins; KL's is 0.
const MSE: usize = 1;
/// The place of smoothness.
pub const SMOOTHNESS: usize = 3;

/// Whether a number says something about a head: of pointwise regression only squared errors do.
pub fn fits(metric: usize, head: HeadKind) -> bool {
    head != HeadKind::Pointwise || (MSE..SMOOTHNESS).contains(&metric)
}

/// One run and its evaluations.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The dataset.
    pub dataset: Dataset,
    /// The head.
    pub head: HeadKind,
    /// The draw of the dataset.
    pub data_seed: u64,
    /// Of initial weights and of the order of rows, together with all of the above.
    pub weight_seed: u64,
    /// Epoch, and numbers in the order of [`METRICS`], from the first evaluation to the last.
    pub evaluations: Vec<(usize, Vec<f64>)>,
    /// Smoothness of each test row's distribution after the last epoch.
    pub smoothness: Pooled,
    /// The distribution of the draw's example; of pointwise regression the prediction.
    pub example: Vec<f64>,
}

impl Run {
    /// The numbers after the last epoch.
    pub fn last(&self) -> &[f64] {
        self.evaluations.last().map_or(&[], |(_, numbers)| numbers)
    }

    /// Epoch and KL of the evaluation with the least KL.
    pub fn best(&self) -> (usize, f64) {
        let kls = self.evaluations.iter().map(|(epoch, numbers)| (*epoch, numbers[0]));
        kls.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN))
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
    /// Mean of `Σ_j t_j ln t_j`.
    certainty: f64,
    smoothness: Smoothness,
}

/// The learning rate of an epoch, from 0: constant, or without bins a cosine.
fn learning_rate(likelihood: bool, epoch: usize, epochs: usize) -> f64 {
    if !likelihood {
        return LEARNING_RATE;
    }
    let turn = std::f64::consts::PI * epoch as f64 / epochs as f64;
    LAST_RATE + (LEARNING_RATE - LAST_RATE) * (1.0 + turn.cos()) / 2.0
}

impl Batch {
    /// Appends a row: the *numbers* of the bins of `x` and `y`, as in the released code, or
    /// without bins `x` and `y` themselves.
    pub fn push(&mut self, row: &Row, likelihood: bool) {
        let [x, y, z] = row.bins;
        self.bins.push(z.into());
        match likelihood {
            true => {
                self.inputs.extend(&row.values[..2]);
                self.values.push(row.values[2]);
            }
            false => {
                self.inputs.extend([f32::from(x), f32::from(y)]);
                self.values.push(bin_centre(z.into(), BINS) as f32);
            }
        }
    }
}

/// Trains the runs of a head on all draws of a dataset from all weight seeds.
pub fn train<const LIKELIHOOD: bool>(
    settings: &Toy<LIKELIHOOD>,
    head: HeadKind,
    judges: &[&Judge],
) -> Vec<Run> {
    let jobs: Vec<(&Judge, u64)> = judges
        .iter()
        .flat_map(|&judge| settings.weight_seeds.iter().map(move |&seed| (judge, seed)))
        .collect();
    // Runs that differ in anything share no random number.
    let generators = |role: &str| -> Vec<Generator> {
        let one = |(judge, weight_seed): &(&Judge, u64)| {
            let Draw { dataset, seed, .. } = &judge.draw;
            seed::generator(*weight_seed, &format!("{role} of {head} on {dataset} {seed}"))
        };
        jobs.iter().map(one).collect()
    };
    let mut trainer = Trainer::new(head, &mut generators("init"));
    let mut sampling = generators("sampling");
    let mut orders: Vec<Vec<usize>> =
        jobs.iter().map(|(judge, _)| (0..judge.draw.train.len()).collect()).collect();
    let mut evaluations = vec![Vec::new(); jobs.len()];
    let mut smoothness = vec![Pooled::default(); jobs.len()];
    for epoch in 1..=settings.epochs {
        let rate = learning_rate(LIKELIHOOD, epoch - 1, settings.epochs);
        for (order, generator) in orders.iter_mut().zip(&mut sampling) {
            order.shuffle(generator);
        }
        for first in (0..orders[0].len()).step_by(BATCH) {
            let mut batch = Batch::default();
            for ((judge, _), order) in jobs.iter().zip(&orders) {
                let rows = order.iter().skip(first).take(BATCH);
                rows.for_each(|&row| batch.push(&judge.draw.train[row], LIKELIHOOD));
            }
            trainer.step(&batch, rate);
        }
        if epoch.is_multiple_of(settings.evaluate_every) || epoch == settings.epochs {
            let judges: Vec<&Judge> = jobs.iter().map(|(judge, _)| *judge).collect();
            let found = evaluate(head, &trainer.valid(), &judges);
            for (run, (numbers, pooled)) in found.into_iter().enumerate() {
                evaluations[run].push((epoch, numbers));
                smoothness[run] = pooled;
            }
        }
    }
    let stack = trainer.valid();
    let mut examples = examples(head, &stack, &jobs);
    let mut runs = Vec::new();
    for (run, (judge, weight_seed)) in jobs.iter().enumerate() {
        runs.push(Run {
            dataset: judge.draw.dataset,
            head,
            data_seed: judge.draw.seed,
            weight_seed: *weight_seed,
            evaluations: std::mem::take(&mut evaluations[run]),
            smoothness: smoothness[run],
            example: std::mem::take(&mut examples[run]),
        });
    }
    runs
}

/// The test rows from `first` on of every run.
fn test_rows(judges: &[&Judge], first: usize, n: usize) -> Batch {
    let mut batch = Batch::default();
    for judge in judges {
        let rows = judge.draw.test.iter().skip(first).take(n);
        rows.for_each(|row| batch.push(row, judge.likelihood));
    }
    batch
}

/// Numbers and smoothness of every run on its test rows.
fn evaluate(head: HeadKind, stack: &Stack, judges: &[&Judge]) -> Vec<(Vec<f64>, Pooled)> {
    let (device, m) = (Device::flex(), judges[0].m);
    let n_rows = judges[0].draw.test.len();
    let mut sums = vec![[0.0; 3]; judges.len()];
    let mut smoothness = vec![Pooled::default(); judges.len()];
    for first in (0..n_rows).step_by(ROWS) {
        let n = ROWS.min(n_rows - first);
        let (inputs, targets) = test_rows(judges, first, n).load(judges.len(), &device);
        let outputs = stack.forward(inputs);
        let losses: Vec<f64> =
            head.losses(outputs.clone(), &targets).0.into_data().iter::<f64>().collect();
        let probs = head.probs(outputs, m);
        for (run, (probs, losses)) in probs.chunks(n * m).zip(losses.chunks(n)).enumerate() {
            let judge = judges[run];
            for (i, (probs, loss)) in probs.chunks(m).zip(losses).enumerate() {
                let row = first + i;
                let truth = &judge.truth[row * m..][..m];
                let [kl, mse, mse_argmax] = &mut sums[run];
                *kl += judge.certainty - cross(truth, probs, judge.likelihood);
                if judge.likelihood {
                    *mse += loss;
                    continue;
                }
                let [.., bin] = judge.draw.test[row].bins;
                let error =
                    |guess: usize| (bin_centre(guess, BINS) - bin_centre(bin.into(), BINS)).powi(2);
                let expected: f64 = probs.iter().enumerate().map(|(j, p)| j as f64 * p).sum();
                *mse += error(expected.round_ties_even() as usize);
                *mse_argmax += error(likeliest(probs));
                if head != HeadKind::Pointwise {
                    smoothness[run].add(judge.smoothness.l2(probs));
                }
            }
        }
    }
    let numbers = |(sums, smoothness): ([f64; 3], Pooled)| {
        let [kl, mse, mse_argmax] = sums.map(|sum| sum / n_rows as f64);
        let numbers = match head.is_likelihood() {
            true => vec![kl, mse.exp()],
            false => vec![kl, mse, mse_argmax, smoothness.mean],
        };
        (numbers, smoothness)
    };
    sums.into_iter().zip(smoothness).map(numbers).collect()
}

/// `Σ_j t_j ln p_j`; on bins the floor is added, without bins it is the least probability.
fn cross(truth: &[f32], probs: &[f64], likelihood: bool) -> f64 {
    let log = |p: f64| if likelihood { p.max(FLOOR).ln() } else { (p + FLOOR).ln() };
    let terms = truth.iter().zip(probs).filter(|(t, _)| **t > 0.0);
    terms.map(|(t, p)| f64::from(*t) * log(*p)).sum()
}

/// The distribution of each draw's example by each run; of pointwise regression the prediction.
fn examples(head: HeadKind, stack: &Stack, jobs: &[(&Judge, u64)]) -> Vec<Vec<f64>> {
    let device = Device::flex();
    let mut batch = Batch::default();
    for (judge, _) in jobs {
        batch.push(&judge.draw.test[judge.draw.example()], judge.likelihood);
    }
    let inputs = Tensor::from_data(TensorData::new(batch.inputs, [jobs.len(), 1, 2]), &device);
    let outputs = stack.forward(inputs);
    let m = jobs[0].0.m;
    match head {
        HeadKind::Pointwise => outputs.into_data().iter::<f64>().map(|at| vec![at]).collect(),
        _ => head.probs(outputs, m).chunks(m).map(<[f64]>::to_vec).collect(),
    }
}

impl Judge {
    /// Of a draw.
    pub fn new(draw: &Draw, likelihood: bool) -> Self {
        let m = if likelihood { GRID } else { BINS };
        let floor = if likelihood { FLOOR } else { 0.0 };
        let (mut truth, mut certainty) = (Vec::new(), 0.0);
        for row in &draw.test {
            for t in draw.dataset.truth(row.at(), m).into_iter().map(|t| t.max(floor)) {
                certainty += if t > 0.0 { t * t.ln() } else { 0.0 };
                truth.push(t as f32);
            }
        }
        certainty /= draw.test.len() as f64;
        let smoothness = Smoothness::new(BINS);
        Self { draw: draw.clone(), m, likelihood, truth, certainty, smoothness }
    }
}

/// A mean over runs and two spreads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Over all runs.
    pub mean: f64,
    /// Between data seeds: for each weight seed the sample standard deviation over data seeds,
    /// one run each, as the paper's; of these the root mean square over weight seeds. Runs of
    /// different data seeds have different weights too, so it holds both kinds of chance. `None`
    /// for a single data seed.
    pub over_data: Option<f64>,
    /// Between weight seeds on the same data: the same with the roles exchanged.
    pub over_weights: Option<f64>,
}

impl Spread {
    /// Of one number a run.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>, number: impl Fn(&Run) -> f64) -> Self {
        let (mut by_weights, mut by_data) = (BTreeMap::new(), BTreeMap::new());
        let mut all = Pooled::default();
        for run in runs {
            let value = number(run);
            all.add(value);
            by_weights.entry(run.weight_seed).or_insert_with(Pooled::default).add(value);
            by_data.entry(run.data_seed).or_insert_with(Pooled::default).add(value);
        }
        Self {
            mean: all.mean,
            over_data: root_mean_square(by_weights.values()),
            over_weights: root_mean_square(by_data.values()),
        }
    }

    /// `0.1695 ± 0.0523`: the spread between data seeds.
    pub fn text(&self) -> String {
        plus_minus(self.mean, self.over_data, 4)
    }
}

/// Of the groups' standard deviations; `None` when a group has a single run.
fn root_mean_square<'a>(groups: impl Iterator<Item = &'a Pooled>) -> Option<f64> {
    let variances: Option<Pooled> = groups.map(|group| Some(group.sd()?.powi(2))).collect();
    variances.map(|variances| variances.mean.sqrt())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::data_file::shipped;
    use crate::toy::tests::tiny;

    fn judge(dataset: Dataset, likelihood: bool) -> Judge {
        let draws = Draw::read(&shipped("lab/toy.safetensors"), &[dataset], &[1]).unwrap();
        Judge::new(&draws[0], likelihood)
    }

    #[test]
    fn spreads_are_taken_along_each_kind_of_seed() {
        let run = |data_seed, weight_seed, kl| Run {
            dataset: Dataset::Beta,
            head: HeadKind::Linear,
            data_seed,
            weight_seed,
            evaluations: vec![(10, vec![kl]), (20, vec![kl + 1.0])],
            smoothness: Pooled::default(),
            example: vec![],
        };
        // Between data seeds √2 and √8, root mean square √5; between weight seeds 1/√2 and 3/√2.
        let runs = [run(1, 1, 1.0), run(1, 2, 2.0), run(2, 1, 3.0), run(2, 2, 6.0)];
        let spread = Spread::of(&runs, |run| run.last()[0] - 1.0);
        assert!((spread.mean - 3.0).abs() < 1e-12, "{spread:?}");
        assert!((spread.over_data.unwrap() - 5f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert!((spread.over_weights.unwrap() - 2.5f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert_eq!(runs[0].best(), (10, 1.0));
        assert_eq!(Spread::of(&runs[..1], |run| run.last()[0]).over_data, None);
    }

    #[test]
    fn the_truth_itself_has_no_divergence() {
        for likelihood in [false, true] {
            let judge = judge(Dataset::Gmm2, likelihood);
            let rows = judge.truth.chunks(judge.m);
            let crosses = rows.map(|truth| {
                let probs: Vec<f64> = truth.iter().map(|&t| t.into()).collect();
                cross(truth, &probs, likelihood)
            });
            let kl = judge.certainty - crosses.sum::<f64>() / judge.draw.test.len() as f64;
            assert!(kl.abs() < 1e-6, "{kl}");
        }
    }

    #[test]
    fn likelihood_heads_go_down_a_cosine() {
        let rates = [0, 250, 500].map(|epoch| learning_rate(true, epoch, 500));
        for (rate, expected) in rates.into_iter().zip([1e-3, 0.5 * (1e-3 + 1e-6), 1e-6]) {
            assert!((rate - expected).abs() < 1e-12, "{rate}");
        }
        assert_eq!(learning_rate(false, 499, 500), 1e-3);
    }

    #[test]
    fn heads_learn() {
        let judge = judge(Dataset::Gaussian, false);
        let settings = Toy::<false> { epochs: 30, evaluate_every: 5, ..tiny() };
        for head in settings.heads(Dataset::Gaussian) {
            let run = &train(&settings, head, &[&judge])[0];
            let (first, last) = (&run.evaluations[0].1, run.last());
            if head == HeadKind::Pointwise {
                // σ² = 0.01, and 0.04²/12 for each of two bins.
                assert!((0.008..0.02).contains(&last[MSE]), "{last:?}");
            } else {
                assert!((0.0..1.5).contains(&last[0]) && last[0] < first[0], "{head}: {last:?}");
            }
        }
    }
}
