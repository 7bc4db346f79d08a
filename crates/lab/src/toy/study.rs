//! A study: many runs that differ by dataset, head, data seed and weight seed; and what is
//! said of their spread.

use std::collections::BTreeMap;

use overtone_core::seed::{self, Generator};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::data::{Dataset, Samples, Split};
use super::head::{HeadKind, gamma_text};
use crate::page::plus_minus;

/// Of two means of independent runs from one distribution, the chance that they are more than one
/// standard deviation apart: one is of `n` runs, the other of the four that the deviation is of.
///
/// By Student's t with 3 degrees of freedom, at `√(1 / (1/4 + 1/n))`.
pub fn chance_far(n: usize) -> f64 {
    let u = 1.0 / (3.0 * (0.25 + 1.0 / n as f64)).sqrt();
    1.0 - std::f64::consts::FRAC_2_PI * (u / (1.0 + u * u) + u.atan())
}

/// Which runs a study has, and how long they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The datasets.
    pub datasets: Vec<Dataset>,
    /// Which draws of each dataset; the paper's are 1, 2, 3 and 42.
    pub data_seeds: Vec<u64>,
    /// Runs of each head on each draw.
    pub weight_seeds: Vec<u64>,
    /// N of the Fourier heads.
    pub frequencies: Vec<usize>,
    /// Times that each row is seen.
    pub epochs: usize,
    /// Epochs between evaluations.
    pub evaluate_every: usize,
}

/// One run: what is trained on what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// The dataset.
    pub dataset: Dataset,
    /// The head.
    pub kind: HeadKind,
    /// Which draw of the dataset.
    pub data_seed: u64,
    /// Decides initial weights and the order of rows, together with all of the above: runs that
    /// differ in anything share no random number.
    pub weight_seed: u64,
}

impl Job {
    /// The generator of `role` in this run.
    pub fn generator(&self, role: &str) -> Generator {
        let Self { dataset, kind, data_seed, weight_seed } = self;
        seed::generator(*weight_seed, &format!("{role} of {kind} on {dataset} {data_seed}"))
    }
}

/// Dataset, head, N and γ, for a file.
pub fn names(dataset: Dataset, kind: HeadKind) -> [String; 4] {
    [
        dataset.to_string(),
        kind.name().to_owned(),
        kind.frequencies().map_or(String::new(), |n| n.to_string()),
        kind.gamma().map_or(String::new(), gamma_text),
    ]
}

/// A run and its evaluations, from the first epoch to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<E> {
    /// What was trained on what.
    pub job: Job,
    /// Of the test set, every few epochs; at least one.
    pub evaluations: Vec<E>,
    /// The distributions of the first test rows after the last epoch.
    pub examples: Vec<Vec<f64>>,
}

impl<E> Run<E> {
    /// The evaluation after the last epoch.
    ///
    /// # Panics
    /// When there is none.
    pub fn last(&self) -> &E {
        let Some(last) = self.evaluations.last() else { panic!("a run without evaluations") };
        last
    }

    /// The evaluation of which `of` is least, the first of equals.
    ///
    /// # Panics
    /// When there is none.
    pub fn best(&self, of: impl Fn(&E) -> f64) -> &E {
        let best = self.evaluations.iter().min_by(|a, b| of(a).total_cmp(&of(b)));
        let Some(best) = best else { panic!("a run without evaluations") };
        best
    }
}

impl Settings {
    /// Runs of each head on a dataset.
    pub fn runs_each(&self) -> usize {
        self.data_seeds.len() * self.weight_seeds.len()
    }

    /// Every combination with these heads, weight seeds fastest.
    pub fn jobs(&self, heads: impl Fn(Dataset) -> Vec<HeadKind>) -> Vec<Job> {
        let mut jobs = Vec::new();
        for &dataset in &self.datasets {
            for kind in heads(dataset) {
                for &data_seed in &self.data_seeds {
                    for &weight_seed in &self.weight_seeds {
                        jobs.push(Job { dataset, kind, data_seed, weight_seed });
                    }
                }
            }
        }
        jobs
    }

    /// Epochs after which a run is evaluated: each multiple of `evaluate_every`, and the last.
    pub fn is_evaluated(&self, epoch: usize) -> bool {
        epoch.is_multiple_of(self.evaluate_every) || epoch == self.epochs
    }

    /// Something computed once for each dataset and data seed.
    pub fn per_draw<V>(&self, make: impl Fn(&Samples, &Split) -> V) -> BTreeMap<(Dataset, u64), V> {
        let split = Split::default();
        let draws = self
            .datasets
            .iter()
            .flat_map(|&dataset| self.data_seeds.iter().map(move |&seed| (dataset, seed)));
        draws.map(|(dataset, seed)| ((dataset, seed), make(&dataset.draw(seed), &split))).collect()
    }
}

/// Runs all jobs, each on one thread, as many at once as there are threads; in the jobs' order.
pub fn run_all<E: Send>(
    jobs: Vec<Job>,
    run: impl Fn(Job) -> Run<E> + Sync,
    progress: &(dyn Fn() + Sync),
) -> Vec<Run<E>> {
    let run = |job| {
        let run = run(job);
        progress();
        run
    };
    // One by one: neighbours cost about the same, distant jobs may not.
    jobs.into_par_iter().with_max_len(1).map(run).collect()
}

