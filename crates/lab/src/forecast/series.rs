//! Time series made up for training and testing forecasters, seeded.
//!
//! Each series is one of four [`Family`]s, by turns, brought to mean 0 and standard deviation
//! 1 and then placed: with probability 0.8 on a positive level, `c·(1 + a·z)` with `a`
//! log-uniform between 0.1 and 1, else around zero, `c·z`; `c` is log-uniform between 0.1
//! and 100, which a forecaster that scales by the mean absolute value cannot see. The first
//! kind looks like prices, temperatures and counts, the second like anomalies.

use overtone_core::seed::{self, Generator};
use overtone_model::init::standard_normal;
use rand::{RngExt, SeedableRng};

/// A time series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Values of one cycle, 1 where there is none: what the seasonal naive forecast repeats.
    pub season: usize,
    /// From the oldest.
    pub values: Vec<f64>,
}

/// Where a synthetic series comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A line, up to three harmonics of a period of 6, 12 or 24, and white noise.
    Seasonal,
    /// A stationary autoregression of second order with complex roots: noisy waves without
    /// a fixed phase; or of first order.
    Autoregressive,
    /// Two levels with their own noise, with a chance of 1 to 5 % a step to change over.
    Switching,
    /// A draw from a Gaussian process whose kernel is a sum or product of up to three of a
    /// bank (constant slope, smooth, periodic, white), as in KernelSynth (Ansari et al. 2024),
    /// with white noise on top.
    Kernels,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Seasonal, Self::Autoregressive, Self::Switching, Self::Kernels];
}

/// Periods that occur.
const PERIODS: [usize; 3] = [6, 12, 24];
/// Values of an autoregression before its first one.
const BURN_IN: usize = 200;

/// `n` series of `length` values for a role (`"train"`, `"test"`); series `i` does not
/// depend on how many there are.
pub fn synthetic(data_seed: u64, role: &str, n: usize, length: usize) -> Vec<Series> {
    let role_seed = seed::derive(data_seed, role);
    (0..n)
        .map(|i| {
            let mut generator = Generator::seed_from_u64(seed::derive_nth(role_seed, i as u64));
            draw(Family::ALL[i % Family::ALL.len()], length, &mut generator)
        })
        .collect()
}

/// A series of a family.
///
/// # Panics
/// When `length` is less than 2.
pub fn draw(family: Family, length: usize, generator: &mut Generator) -> Series {
    assert!(length > 1, "a series of {length} values");
    let (season, mut values) = match family {
        Family::Seasonal => seasonal(length, generator),
        Family::Autoregressive => (1, autoregressive(length, generator)),
        Family::Switching => (1, switching(length, generator)),
        Family::Kernels => kernels(length, generator),
    };
    standardize(&mut values);
    let positive = generator.random_bool(0.8);
    let amplitude = log_uniform(0.1, 1.0, generator);
    let scale = log_uniform(0.1, 100.0, generator);
    for value in &mut values {
        *value = scale * if positive { 1.0 + amplitude * *value } else { *value };
    }
    Series { season, values }
}

fn log_uniform(low: f64, high: f64, generator: &mut Generator) -> f64 {
    generator.random_range(low.ln()..high.ln()).exp()
}

fn period(generator: &mut Generator) -> usize {
    PERIODS[generator.random_range(0..PERIODS.len())]
}

/// Mean 0, standard deviation 1; a constant series becomes 0.
fn standardize(values: &mut [f64]) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let scale = if variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
    values.iter_mut().for_each(|x| *x = (*x - mean) * scale);
}

fn seasonal(length: usize, generator: &mut Generator) -> (usize, Vec<f64>) {
    let period = period(generator);
    let slope = standard_normal(generator) / length as f64;
    let harmonics: Vec<[f64; 3]> = (1..=generator.random_range(1..=3u8))
        .map(|k| {
            let phase = generator.random_range(0.0..std::f64::consts::TAU);
            [f64::from(k), standard_normal(generator) / f64::from(k), phase]
        })
        .collect();
    let noise = log_uniform(0.1, 0.6, generator);
    let values = (0..length)
        .map(|t| {
            let angle = std::f64::consts::TAU * t as f64 / period as f64;
            let wave: f64 =
                harmonics.iter().map(|[k, a, phase]| a * (k * angle + phase).sin()).sum();
            slope * t as f64 + wave + noise * standard_normal(generator)
        })
        .collect();
    (period, values)
}

