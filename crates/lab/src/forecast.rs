//! Probabilistic forecasting of time series: the Fourier head outside reinforcement learning
//! (Fourier head, Section 6, Tables 3 and 8, Figure 17), at a small scale.
//!
//! A small decoder-only transformer reads binned values, as Chronos does (Ansari et al. 2024),
//! and predicts the bin of the next one: with the linear head and with Fourier heads of
//! several numbers of frequencies, with uniform and with mixed-precision bins, with and
//! without regularisation, each from several seeds. It is trained on synthetic series alone
//! and forecasts synthetic series it has not seen and a real one of another kind.
//!
//! The paper's models have 20 million parameters, 200,000 steps and the series of Chronos.
//! Ours are hundreds of times smaller in each respect: levels cannot be compared, only which
//! way things go.

pub mod binning;
pub mod decode;
pub mod evaluation;
pub mod forecaster;
pub mod metrics;
mod plots;
pub mod series;
pub mod series_file;
mod tables;
pub mod tokens;

use burn::tensor::Device;
use overtone_core::seed;
use overtone_eval::Smoothness;
use overtone_model::head::{
    BinsHeadConfig, FourierHeadConfig, InitialCoefficients, LinearConfig, Regularizer,
};
use overtone_train::{AdamW, AdamWConfig};

use crate::learning::descend;
use crate::report::Report;
use crate::side_by_side::side_by_side;
use crate::study::{Study, StudyError, check_distinct, datasets, invalid, number, whole};
use binning::Binning;
use evaluation::{Accuracy, Evaluation};
use forecaster::{Forecaster, ForecasterConfig, Tokens};
use series::Series;
use tokens::{Window, random_window};

/// The head's affine layer begins as in the paper's forecasting model: U(±1/√d_model), weights
/// over 1000, biases over 10.
const INITIAL: InitialCoefficients =
    InitialCoefficients::FanIn { weight_divisor: 1000.0, bias_divisor: 10.0 };
/// Values of a cycle of the real series: months of a year.
const EL_NINOS_SEASON: usize = 12;

/// Forecasts of time series with linear and Fourier heads (Fourier head: Tables 3, 8; Figure 17)
#[derive(Clone, Debug, clap::Args)]
pub struct Forecast {
    /// Seeds of the weights and of the order of windows.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4")]
    pub seeds: Vec<u64>,
    /// Seed of the synthetic series.
    #[arg(long, default_value = "1")]
    pub data_seed: u64,
    /// Bins between -15 and 15; the paper has 4096.
    #[arg(long, default_value = "1024", value_parser = whole(8..=4096))]
    pub bins: usize,
    /// d: the share of mixed-precision bins outside the dense interval; the released code's.
    #[arg(long, default_value = "0.2", value_parser = number(0.0..=0.99))]
    pub sparse: f64,
    /// Share of the scaled training values inside the dense interval, as many on each side of it.
    #[arg(long, default_value = "0.99", value_parser = number(0.1..=0.9999))]
    pub dense: f64,
    /// Numbers of frequencies of the Fourier heads; the paper has 64,128,256,550.
    #[arg(long, value_delimiter = ',', default_value = "32,128", value_parser = whole(1..=4095))]
    pub frequencies: Vec<usize>,
    /// γ of the regularised heads; each is trained with 0 as well. The paper's.
    #[arg(long, default_value = "1e-6", value_parser = number(0.0..=1e6))]
    pub gamma: f64,
    /// Values that are known; the paper has 512.
    #[arg(long, default_value = "64", value_parser = whole(2..=512))]
    pub context: usize,
    /// Values to forecast; the paper trains on 64.
    #[arg(long, default_value = "24", value_parser = whole(1..=128))]
    pub horizon: usize,
    /// Width of a token.
    #[arg(long, default_value = "64", value_parser = whole(1..=1024))]
    pub d_model: usize,
    /// Transformer blocks.
    #[arg(long, default_value = "2", value_parser = whole(1..=24))]
    pub n_layers: usize,
    /// Attention heads; must divide d_model.
    #[arg(long, default_value = "4", value_parser = whole(1..=64))]
    pub n_heads: usize,
    /// Synthetic series to train on, each two horizons longer than a window.
    #[arg(long, default_value = "4000", value_parser = whole(4..=100_000))]
    pub training_series: usize,
    /// Synthetic series to forecast.
    #[arg(long, default_value = "64", value_parser = whole(4..=10_000))]
    pub test_series: usize,
    /// Futures drawn for each window; Chronos draws as many.
    #[arg(long, default_value = "20", value_parser = whole(1..=1000))]
    pub samples: usize,
    /// Training.
    #[command(flatten)]
    pub training: TrainingConfig,
}

