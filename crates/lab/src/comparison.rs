//! Several ways to do one thing, each from several seeds: the runs, their table with 95 %
//! intervals over seeds, what they cost, and which differences are shown.

use overtone_eval::{Pooled, table::Table};
use overtone_plot::{Line, LinePlot};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::learning::{self, Cost, Task, Training};
use crate::report::{LINEAR, Report, plot, plus_minus, table};
use crate::run::Run;
use crate::side_by_side::{alone, side_by_side};

/// A mean and the half width of its 95 % interval over seeds, by Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Over seeds.
    pub mean: f64,
    /// `None` for one seed.
    pub half: Option<f64>,
}

impl FromIterator<f64> for Mean {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let pooled: Pooled = values.into_iter().collect();
        let half = pooled.sd().and_then(|sd| {
            let of_t = StudentsT::new(0.0, 1.0, pooled.n as f64 - 1.0).ok()?;
            Some(of_t.inverse_cdf(0.975) * sd / (pooled.n as f64).sqrt())
        });
        Self { mean: pooled.mean, half }
    }
}

impl Mean {
    /// `0.97 ± 0.01`.
    pub fn text(&self, digits: usize) -> String {
        plus_minus(self.mean, self.half, digits)
    }
}

/// A measured figure of a trained network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// At the head of a column.
    pub name: &'static str,
    /// After the point.
    pub digits: usize,
}

/// A way to do it, and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// In the table's first column.
    pub name: String,
    /// The name of what it is compared with; `None` for what others are compared with.
    pub against: Option<String>,
    /// By seed.
    pub runs: Vec<Run>,
    /// The cost of a step.
    pub cost: Cost,
}

/// All runs of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The first one is the curve's, and the one that is spoken of.
    pub metrics: Vec<Metric>,
    /// In the order of the table.
    pub variants: Vec<Variant>,
}

/// How often a step's cost is measured: other work of the machine may slow a single round.
const ROUNDS: usize = 2;

/// A way before it is run: its name, the name of what it is compared with, its network and its
/// training.
pub type Planned<W> = (String, Option<String>, W, Training);

impl Comparison {
    /// Runs every way with every seed, each in one thread; then measures what a step of the first
    /// `n_costs` ways costs, one after the other. Those behind them cost what these do, in the
    /// same order. `tick` is called after each training.
    pub fn run<T: Task>(
        task: &T,
        metrics: &[Metric],
        planned: Vec<Planned<T::Variant>>,
        seeds: &[u64],
        n_costs: usize,
        tick: &(dyn Fn() + Sync),
    ) -> Self {
        let unit = |i: usize| {
            let (_, _, variant, training) = planned[i / seeds.len()];
            let run = learning::train(task, variant, training, seeds[i % seeds.len()]);
            tick();
            run
        };
        let mut runs = side_by_side(planned.len() * seeds.len(), &unit).into_iter();
        let mut costs: Vec<Option<Cost>> = vec![None; n_costs];
        for i in (0..n_costs).cycle().take(ROUNDS * n_costs) {
            let (_, _, variant, training) = planned[i];
            let cost = alone(|| learning::cost(task, variant, training));
            costs[i] = Some(costs[i].map_or(cost, |best| best.better(cost)));
        }
        let mut variants = Vec::new();
        for (i, (name, against, ..)) in planned.into_iter().enumerate() {
            let runs = runs.by_ref().take(seeds.len()).collect();
            variants.push(Variant {
                name,
                against,
                runs,
                cost: costs[i % n_costs].expect("a cost"),
            });
        }
        Self { metrics: metrics.to_vec(), variants }
    }

    fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// A way's score.
    pub fn mean(&self, variant: &Variant, metric: usize) -> Mean {
        variant.runs.iter().map(|run| run.scores[metric]).collect()
    }

    /// By how much it is above what it is compared with, seed by seed.
    pub fn difference(&self, variant: &Variant, metric: usize) -> Option<Mean> {
        let other = self.variant(variant.against.as_deref()?)?;
        let pairs = variant.runs.iter().zip(&other.runs);
        Some(pairs.map(|(a, b)| a.scores[metric] - b.scores[metric]).collect())
    }

    /// Every metric of every way, and the first one's difference.
    pub fn table(&self) -> Table {
        let names = self.metrics.iter().map(|metric| metric.name);
        let first = self.metrics.first().map_or("", |metric| metric.name);
        let difference = format!("{first}, difference");
        let mut table = Table::new(["way"].into_iter().chain(names).chain([difference.as_str()]));
        for variant in &self.variants {
            let mut row = vec![variant.name.clone()];
            for (i, metric) in self.metrics.iter().enumerate() {
                row.push(self.mean(variant, i).text(metric.digits));
            }
            let digits = self.metrics[0].digits;
            row.push(self.difference(variant, 0).map_or(String::new(), |mean| {
                let sign = if mean.mean < 0.0 { "" } else { "+" };
                format!("{sign}{}", mean.text(digits))
            }));
            table.row(row);
        }
        table
    }

