//! What a study of heads does and finds: every head trained on every draw, its numbers, and how
//! they compare with the paper's. What is measured is the study's own: a [`Metric`] and a
//! [`TestSet`].

use std::collections::BTreeMap;
use std::fmt::Debug;

use overtone_eval::table::Table;
use overtone_plot::{Line, LinePlot, Scale, Stroke};

use super::data::{Dataset, Samples, Split};
use super::head::HeadKind;
use super::study::{Job, Run, Settings, Spread, chance_far, mean, names, run_all, sd, sd_text};
use super::trainer::{Rows, Trainer};
use crate::page::plus_minus;

/// Mean and sample standard deviation.
pub type MeanSd = (f64, f64);

/// A quantity of the test set's verdict on a head.
pub trait Metric: Copy + Debug + PartialEq + 'static {
    /// The verdict after some epochs.
    type Evaluation: Clone + Debug + PartialEq + Send;
    /// What judges: made once for each draw of a dataset.
    type TestSet: TestSet<Self::Evaluation>;
    /// Every quantity.
    const ALL: &'static [Self];
    /// By which an evaluation is a run's best.
    const KL: Self;
    /// Digits of the paper's numbers.
    const DIGITS: usize;
    /// Of which quantities the paper's runs and ours are not independent, in a sentence.
    const DEPENDENT: &'static str;

    /// The heads on a dataset.
    fn heads(settings: &Settings, dataset: Dataset) -> Vec<HeadKind>;

    /// Its name in tables.
    fn name(self) -> &'static str;

    /// The number.
    fn of(self, evaluation: &Self::Evaluation) -> f64;

    /// The epoch of a verdict.
    fn epoch(evaluation: &Self::Evaluation) -> usize;

    /// What the paper has.
    fn published(self, dataset: Dataset, kind: HeadKind) -> Option<MeanSd>;

    /// Whether it says something about a head.
    fn fits(self, _kind: HeadKind) -> bool {
        true
    }

    /// Our mean over a head's runs, and the deviation that the paper states: the one between
    /// data seeds.
    fn ours(self, found: &Findings<Self>, dataset: Dataset, kind: HeadKind) -> (f64, Option<f64>) {
        let spread = found.spread(self, dataset, kind);
        (spread.mean, spread.over_data)
    }
}

/// A test set and what its evaluations have in common.
pub trait TestSet<E>: Sync {
    /// Of one draw.
    fn new(samples: &Samples, split: &Split) -> Self;

    /// The rows to train on.
    fn training(&self) -> &Rows<f32>;

    /// The verdict on a head after so many epochs.
    fn evaluate(&self, trainer: &mut Trainer<f32>, kind: HeadKind, epoch: usize) -> E;

    /// The row that is drawn.
    fn example(&self) -> Example;

    /// What a head says about that row.
    fn learned(&self, trainer: &mut Trainer<f32>, kind: HeadKind) -> Vec<f64>;
}

/// A test row to be drawn, and its true distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its `x` and `y`.
    pub at: [f64; 2],
    /// Over the bins.
    pub truth: Vec<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings<M: Metric> {
    /// What was run.
    pub settings: Settings,
    /// In the order of datasets, heads, data seeds, weight seeds.
    pub runs: Vec<Run<M::Evaluation>>,
    /// Of each dataset's first draw.
    pub examples: BTreeMap<Dataset, Example>,
}

/// Every run that a study has.
pub fn jobs<M: Metric>(settings: &Settings) -> Vec<Job> {
    settings.jobs(|dataset| M::heads(settings, dataset))
}

/// Trains and evaluates every head, on all cores; `progress` is called after each run.
pub fn run<M: Metric>(settings: &Settings, progress: &(dyn Fn() + Sync)) -> Findings<M> {
    let tests = settings.per_draw(M::TestSet::new);
    let one = |job: Job| train(job, settings, &tests[&(job.dataset, job.data_seed)]);
    let runs = run_all(jobs::<M>(settings), one, progress);
    let first = settings.data_seeds.first();
    let of_first_draw = tests.iter().filter(|((_, seed), _)| Some(seed) == first);
    let examples = of_first_draw.map(|(&(dataset, _), test)| (dataset, test.example())).collect();
    Findings { settings: settings.clone(), runs, examples }
}

