//! The paper's synthetic examples (FourierFormer, appendix E.4): densities of Gaussians in one
//! and two dimensions, and a polynomial of two correlated inputs.

use std::array;

use overtone_core::seed::{Generator, derive, derive_nth};
use overtone_eval::Pooled;
use overtone_model::init::standard_normal;
use rand::{RngExt, SeedableRng};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::FourierIntegral;
use super::estimator::{PerPower, Points, gaussian_density, sample_sd};
use super::kernel::{POWERS, normal_density, silverman};

/// A density's test points are uniform on ±this. The paper does not say; 3 standard deviations.
const HALF_WIDTH: f64 = 3.0;
/// The regression's uniform test inputs lie within ±this; farther out there are hardly points.
const REGRESSION_HALF_WIDTH: f64 = 2.0;
/// Between the coordinates in 2-D. The paper says that the covariance is dense, and no number.
const CORRELATION: f64 = 0.5;
/// Standard deviation of the noise on the regression's values. The paper does not say.
const NOISE: f64 = 1.0;

/// The paper's three examples in the forms that its text leaves open, in its order, and the mean
/// squared error that it states.
pub const EXAMPLES: [(&str, f64); 6] = [
    // A standard normal density.
    ("density, 1-D", 1.29e-5),
    // A normal density whose covariance has no zero.
    ("density, 2-D", 2.42e-5),
    // The polynomial; test inputs drawn as the training inputs are, or uniformly; training values
    // with noise, or without.
    ("regression, drawn test inputs, noise", 0.06),
    ("regression, drawn test inputs, no noise", 0.06),
    ("regression, uniform test inputs, noise", 0.06),
    ("regression, uniform test inputs, no noise", 0.06),
];

/// Mean squared errors of one example over all draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its name.
    pub name: &'static str,
    /// The paper's.
    pub paper: f64,
    /// By radius, then by power.
    pub errors: Vec<[Pooled; POWERS.len()]>,
    /// Of the Gaussian kernel with Silverman's bandwidth, which is made for densities.
    pub silverman: Pooled,
    /// Of the Gaussian kernel, by bandwidth: as many of them as radii.
    pub gaussian: Vec<Pooled>,
}

/// The polynomial of degree 3 that is the truth of the regression: `x³ − xy + y²`.
pub fn polynomial([x, y]: [f64; 2]) -> f64 {
    x * x * x - x * y + y * y
}

/// Mean squared errors of one draw of one example: by radius and power, and of the Gaussian kernel
/// with Silverman's bandwidth first, then by bandwidth.
type Errors = (Vec<PerPower>, Vec<f64>);

/// Estimates every example at every radius, `settings.draws` times.
pub(super) fn run(settings: &FourierIntegral, tick: &(dyn Fn() + Sync)) -> Vec<Finding> {
    let one = |draw: usize| {
        let mut all = vec![density::<1>(settings, draw)];
        tick();
        all.push(density::<2>(settings, draw));
        tick();
        all.extend(regression(settings, draw));
        tick();
        all
    };
    let draws: Vec<Vec<Errors>> = (0..settings.draws).into_par_iter().map(one).collect();
    let mut findings = Vec::new();
    for (e, (name, paper)) in EXAMPLES.into_iter().enumerate() {
        let pooled = |of: &dyn Fn(&Errors) -> f64| -> Pooled {
            draws.iter().map(|draw| of(&draw[e])).collect()
        };
        let n = settings.radii;
        findings.push(Finding {
            name,
            paper,
            errors: (0..n).map(|r| array::from_fn(|p| pooled(&|errors| errors.0[r][p]))).collect(),
            silverman: pooled(&|errors| errors.1[0]),
            gaussian: (1..=n).map(|b| pooled(&|errors| errors.1[b])).collect(),
        });
    }
    findings
}

/// The generator of one role in one draw.
pub(super) fn generator(seed: u64, role: &str, draw: usize) -> Generator {
    Generator::seed_from_u64(derive_nth(derive(seed, role), draw as u64))
}

/// `n` draws from a centred normal distribution with variance 1 in each dimension and, in two
/// of them, `correlation` between both; column by column.
///
/// # Panics
/// For more than two dimensions.
pub fn normals<const D: usize>(
    n: usize,
    correlation: f64,
    generator: &mut Generator,
) -> [Vec<f64>; D] {
    assert!(D == 1 || D == 2, "{D} dimensions");
    let mut columns = array::from_fn(|_| Vec::with_capacity(n));
    for _ in 0..n {
        let mut before = 0.0;
        for (j, column) in columns.iter_mut().enumerate() {
            let noise = standard_normal(generator);
            let value = match j {
                0 => noise,
                _ => correlation * before + (1.0 - correlation * correlation).sqrt() * noise,
            };
            column.push(value);
            before = noise;
        }
    }
    columns
}

