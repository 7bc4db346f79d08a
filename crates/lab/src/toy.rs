//! Heads that learn a known conditional distribution: the toy example of the Fourier head's paper.
//!
//! A perceptron 2 → 64 → 32 → head sees `(x, y)` and learns how `z` is distributed.
//!
//! - [`Density`]: over 50 bins (Section 4.1, Appendix C.2: Tables 1, 5 and 6, Figures 2, 8 and 10).
//!   As in the released code: 4,000 rows, 32 a step, Adam with 1e-3, 500 epochs, the last one
//!   reported.
//! - [`Likelihood`]: a density trained by `-ln p(z)` (Appendix C.3: Table 7, Figures 9 and 11). As
//!   in the released code: `x`, `y` and `z` in single precision, Adam from 1e-3 down a cosine to
//!   1e-6, gradients clipped to a norm of 0.1. The Fourier density is periodic: it reads the few
//!   `z` beyond [-1, 1] on the other side.
//!
//! Differs from the released code: weights are seeded, and each draw is learned from several
//! weight seeds.

pub mod data;
pub mod head;
pub mod judge;
mod paper;
mod plots;
pub mod runs;
pub mod stack;
mod tables;

use std::collections::BTreeMap;

use crate::report::Report;
use crate::side_by_side::side_by_side;
use crate::study::{Study, StudyError, check_distinct, datasets, whole};
use data::{BINS, Dataset, Draw};
use head::HeadKind;
use judge::Judge;
use runs::Run;

/// γ of the paper's sweep.
const GAMMAS: [f64; 2] = [0.0, 1e-6];
/// N of the paper's tables.
const HEADLINE: usize = 12;

/// Heads on known distributions (Fourier head: Tables 1, 5, 6, 7; Figures 2, 8 to 11)
#[derive(Clone, Debug, clap::Args)]
pub struct Toy<const LIKELIHOOD: bool> {
    /// Datasets: gaussian, gmm2 and beta.
    #[arg(long, value_delimiter = ',', default_value = "gaussian,gmm2,beta")]
    pub datasets: Vec<Dataset>,
    /// Draws of each dataset, by the seeds of the released code.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,42")]
    pub data_seeds: Vec<u64>,
    /// Runs of each head on each draw. The paper has one; runs on the same rows differ as much as
    /// runs on other rows, so one says little.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    pub weight_seeds: Vec<u64>,
    /// N of the Fourier heads, each with γ = 0 and γ = 1e-6: the paper's.
    #[arg(long, value_delimiter = ',', default_value = "2,4,6,8,10,12,14,16,18,20",
        value_parser = whole(1..=BINS as u64 - 1))]
    pub frequencies: Vec<usize>,
    /// The paper's.
    #[arg(long, default_value = "500", value_parser = whole(1..=100_000))]
    pub epochs: usize,
    /// Epochs between evaluations. Without bins, one takes as long as several epochs.
    #[arg(long, default_value = if LIKELIHOOD { "50" } else { "10" },
        value_parser = whole(1..=100_000))]
    pub evaluate_every: usize,
}

/// Heads on bins.
pub type Density = Toy<false>;
/// Heads on `z` itself.
pub type Likelihood = Toy<true>;

/// Every run, and the examples of the plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// In the order of datasets, heads, data seeds, weight seeds.
    pub runs: Vec<Run>,
    /// Of each dataset's first draw, the `x` and `y` of a test row and its true distribution.
    pub examples: BTreeMap<Dataset, ([f64; 2], Vec<f64>)>,
}

impl<const LIKELIHOOD: bool> Toy<LIKELIHOOD> {
    /// The heads on a dataset.
    pub fn heads(&self, dataset: Dataset) -> Vec<HeadKind> {
        let gmm = HeadKind::Gmm { components: dataset.components(), likelihood: LIKELIHOOD };
        let mut heads = if LIKELIHOOD { vec![gmm] } else { vec![HeadKind::Linear, gmm] };
        for gamma in GAMMAS {
            heads.extend(self.frequencies.iter().map(|&n| Self::fourier(n, gamma)));
        }
        heads.extend((!LIKELIHOOD).then_some(HeadKind::Pointwise));
        heads
    }

    fn fourier(frequencies: usize, gamma: f64) -> HeadKind {
        HeadKind::Fourier { frequencies, gamma, likelihood: LIKELIHOOD }
    }

