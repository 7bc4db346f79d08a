//! The figures of a trained forecaster on windows that it has not seen.

use burn::tensor::{Device, activation::log_softmax};
use overtone_core::seed::Generator;
use overtone_eval::{Pooled, Smoothness};

use super::binning::{Binning, quantile};
use super::decode::{distributions, trajectories};
use super::forecaster::{Forecaster, Tokens};
use super::metrics::{QUANTILES, Scores, seasonal_naive};
use super::tokens::Window;

/// Both metrics of a set of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Mean absolute scaled error of the median forecast.
    pub mase: f64,
    /// Weighted quantile loss.
    pub wql: f64,
}

/// The figures of a forecaster on a set of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// The accuracy of the drawn futures.
    pub accuracy: Accuracy,
    /// Mean negative logarithm of the density at the true next value, given the true past, in
    /// nats: the probability of its bin over the bin's width, in scaled units. Unlike the
    /// training loss it can be compared between ways of binning.
    pub nats: f64,
    /// L² smoothness of the next value's distribution, given the true past, over all windows
    /// and steps.
    pub smoothness: Pooled,
}

/// The forecast of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// By quantile of [`QUANTILES`], then by time, in the series' own units.
    pub quantiles: Vec<Vec<f64>>,
    /// The first value's distribution over the bins.
    pub next: Vec<f64>,
}

/// Forecasts of all windows.
pub fn forecasts(
    model: &Forecaster,
    binning: &Binning,
    windows: &[Window],
    samples: usize,
    generator: &mut Generator,
) -> Vec<Forecast> {
    let context = model.config.context;
    let tokens = Tokens::of(windows, binning, &Device::flex()).narrow(0, context);
    let hidden = model.hidden(&tokens).narrow(1, context - 1, 1).squeeze_dim::<2>(1);
    let next = distributions(&model.head, hidden);
    let known = |window: &Window| window.tokens(binning)[..context].to_vec();
    let contexts: Vec<Vec<i32>> = windows.iter().map(known).collect();
    let seasons: Vec<usize> = windows.iter().map(|window| window.season).collect();
    let drawn = trajectories(model, &contexts, &seasons, samples, generator);
    let of_window = windows.iter().zip(drawn.chunks(samples)).zip(next.chunks(binning.n_bins()));
    of_window
        .map(|((window, trajectories), next)| {
            let scale = window.scale();
            let mut quantiles = vec![Vec::new(); QUANTILES.len()];
            for t in 0..model.config.horizon {
                let value = |bins: &Vec<usize>| binning.centre(bins[t]) * scale;
                let mut values: Vec<f64> = trajectories.iter().map(value).collect();
                values.sort_by(f64::total_cmp);
                for (forecast, q) in quantiles.iter_mut().zip(QUANTILES) {
                    forecast.push(quantile(&values, q));
                }
            }
            Forecast { quantiles, next: next.iter().map(|&p| f64::from(p)).collect() }
        })
        .collect()
}

/// Both metrics of the forecasts of `windows`.
pub fn accuracy(windows: &[Window], forecasts: &[Forecast]) -> Accuracy {
    score(windows.iter().zip(forecasts).map(|(window, forecast)| (window, &*forecast.quantiles)))
}

/// Both metrics of the seasonal naive forecast, all its quantiles being one number.
pub fn naive_accuracy(windows: &[Window]) -> Accuracy {
    let forecast = |window: &Window| {
        let point = seasonal_naive(&window.history, window.season, window.future.len());
        vec![point; QUANTILES.len()]
    };
    let all: Vec<Vec<Vec<f64>>> = windows.iter().map(forecast).collect();
    score(windows.iter().zip(all.iter().map(Vec::as_slice)))
}

fn score<'a>(pairs: impl Iterator<Item = (&'a Window, &'a [Vec<f64>])>) -> Accuracy {
    let mut scores = Scores::default();
    for (window, quantiles) in pairs {
        scores.add(&window.history, window.season, &window.future, quantiles);
    }
    Accuracy { mase: scores.mase(), wql: scores.wql() }
}

/// Likelihood and smoothness of every next value of `windows`, given the true ones before it.
pub fn next_values(
    model: &Forecaster,
    binning: &Binning,
    windows: &[Window],
    metric: &Smoothness,
) -> (f64, Pooled) {
    /// Windows at a time: the logits are horizon · bins numbers for each.
    const AT_ONCE: usize = 16;
    let (context, horizon) = (model.config.context, model.config.horizon);
    let (mut nats, mut smoothness) = (Pooled::default(), Pooled::default());
    for windows in windows.chunks(AT_ONCE) {
        let tokens = Tokens::of(windows, binning, &Device::flex());
        let logits = model.logits(&tokens);
        let log_probs: Vec<f32> = log_softmax(logits, 1).into_data().iter().collect();
        let targets = windows
            .iter()
            .flat_map(|window| window.tokens(binning)[context..context + horizon].to_vec());
        for (row, target) in log_probs.chunks(binning.n_bins()).zip(targets) {
            let target = target as usize;
            nats.add(binning.width(target).ln() - f64::from(row[target]));
            let probs: Vec<f64> = row.iter().map(|&p| f64::from(p).exp()).collect();
            smoothness.add(metric.l2(&probs));
        }
    }
    (nats.mean, smoothness)
}

