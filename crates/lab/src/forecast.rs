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
pub mod findings;
pub mod forecaster;
pub mod metrics;
pub mod paper;
pub mod series;
pub mod series_file;
pub mod tokens;
pub mod training;

use overtone_core::seed;
use overtone_eval::Smoothness;
use overtone_model::ModelError;
use overtone_model::head::{
    BinsHeadConfig, FourierHeadConfig, InitialCoefficients, LinearConfig, Regularizer,
};

use crate::side_by_side::side_by_side;
use binning::{Binning, Precision};
use evaluation::{Evaluation, SamplingConfig};
use findings::{Example, Findings, Run, VariantFinding};
use forecaster::ForecasterConfig;
use series::Series;
use series_file::SeriesCard;
use tokens::Window;
use training::TrainingConfig;

/// The head's affine layer begins as in the paper's forecasting model: U(±1/√d_model), weights
/// over 1000, biases over 10.
const INITIAL: InitialCoefficients =
    InitialCoefficients::FanIn { weight_divisor: 1000.0, bias_divisor: 10.0 };

/// What to train, and how to measure it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Seed of the synthetic series.
    pub data_seed: u64,
    /// Seeds of the weights and of the order of windows; at least one.
    pub seeds: Vec<u64>,
    /// Bins between -15 and 15.
    pub bins: usize,
    /// Whether bins are of mixed precision alone, and not uniform as well.
    pub mixed_alone: bool,
    /// d: the share of mixed-precision bins outside the dense interval.
    pub sparse: f64,
    /// Share of the scaled training values inside the dense interval, as many on each side of
    /// it.
    pub dense: f64,
    /// Numbers of frequencies of the Fourier heads, rising.
    pub frequencies: Vec<usize>,
    /// γ of the regularised heads; each is trained with 0 as well.
    pub gamma: f64,
    /// Values that are known.
    pub context: usize,
    /// Values to forecast.
    pub horizon: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads.
    pub n_heads: usize,
    /// Synthetic series to train on, each two horizons longer than a window.
    pub training_series: usize,
    /// Synthetic series to forecast.
    pub test_series: usize,
    /// How long, and how fast.
    pub training: TrainingConfig,
    /// How futures are drawn.
    pub sampling: SamplingConfig,
}

/// What is compared.
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
        match self.fourier {
            None => "Linear".into(),
            Some((frequencies, _)) => format!("Fourier-{frequencies}"),
        }
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

impl Settings {
    /// Everything that is compared: linear first, then by frequencies.
    pub fn variants(&self) -> Vec<Variant> {
        let gammas = if self.gamma > 0.0 { vec![0.0, self.gamma] } else { vec![0.0] };
        let fourier = self
            .frequencies
            .iter()
            .flat_map(|&n| gammas.iter().map(move |&gamma| Some((n, gamma))));
        let heads: Vec<_> = std::iter::once(None).chain(fourier).collect();
        let kinds: &[bool] = if self.mixed_alone { &[true] } else { &[false, true] };
        let each = |&fourier| kinds.iter().map(move |&mixed| Variant { fourier, mixed });
        heads.iter().flat_map(each).collect()
    }

    /// Trainings: the units of work of [`run`].
    pub fn units(&self) -> usize {
        self.variants().len() * self.seeds.len()
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
}

/// What all trainings share.
struct Shared<'a> {
    settings: &'a Settings,
    training: Vec<Series>,
    /// Uniform, mixed.
    binnings: [Binning; 2],
    /// Synthetic, real.
    tests: [Vec<Window>; 2],
    metric: Smoothness,
    /// Which real window is drawn.
    shown: usize,
}

/// Trains and measures everything; `progress` is called after each of [`Settings::units`].
///
/// A training uses one thread, and as many run side by side as rayon would use threads.
///
/// # Errors
/// When the settings describe no model or no bins.
///
/// # Panics
/// When the real series is shorter than a window, or there is no seed.
pub fn run(
    settings: &Settings,
    card: &SeriesCard,
    real: &Series,
    progress: &(dyn Fn() + Sync),
) -> Result<Findings, ModelError> {
    assert!(!settings.seeds.is_empty(), "no seed");
    let (context, horizon) = (settings.context, settings.horizon);
    let length = context + 3 * horizon;
    let synthetic = |role, n| series::synthetic(settings.data_seed, role, n, length);
    let training = synthetic("train", settings.training_series);
    let tests = [
        tokens::last_windows(&synthetic("test", settings.test_series), context, horizon),
        tokens::rolling_windows(real, context, horizon),
    ];
    assert!(!tests[1].is_empty(), "the real series has {} values", real.values.len());
    let beyond = 0.5 * (1.0 - settings.dense);
    let seen = tokens::last_windows(&training, context, horizon);
    let mixed = Some((settings.sparse, [beyond, 1.0 - beyond]));
    let shared = Shared {
        settings,
        binnings: [
            tokens::binning(settings.bins, None, &seen)?,
            tokens::binning(settings.bins, mixed, &seen)?,
        ],
        metric: Smoothness::new(settings.bins),
        shown: tests[1].len() - 1,
        training,
        tests,
    };
    let variants = settings.variants();
    for variant in &variants {
        settings.forecaster(variant).validate()?;
    }
    let unit = |i: usize| {
        let n_seeds = settings.seeds.len();
        let (variant, seed) = (&variants[i / n_seeds], settings.seeds[i % n_seeds]);
        let found = train_and_measure(&shared, variant, seed);
        progress();
        found
    };
    let mut found = side_by_side(settings.units(), &unit)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let variants = variants
        .iter()
        .map(|&variant| {
            let (runs, mut examples): (Vec<Run>, Vec<Example>) =
                found.by_ref().take(settings.seeds.len()).unzip();
            VariantFinding { variant, runs, example: examples.swap_remove(0) }
        })
        .collect();
    let [_, mixed] = &shared.binnings;
    Ok(Findings {
        settings: settings.clone(),
        card: card.clone(),
        dense: match mixed.config().precision {
            Precision::Mixed { dense, .. } => dense,
            Precision::Uniform => mixed.config().range,
        },
        naive: shared.tests.each_ref().map(|windows| evaluation::naive_accuracy(windows)),
        n_windows: shared.tests.each_ref().map(Vec::len),
        shown: shared.tests[1][shared.shown].clone(),
        variants,
    })
}