/// How long, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args)]
pub struct TrainingConfig {
    /// Optimizer steps; the paper has 200,000.
    #[arg(long, default_value = "400", value_parser = whole(1..=1_000_000))]
    pub steps: usize,
    /// Windows of a step; the paper has 32 on each of 8 GPUs.
    #[arg(long, default_value = "16", value_parser = whole(1..=4096))]
    pub batch: usize,
    /// Learning rate of the first step, from which it falls linearly to 0; the paper's is half.
    #[arg(long, default_value = "0.002", value_parser = number(1e-9..=1.0))]
    pub learning_rate: f64,
}

/// A head and its bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// N and γ of the Fourier head; `None` for the linear one.
    pub fourier: Option<(usize, f64)>,
    /// Whether bins are of mixed precision.
    pub mixed: bool,
}

impl Variant {
    /// The head's name, as the paper writes it.
    pub fn head(&self) -> String {
        self.fourier.map_or("Linear".into(), |(n, _)| format!("Fourier-{n}"))
    }

    /// `mixed` or `uniform`.
    pub fn bins(&self) -> &'static str {
        if self.mixed { "mixed" } else { "uniform" }
    }

    /// γ, where there is one.
    pub fn gamma(&self) -> String {
        match self.fourier {
            None => "-".into(),
            Some((_, 0.0)) => "0".into(),
            Some((_, gamma)) => format!("{gamma:e}"),
        }
    }

    fn config(&self) -> BinsHeadConfig {
        match self.fourier {
            None => BinsHeadConfig::Linear(LinearConfig {}),
            Some((frequencies, gamma)) => BinsHeadConfig::Fourier(FourierHeadConfig {
                gamma,
                regularizer: Regularizer::Reference,
                initial: INITIAL,
                ..FourierHeadConfig::new(frequencies)
            }),
        }
    }
}

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The head and its bins.
    pub variant: Variant,
    /// Of the weights and the order of windows.
    pub seed: u64,
    /// On synthetic series, on the real one.
    pub evaluations: [Evaluation; 2],
    /// Of the window that is drawn.
    pub example: evaluation::Forecast,
}

/// Every training, and what they are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// By variant, then by seed.
    pub runs: Vec<Run>,
    /// Of the seasonal naive forecast, on both sets.
    pub naive: [Accuracy; 2],
    /// The window that is drawn, the last of the real series.
    pub shown: Window,
}

/// The data of all trainings.
struct Data {
    training: Vec<Series>,
    /// Uniform, mixed.
    binnings: [Binning; 2],
    /// Synthetic, real.
    tests: [Vec<Window>; 2],
    metric: Smoothness,
}

impl Forecast {
    /// Everything that is compared: linear first, then by frequencies.
    pub fn variants(&self) -> Vec<Variant> {
        let gammas = if self.gamma > 0.0 { vec![0.0, self.gamma] } else { vec![0.0] };
        let fourier = self
            .frequencies
            .iter()
            .flat_map(|&n| gammas.iter().map(move |&gamma| Some((n, gamma))));
        let heads: Vec<_> = std::iter::once(None).chain(fourier).collect();
        let each = |&fourier| [false, true].map(|mixed| Variant { fourier, mixed });
        heads.iter().flat_map(each).collect()
    }

    /// The forecaster of a variant.
    pub fn forecaster(&self, variant: &Variant) -> ForecasterConfig {
        ForecasterConfig {
            bins: self.bins,
            context: self.context,
            horizon: self.horizon,
            d_model: self.d_model,
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            head: variant.config(),
        }
    }