/// One run.
pub(crate) fn train<E>(job: Job, settings: &Settings, test: &impl TestSet<E>) -> Run<E> {
    let mut trainer = Trainer::<f32>::new(job.kind, &mut job.generator("init"));
    let mut order = job.generator("sampling");
    let mut evaluations = Vec::new();
    for epoch in 1..=settings.epochs {
        let rate = job.kind.learning_rate(epoch - 1, settings.epochs);
        trainer.epoch(test.training(), rate, &mut order);
        if settings.is_evaluated(epoch) {
            evaluations.push(test.evaluate(&mut trainer, job.kind, epoch));
        }
    }
    Run { job, evaluations, examples: vec![test.learned(&mut trainer, job.kind)] }
}

/// The first test row whose `x` is neither near 0 nor near an end, and for the mixture is far
/// from `y`: one where two modes can be told apart.
pub(crate) fn example_row(samples: &Samples, split: &Split) -> usize {
    let shows = |&row: &usize| {
        let [x, y, _] = samples.rows[row];
        let apart = samples.dataset != Dataset::Gmm2 || (x - y).abs() > 0.4;
        (0.2..0.6).contains(&x.abs()) && apart
    };
    split.test.iter().position(shows).unwrap_or(0)
}

impl<M: Metric> Findings<M> {
    /// The heads on a dataset.
    pub(crate) fn heads(&self, dataset: Dataset) -> Vec<HeadKind> {
        M::heads(&self.settings, dataset)
    }

    /// A head's runs on a dataset.
    pub(crate) fn of(
        &self,
        dataset: Dataset,
        kind: HeadKind,
    ) -> impl Iterator<Item = &Run<M::Evaluation>> {
        self.runs.iter().filter(move |run| run.job.dataset == dataset && run.job.kind == kind)
    }

    /// A mean after the last epoch, with its spreads.
    pub(crate) fn spread(&self, metric: M, dataset: Dataset, kind: HeadKind) -> Spread {
        Spread::of(self.of(dataset, kind), |run| metric.of(run.last()))
    }

    /// KL of each run's best evaluation, and the mean epoch of it.
    pub(crate) fn best(&self, dataset: Dataset, kind: HeadKind) -> (Spread, f64) {
        let best = |run: &Run<M::Evaluation>| run.best(|at| M::KL.of(at)).clone();
        let kl = Spread::of(self.of(dataset, kind), |run| M::KL.of(&best(run)));
        let epoch = Spread::of(self.of(dataset, kind), |run| M::epoch(&best(run)) as f64);
        (kl, epoch.mean)
    }

    /// The lowest mean KL of a Fourier head after the last epoch, and how the sentence begins that
    /// says it.
    pub(crate) fn best_fourier(&self, dataset: Dataset) -> Option<(f64, String)> {
        let mut fourier = self.heads(dataset);
        fourier.retain(|kind| kind.frequencies().is_some());
        let kl = |&kind: &HeadKind| (kind, self.spread(M::KL, dataset, kind).mean);
        let (best, kl) = fourier.iter().map(kl).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let n = fourier.len();
        Some((
            kl,
            format!(
                "On {dataset} the lowest mean KL of {n} Fourier heads, chosen on the test set \
                 itself, is {kl:.4} ({best})"
            ),
        ))
    }

    /// Everything that the paper has a number for.
    fn published(&self) -> Vec<(Dataset, HeadKind, M, MeanSd)> {
        let mut all = Vec::new();
        for &dataset in &self.settings.datasets {
            for kind in self.heads(dataset) {
                for &metric in M::ALL {
                    let published = metric.published(dataset, kind);
                    all.extend(published.map(|published| (dataset, kind, metric, published)));
                }
            }
        }
        all
    }