/// One training from one seed.
fn train_and_measure(
    shared: &Shared<'_>,
    variant: &Variant,
    weight_seed: u64,
) -> Result<(Run, Example), ModelError> {
    let settings = shared.settings;
    let binning = &shared.binnings[usize::from(variant.mixed)];
    let config = settings.forecaster(variant);
    let training = settings.training;
    let trained = training::train(&config, binning, &shared.training, training, weight_seed)?;
    let mut generator = seed::generator(weight_seed, "futures");
    let mut example = None;
    let evaluations = shared.tests.each_ref().map(|windows| {
        let forecasts = evaluation::forecasts(
            &trained.model,
            binning,
            windows,
            settings.sampling,
            &mut generator,
        );
        let (nats, smoothness) =
            evaluation::next_values(&trained.model, binning, windows, &shared.metric);
        let accuracy = evaluation::accuracy(windows, &forecasts);
        example = forecasts.into_iter().nth(shared.shown).or(example.take());
        Evaluation { accuracy, nats, smoothness }
    });
    let forecast = example.expect("the real windows come last, and the shown one is among them");
    let example = Example { forecast, binning: binning.clone() };
    Ok((Run { seed: weight_seed, losses: trained.losses, evaluations }, example))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// As small as it can be.
    pub(crate) fn tiny() -> Settings {
        Settings {
            data_seed: 3,
            seeds: vec![1, 2],
            bins: 24,
            mixed_alone: false,
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
            training: TrainingConfig { steps: 3, batch: 2, learning_rate: 1e-3 },
            sampling: SamplingConfig { samples: 3, top_k: 0 },
        }
    }

    pub(crate) fn tiny_findings() -> Findings {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/series");
        let (card, mut real) = series_file::read(&folder.join("el-nino.toml")).unwrap();
        real.values.truncate(40);
        run(&tiny(), &card, &real, &|| {}).unwrap()
    }

    #[test]
    fn variants_are_the_product_of_choices() {
        let variants = tiny().variants();
        assert_eq!((variants.len(), tiny().units()), (10, 20));
        let names: Vec<String> =
            variants.iter().map(|v| format!("{} {} {}", v.head(), v.bins(), v.gamma())).collect();
        assert_eq!(names[..3], ["Linear uniform -", "Linear mixed -", "Fourier-3 uniform 0"]);
        assert_eq!(names[9], "Fourier-5 mixed 1e-6");
        assert_eq!(Settings { gamma: 0.0, ..tiny() }.variants().len(), 6);
        let mixed = Settings { mixed_alone: true, ..tiny() }.variants();
        assert!(mixed.len() == 5 && mixed.iter().all(|variant| variant.mixed));
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(tiny_findings)
        };
        let found = with(1);
        assert_eq!(found, with(3));
        assert_eq!(found.variants.len(), 10);
        assert_eq!(found.n_windows, [4, 8]); // ⌊(40 − 14)/3⌋ of the real series
        // Another seed is another training.
        let [a, b] = [0, 1].map(|seed| &found.variants[0].runs[seed]);
        assert_eq!([a.seed, b.seed], [1, 2]);
        assert_ne!(a.losses, b.losses);
    }

    #[test]
    fn settings_without_a_model_are_an_error() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/series");
        let (card, real) = series_file::read(&folder.join("el-nino.toml")).unwrap();
        let error =
            |settings: Settings| run(&settings, &card, &real, &|| {}).unwrap_err().to_string();
        assert!(error(Settings { n_heads: 3, ..tiny() }).contains("n_heads"));
        assert!(error(Settings { sparse: 1.0, ..tiny() }).contains("binning.sparse"));
        assert!(error(Settings { frequencies: vec![0], ..tiny() }).contains("frequencies"));
    }
}
