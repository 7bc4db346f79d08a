//! The tables: our numbers next to the paper's.

use overtone_eval::{Pooled, table::Table};

use super::data::Dataset;
use super::head::HeadKind;
use super::judge::{METRICS, SMOOTHNESS, fits};
use super::paper::published;
use super::runs::{Run, Spread};
use super::{Found, Toy};
use crate::report::{Report, plus_minus, table};
use crate::study::Study;

impl Found {
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
    published(dataset, head, metric).map_or("–".into(), |[mean, sd]| format!("{mean} ± {sd}"))
}

impl<const LIKELIHOOD: bool> Toy<LIKELIHOOD> {
    pub(super) const METRICS: &'static [&'static str] = METRICS[LIKELIHOOD as usize];

    pub(super) fn add_tables(&self, found: &Found, report: &mut Report) {
        let name = Self::NAME;
        report.table(format!("{name}-headline"), self.headline(found));
        for &dataset in &self.datasets {
            report.table(format!("{name}-{dataset}"), self.all_heads(found, dataset));
        }
        report.table(format!("{name}-best"), self.best(found));
        report.csv(format!("{name}-epochs"), self.epochs(found));
        report.csv(format!("{name}-runs"), self.all_runs(found));
    }

    /// The heads of the paper's tables: our numbers, the spread between weight seeds, and the
    /// paper's.
    fn headline(&self, found: &Found) -> Table {
        let mut table = table("dataset | head | metric | ours | between weights | paper");
        for &dataset in &self.datasets {
            for head in self.headline_heads(dataset) {
                for (metric, name) in Self::METRICS.iter().enumerate() {
                    if !fits(metric, head) || *name == "MSE (argmax)" {
                        continue;
                    }
                    let between = found.spread(metric, dataset, head).over_weights;
                    table.row(vec![
                        dataset.to_string(),
                        head.to_string(),
                        (*name).into(),
                        found.text(metric, dataset, head),
                        between.map_or("–".into(), |sd| format!("{sd:.4}")),
                        published_text(dataset, head, name),
                    ]);
                }
            }
        }
        table
    }

    /// Every head on one dataset, every metric.
    fn all_heads(&self, found: &Found, dataset: Dataset) -> Table {
        let columns = Self::METRICS.iter().flat_map(|metric| [*metric, "paper"]);
        let header: Vec<&str> = ["head"].into_iter().chain(columns).collect();
        let mut table = Table::new(&header);
        for head in self.heads(dataset) {
            let mut row = vec![head.to_string()];
            for (metric, name) in Self::METRICS.iter().enumerate() {
                let is_told = fits(metric, head);
                row.push(if is_told { found.text(metric, dataset, head) } else { "–".into() });
                row.push(published_text(dataset, head, name));
            }
            table.row(row);
        }
        table
    }

    /// The best evaluation of each run next to its last.
    fn best(&self, found: &Found) -> Table {
        let mut table =
            table("dataset | head | KL at its best | at epoch | KL at the end | of it overfitted");
        for (dataset, head) in self.cells() {
            if !fits(0, head) {
                continue;
            }
            let best = Spread::of(found.of(dataset, head), |run| run.best().1);
            let epoch = Spread::of(found.of(dataset, head), |run| run.best().0 as f64).mean;
            let end = found.spread(0, dataset, head);
            table.row(vec![
                dataset.to_string(),
                head.to_string(),
                best.text(),
                format!("{epoch:.0}"),
                end.text(),
                format!("{:.0} %", 100.0 * (1.0 - best.mean / end.mean)),
            ]);
        }
        table
    }

    /// KL over the epochs.
    fn epochs(&self, found: &Found) -> Table {
        let mut table = table("dataset | head | epoch | KL | sd");
        for (dataset, head) in self.cells().into_iter().filter(|(_, head)| fits(0, *head)) {
            for (epoch, kl) in found.curve(dataset, head) {
                let numbers = [kl.mean.to_string(), kl.sd().unwrap_or(0.0).to_string()];
                let cells = [dataset.to_string(), head.to_string(), epoch.to_string()];
                table.row(cells.into_iter().chain(numbers).collect());
            }
        }
        table
    }

    /// Every run: its numbers after the last epoch, and its best KL.
    fn all_runs(&self, found: &Found) -> Table {
        let mut header = vec!["dataset", "head", "data seed", "weight seed"];
        header.extend(Self::METRICS);
        header.extend(["best epoch", "best KL"]);
        let mut table = Table::new(&header);
        for run in &found.runs {
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

impl Found {
    /// Epoch, and KL over runs.
    pub(super) fn curve(&self, dataset: Dataset, head: HeadKind) -> Vec<(usize, Pooled)> {
        let runs: Vec<&Run> = self.of(dataset, head).collect();
        let Some(first) = runs.first() else { return Vec::new() };
        let at = |i: usize| runs.iter().map(|run| run.evaluations[i].1[0]).collect();
        first.evaluations.iter().enumerate().map(|(i, (epoch, _))| (*epoch, at(i))).collect()
    }
}