    /// Our means that lie further from the paper's than its deviation: of what, and in words.
    fn far(&self) -> Vec<(M, String)> {
        let mut far = Vec::new();
        for (dataset, kind, metric, (mean, sd)) in self.published() {
            let ours = metric.ours(self, dataset, kind).0;
            let is_near = (ours - mean).abs() <= sd;
            if !is_near {
                let (name, digits) = (metric.name(), M::DIGITS);
                let said = format!(
                    "{dataset}, {kind}: {name} {ours:.4}, not {mean:.digits$} ± {sd:.digits$}"
                );
                far.push((metric, said));
            }
        }
        far
    }

    /// The same in words alone.
    pub fn far_from_paper(&self) -> Vec<String> {
        self.far().into_iter().map(|(_, said)| said).collect()
    }

    /// How the comparison with the paper ends, in a sentence.
    pub fn far_text(&self) -> String {
        let (far, published) = (self.far(), self.published());
        let all = published.len();
        if far.is_empty() {
            return format!("All {all} means lie within one of the paper's standard deviations.");
        }
        let counts = M::ALL.iter().map(|&metric| {
            let far = far.iter().filter(|(of, _)| *of == metric).count();
            let all = published.iter().filter(|(_, _, of, _)| *of == metric).count();
            format!("{far} of {all} of {}", metric.name())
        });
        let said: Vec<&str> = far.iter().map(|(_, said)| said.as_str()).collect();
        format!(
            "{} of {all} means lie further than one of the paper's standard deviations from the \
             paper's ({}): {}.",
            far.len(),
            counts.collect::<Vec<_>>().join(", "),
            said.join("; ")
        )
    }

    /// How many means to expect far from the paper's, in sentences.
    pub(crate) fn chance_text(&self) -> String {
        let n = self.settings.runs_each();
        format!(
            "The paper has four runs of each head, and its standard deviations are of the same \
             four. Were they and our {n} independent, chance alone would put {:.0} % of its means \
             that far from ours (Student's t with 3 degrees of freedom). {}",
            100.0 * chance_far(n),
            M::DEPENDENT
        )
    }

    /// A number of the paper's for a table.
    pub(crate) fn published_text(published: Option<MeanSd>) -> String {
        published.map_or("–".into(), |(mean, sd)| plus_minus(mean, Some(sd), M::DIGITS))
    }

    /// Some heads and quantities: our numbers, the spread between data seeds and between weight
    /// seeds, and the paper's.
    pub(crate) fn headline(
        &self,
        kinds: impl Fn(Dataset) -> Vec<HeadKind>,
        metrics: &[M],
    ) -> Table {
        let mut table =
            Table::new(&["dataset", "head", "metric", "ours", "between weights", "paper"]);
        for &dataset in &self.settings.datasets {
            for kind in kinds(dataset) {
                for &metric in metrics.iter().filter(|metric| metric.fits(kind)) {
                    let (mean, sd) = metric.ours(self, dataset, kind);
                    table.row(vec![
                        dataset.to_string(),
                        kind.to_string(),
                        metric.name().into(),
                        plus_minus(mean, sd, 4),
                        sd_text(self.spread(metric, dataset, kind).over_weights),
                        Self::published_text(metric.published(dataset, kind)),
                    ]);
                }
            }
        }
        table
    }

    /// Epoch, mean KL over runs, and their sample standard deviation.
    pub(crate) fn curve(&self, dataset: Dataset, kind: HeadKind) -> Vec<(usize, f64, f64)> {
        let runs: Vec<&Run<M::Evaluation>> = self.of(dataset, kind).collect();
        let n_evaluations = runs.first().map_or(0, |run| run.evaluations.len());
        let at = |i: usize| {
            let values: Vec<f64> = runs.iter().map(|run| M::KL.of(&run.evaluations[i])).collect();
            (M::epoch(&runs[0].evaluations[i]), mean(&values), sd(&values).unwrap_or(0.0))
        };
        (0..n_evaluations).map(at).collect()
    }

