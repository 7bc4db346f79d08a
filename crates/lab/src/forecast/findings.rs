//! What was found, as a page of tables and plots with the paper's numbers beside ours.

mod claims;
mod pictures;

use overtone_eval::{Pooled, table::Table};

use super::binning::Binning;
use super::evaluation::{Accuracy, Evaluation, Forecast};
use super::series_file::SeriesCard;
use super::tokens::{LIMIT, Window};
use super::{Settings, Variant, paper};
use crate::page::{Page, listed, plus_minus, titled};

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Of the weights and the order of windows.
    pub seed: u64,
    /// Mean cross-entropy of stretches of training, in nats a bin.
    pub losses: Vec<f64>,
    /// On synthetic series, on the real one.
    pub evaluations: [Evaluation; 2],
}

/// A forecast to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Of the last window of the real series.
    pub forecast: Forecast,
    /// The bins of its first value's distribution.
    pub binning: Binning,
}

/// All trainings of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantFinding {
    /// What was trained.
    pub variant: Variant,
    /// By seed.
    pub runs: Vec<Run>,
    /// Of the first seed.
    pub example: Example,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What was trained and how.
    pub settings: Settings,
    /// The real series.
    pub card: SeriesCard,
    /// The dense interval of mixed-precision bins, in scaled units.
    pub dense: [f64; 2],
    /// Of the seasonal naive forecast, on both sets.
    pub naive: [Accuracy; 2],
    /// Windows of both sets.
    pub n_windows: [usize; 2],
    /// The window of the examples.
    pub shown: Window,
    /// By variant.
    pub variants: Vec<VariantFinding>,
}

/// Which of both sets.
const SETS: [&str; 2] = ["synthetic", "real"];

impl Run {
    /// MASE or WQL over the seasonal naive forecast's, geometric mean over both sets: how the
    /// paper aggregates.
    fn relative(&self, naive: &[Accuracy; 2], of: fn(&Accuracy) -> f64) -> f64 {
        let ratio = |set: usize| of(&self.evaluations[set].accuracy) / of(&naive[set]);
        (ratio(0) * ratio(1)).sqrt()
    }

    /// Over the distributions of both sets.
    fn smoothness(&self) -> Pooled {
        let mut pooled = self.evaluations[0].smoothness;
        pooled.join(&self.evaluations[1].smoothness);
        pooled
    }
}

impl VariantFinding {
    /// Relative MASE over seeds.
    fn mase(&self, naive: &[Accuracy; 2]) -> Pooled {
        self.runs.iter().map(|run| run.relative(naive, |accuracy| accuracy.mase)).collect()
    }

    /// Relative WQL over seeds.
    fn wql(&self, naive: &[Accuracy; 2]) -> Pooled {
        self.runs.iter().map(|run| run.relative(naive, |accuracy| accuracy.wql)).collect()
    }

    /// Each seed's mean smoothness, over seeds.
    fn smoothness(&self) -> Pooled {
        self.runs.iter().map(|run| run.smoothness().mean).collect()
    }
}

/// Mean ± sample standard deviation.
fn pooled_text(pooled: &Pooled, digits: usize) -> String {
    plus_minus(pooled.mean, pooled.sd(), digits)
}

