//! Training the runs of a head, and the spread of a number over runs.

use std::collections::BTreeMap;

use overtone_core::seed::{self, Generator};
use overtone_eval::Pooled;
use rand::seq::SliceRandom;

use super::Toy;
use super::data::{Dataset, Draw};
use super::head::HeadKind;
use super::judge::{Judge, SMOOTHNESS, evaluate, examples};
use super::stack::{Batch, Trainer};
use crate::report::plus_minus;

/// Rows of a step of one run.
pub const BATCH: usize = 32;
/// The learning rate, at the start of a schedule or throughout.
pub const LEARNING_RATE: f64 = 1e-3;
/// Likelihood heads: the learning rate that the cosine ends at.
const LAST_RATE: f64 = 1e-6;

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
    /// Epoch, and numbers in the order of the metrics, from the first evaluation to the last.
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

    /// The generator of a role. Runs that differ in anything share no random number.
    fn generator(&self, role: &str) -> Generator {
        let Self { dataset, head, data_seed, weight_seed, .. } = self;
        seed::generator(*weight_seed, &format!("{role} of {head} on {dataset} {data_seed}"))
    }
}

/// The learning rate of an epoch, from 0: constant, or without bins a cosine.
fn learning_rate(likelihood: bool, epoch: usize, epochs: usize) -> f64 {
    if !likelihood {
        return LEARNING_RATE;
    }
    let turn = std::f64::consts::PI * epoch as f64 / epochs as f64;
    LAST_RATE + (LEARNING_RATE - LAST_RATE) * (1.0 + turn.cos()) / 2.0
}

/// Trains the runs of a head on all draws from all weight seeds, as one stack.
pub fn train<const LIKELIHOOD: bool>(
    settings: &Toy<LIKELIHOOD>,
    head: HeadKind,
    draws: &[&Judge],
) -> Vec<Run> {
    let (mut runs, mut judges) = (Vec::new(), Vec::new());
    for &judge in draws {
        for &weight_seed in &settings.weight_seeds {
            let &Draw { dataset, seed: data_seed, .. } = &judge.draw;
            judges.push(judge);
            runs.push(Run {
                dataset,
                head,
                data_seed,
                weight_seed,
                evaluations: Vec::new(),
                smoothness: Pooled::default(),
                example: Vec::new(),
            });
        }
    }
    let generators =
        |role: &str| -> Vec<Generator> { runs.iter().map(|run| run.generator(role)).collect() };
    let mut trainer = Trainer::new(head, &mut generators("init"));
    let mut sampling = generators("sampling");
    let n_rows = judges[0].draw.train.len();
    let mut orders: Vec<Vec<usize>> = vec![(0..n_rows).collect(); judges.len()];
    for epoch in 1..=settings.epochs {
        let rate = learning_rate(LIKELIHOOD, epoch - 1, settings.epochs);
        for (order, generator) in orders.iter_mut().zip(&mut sampling) {
            order.shuffle(generator);
        }
        for first in (0..n_rows).step_by(BATCH) {
            let mut batch = Batch::default();
            for (judge, order) in judges.iter().zip(&orders) {
                let rows = order.iter().skip(first).take(BATCH);
                rows.for_each(|&row| batch.push(&judge.draw.train[row], LIKELIHOOD));
            }
            trainer.step(&batch, rate);
        }
        if epoch.is_multiple_of(settings.evaluate_every) || epoch == settings.epochs {
            let evaluations = evaluate(head, &trainer.valid(), &judges);
            for (run, pooled) in runs.iter_mut().zip(evaluations) {
                let mut numbers = pooled.map(|pooled| pooled.mean).to_vec();
                if LIKELIHOOD {
                    numbers = vec![numbers[0], numbers[1].exp()];
                }
                run.evaluations.push((epoch, numbers));
                run.smoothness = pooled[SMOOTHNESS];
            }
        }
    }
    let examples = examples(head, &trainer.valid(), &judges);
    runs.iter_mut().zip(examples).for_each(|(run, example)| run.example = example);
    runs
}

/// A mean over runs and its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Over all runs.
    pub mean: f64,
    /// Between data seeds: for each weight seed the sample standard deviation over data seeds,
    /// one run each, as the paper's; of these the root mean square over weight seeds. Runs of
    /// different data seeds have different weights too, so it holds both kinds of chance. `None`
    /// for a single data seed.
    pub over_data: Option<f64>,
}

impl Spread {
    /// Of one number a run.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>, number: impl Fn(&Run) -> f64) -> Self {
        let mut by_weights = BTreeMap::new();
        let mut all = Pooled::default();
        for run in runs {
            let value = number(run);
            all.add(value);
            by_weights.entry(run.weight_seed).or_insert_with(Pooled::default).add(value);
        }
        Self { mean: all.mean, over_data: root_mean_square(by_weights.values()) }
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
    use crate::toy::judge::tests::judge;
    use crate::toy::tests::tiny;

    #[test]
    fn a_spread_is_taken_between_data_seeds() {
        let run = |data_seed, weight_seed, kl| Run {
            dataset: Dataset::Beta,
            head: HeadKind::Linear,
            data_seed,
            weight_seed,
            evaluations: vec![(10, vec![kl]), (20, vec![kl + 1.0])],
            smoothness: Pooled::default(),
            example: vec![],
        };
        // Between data seeds √2 and √8: root mean square √5.
        let runs = [run(1, 1, 1.0), run(1, 2, 2.0), run(2, 1, 3.0), run(2, 2, 6.0)];
        let spread = Spread::of(&runs, |run| run.last()[0] - 1.0);
        assert!((spread.mean - 3.0).abs() < 1e-12, "{spread:?}");
        assert!((spread.over_data.unwrap() - 5f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert_eq!(runs[0].best(), (10, 1.0));
        assert_eq!(Spread::of(&runs[..1], |run| run.last()[0]).over_data, None);
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
        // The first evaluation is after one epoch, when little is learned.
        let settings = Toy::<false> { epochs: 30, evaluate_every: 1, ..tiny() };
        for head in settings.heads(Dataset::Gaussian) {
            let run = &train(&settings, head, &[&judge])[0];
            let (first, last) = (&run.evaluations[0].1, run.last());
            if head == HeadKind::Pointwise {
                // σ² = 0.01, and 0.04²/12 for each of two bins.
                assert!((0.008..0.02).contains(&last[1]), "{last:?}");
            } else {
                let is_lower = last[0] < first[0];
                assert!((0.0..1.5).contains(&last[0]) && is_lower, "{head}: {first:?} {last:?}");
            }
        }
    }
}