    /// KL on the test set over the epochs, mean over runs, of these heads.
    pub(crate) fn over_epochs(&self, dataset: Dataset, kinds: Vec<HeadKind>) -> LinePlot {
        let curve = |kind: HeadKind| {
            let points = self.curve(dataset, kind);
            let line = points.iter().map(|&(epoch, mean, _)| [epoch as f64, mean]).collect();
            Line::new(kind.to_string(), line)
        };
        LinePlot {
            title: format!("{dataset}: KL on the test set, mean of the runs"),
            x_label: "epoch".into(),
            y_label: "KL".into(),
            y_scale: Scale::Log,
            lines: kinds.into_iter().map(curve).collect(),
            ..LinePlot::default()
        }
    }

    /// Every run, for a file: every quantity after the last epoch, and the best KL.
    pub(crate) fn runs_table(&self) -> Table {
        let columns = M::ALL.iter().map(|metric| metric.name().replace(['(', ')'], ""));
        let columns: Vec<String> = columns.collect();
        let mut header = vec!["dataset", "head", "N", "gamma", "data seed", "weight seed", "epoch"];
        header.extend(columns.iter().map(String::as_str));
        header.extend(["best epoch", "best KL"]);
        let mut table = Table::new(&header);
        for run in &self.runs {
            let (job, last, best) = (run.job, run.last(), run.best(|at| M::KL.of(at)));
            let number = |metric: M, at: &M::Evaluation| match metric.fits(job.kind) {
                true => metric.of(at).to_string(),
                false => String::new(),
            };
            let mut row = names(job.dataset, job.kind).to_vec();
            row.extend([job.data_seed, job.weight_seed].map(|seed| seed.to_string()));
            row.push(M::epoch(last).to_string());
            row.extend(M::ALL.iter().map(|&metric| number(metric, last)));
            if M::KL.fits(job.kind) {
                row.extend([M::epoch(best).to_string(), number(M::KL, best)]);
            }
            table.row(row);
        }
        table
    }

    /// What the first run of each head says about the dataset's example, beside the truth.
    pub(crate) fn learned_plot(
        &self,
        dataset: Dataset,
        [what, y_label]: [&str; 2],
        kinds: &[HeadKind],
        points: impl Fn(&[f64]) -> Vec<[f64; 2]>,
    ) -> LinePlot {
        let mut lines = self.truth(dataset, &points);
        for (colour, kind) in kinds.iter().enumerate() {
            let run = self.of(dataset, *kind).next();
            if let Some(probs) = run.and_then(|run| run.examples.first()) {
                lines.push(Line::new(kind.to_string(), points(probs)).colour(colour));
            }
        }
        self.example_plot(dataset, [what, y_label], lines)
    }

    /// The line of the example's true distribution, if there is an example.
    pub(crate) fn truth(
        &self,
        dataset: Dataset,
        points: impl Fn(&[f64]) -> Vec<[f64; 2]>,
    ) -> Vec<Line> {
        let line = |example: &Example| Line::new("truth", points(&example.truth));
        let truth = self.examples.get(&dataset).map(line);
        truth.map(|line| line.colour(6).stroke(Stroke::Dashed)).into_iter().collect()
    }

    /// A plot about the dataset's example.
    pub(crate) fn example_plot(
        &self,
        dataset: Dataset,
        [what, y_label]: [&str; 2],
        lines: Vec<Line>,
    ) -> LinePlot {
        let at = self.examples.get(&dataset).map_or([0.0; 2], |example| example.at);
        LinePlot {
            title: format!("{dataset}: {what} at x = {:.2}, y = {:.2}", at[0], at[1]),
            x_label: "z".into(),
            y_label: y_label.into(),
            lines,
            ..LinePlot::default()
        }
    }
}