    fn data(&self, real: &Series) -> Result<Data, StudyError> {
        let (context, horizon) = (self.context, self.horizon);
        check_distinct("seeds", &self.seeds)?;
        check_distinct("frequencies", &self.frequencies)?;
        if !self.frequencies.is_sorted() || self.frequencies.iter().any(|n| *n >= self.bins) {
            let expected = format!("must rise, and be below bins={}", self.bins);
            return Err(invalid("frequencies", crate::report::listed(&self.frequencies), expected));
        }
        if context <= real.season {
            let season = real.season;
            let expected = format!("must be more than {season}, the cycle by which MASE is scaled");
            return Err(invalid("context", context, expected));
        }
        if real.values.len() < context + horizon {
            let needed = context + horizon;
            let expected =
                format!("the real series has {} values, a window {needed}", real.values.len());
            return Err(invalid("horizon", horizon, expected));
        }
        if !self.d_model.is_multiple_of(self.n_heads) {
            let expected = format!("must divide d_model={}", self.d_model);
            return Err(invalid("n_heads", self.n_heads, expected));
        }
        let length = context + 3 * horizon;
        let synthetic = |role, n| series::synthetic(self.data_seed, role, n, length);
        let training = synthetic("train", self.training_series);
        let seen = tokens::last_windows(&training, context, horizon);
        let beyond = 0.5 * (1.0 - self.dense);
        let range = [-tokens::LIMIT, tokens::LIMIT];
        let dense = tokens::dense_interval(&seen, [beyond, 1.0 - beyond]);
        Ok(Data {
            binnings: [
                Binning::uniform(self.bins, range),
                Binning::mixed(self.bins, range, self.sparse, dense),
            ],
            tests: [
                tokens::last_windows(&synthetic("test", self.test_series), context, horizon),
                tokens::rolling_windows(real, context, horizon),
            ],
            metric: Smoothness::new(self.bins),
            training,
        })
    }

    fn compare(&self, real: &Series, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        let data = self.data(real)?;
        let variants = self.variants();
        let unit = |i: usize| {
            let n_seeds = self.seeds.len();
            let run = self.train_and_measure(&data, variants[i / n_seeds], self.seeds[i % n_seeds]);
            tick();
            run
        };
        let runs = side_by_side(self.units(), &unit);
        let [_, real] = &data.tests;
        Ok(Results {
            runs,
            naive: data.tests.each_ref().map(|windows| evaluation::naive_accuracy(windows)),
            shown: real[real.len() - 1].clone(),
        })
    }

    fn train_and_measure(&self, data: &Data, variant: Variant, weight_seed: u64) -> Run {
        let binning = &data.binnings[usize::from(variant.mixed)];
        let config = self.forecaster(&variant);
        let (model, _) = train(&config, binning, &data.training, self.training, weight_seed);
        let mut generator = seed::generator(weight_seed, "futures");
        let mut evaluate = |windows: &[Window]| {
            let forecasts =
                evaluation::forecasts(&model, binning, windows, self.samples, &mut generator);
            let accuracy = evaluation::accuracy(windows, &forecasts);
            let (nats, smoothness) =
                evaluation::next_values(&model, binning, windows, &data.metric);
            (Evaluation { accuracy, nats, smoothness }, forecasts)
        };
        let (synthetic, _) = evaluate(&data.tests[0]);
        let (real, mut forecasts) = evaluate(&data.tests[1]);
        let example = forecasts.pop().expect("the real series has a window");
        Run { variant, seed: weight_seed, evaluations: [synthetic, real], example }
    }
}

