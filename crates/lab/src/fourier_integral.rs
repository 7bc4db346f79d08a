//! Density estimation and regression by the generalized Fourier integral theorem
//! (FourierFormer, sections 3.1 and 3.2, appendices C.1 and E.4): the paper's synthetic
//! examples, and how the error falls with the radius and the number of points.

pub mod estimator;
pub mod kernel;
pub mod mise;
pub mod rates;
mod report;
pub mod synthetic;

/// What to estimate. The paper states the numbers of points and of test points, that the
/// examples are normal and correlated, and the polynomial's degree; the rest it leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Seed of all points.
    pub seed: u64,
    /// How often each of the paper's examples is drawn anew.
    pub draws: usize,
    /// Points of a density.
    pub density_points: usize,
    /// Points of the regression.
    pub regression_points: usize,
    /// Places at which each estimate is compared with the truth.
    pub test_points: usize,
    /// Radii at which each example is estimated: see [`Settings::radii`].
    pub n_radii: usize,
    /// A density's test points are uniform on `[−half_width, half_width]^D`.
    pub half_width: f64,
    /// The regression's uniform test inputs lie in `[−this, this]²`.
    pub regression_half_width: f64,
    /// Between the two coordinates of the 2-D density and of the regression's inputs.
    pub correlation: f64,
    /// Standard deviation of the noise on the regression's values.
    pub noise: f64,
    /// Draws at each radius and number of points of the rates.
    pub rate_draws: usize,
    /// Numbers of points of the drawn rates, in one dimension and in two.
    pub rate_points: [Vec<usize>; 2],
}

impl Settings {
    /// The radii at which the paper's examples are estimated: from 1 to 32 by equal factors.
    pub fn radii(&self) -> Vec<f64> {
        rates::geometric(1.0, 32.0, self.n_radii)
    }

    /// Bandwidths of the Gaussian kernel beside them: as wide near 0 as `sinc⁴(R z)` at each radius,
    /// for `ln sinc⁴(R z) = −⅔ R² z² + …`.
    pub fn bandwidths(&self) -> Vec<f64> {
        self.radii().into_iter().map(|radius| 0.75f64.sqrt() / radius).collect()
    }

    /// How often [`run`] reports progress.
    pub fn units(&self) -> usize {
        synthetic::units(self) + rates::units(self)
    }

    #[cfg(test)]
    fn tiny() -> Self {
        Self {
            seed: 1,
            draws: 2,
            density_points: 300,
            regression_points: 3000,
            test_points: 60,
            n_radii: 3,
            half_width: 3.0,
            regression_half_width: 2.0,
            correlation: 0.5,
            noise: 3.0,
            rate_draws: 12,
            rate_points: [vec![500], vec![200]],
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What was asked for.
    pub settings: Settings,
    /// The paper's examples.
    pub examples: Vec<synthetic::Finding>,
    /// The rates.
    pub rates: rates::Finding,
}

/// Estimates everything, on all cores; `progress` is called after each of
/// [`Settings::units`] parts.
pub fn run(settings: &Settings, progress: &(dyn Fn() + Sync)) -> Findings {
    let examples = synthetic::run(settings, progress);
    Findings { settings: settings.clone(), examples, rates: rates::run(settings, progress) }
}

/// What is found with [`Settings::tiny`], for every test that only looks at it.
#[cfg(test)]
fn tiny_findings() -> &'static Findings {
    static FOUND: std::sync::LazyLock<Findings> =
        std::sync::LazyLock::new(|| run(&Settings::tiny(), &|| ()));
    &FOUND
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let done = AtomicUsize::new(0);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = one.install(|| {
            run(&Settings::tiny(), &|| {
                done.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(done.into_inner(), Settings::tiny().units());
        let found = tiny_findings();
        assert_eq!(&alone, found);
        let other = run(&Settings { seed: 2, ..Settings::tiny() }, &|| ());
        assert_ne!(other.examples, found.examples);
        assert_ne!(other.rates.drawn, found.rates.drawn);
        assert_eq!(other.rates.rates, found.rates.rates, "these are exact");
    }

    #[test]
    fn radii_go_from_1_to_32() {
        let radii = Settings { n_radii: 6, ..Settings::tiny() }.radii();
        assert_eq!(radii.len(), 6);
        for (radius, expected) in radii.into_iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) {
            assert!((radius - expected).abs() < 1e-12);
        }
    }
}