fn autoregressive(length: usize, generator: &mut Generator) -> Vec<f64> {
    let root: f64 = generator.random_range(0.6..0.98);
    // x_t = Σ φ x + ε; roots `root·e^{±iθ}`, or the one root of the first order.
    let phi = if generator.random_bool(0.5) {
        let angle = std::f64::consts::TAU / generator.random_range(6.0..24.0);
        [2.0 * root * angle.cos(), -root * root]
    } else {
        [root, 0.0]
    };
    let mut last = [0.0; 2];
    let mut step = || {
        let next = phi[0] * last[0] + phi[1] * last[1] + standard_normal(generator);
        last = [next, last[0]];
        next
    };
    (0..BURN_IN).for_each(|_| {
        step();
    });
    (0..length).map(|_| step()).collect()
}

fn switching(length: usize, generator: &mut Generator) -> Vec<f64> {
    let states: [[f64; 2]; 2] =
        std::array::from_fn(|_| [standard_normal(generator), log_uniform(0.1, 0.5, generator)]);
    let change: [f64; 2] = std::array::from_fn(|_| generator.random_range(0.01..0.05));
    let mut state = generator.random_range(0..2usize);
    (0..length)
        .map(|_| {
            if generator.random_bool(change[state]) {
                state = 1 - state;
            }
            let [level, noise] = states[state];
            level + noise * standard_normal(generator)
        })
        .collect()
}

/// A kernel of the bank, as a function of two times.
enum Kernel {
    /// `t·t'`, times measured in series.
    Linear,
    /// `exp(-(t - t')²/2ℓ²)`.
    Smooth(f64),
    /// `exp(-2 sin²(π(t - t')/P))`.
    Periodic(usize),
    /// `0.1` where `t = t'`.
    White,
}

impl Kernel {
    fn draw(generator: &mut Generator) -> Self {
        match generator.random_range(0..5u8) {
            0 => Self::Linear,
            1 => Self::Smooth([4.0, 12.0, 48.0][generator.random_range(0..3usize)]),
            2 => Self::White,
            _ => Self::Periodic(period(generator)),
        }
    }

    fn at(&self, length: usize, t: usize, u: usize) -> f64 {
        let apart = t.abs_diff(u) as f64;
        match self {
            Self::Linear => t as f64 * u as f64 / (length * length) as f64,
            Self::Smooth(scale) => (-0.5 * (apart / scale).powi(2)).exp(),
            Self::Periodic(period) => {
                (-2.0 * (std::f64::consts::PI * apart / *period as f64).sin().powi(2)).exp()
            }
            Self::White => f64::from(u8::from(t == u)) * 0.1,
        }
    }
}

fn kernels(length: usize, generator: &mut Generator) -> (usize, Vec<f64>) {
    let terms: Vec<(Kernel, bool)> = (0..generator.random_range(1..=3u8))
        .map(|_| (Kernel::draw(generator), generator.random_bool(0.5)))
        .collect();
    let season = terms.iter().find_map(|(kernel, _)| match kernel {
        Kernel::Periodic(period) => Some(*period),
        _ => None,
    });
    let covariance = |t: usize, u: usize| {
        let mut terms = terms.iter();
        let first = terms.next().map_or(0.0, |(kernel, _)| kernel.at(length, t, u));
        terms.fold(first, |so_far, (kernel, product)| {
            if *product {
                so_far * kernel.at(length, t, u)
            } else {
                so_far + kernel.at(length, t, u)
            }
        })
    };
    let factor = cholesky(length, covariance);
    let white: Vec<f64> = (0..length).map(|_| standard_normal(generator)).collect();
    let row = |t: usize| &factor[t * (t + 1) / 2..][..=t];
    let noise = log_uniform(0.1, 0.5, generator);
    let values = (0..length)
        .map(|t| {
            let smooth: f64 = row(t).iter().zip(&white).map(|(l, z)| l * z).sum();
            smooth + noise * standard_normal(generator)
        })
        .collect();
    (season.unwrap_or(1), values)
}