/// A mean over runs and two spreads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Over all runs.
    pub mean: f64,
    /// Between data seeds: for each weight seed the sample standard deviation (ddof 1) over
    /// data seeds, one run each, as the paper's; of these the root mean square over weight
    /// seeds. Runs of different data seeds have different weights too, so it holds both kinds
    /// of chance. `None` for a single data seed.
    pub over_data: Option<f64>,
    /// Between weight seeds on the same data: the same with the roles exchanged.
    pub over_weights: Option<f64>,
}

impl Spread {
    /// Of one number a run.
    pub fn of<'a, E: 'a>(
        runs: impl IntoIterator<Item = &'a Run<E>>,
        number: impl Fn(&Run<E>) -> f64,
    ) -> Self {
        let (mut by_weights, mut by_data) = (BTreeMap::new(), BTreeMap::new());
        let mut all = Vec::new();
        for run in runs {
            let value = number(run);
            all.push(value);
            by_weights.entry(run.job.weight_seed).or_insert_with(Vec::new).push(value);
            by_data.entry(run.job.data_seed).or_insert_with(Vec::new).push(value);
        }
        Self {
            mean: mean(&all),
            over_data: root_mean(by_weights.values()),
            over_weights: root_mean(by_data.values()),
        }
    }

    /// `0.1695 ± 0.0523`: the spread between data seeds.
    pub fn text(&self) -> String {
        plus_minus(self.mean, self.over_data, 4)
    }
}

/// A standard deviation for a table, if there is one.
pub fn sd_text(sd: Option<f64>) -> String {
    sd.map_or("–".into(), |sd| format!("{sd:.4}"))
}

/// The mean; not a number for none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation; `None` for fewer than two.
pub fn sd(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The root mean square of the groups' standard deviations.
fn root_mean<'a>(groups: impl Iterator<Item = &'a Vec<f64>>) -> Option<f64> {
    let squares: Option<Vec<f64>> = groups.map(|group| Some(sd(group)?.powi(2))).collect();
    squares.map(|squares| mean(&squares).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            datasets: Dataset::ALL.to_vec(),
            data_seeds: vec![1, 2],
            weight_seeds: vec![5, 6, 7],
            frequencies: vec![4],
            epochs: 25,
            evaluate_every: 10,
        }
    }

    fn run(data_seed: u64, weight_seed: u64, values: &[f64]) -> Run<f64> {
        let job = Job { dataset: Dataset::Beta, kind: HeadKind::Linear, data_seed, weight_seed };
        Run { job, evaluations: values.to_vec(), examples: Vec::new() }
    }

    #[test]
    fn spreads_are_taken_along_each_kind_of_seed() {
        // Rows: data seeds; columns: weight seeds 1, 2.
        //   1  3      columns: 1, 5, 9 (variance 16) and 3, 7, 8 (variance 7)
        //   5  7      rows: variances 2, 2, 0.5
        //   9  8
        let runs = [(1, 1, 1.0), (1, 2, 3.0), (2, 1, 5.0), (2, 2, 7.0), (3, 1, 9.0), (3, 2, 8.0)]
            .map(|(data, weights, value)| run(data, weights, &[value]));
        let spread = Spread::of(&runs, |run| *run.last());
        assert!((spread.mean - 5.5).abs() < 1e-12);
        let expected = [11.5f64.sqrt(), 1.5f64.sqrt()];
        for (got, expected) in [spread.over_data, spread.over_weights].iter().zip(expected) {
            assert!((got.unwrap() - expected).abs() < 1e-12, "{spread:?}");
        }
        let alone = Spread::of(&runs[..1], |run| *run.last());
        assert_eq!((alone.over_data, alone.over_weights), (None, None));
        assert_eq!(alone.text(), "1.0000");
        assert_eq!(spread.text(), "5.5000 ± 3.3912");
    }

    #[test]
    fn chance_puts_some_means_far_apart() {
        // In tables of Student's t with 3 degrees of freedom, at √3, √(8/3) and √2.
        for (n, expected) in [(12, 0.182), (8, 0.201), (4, 0.252)] {
            assert!((chance_far(n) - expected).abs() < 5e-4, "{n}: {}", chance_far(n));
        }
    }

    #[test]
    fn the_best_evaluation_is_not_the_last() {
        let run = run(1, 1, &[0.4, 0.2, 0.2, 0.3]);
        assert_eq!((*run.last(), *run.best(|&kl| kl)), (0.3, 0.2));
    }

    #[test]
    fn the_last_epoch_is_evaluated_too() {
        let epochs: Vec<usize> = (1..=25).filter(|&epoch| settings().is_evaluated(epoch)).collect();
        assert_eq!(epochs, [10, 20, 25]);
    }

    #[test]
    fn jobs_are_all_combinations_and_share_no_random_number() {
        use rand::RngExt;
        let heads = |_| vec![HeadKind::Linear, HeadKind::Pointwise];
        let jobs = settings().jobs(heads);
        assert_eq!(jobs.len(), 3 * 2 * 2 * 3);
        let mut draws: Vec<u64> = jobs
            .iter()
            .flat_map(|job| ["init", "sampling"].map(|role| job.generator(role).random()))
            .collect();
        draws.sort_unstable();
        draws.dedup();
        assert_eq!(draws.len(), 2 * jobs.len());
    }
}
