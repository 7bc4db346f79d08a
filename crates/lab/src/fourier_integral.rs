//! Density estimation and regression by the generalized Fourier integral theorem
//! (FourierFormer, sections 3.1 and 3.2, appendices C.1 and E.4): the paper's synthetic
//! examples, and how the error falls with the radius and the number of points.

pub mod estimator;
pub mod kernel;
pub mod mise;
mod plots;
pub mod rates;
pub mod synthetic;
mod tables;

use crate::report::Report;
use crate::study::{Study, StudyError, whole};

/// FourierFormer's estimators: its synthetic examples, and rates of the error
///
/// The paper states the numbers of points and of test points, that the examples are normal and
/// correlated, and the polynomial's degree; the rest it leaves open.
#[derive(Clone, Debug, clap::Args)]
pub struct FourierIntegral {
    /// Seed of all points.
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// How often each of the paper's examples is drawn anew; the paper has one draw.
    #[arg(long, default_value = "5", value_parser = whole(1..=1000))]
    pub draws: usize,
    /// Points of a density, as in the paper.
    #[arg(long, default_value = "100000", value_parser = whole(2..=10_000_000))]
    pub density_points: usize,
    /// Points of the regression, as in the paper.
    #[arg(long, default_value = "90000", value_parser = whole(2..=10_000_000))]
    pub regression_points: usize,
    /// Places at which each estimate is compared with the truth, as in the paper.
    #[arg(long, default_value = "1000", value_parser = whole(2..=100_000))]
    pub test_points: usize,
    /// Radii from 1 to 32 by equal factors. The paper does not say its radius.
    #[arg(long, default_value = "16", value_parser = whole(2..=200))]
    pub radii: usize,
}

/// The paper's examples, and the rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The paper's examples.
    pub examples: Vec<synthetic::Finding>,
    /// Exact rates, by target, dimensions and power.
    pub rates: Vec<rates::Rate>,
}

impl FourierIntegral {
    /// The radii at which the paper's examples are estimated: from 1 to 32 by equal factors.
    pub fn radii(&self) -> Vec<f64> {
        rates::geometric(1.0, 32.0, self.radii)
    }

    /// Bandwidths of the Gaussian kernel beside them: as wide near 0 as `sinc⁴(R z)` at each
    /// radius, for `ln sinc⁴(R z) = −⅔ R² z² + …`.
    pub fn bandwidths(&self) -> Vec<f64> {
        self.radii().into_iter().map(|radius| 0.75f64.sqrt() / radius).collect()
    }
}

impl Study for FourierIntegral {
    const NAME: &'static str = "fourier-integral";
    const QUICK: &'static [&'static str] =
        &["draws=2", "density_points=10000", "regression_points=9000", "radii=11"];
    type Results = Results;

    fn units(&self) -> usize {
        3 * self.draws + rates::UNITS
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        Ok(Results { examples: synthetic::run(self, tick), rates: rates::exact(tick) })
    }

    fn report(&self, results: &Results) -> Report {
        let mut report = Report::default();
        tables::add(self, results, &mut report);
        plots::add(self, results, &mut report);
        report
    }
}

#[cfg(test)]
fn tiny() -> FourierIntegral {
    FourierIntegral {
        seed: 1,
        draws: 2,
        density_points: 300,
        regression_points: 3000,
        test_points: 60,
        radii: 3,
    }
}

/// What is found with [`tiny`], for every test that only looks at it.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
fn tiny_results() -> &'static Results {
    static RESULTS: std::sync::LazyLock<Results> =
        std::sync::LazyLock::new(|| tiny().run(&|| ()).unwrap());
    &RESULTS
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let done = AtomicUsize::new(0);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = one.install(|| {
            let tick = || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            tiny().run(&tick).unwrap()
        });
        assert_eq!(done.into_inner(), tiny().units());
        let results = tiny_results();
        assert_eq!(&alone, results);
        let other = FourierIntegral { seed: 2, ..tiny() }.run(&|| ()).unwrap();
        assert_ne!(other.examples, results.examples);
        assert_eq!(other.rates, results.rates, "these are exact");
    }

    #[test]
    fn radii_go_from_1_to_32() {
        let radii = FourierIntegral { radii: 6, ..tiny() }.radii();
        assert_eq!(radii.len(), 6);
        for (radius, expected) in radii.into_iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) {
            assert!((radius - expected).abs() < 1e-12);
        }
    }
}