/// The density that [`normals`] draws from.
pub fn normal<const D: usize>(at: [f64; D], correlation: f64) -> f64 {
    let first = normal_density(at[0]);
    at.get(1).map_or(first, |y| {
        let sd = (1.0 - correlation * correlation).sqrt();
        first * normal_density((y - correlation * at[0]) / sd) / sd
    })
}

/// Uniform on `[−half_width, half_width]^D`.
fn uniform<const D: usize>(n: usize, half_width: f64, generator: &mut Generator) -> Vec<[f64; D]> {
    (0..n)
        .map(|_| array::from_fn(|_| half_width * (2.0 * generator.random::<f64>() - 1.0)))
        .collect()
}

fn density<const D: usize>(settings: &FourierIntegral, draw: usize) -> Errors {
    let role = |what: &str| generator(settings.seed, &format!("density {D} {what}"), draw);
    let columns = normals::<D>(settings.density_points, CORRELATION, &mut role("points"));
    let tests = uniform::<D>(settings.test_points, HALF_WIDTH, &mut role("tests"));
    let truth: Vec<f64> = tests.iter().map(|&at| normal(at, CORRELATION)).collect();
    let errors = settings
        .radii()
        .into_iter()
        .map(|radius| {
            let points = Points::new(&columns, radius);
            let estimates: Vec<PerPower> =
                tests.par_iter().map(|&at| points.densities(at)).collect();
            array::from_fn(|p| mse(estimates.iter().map(|estimate| estimate[p]), &truth))
        })
        .collect();
    let error = |bandwidths: [f64; D]| {
        let estimate = |&at: &[f64; D]| gaussian_density(&columns, bandwidths, at);
        mse(tests.par_iter().map(estimate).collect::<Vec<_>>(), &truth)
    };
    let gaussian = gaussian_bandwidths(settings, &columns).into_iter().map(error).collect();
    (errors, gaussian)
}

/// The four forms of the regression share their points: noise and values are summed apart,
/// because equation 14 is linear in the values.
fn regression(settings: &FourierIntegral, draw: usize) -> [Errors; 4] {
    let role = |what: &str| generator(settings.seed, &format!("regression {what}"), draw);
    let n = settings.regression_points;
    let columns = normals::<2>(n, CORRELATION, &mut role("points"));
    let values: Vec<f64> = (0..n).map(|i| polynomial([columns[0][i], columns[1][i]])).collect();
    let mut noise_generator = role("noise");
    let noise: Vec<f64> = (0..n).map(|_| NOISE * standard_normal(&mut noise_generator)).collect();
    let drawn = normals::<2>(settings.test_points, CORRELATION, &mut role("tests"));
    let tests = [
        drawn[0].iter().zip(&drawn[1]).map(|(&x, &y)| [x, y]).collect(),
        uniform::<2>(settings.test_points, REGRESSION_HALF_WIDTH, &mut role("uniform")),
    ];
    let truths: [Vec<f64>; 2] =
        tests.each_ref().map(|tests: &Vec<_>| tests.iter().map(|&at| polynomial(at)).collect());

    let mut all: [Errors; 4] = Default::default();
    for radius in settings.radii() {
        let points = Points::new(&columns, radius);
        for (set, (tests, truth)) in tests.iter().zip(&truths).enumerate() {
            // Without noise, and what the noise adds.
            let estimates: Vec<[PerPower; 2]> = tests
                .par_iter()
                .map(|&at| {
                    let (plain, weighted) = points.sums(at, [&values, &noise]);
                    weighted.map(|sums| array::from_fn(|p| sums[p] / plain[p]))
                })
                .collect();
            let clean = array::from_fn(|p| mse(estimates.iter().map(|e| e[0][p]), truth));
            let noisy = array::from_fn(|p| mse(estimates.iter().map(|e| e[0][p] + e[1][p]), truth));
            all[2 * set].0.push(noisy);
            all[2 * set + 1].0.push(clean);
        }
    }

    for bandwidths in gaussian_bandwidths(settings, &columns) {
        for (set, (tests, truth)) in tests.iter().zip(&truths).enumerate() {
            let estimates: Vec<[f64; 2]> = tests
                .par_iter()
                .map(|&at| gaussian_regression(&columns, bandwidths, [&values, &noise], at))
                .collect();
            all[2 * set].1.push(mse(estimates.iter().map(|e| e[0] + e[1]), truth));
            all[2 * set + 1].1.push(mse(estimates.iter().map(|e| e[0]), truth));
        }
    }
    all
}