/// Trains a new forecaster on random windows of `series`, as Chronos is trained: PyTorch's AdamW
/// without weight decay, gradients clipped to norm 1, a learning rate that falls linearly to 0.
/// Weights and windows are drawn from `weight_seed`. Returns it without gradients, and the mean
/// cross-entropy of every step in nats a bin.
///
/// # Panics
/// When a series is shorter than a window.
pub fn train(
    config: &ForecasterConfig,
    binning: &Binning,
    series: &[Series],
    training: TrainingConfig,
    weight_seed: u64,
) -> (Forecaster, Vec<f64>) {
    let device = Device::flex().autodiff();
    let model = Forecaster::init(config, &device, &mut seed::generator(weight_seed, "init"));
    let optimizer = AdamW::new(AdamWConfig::default());
    let mut windows = seed::generator(weight_seed, "windows");
    let rate = |done: usize| training.learning_rate * (1.0 - done as f64 / training.steps as f64);
    let loss = |model: &Forecaster, device: &Device| {
        let batch: Vec<Window> = (0..training.batch)
            .map(|_| random_window(series, config.context, config.horizon, &mut windows))
            .collect();
        model.loss(&Tokens::of(&batch, binning, device))
    };
    descend(model, optimizer, training.steps, rate, loss, |_, _| ())
}

impl Study for Forecast {
    const NAME: &'static str = "forecast";
    const QUICK: &'static [&'static str] = &["seeds=1,2", "frequencies=128", "steps=80"];
    type Results = Results;

    fn units(&self) -> usize {
        self.variants().len() * self.seeds.len()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        let values = series_file::read(&datasets()?.join("series/el-nino.csv"))?;
        self.compare(&Series { season: EL_NINOS_SEASON, values }, tick)
    }

    fn report(&self, results: &Results) -> Report {
        let mut report = Report::default();
        tables::add(self, results, &mut report);
        plots::add(self, results, &mut report);
        report
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use super::*;
    use crate::data_file::shipped;

    /// As small as it can be.
    pub(crate) fn tiny() -> Forecast {
        Forecast {
            data_seed: 3,
            seeds: vec![1, 2],
            bins: 24,
            sparse: 0.25,
            dense: 0.98,
            frequencies: vec![3, 5],
            gamma: 1e-6,
            context: 14,
            horizon: 3,
            d_model: 8,
            n_layers: 1,
            n_heads: 2,
            training_series: 8,
            test_series: 4,
            samples: 3,
            training: TrainingConfig { steps: 3, batch: 2, learning_rate: 1e-3 },
        }
    }

    fn compare(study: &Forecast) -> Result<Results, StudyError> {
        let mut values = series_file::read(&shipped("series/el-nino.csv")).unwrap();
        values.truncate(40);
        study.compare(&Series { season: EL_NINOS_SEASON, values }, &|| ())
    }

    pub(crate) fn tiny_results() -> Results {
        compare(&tiny()).unwrap()
    }

    #[test]
    fn variants_are_the_product_of_choices() {
        let variants = tiny().variants();
        assert_eq!((variants.len(), tiny().units()), (10, 20));
        let names: Vec<String> =
            variants.iter().map(|v| format!("{} {} {}", v.head(), v.bins(), v.gamma())).collect();
        assert_eq!(names[..3], ["Linear uniform -", "Linear mixed -", "Fourier-3 uniform 0"]);
        assert_eq!(names[9], "Fourier-5 mixed 1e-6");
        assert_eq!(Forecast { gamma: 0.0, ..tiny() }.variants().len(), 6);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(tiny_results)
        };
        let results = with(1);
        assert_eq!(results, with(3));
        assert_eq!(results.runs.len(), 20);
        // Another seed is another training.
        assert_eq!([results.runs[0].seed, results.runs[1].seed], [1, 2]);
        assert_ne!(results.runs[0].evaluations, results.runs[1].evaluations);
    }

    #[test]
    fn settings_without_a_model_are_an_error() {
        let error = |study: Forecast| compare(&study).unwrap_err().to_string();
        assert!(error(Forecast { n_heads: 3, ..tiny() }).contains("n_heads"));
        assert!(error(Forecast { frequencies: vec![30], ..tiny() }).contains("frequencies=30"));
        assert!(error(Forecast { context: 12, ..tiny() }).contains("more than 12"));
        assert!(error(Forecast { context: 39, ..tiny() }).contains("40 values"));
    }
}
