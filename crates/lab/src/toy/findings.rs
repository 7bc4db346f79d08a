//! What a study of heads does and finds: every head trained on every draw, its numbers, and how
//! they compare with the paper's. What is measured is the study's own: a [`Metric`] and a
//! [`TestSet`].

use std::collections::BTreeMap;
use std::fmt::Debug;

use overtone_eval::table::Table;
use overtone_plot::{Line, LinePlot, Scale};

use super::data::{Dataset, Samples, Split};
use super::head::HeadKind;
use super::study::{Job, Run, Settings, Spread, mean, names, run_all, sd};
use super::trainer::{Rows, Trainer};

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

    /// The Fourier head of the lowest mean KL after the last epoch, and that KL.
    pub(crate) fn best_fourier(&self, dataset: Dataset) -> Option<(HeadKind, f64)> {
        let fourier = self.heads(dataset).into_iter().filter(|kind| kind.frequencies().is_some());
        let kl = |kind| (kind, self.spread(M::KL, dataset, kind).mean);
        fourier.map(kl).min_by(|a, b| a.1.total_cmp(&b.1))
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

    /// How many of our means can be compared with the paper's.
    pub(crate) fn compared(&self) -> usize {
        self.published().len()
    }

    /// Our means that lie further from the paper's than its deviation, in words.
    pub fn far_from_paper(&self) -> Vec<String> {
        let mut far = Vec::new();
        for (dataset, kind, metric, (mean, sd)) in self.published() {
            let ours = metric.ours(self, dataset, kind).0;
            if (ours - mean).abs() > sd {
                let (name, digits) = (metric.name(), M::DIGITS);
                far.push(format!(
                    "{dataset}, {kind}: {name} {ours:.4}, not {mean:.digits$} ± {sd:.digits$}"
                ));
            }
        }
        far
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

    /// What the first run of a head says about the dataset's example.
    pub(crate) fn learned_by(&self, dataset: Dataset, kind: HeadKind) -> Option<&[f64]> {
        Some(self.of(dataset, kind).next()?.examples.first()?)
    }

    /// Where the dataset's example is, for a plot's title.
    pub(crate) fn at_example(&self, dataset: Dataset) -> String {
        let at = self.examples.get(&dataset).map_or([0.0; 2], |example| example.at);
        format!("at x = {:.2}, y = {:.2}", at[0], at[1])
    }
}