#[cfg(test)]
mod tests {
    use super::super::forecaster::ForecasterConfig;
    use super::super::metrics::MEDIAN;
    use super::super::series::Series;
    use super::super::tokens::{LIMIT, rolling_windows};
    use super::super::{TrainingConfig, train};
    use super::*;
    use overtone_core::seed;
    use overtone_model::head::{
        BinsHeadConfig, FourierHeadConfig, InitialCoefficients, LinearConfig,
    };

    const RANGE: [f64; 2] = [-LIMIT, LIMIT];

    /// Scaled values of [`cycle`] are 1/3, 2/3, 4/3 and 5/3: each in a bin of its own.
    fn mixed() -> Binning {
        Binning::mixed(32, RANGE, 0.2, [0.0, 2.0])
    }

    /// A cycle of four values, again and again.
    fn cycle(n: usize) -> Series {
        Series { season: 3, values: [1.0, 4.0, 2.0, 5.0].into_iter().cycle().take(n).collect() }
    }

    fn config(head: BinsHeadConfig) -> ForecasterConfig {
        ForecasterConfig {
            bins: 32,
            context: 8,
            horizon: 4,
            d_model: 16,
            n_layers: 1,
            n_heads: 2,
            head,
        }
    }

    /// With a season of 3 the naive forecast is wrong everywhere; the model must see that the
    /// cycle is four long.
    #[test]
    fn a_tiny_forecaster_learns_a_cycle() {
        let series = [cycle(40)];
        let windows = rolling_windows(&cycle(42), 8, 4);
        let training = TrainingConfig { steps: 300, batch: 8, learning_rate: 1e-2 };
        let heads = [
            BinsHeadConfig::Linear(LinearConfig {}),
            BinsHeadConfig::Fourier(FourierHeadConfig::new(24)),
        ];
        for head in heads {
            let binning = mixed();
            let (model, losses) = train(&config(head.clone()), &binning, &series, training, 1);
            let (first, last) = (losses[0], losses[290..].iter().sum::<f64>() / 10.0);
            assert!(last < 0.6 && last < 0.5 * first, "{head:?}: {first} to {last}");
            let generator = &mut seed::generator(1, "sampling");
            let forecasts = forecasts(&model, &binning, &windows, 9, generator);
            let reached = accuracy(&windows, &forecasts);
            // The rest is a bin's width.
            assert!(reached.mase < 0.03 && reached.wql < 0.06, "{head:?}: {reached:?}");
            assert!(naive_accuracy(&windows).mase > 0.9);
            let first = &forecasts[0];
            assert_eq!((first.quantiles.len(), first.quantiles[MEDIAN].len()), (9, 4));
            assert!((first.next.iter().sum::<f64>() - 1.0).abs() < 1e-5);
            let (nats, smoothness) = next_values(&model, &binning, &windows, &Smoothness::new(32));
            // Nearly all in one bin, whose width's logarithm is what remains; 24 frequencies
            // can put 25/32 there, whose logarithm is -0.25.
            let narrow = binning.width(binning.bin_of(1.0)).ln();
            assert!(nats < narrow + 0.4, "{head:?}: {nats}");
            assert_eq!(smoothness.n, windows.len() as u64 * 4);
        }
    }

    #[test]
    fn training_is_seeded() {
        let binning = Binning::uniform(32, RANGE);
        let losses = |seed| {
            let training = TrainingConfig { steps: 5, batch: 3, learning_rate: 1e-2 };
            train(
                &config(BinsHeadConfig::Linear(LinearConfig {})),
                &binning,
                &[cycle(30)],
                training,
                seed,
            )
            .1
        };
        assert_eq!(losses(1), losses(1));
        assert_ne!(losses(1), losses(2));
        assert_eq!(losses(1).len(), 5);
    }

    /// An untrained head that says nothing: every bin is as probable, so the density over the
    /// range of 30 is 1/30.
    #[test]
    fn an_untrained_uniform_density_costs_the_logarithm_of_the_range() {
        let fourier = FourierHeadConfig {
            initial: InitialCoefficients::UniformDensity,
            ..FourierHeadConfig::new(4)
        };
        let generator = &mut seed::generator(1, "init");
        let config = config(BinsHeadConfig::Fourier(fourier));
        let model = Forecaster::init(&config, &Device::flex(), generator);
        let windows = rolling_windows(&cycle(30), 8, 4);
        let metric = Smoothness::new(32);
        let uniform = Binning::uniform(32, RANGE);
        let (nats, smoothness) = next_values(&model, &uniform, &windows, &metric);
        assert!((nats - 30f64.ln()).abs() < 1e-5, "{nats}");
        assert!(smoothness.mean < 1e-6);
        // 26 of 32 bins share the interval from 0 to 2, in which all values lie.
        let (nats, _) = next_values(&model, &mixed(), &windows, &metric);
        let expected = (32.0 * 2.0 / 26.0f64).ln();
        assert!((nats - expected).abs() < 1e-5, "{nats}, not {expected}");
    }
}