/// Silverman's, then those of [`FourierIntegral::bandwidths`], for each dimension.
fn gaussian_bandwidths<const D: usize>(
    settings: &FourierIntegral,
    columns: &[Vec<f64>; D],
) -> Vec<[f64; D]> {
    let rule = columns.each_ref().map(|column| silverman(sample_sd(column), column.len(), D));
    let others = settings.bandwidths().into_iter().map(|bandwidth| [bandwidth; D]);
    std::iter::once(rule).chain(others).collect()
}

/// The Nadaraya–Watson estimates of several values with a Gaussian kernel.
fn gaussian_regression(
    columns: &[Vec<f64>; 2],
    bandwidths: [f64; 2],
    values: [&[f64]; 2],
    at: [f64; 2],
) -> [f64; 2] {
    let squares = |i: usize| {
        let z = [0, 1].map(|j| (at[j] - columns[j][i]) / bandwidths[j]);
        z[0] * z[0] + z[1] * z[1]
    };
    // Relative to the nearest point's, so that not all are 0 with a narrow kernel.
    let nearest = (0..columns[0].len()).map(squares).fold(f64::INFINITY, f64::min);
    let (mut plain, mut weighted) = (0.0, [0.0; 2]);
    for i in 0..columns[0].len() {
        let kernel = (-0.5 * (squares(i) - nearest)).exp();
        plain += kernel;
        weighted.iter_mut().zip(values).for_each(|(sum, values)| *sum += kernel * values[i]);
    }
    weighted.map(|sum| sum / plain)
}

fn mse(estimates: impl IntoIterator<Item = f64>, truth: &[f64]) -> f64 {
    let squares: f64 = estimates.into_iter().zip(truth).map(|(e, t)| (e - t).powi(2)).sum();
    squares / truth.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::tiny_results;
    use super::*;

    #[test]
    fn normals_have_their_moments_and_their_density() {
        let [x, y] = normals::<2>(40_000, 0.6, &mut generator(3, "test", 0));
        let mean = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(f).sum::<f64>() / x.len() as f64;
        for (seen, exact) in [
            (mean(&|i| x[i]), 0.0),
            (mean(&|i| y[i]), 0.0),
            (mean(&|i| x[i] * x[i]), 1.0),
            (mean(&|i| y[i] * y[i]), 1.0),
            (mean(&|i| x[i] * y[i]), 0.6),
        ] {
            // Five standard errors of a mean of squares: 5 · √2/200.
            assert!((seen - exact).abs() < 0.036, "{seen} is not {exact}");
        }
        // exp(−(1 + 4 − 2·0.6·2)/(2·0.64)) / (2π · 0.8).
        let at = (-(5.0 - 2.4) / 1.28f64).exp() / (std::f64::consts::TAU * 0.8);
        assert!((normal([1.0, 2.0], 0.6) - at).abs() < 1e-15);
        assert_eq!(normal([1.0], 0.6), normal_density(1.0));
    }

    #[test]
    fn each_form_of_the_regression_has_its_own_error() {
        let findings = &tiny_results().examples;
        assert_eq!(findings.len(), EXAMPLES.len());
        for finding in findings {
            assert_eq!((finding.errors.len(), finding.silverman.n), (3, 2));
            assert_eq!(finding.gaussian.len(), 3);
            assert!(finding.gaussian.iter().all(|error| error.mean.is_finite()), "{finding:?}");
        }
        // Noise adds to the error of a narrow kernel, which averages few values.
        assert!(findings[2].gaussian[2].mean > findings[3].gaussian[2].mean);
        assert!(findings[4].gaussian[2].mean > findings[5].gaussian[2].mean);
        assert_ne!(findings[2].errors, findings[4].errors);
    }

    /// The nearest point's value where the kernel is narrow, the mean where it is wide.
    #[test]
    fn a_gaussian_kernel_goes_from_the_nearest_value_to_the_mean() {
        let columns = [vec![0.0, 3.0], vec![0.0, 0.0]];
        let estimate = |bandwidth: f64| {
            gaussian_regression(&columns, [bandwidth; 2], [&[2.0, 8.0], &[1.0, 0.0]], [1.0, 0.0])
        };
        assert_eq!(estimate(1e-3), [2.0, 1.0]);
        let [value, noise] = estimate(1e6);
        assert!((value - 5.0).abs() < 1e-9 && (noise - 0.5).abs() < 1e-9);
        // exp(−1/2) and exp(−2).
        let [near, far] = [(-0.5f64).exp(), (-2.0f64).exp()];
        assert!((estimate(1.0)[0] - (2.0 * near + 8.0 * far) / (near + far)).abs() < 1e-12);
    }

    #[test]
    fn errors_are_mean_squares() {
        assert_eq!(mse([1.0, 3.0], &[1.0, 1.0]), 2.0);
        assert_eq!(polynomial([2.0, 3.0]), 11.0);
    }
}