impl Findings {
    /// Both metrics over the seasonal naive forecast's, and smoothness; the paper's numbers
    /// beside ours.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "head",
            "bins",
            "γ",
            "MASE",
            "WQL",
            "smoothness",
            "paper's MASE",
            "its WQL",
            "its smoothness",
        ]);
        table.row(vec!["Seasonal naive".into(), "-".into(), "-".into(), "1".into(), "1".into()]);
        for found in &self.variants {
            let variant = &found.variant;
            let mut row = vec![variant.head(), variant.bins().into(), variant.gamma()];
            row.push(pooled_text(&found.mase(&self.naive), 3));
            row.push(pooled_text(&found.wql(&self.naive), 3));
            row.push(pooled_text(&found.smoothness(), 4));
            if let Some(paper) = paper::row_of(variant) {
                row.extend([paper.mase, paper.wql].map(|x| format!("{x:.3}")));
                row.push(format!("{:.4}", paper.smoothness[0]));
            }
            table.row(row);
        }
        table
    }

    /// Both metrics as they are, and likelihoods, for each set.
    pub fn sets_table(&self) -> Table {
        let header: Vec<String> = ["head", "bins", "γ"]
            .map(String::from)
            .into_iter()
            .chain(SETS.iter().flat_map(|set| {
                [format!("{set} MASE"), format!("{set} WQL"), format!("{set} nats")]
            }))
            .collect();
        let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
        let mut naive = vec!["Seasonal naive".to_owned(), "-".into(), "-".into()];
        for accuracy in &self.naive {
            naive.extend([accuracy.mase, accuracy.wql].map(|x| format!("{x:.3}")));
            naive.push("-".into());
        }
        table.row(naive);
        for found in &self.variants {
            let variant = &found.variant;
            let mut row = vec![variant.head(), variant.bins().into(), variant.gamma()];
            for set in 0..SETS.len() {
                let over = |of: fn(&Evaluation) -> f64| -> Pooled {
                    found.runs.iter().map(|run| of(&run.evaluations[set])).collect()
                };
                row.push(pooled_text(&over(|found| found.accuracy.mase), 3));
                row.push(pooled_text(&over(|found| found.accuracy.wql), 3));
                row.push(pooled_text(&over(|found| found.nats), 3));
            }
            table.row(row);
        }
        table
    }

    /// Every number of every training, with all digits.
    fn runs_table(&self) -> Table {
        let mut table = Table::new(&[
            "head",
            "bins",
            "gamma",
            "seed",
            "set",
            "MASE",
            "WQL",
            "nats",
            "smoothness",
            "smoothness sd",
            "distributions",
            "first loss",
            "last loss",
        ]);
        for found in &self.variants {
            for run in &found.runs {
                for (set, evaluation) in SETS.iter().zip(&run.evaluations) {
                    let Evaluation { accuracy, nats, smoothness } = evaluation;
                    let variant = &found.variant;
                    let mut row = vec![variant.head(), variant.bins().into(), variant.gamma()];
                    row.extend([run.seed.to_string(), set.to_string()]);
                    row.extend(
                        [accuracy.mase, accuracy.wql, *nats, smoothness.mean]
                            .map(|x| x.to_string()),
                    );
                    row.push(smoothness.sd().map_or(String::new(), |sd| sd.to_string()));
                    row.push(smoothness.n.to_string());
                    let ends = [run.losses.first(), run.losses.last()];
                    row.extend(ends.map(|x| x.map_or(String::new(), f64::to_string)));
                    table.row(row);
                }
            }
        }
        table
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let title = "Forecasting with the Fourier head, at a small scale";
        let title = titled(title, self.settings.seeds.len(), "seed");
        let mut page = Page::new("forecast", &title, command);
        page.text(&self.introduction());
        page.heading("Accuracy and smoothness (Tables 3 and 8)");
        page.text(&self.reading());
        page.table("forecast", &self.table());
        page.text(&self.far_from_paper());
        page.heading("What the paper finds, and what is found here");
        page.text(
            "Pairs of rows of the table above that differ in what the statement is about alone. \
             *Clearly*: by more than one standard deviation of the difference over seeds, \
             √(s₁² + s₂²).",
        );
        page.table("forecast-claims", &self.claims_table());
        self.add_curves(&mut page);
        page.heading("Each set by itself");
        page.text(&format!(
            "Nats: the mean negative logarithm of the density at the true next value, given the \
             true values before it: the probability of its bin over the bin's width in scaled \
             units. Unlike the training loss it does not depend on how values are binned. \
             WQL of the seasonal naive forecast takes one number for all its quantiles.\n\n\
             The synthetic set has {} windows, the real one {}.",
            self.n_windows[0], self.n_windows[1]
        ));
        page.table("forecast-sets", &self.sets_table());
        page.csv("forecast-runs", &self.runs_table());
        self.add_examples(&mut page);
        page.heading("The paper's Table 8");
        page.text(
            "MASE and WQL over the seasonal naive forecast's, geometric mean over 20 datasets; \
             smoothness with 4096 bins, ± its deviation over distributions, not over seeds.",
        );
        page.table("forecast-paper", &paper::table());
        page
    }

    fn introduction(&self) -> String {
        let settings = &self.settings;
        let training = &settings.training;
        format!(
            "A decoder-only transformer of {} layers, {} heads and width {} reads {} values, \
             scaled by their mean absolute value and put into {} bins between -{LIMIT} and \
             {LIMIT}, and forecasts {} more, as Chronos does (Ansari et al. 2024); unlike Chronos \
             it reads with each value the one a cycle before the next, and its embeddings begin as \
             waves \
             (`crates/lab/src/forecast/forecaster.rs`). \
             It is trained for {} steps of {} windows with the next value's cross-entropy, on {} \
             synthetic series (seasons, autoregressions, switching levels, Gaussian processes; \
             seed {}); the learning rate falls from {} to 0. Weights and the order of windows \
             come from the seeds {}; ± is the sample standard deviation over them.\n\n\
             **This is not the paper's experiment.** The paper trains 20 million parameters for \
             200,000 steps on the series of Chronos, with 4096 bins; this is small enough for a \
             desk. Levels cannot be compared, only which way things go.\n\n\
             Forecasts are measured on {} other synthetic series, drawn alike, and without any \
             training on such data (zero-shot) on every {} values of a real one: {}, in {}. \
             {} Source: {}.\n\n\
             Of mixed-precision bins a share d = {} lies outside the dense interval, here from \
             {:.2} to {:.2}, which holds {} % of the scaled training values. A head sees only \
             positions of bins (`crates/lab/src/forecast/binning.rs`). Futures are {} trajectories \
             drawn value by value{}; the Fourier head's constant κ is taken off before (in \
             Chronos, and so in the paper, each value is one of the 50 most probable bins).",
            settings.n_layers,
            settings.n_heads,
            settings.d_model,
            settings.context,
            settings.bins,
            settings.horizon,
            training.steps,
            training.batch,
            settings.training_series,
            settings.data_seed,
            training.learning_rate,
            listed(&settings.seeds),
            settings.test_series,
            settings.horizon,
            self.card.title,
            self.card.unit,
            self.card.licence,
            self.card.source,
            settings.sparse,
            self.dense[0],
            self.dense[1],
            100.0 * settings.dense,
            settings.sampling.samples,
            match settings.sampling.top_k {
                0 => String::new(),
                k => format!(", each one of the {k} most probable bins"),
            },
        )
    }

    fn reading(&self) -> String {
        let settings = &self.settings;
        let fewest = settings.frequencies.iter().copied().min().unwrap_or(1);
        // Of the latent domain, whose length is 2.
        let peak = 1.0 / (fewest + 1) as f64;
        let dense = (self.dense[1] - self.dense[0]) / (1.0 - settings.sparse);
        format!(
            "MASE (of the median) and WQL (quantiles 0.1 to 0.9) are divided by the seasonal naive \
             forecast's and averaged over both sets by the geometric mean, as in the paper over \
             its datasets. Smoothness (L²) is that of the next value's distribution over {} bins, \
             given the true values before it; the paper's 4096 bins give smaller numbers for the \
             same curve. Lower is better in every column.\n\n\
             A density of N frequencies puts at most (N + 1)/m on one of m bins, so a peak is \
             at least one (N + 1)-th of the latent domain wide: with uniform bins and the {} \
             frequencies of the smallest head, {:.2} of the context's mean absolute value. \
             Mixed-precision bins make that {:.2} inside the dense interval.",
            settings.bins,
            fewest,
            peak * 2.0 * LIMIT,
            peak * dense,
        )
    }

    /// The rows whose MASE or WQL lie more than one of our standard deviations from the
    /// paper's, in words.
    fn far_from_paper(&self) -> String {
        let mut compared = 0;
        let mut far = Vec::new();
        for found in &self.variants {
            let Some(paper) = paper::row_of(&found.variant) else { continue };
            let pairs = [
                ("MASE", found.mase(&self.naive), paper.mase),
                ("WQL", found.wql(&self.naive), paper.wql),
            ];
            for (what, ours, theirs) in pairs {
                let Some(sd) = ours.sd() else { continue };
                compared += 1;
                let is_near = (ours.mean - theirs).abs() <= sd;
                if !is_near {
                    let head = found.variant.head();
                    far.push(format!("{head} {what} ({:+.3})", ours.mean - theirs));
                }
            }
        }
        match (compared, far.is_empty()) {
            (0, _) => "No row with several seeds has a counterpart in the paper.".into(),
            (n, true) => format!(
                "All {n} numbers with a counterpart lie within one of our standard deviations of it."
            ),
            (n, false) => format!(
                "Of {n} numbers with a counterpart in the paper, more than one of our standard \
                 deviations from it: {}. On other data and at another scale nothing else is to be \
                 expected.",
                far.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny_findings;
    use super::*;

    #[test]
    fn relative_metrics_by_hand() {
        let found = tiny_findings();
        let mut run = found.variants[0].runs[0].clone();
        let naive = [Accuracy { mase: 2.0, wql: 0.5 }, Accuracy { mase: 1.0, wql: 0.1 }];
        run.evaluations[0].accuracy = Accuracy { mase: 1.0, wql: 0.5 };
        run.evaluations[1].accuracy = Accuracy { mase: 2.0, wql: 0.9 };
        // √(½ · 2) and √(1 · 9).
        assert!((run.relative(&naive, |accuracy| accuracy.mase) - 1.0).abs() < 1e-12);
        assert!((run.relative(&naive, |accuracy| accuracy.wql) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_page_has_every_part() {
        let found = tiny_findings();
        let folder = tempfile::tempdir().unwrap();
        let page = found.page("just lab forecast quick=true");
        page.write(folder.path()).unwrap();
        let text = page.markdown();
        for part in [
            "just lab forecast quick=true",
            "not the paper's experiment",
            "Seasonal naive",
            "| Fourier-5 | mixed | 1e-6 |",
            "0.883",
            "public domain",
            "Of 2 numbers with a counterpart",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let runs = std::fs::read_to_string(folder.path().join("forecast-runs.csv")).unwrap();
        assert_eq!(runs.lines().count(), 1 + 10 * 2 * 2);
        assert!(!runs.contains("NaN"), "{runs}");
    }

    #[test]
    fn what_is_near_the_paper_is_not_far() {
        let mut found = tiny_findings();
        let linear = &mut found.variants[0];
        let naive = Accuracy { mase: 1.0, wql: 1.0 };
        found.naive = [naive; 2];
        for (run, off) in linear.runs.iter_mut().zip([-0.01, 0.03]) {
            let accuracy = Accuracy { mase: 0.883 + off, wql: 0.75 + off };
            run.evaluations.iter_mut().for_each(|evaluation| evaluation.accuracy = accuracy);
        }
        // The mean is 0.01 off, the deviation 0.028.
        assert!(found.far_from_paper().starts_with("All 2 numbers"), "{}", found.far_from_paper());
        for run in &mut found.variants[0].runs {
            run.evaluations.iter_mut().for_each(|found| found.accuracy.wql += 0.1);
        }
        let far = found.far_from_paper();
        assert!(far.contains(": Linear WQL (+0.110)."), "{far}");
        found.naive[0].mase = f64::NAN;
        let far = found.far_from_paper();
        assert!(far.contains("Linear MASE (NaN)"), "what is no number is not near: {far}");
    }
}
