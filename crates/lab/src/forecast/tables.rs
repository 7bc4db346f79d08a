//! The tables.

use overtone_eval::{Pooled, table::Table};

use super::evaluation::{Accuracy, Evaluation};
use super::{Forecast, Results, Run, Variant};
use crate::report::{Report, plus_minus, table};

/// Both sets.
const SETS: [&str; 2] = ["synthetic", "real"];

/// A number of a run.
pub(super) type Metric = fn(&Run, &[Accuracy; 2]) -> f64;

/// MASE or WQL over the seasonal naive forecast's, geometric mean over both sets: how the paper
/// aggregates.
fn relative(run: &Run, naive: &[Accuracy; 2], of: fn(&Accuracy) -> f64) -> f64 {
    let ratio = |set: usize| of(&run.evaluations[set].accuracy) / of(&naive[set]);
    (ratio(0) * ratio(1)).sqrt()
}

/// Relative MASE.
pub(super) const MASE: Metric = |run, naive| relative(run, naive, |accuracy| accuracy.mase);
/// Relative WQL.
pub(super) const WQL: Metric = |run, naive| relative(run, naive, |accuracy| accuracy.wql);
/// Mean smoothness of the next value's distribution over both sets.
pub(super) const SMOOTHNESS: Metric = |run, _| {
    let mut pooled = run.evaluations[0].smoothness;
    pooled.join(&run.evaluations[1].smoothness);
    pooled.mean
};

impl Results {
    /// The runs of a variant, by seed.
    pub(super) fn of(&self, variant: Variant) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }

    /// A number of a variant over its seeds.
    pub(super) fn pooled(&self, variant: Variant, metric: Metric) -> Pooled {
        self.of(variant).map(|run| metric(run, &self.naive)).collect()
    }
}

fn text(pooled: &Pooled, digits: usize) -> String {
    plus_minus(pooled.mean, pooled.sd(), digits)
}

fn names(variant: &Variant) -> Vec<String> {
    vec![variant.head(), variant.bins().into(), variant.gamma()]
}

/// Adds all tables.
pub(super) fn add(study: &Forecast, results: &Results, report: &mut Report) {
    report.table("forecast", relative_table(study, results));
    report.csv("forecast-sets", sets(study, results));
    report.csv("forecast-runs", runs(results));
}

/// Both metrics over the seasonal naive forecast's, and smoothness.
fn relative_table(study: &Forecast, results: &Results) -> Table {
    let mut table = table("head | bins | γ | MASE | WQL | smoothness");
    table.row(["Seasonal naive", "-", "-", "1", "1"].map(str::to_owned).to_vec());
    for variant in study.variants() {
        let numbers = [(MASE, 3), (WQL, 3), (SMOOTHNESS, 4)];
        let numbers = numbers.map(|(of, digits)| text(&results.pooled(variant, of), digits));
        table.row(names(&variant).into_iter().chain(numbers).collect());
    }
    table
}

/// Both metrics as they are, and likelihoods, for each set.
fn sets(study: &Forecast, results: &Results) -> Table {
    let columns =
        SETS.iter().flat_map(|set| ["MASE", "WQL", "nats"].map(|of| format!("{set} {of}")));
    let mut table = Table::new(["head", "bins", "γ"].map(String::from).into_iter().chain(columns));
    let mut naive = ["Seasonal naive", "-", "-"].map(str::to_owned).to_vec();
    for accuracy in &results.naive {
        naive.extend([accuracy.mase, accuracy.wql].map(|x| format!("{x:.3}")));
        naive.push("-".into());
    }
    table.row(naive);
    let numbers: [fn(&Evaluation) -> f64; 3] = [
        |evaluation| evaluation.accuracy.mase,
        |evaluation| evaluation.accuracy.wql,
        |evaluation| evaluation.nats,
    ];
    for variant in study.variants() {
        let mut row = names(&variant);
        for set in 0..SETS.len() {
            for of in numbers {
                let pooled = results.of(variant).map(|run| of(&run.evaluations[set])).collect();
                row.push(text(&pooled, 3));
            }
        }
        table.row(row);
    }
    table
}

/// Every number of every training, with all digits.
fn runs(results: &Results) -> Table {
    let mut table = table("head | bins | gamma | seed | set | MASE | WQL | nats | smoothness");
    for run in &results.runs {
        for (set, Evaluation { accuracy, nats, smoothness }) in SETS.iter().zip(&run.evaluations) {
            let mut row = names(&run.variant);
            row.extend([run.seed.to_string(), set.to_string()]);
            let numbers = [accuracy.mase, accuracy.wql, *nats, smoothness.mean];
            row.extend(numbers.map(|x| x.to_string()));
            table.row(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tiny, tiny_results};
    use super::*;

    #[test]
    fn relative_metrics_by_hand() {
        let mut run = tiny_results().runs.swap_remove(0);
        let naive = [Accuracy { mase: 2.0, wql: 0.5 }, Accuracy { mase: 1.0, wql: 0.1 }];
        run.evaluations[0].accuracy = Accuracy { mase: 1.0, wql: 0.5 };
        run.evaluations[1].accuracy = Accuracy { mase: 2.0, wql: 0.9 };
        // √(½ · 2) and √(1 · 9).
        assert!((MASE(&run, &naive) - 1.0).abs() < 1e-12);
        assert!((WQL(&run, &naive) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn every_variant_has_its_row() {
        let (study, results) = (tiny(), tiny_results());
        assert_eq!(relative_table(&study, &results).rows().len(), 2 + 10);
        assert_eq!(sets(&study, &results).rows().len(), 2 + 10);
        let runs = runs(&results);
        assert_eq!(runs.rows().len(), 1 + 10 * 2 * 2);
        assert!(!runs.to_csv().contains("NaN"));
    }
}