    /// The cost of a step of each way.
    pub fn cost_table(&self) -> Table {
        let mut table = table(
            "way | parameters | training, ms a sequence | training, MB | inference, ms a \
         sequence | inference, MB",
        );
        for Variant { name, cost, .. } in &self.variants {
            let megabytes = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
            table.row(vec![
                name.clone(),
                cost.parameters.to_string(),
                format!("{:.3}", cost.train_ms),
                megabytes(cost.train_bytes),
                format!("{:.3}", cost.infer_ms),
                megabytes(cost.infer_bytes),
            ]);
        }
        table
    }

    /// Every run's scores.
    pub fn runs_table(&self) -> Table {
        let names = self.metrics.iter().map(|metric| metric.name);
        let mut table = Table::new(["way", "seed"].into_iter().chain(names));
        for variant in &self.variants {
            for run in &variant.runs {
                let scores = run.scores.iter().map(|score| format!("{score:.6}"));
                let cells = [variant.name.clone(), run.seed.to_string()].into_iter();
                table.row(cells.chain(scores).collect());
            }
        }
        table
    }

    /// The first metric while training, with 95 % intervals.
    pub fn curves(&self, title: &str) -> LinePlot {
        let line = |variant: &Variant| {
            let points = variant.runs.first().map_or(0, |run| run.curve.len());
            let at =
                |i: usize| variant.runs.iter().map(move |run| run.curve[i][1]).collect::<Mean>();
            let means: Vec<Mean> = (0..points).map(at).collect();
            let places = variant.runs.first().into_iter().flat_map(|run| &run.curve);
            let points = places.zip(&means).map(|(place, mean)| [place[0], mean.mean]).collect();
            let halves = means.iter().map(|mean| mean.half.unwrap_or(0.0)).collect();
            Line::new(&variant.name, points).spread(halves)
        };
        plot(
            title,
            ["updates", self.metrics.first().map_or("", |metric| metric.name)],
            LINEAR,
            self.variants.iter().map(line).collect(),
        )
    }

    /// Adds the table, the files of costs and runs, and the curves, named after `name`.
    pub fn add(&self, report: &mut Report, name: &str, curves: &str) {
        report.table(name, self.table());
        report.csv(format!("{name}-cost"), self.cost_table());
        report.csv(format!("{name}-runs"), self.runs_table());
        report.plot(format!("{name}-curves"), self.curves(curves));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const COST: Cost = Cost {
        parameters: 7,
        train_ms: 2.0,
        train_bytes: 3_000_000,
        infer_ms: 1.0,
        infer_bytes: 0,
    };

    fn comparison() -> Comparison {
        let metrics = vec![Metric { name: "accuracy", digits: 2 }];
        // Ways differ by 1 and by 3.
        let variant = |name: &str, against: Option<&str>, scores: [f64; 2]| Variant {
            name: name.into(),
            against: against.map(str::to_owned),
            runs: [0, 1].map(|seed| run(seed, scores[seed as usize])).to_vec(),
            cost: COST,
        };
        let variants = vec![variant("a", None, [0.0, 10.0]), variant("b", Some("a"), [1.0, 13.0])];
        Comparison { metrics, variants }
    }

    fn run(seed: u64, score: f64) -> Run {
        Run { seed, scores: vec![score], curve: vec![[5.0, score]], detail: vec![] }
    }

    #[test]
    fn the_better_cost_is_the_quicker_and_larger() {
        let other = Cost { train_ms: 1.0, infer_ms: 2.0, train_bytes: 9_000_000, ..COST };
        let better = COST.better(other);
        assert_eq!((better.train_ms, better.infer_ms, better.train_bytes), (1.0, 1.0, 9_000_000));
    }

    #[test]
    fn intervals_are_students() {
        // 1, 2, 3, 6: mean 3, sample deviation √(14/3), 3 degrees of freedom.
        let mean: Mean = [1.0, 2.0, 3.0, 6.0].into_iter().collect();
        let half = 3.182_446 * (14.0f64 / 3.0).sqrt() / 2.0;
        assert!((mean.mean - 3.0).abs() < 1e-12 && (mean.half.unwrap() - half).abs() < 1e-5);
        assert_eq!(mean.text(1), "3.0 ± 3.4");
        let one: Mean = [5.0].into_iter().collect();
        assert_eq!(one.text(0), "5");
    }

    #[test]
    fn differences_are_taken_seed_by_seed() {
        let comparison = comparison();
        let difference = comparison.difference(&comparison.variants[1], 0).unwrap();
        // 1 and 3: mean 2, deviation √2, half width 12.706205 · √2 / √2.
        assert_eq!(difference.mean, 2.0);
        assert!((difference.half.unwrap() - 12.706_205).abs() < 1e-5);
        assert_eq!(comparison.difference(&comparison.variants[0], 0), None);
        let rows = comparison.table().rows().to_vec();
        assert_eq!(rows[2], ["b", "7.00 ± 76.24", "+2.00 ± 12.71"]);
        assert_eq!(rows[1][2], "");
        assert_eq!(comparison.runs_table().rows()[3], ["b", "0", "1.000000"]);
        assert_eq!(comparison.curves("").lines[1].points, [[5.0, 7.0]]);
        assert_eq!(comparison.cost_table().rows()[1][1..4], ["7", "2.000", "3.0"]);
    }
}