    /// Every dataset with each of its heads, in the order of the tables.
    fn cells(&self) -> Vec<(Dataset, HeadKind)> {
        let heads =
            |&dataset: &Dataset| self.heads(dataset).into_iter().map(move |head| (dataset, head));
        self.datasets.iter().flat_map(heads).collect()
    }

    /// Every head once: its runs on all datasets are trained as one stack.
    fn stacks(&self) -> Vec<HeadKind> {
        let mut heads = Vec::new();
        for (_, head) in self.cells() {
            if !heads.contains(&head) {
                heads.push(head);
            }
        }
        heads
    }
}

impl<const LIKELIHOOD: bool> Study for Toy<LIKELIHOOD> {
    const NAME: &'static str = if LIKELIHOOD { "likelihood" } else { "density" };
    // Fewer epochs than the paper's: the linear head has hardly begun to overfit, and the
    // Fourier heads still improve.
    const QUICK: &'static [&'static str] =
        &["weight_seeds=1", "frequencies=2,6,12,20", "epochs=150"];
    type Results = Results;

    fn units(&self) -> usize {
        self.stacks().len()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        check_distinct("data_seeds", &self.data_seeds)?;
        check_distinct("weight_seeds", &self.weight_seeds)?;
        let path = datasets()?.join("lab/toy.safetensors");
        let draws = Draw::read(&path, &self.datasets, &self.data_seeds)?;
        let judges: Vec<Judge> = draws.iter().map(|draw| Judge::new(draw, LIKELIHOOD)).collect();
        let (cells, stacks) = (self.cells(), self.stacks());
        let unit = |i: usize| {
            let is_on = |judge: &&Judge| cells.contains(&(judge.draw.dataset, stacks[i]));
            let judges: Vec<&Judge> = judges.iter().filter(is_on).collect();
            let runs = runs::train(self, stacks[i], &judges);
            tick();
            runs
        };
        let mut runs = side_by_side(stacks.len(), &unit).concat();
        runs.sort_by_key(|run| cells.iter().position(|cell| *cell == (run.dataset, run.head)));
        let mut examples = BTreeMap::new();
        // The first draw of a dataset comes last.
        for judge in judges.iter().rev() {
            let at = judge.draw.test[judge.draw.example()].at();
            let dataset = judge.draw.dataset;
            examples.insert(dataset, (at, dataset.truth(at, judge.m)));
        }
        Ok(Results { runs, examples })
    }

    fn report(&self, results: &Results) -> Report {
        let mut report = Report::default();
        self.add_tables(results, &mut report);
        self.add_plots(results, &mut report);
        report
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    pub(super) fn tiny<const LIKELIHOOD: bool>() -> Toy<LIKELIHOOD> {
        Toy {
            datasets: vec![Dataset::Gaussian],
            data_seeds: vec![1, 2],
            weight_seeds: vec![7],
            frequencies: vec![12],
            epochs: 2,
            evaluate_every: 1,
        }
    }

    #[track_caller]
    fn check<const LIKELIHOOD: bool>(table: &str, parts: &[&str]) {
        let study = tiny::<LIKELIHOOD>();
        let ticks = std::sync::atomic::AtomicUsize::new(0);
        let tick = || {
            ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| study.run(&tick).unwrap())
        };
        let first = run(1);
        assert_eq!(ticks.load(std::sync::atomic::Ordering::Relaxed), study.units());
        assert_eq!(first.runs.len(), 2 * study.units());
        assert!(first == run(2), "the number of threads changes a result");
        let report = study.report(&first);
        let names: Vec<&str> = report.tables().map(|(name, _)| name).collect();
        assert_eq!(names, [table]);
        let (_, table) = report.tables().next().unwrap();
        for part in parts {
            assert!(table.to_markdown().contains(part), "no {part:?} in {table}");
        }
    }

    #[test]
    fn heads_on_bins_are_trained_and_tabled() {
        let parts = ["0.1695 ± 0.0523", "| pointwise | MSE |", "0.010 ± 0.001"];
        check::<false>("density", &parts);
    }

    #[test]
    fn heads_without_bins_are_trained_and_tabled() {
        check::<true>("likelihood", &["0.012 ± 0.002", "fourier-mle-12 γ=0 | perplexity"]);
    }
}