/// Lower triangle `L`, row by row, of `L Lᵀ = K + 10⁻⁶ I`; a pivot that rounding makes smaller
/// than that is raised to it.
fn cholesky(n: usize, kernel: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    const JITTER: f64 = 1e-6;
    let mut factor: Vec<f64> = Vec::with_capacity(n * (n + 1) / 2);
    for i in 0..n {
        let start = i * (i + 1) / 2;
        for j in 0..=i {
            let other = j * (j + 1) / 2;
            let dot: f64 =
                factor[start..].iter().zip(&factor[other..]).take(j).map(|(a, b)| a * b).sum();
            let left = kernel(i, j) - dot;
            factor.push(if i == j {
                (left + JITTER).max(JITTER).sqrt()
            } else {
                left / factor[other + j]
            });
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(seed: u64) -> Generator {
        seed::generator(seed, "test")
    }

    #[test]
    fn the_same_seed_gives_the_same_series_and_others_do_not() {
        let some = synthetic(3, "train", 8, 40);
        assert_eq!(some, synthetic(3, "train", 9, 40)[..8], "by its number alone");
        assert_ne!(some, synthetic(4, "train", 8, 40));
        assert_ne!(some, synthetic(3, "test", 8, 40));
        for (i, series) in some.iter().enumerate() {
            assert_eq!(series.values.len(), 40);
            assert!(series.values.iter().all(|x| x.is_finite()));
            assert!(some[..i].iter().all(|other| other.values != series.values));
        }
    }

    #[test]
    fn standardizing_by_hand() {
        let mut values = [1.0, 3.0, 5.0, 7.0]; // mean 4, variance (9 + 1 + 1 + 9)/4 = 5
        standardize(&mut values);
        let expected = [-3.0, -1.0, 1.0, 3.0].map(|x: f64| x / 5f64.sqrt());
        assert!(values.iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-12));
        let mut level = [2.0; 3];
        standardize(&mut level);
        assert_eq!(level, [0.0; 3]);
    }

    /// Mean over series of the correlation of values `lag` apart.
    fn correlation(family: Family, lag: impl Fn(&Series) -> usize) -> f64 {
        let correlations = (0..60).map(|i| {
            let mut series = draw(family, 240, &mut generator(i));
            standardize(&mut series.values);
            let (x, lag) = (&series.values, lag(&series));
            x.iter().zip(&x[lag..]).map(|(a, b)| a * b).sum::<f64>() / (240 - lag) as f64
        });
        correlations.sum::<f64>() / 60.0
    }

    #[test]
    fn families_have_the_structure_they_are_named_for() {
        let cycle = correlation(Family::Seasonal, |series| series.season);
        let half = correlation(Family::Seasonal, |series| series.season / 2);
        assert!(cycle > 0.5 && half < 0.3, "{cycle} and {half}");
        for family in [Family::Autoregressive, Family::Switching] {
            let [near, far] = [1, 60].map(|lag| correlation(family, |_| lag));
            assert!(near > 0.5 && far.abs() < 0.25, "{family:?}: {near} and {far}");
        }
        let kernels: Vec<Series> =
            (0..60).map(|i| draw(Family::Kernels, 60, &mut generator(i))).collect();
        let periodic = kernels.iter().filter(|series| series.season > 1).count();
        assert!((20..60).contains(&periodic), "{periodic}");
    }

    #[test]
    fn a_cholesky_factor_gives_the_matrix_back() {
        let kernel = |t: usize, u: usize| Kernel::Smooth(4.0).at(12, t, u) + f64::from(t == u);
        let factor = cholesky(12, kernel);
        let at = |i: usize, j: usize| if j > i { 0.0 } else { factor[i * (i + 1) / 2 + j] };
        for i in 0..12 {
            for j in 0..12 {
                let got: f64 = (0..12).map(|k| at(i, k) * at(j, k)).sum();
                let jitter = if i == j { 1e-6 } else { 0.0 };
                assert!((got - kernel(i, j) - jitter).abs() < 1e-12, "{i} {j}");
            }
        }
    }

    #[test]
    fn four_in_five_series_have_a_level() {
        let positive = (0..400)
            .filter(|&i| {
                let values = draw(Family::Autoregressive, 50, &mut generator(i)).values;
                let mean = values.iter().sum::<f64>() / 50.0;
                let spread = values.iter().map(|x| (x - mean).abs()).sum::<f64>() / 50.0;
                mean > 0.5 * spread
            })
            .count();
        // 320 expected, five standard deviations are 40.
        assert!((280..360).contains(&positive), "{positive}");
    }
}
