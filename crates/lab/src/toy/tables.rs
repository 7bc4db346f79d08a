//! The tables: our numbers next to the paper's.

use overtone_eval::{Pooled, table::Table};

use super::data::Dataset;
use super::head::HeadKind;
use super::judge::{METRICS, SMOOTHNESS, fits};
use super::paper::published;
use super::runs::{Run, Spread};
use super::{HEADLINE, Results, Toy};
use crate::report::{Report, plus_minus, table};
use crate::study::Study;

impl Results {
    /// A head's runs on a dataset.
    pub(super) fn of(&self, dataset: Dataset, head: HeadKind) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.dataset == dataset && run.head == head)
    }

    /// A mean after the last epoch, with its spreads.
    pub(super) fn spread(&self, metric: usize, dataset: Dataset, head: HeadKind) -> Spread {
        Spread::of(self.of(dataset, head), |run| run.last()[metric])
    }

    /// A mean with the deviation that the paper states: between data seeds, and of smoothness
    /// over all test rows of all runs.
    fn text(&self, metric: usize, dataset: Dataset, head: HeadKind) -> String {
        if metric != SMOOTHNESS {
            return self.spread(metric, dataset, head).text();
        }
        let mut pooled = Pooled::default();
        self.of(dataset, head).for_each(|run| pooled.join(&run.smoothness));
        plus_minus(pooled.mean, pooled.sd(), 4)
    }
}

fn published_text(dataset: Dataset, head: HeadKind, metric: &str) -> String {
    published(dataset, head, metric).map_or(String::new(), |[mean, sd]| format!("{mean} ± {sd}"))
}

impl<const LIKELIHOOD: bool> Toy<LIKELIHOOD> {
    pub(super) const METRICS: &'static [&'static str] = METRICS[LIKELIHOOD as usize];

    pub(super) fn add_tables(&self, results: &Results, report: &mut Report) {
        let name = Self::NAME;
        // What the paper's tables print.
        let is_printed = |head: HeadKind, metric: &str| {
            metric != "MSE (argmax)" && head.series().is_none_or(|series| series == (HEADLINE, 0.0))
        };
        report.table(name, self.numbers(results, is_printed));
        report.csv(format!("{name}-heads"), self.numbers(results, |_, _| true));
        report.csv(format!("{name}-runs"), self.all_runs(results));
    }

    /// Our numbers and the paper's, of these heads and metrics.
    fn numbers(&self, results: &Results, is_shown: impl Fn(HeadKind, &str) -> bool) -> Table {
        let mut table = table("dataset | head | metric | ours | paper");
        for (dataset, head) in self.cells() {
            for (metric, name) in Self::METRICS.iter().enumerate() {
                if fits(metric, head) && is_shown(head, name) {
                    table.row(vec![
                        dataset.to_string(),
                        head.to_string(),
                        (*name).into(),
                        results.text(metric, dataset, head),
                        published_text(dataset, head, name),
                    ]);
                }
            }
        }
        table
    }

    /// Every run: its numbers after the last epoch, and its best KL.
    fn all_runs(&self, results: &Results) -> Table {
        let mut header = vec!["dataset", "head", "data seed", "weight seed"];
        header.extend(Self::METRICS);
        header.extend(["best epoch", "best KL"]);
        let mut table = Table::new(header);
        for run in &results.runs {
            let mut row = vec![run.dataset.to_string(), run.head.to_string()];
            row.extend([run.data_seed, run.weight_seed].map(|seed| seed.to_string()));
            for (metric, number) in run.last().iter().enumerate() {
                let is_told = fits(metric, run.head);
                row.push(if is_told { number.to_string() } else { String::new() });
            }
            if fits(0, run.head) {
                let (epoch, kl) = run.best();
                row.extend([epoch.to_string(), kl.to_string()]);
            }
            table.row(row);
        }
        table
    }
}

impl Results {
    /// Epoch, and KL over runs.
    pub(super) fn curve(&self, dataset: Dataset, head: HeadKind) -> Vec<(usize, Pooled)> {
        let runs: Vec<&Run> = self.of(dataset, head).collect();
        let Some(first) = runs.first() else { return Vec::new() };
        let at = |i: usize| runs.iter().map(|run| run.evaluations[i].1[0]).collect();
        first.evaluations.iter().enumerate().map(|(i, (epoch, _))| (*epoch, at(i))).collect()
    }
}
