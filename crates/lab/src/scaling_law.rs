//! The Fourier head's scaling law (Fourier head, Theorem 3.3, appendix A): how well `N`
//! frequencies fit, and how smooth what they fit is.

pub mod best_fit;
mod tables;
pub mod target;

use overtone_eval::smoothness::{MAX_SIGMA, weight};
use overtone_eval::{FourierTransform, Smoothness};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::power_law::PowerLaw;
use crate::report::Report;
use crate::study::{Study, StudyError, invalid, number, whole};
use best_fit::{BestFit, Fitter};
use target::{Shape, Target, on_bins};

/// Blurs, in bins, whose part in the metric is looked at alone.
pub const WIDTHS: [usize; 4] = [1, 4, 16, 64];

/// The Fourier head's theorem: fit and smoothness against the number of frequencies
///
/// Nothing in it is random.
#[derive(Clone, Debug, clap::Args)]
pub struct ScalingLaw {
    /// Bins, the theorem's m, an even number: many, so that there are frequencies that are many
    /// and far below m/2.
    #[arg(long, default_value = "4096", value_parser = whole(64..=16_384))]
    pub bins: usize,
    /// Least value of every target density (the uniform one's is 0.5): the divergence of a fit
    /// weighs errors by one over the density.
    #[arg(long, default_value = "0.05", value_parser = number(0.001..=0.4))]
    pub floor: f64,
    /// Exponents of smoothness are read off from this number of frequencies on: from there the
    /// widest blur removes all that the frequencies above it hold.
    #[arg(long, default_value = "16", value_parser = whole(1..=1024))]
    pub from: usize,
    /// … to this one: up to there, the narrowest blur hardly removes anything.
    #[arg(long, default_value = "128", value_parser = whole(2..=2048))]
    pub to: usize,
    /// The largest head that is optimized.
    #[arg(long, default_value = "64", value_parser = whole(4..=2048))]
    pub most_fitted: usize,
}

impl ScalingLaw {
    /// The numbers of frequencies of the truncations: from 1 to an eighth of the bins, about
    /// four for each doubling.
    pub fn frequencies(&self) -> Vec<usize> {
        doublings(1, self.bins / 8)
    }

    /// The numbers of frequencies of the best heads: up to the largest one, about four for each
    /// doubling from 2.
    pub fn fitted(&self) -> Vec<usize> {
        doublings(2, self.most_fitted)
    }

    /// Where the best heads' exponents are read off.
    pub fn fitted_range(&self) -> [usize; 2] {
        [(self.most_fitted / 8).max(2), self.most_fitted]
    }

    /// Where the exponents of smoothness are read off.
    fn range(&self) -> [usize; 2] {
        [self.from, self.to]
    }

    fn check(&self) -> Result<(), StudyError> {
        let Self { bins, from, to, most_fitted, .. } = *self;
        if bins % 2 == 1 {
            return Err(invalid("bins", bins, "must be even"));
        }
        if most_fitted > bins / 8 {
            return Err(invalid("most_fitted", most_fitted, "must be at most an eighth of bins"));
        }
        let read_off = self.frequencies().into_iter().filter(|n| (from..=to).contains(n)).count();
        if read_off < 3 {
            let expected = format!(
                "from={from} up to there are {read_off} numbers of frequencies, and an exponent \
                 takes three"
            );
            return Err(invalid("to", to, expected));
        }
        Ok(())
    }
}

fn doublings(from: usize, to: usize) -> Vec<usize> {
    let numbers = (0..).map(|i| from as f64 * 2f64.powf(f64::from(i) / 4.0));
    let mut numbers: Vec<usize> =
        numbers.map(|n| n.round() as usize).take_while(|&n| n <= to).collect();
    numbers.dedup();
    numbers
}

/// A target cut off after `N` frequencies: the theorem's `y^(N)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// `N`.
    pub n: usize,
    /// `s(y^(N))`.
    pub smoothness: f64,
    /// `s(y) − s(y^(N))` for the whole target `y`, without the cancellation of that difference.
    pub lacking: f64,
    /// The same for the norm of each of [`WIDTHS`] alone.
    pub lacking_at: [f64; WIDTHS.len()],
    /// `∫ (f − f_N)²` over [−1, 1].
    pub error: f64,
}

/// The best head with `N` frequencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// `N`.
    pub n: usize,
    /// Kullback–Leibler divergence from the target, in nats.
    pub divergence: f64,
    /// No head with `N` frequencies has a divergence lower by more than this.
    pub excess: f64,
    /// `s` of the head's distribution.
    pub smoothness: f64,
    /// `|s(y) − s|`.
    pub lacking: f64,
}

/// What was found for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The target.
    pub target: Target,
    /// `s(y)` of the whole target, with every frequency below `m/2`.
    pub smoothness: f64,
    /// By number of frequencies.
    pub truncations: Vec<Truncation>,
    /// By number of frequencies; none for a target that is not positive at every bin, as one
    /// with jumps may be when it is cut off below `m/2`.
    pub fitted: Vec<Fitted>,
}

impl Study for ScalingLaw {
    const NAME: &'static str = "scaling-law";
    const QUICK: &'static [&'static str] = &["bins=1024", "from=6", "to=32", "most_fitted=32"];
    /// By target, from the roughest.
    type Results = Vec<Finding>;

    fn units(&self) -> usize {
        Shape::ALL.len()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Vec<Finding>, StudyError> {
        self.check()?;
        let metric = Smoothness::new(self.bins);
        let one = |&shape: &Shape| {
            let finding = finding(self, &metric, Target { shape, floor: self.floor });
            tick();
            finding
        };
        Ok(Shape::ALL.par_iter().map(one).collect())
    }

    fn report(&self, findings: &Vec<Finding>) -> Report {
        tables::report(self, findings)
    }
}

fn finding(settings: &ScalingLaw, metric: &Smoothness, target: Target) -> Finding {
    let m = settings.bins;
    let transform = FourierTransform::new(m);
    let all = target.coefficients(m / 2 - 1);
    let pmf = |coefficients: &[f64]| on_bins(&transform, 0.5, 1, coefficients);
    let whole = pmf(&all);
    let smoothness = metric.l2(&whole);
    let cut = |n: usize| {
        let kept = pmf(&all[..n]);
        let rest = on_bins(&transform, 0.0, n + 1, &all[n..]);
        let lacking = |sigma| lacking(metric, sigma, &whole, &kept, &rest);
        Truncation {
            n,
            smoothness: metric.l2(&kept),
            lacking: (1..=MAX_SIGMA).map(|sigma| weight(sigma) * lacking(sigma)).sum(),
            lacking_at: WIDTHS.map(lacking),
            error: all[n..].iter().rev().map(|c| c * c).sum(),
        }
    };
    let truncations = settings.frequencies().into_iter().map(cut).collect();
    let mut fitted = Vec::new();
    if whole.iter().all(|&y| y > 0.0) {
        let fitter = Fitter::new(&whole, settings.most_fitted);
        let fit = |&n: &usize| {
            let BestFit { coefficients, divergence, excess, .. } = fitter.fit(n);
            let head_smoothness = metric.l2(&pmf(&coefficients));
            Fitted {
                n,
                divergence,
                excess,
                smoothness: head_smoothness,
                lacking: (smoothness - head_smoothness).abs(),
            }
        };
        fitted = settings.fitted().par_iter().map(fit).collect();
    }
    Finding { target, smoothness, truncations, fitted }
}

/// `‖y − g ∗ y‖ − ‖y^(N) − g ∗ y^(N)‖` for one blur. The parts `y^(N)` and `rest` of `y` have
/// no frequency in common, so the squares of their norms add up.
fn lacking(metric: &Smoothness, sigma: usize, whole: &[f64], kept: &[f64], rest: &[f64]) -> f64 {
    let [whole, kept, rest] = [whole, kept, rest].map(|part| metric.l2_at(sigma, part));
    match whole + kept {
        0.0 => 0.0,
        sum => rest * rest / sum,
    }
}

impl Shape {
    /// The theorem's exponent of `1/N` in `C₁ − s(y^(N))`: `2t − 1`; it asks for `t ≥ 2`.
    pub fn theorems_exponent(self) -> f64 {
        2.0 * self.decay() - 1.0
    }

    /// The exponent when the blur is not left out of the proof, for `1 ≪ N ≪ m`: the larger of
    /// `t − 3/2` and `2t − 4`.
    ///
    /// A blur of σ bins keeps `exp(−2π²σ²k²/m²)` of frequency `k`, so it hardly touches those
    /// below `m/σ`: it removes `(σk/m)²` of them, and all of those above. The norm for σ is
    /// `(σ/m)²` when low frequencies make it up (`t > 5/2`), else `(σ/m)^(t−1/2)`. What the
    /// frequencies above `N` add to its square is `N^(1−2t)` for σ > m/N, and summing that over
    /// the norm with the weights `1/σ²` from `m/N` on gives the exponents; blurs under `m/N`
    /// add as much. For `t ≤ 3/2` the narrowest blurs have the most weight, and until `N` is
    /// comparable to `m` there is no power law.
    pub fn derived_exponent(self) -> Option<f64> {
        let t = self.decay();
        (t > 1.5).then(|| f64::max(t - 1.5, 2.0 * t - 4.0))
    }
}

impl Finding {
    /// A power law in `N` of the truncations from `from` to `to` frequencies.
    pub fn law(&self, range: [usize; 2], of: impl Fn(&Truncation) -> f64) -> Option<PowerLaw> {
        let within = self.truncations.iter().filter(|cut| (range[0]..=range[1]).contains(&cut.n));
        PowerLaw::fit(within.map(|cut| [cut.n as f64, of(cut)]))
    }

    /// A power law in `N` of the best heads from `from` to `to` frequencies. Where the proof
    /// that they are the best is no finer than a tenth of the divergence, they are left out.
    pub fn fitted_law(&self, range: [usize; 2], of: impl Fn(&Fitted) -> f64) -> Option<PowerLaw> {
        let within = self.fitted.iter().filter(|fit| {
            (range[0]..=range[1]).contains(&fit.n) && fit.excess < 0.1 * fit.divergence
        });
        PowerLaw::fit(within.map(|fit| [fit.n as f64, of(fit)]))
    }
}

#[cfg(test)]
fn tiny() -> ScalingLaw {
    ScalingLaw { bins: 1024, floor: 0.05, from: 8, to: 32, most_fitted: 16 }
}

/// What is found with [`tiny`], for every test that only looks at it.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
fn tiny_findings() -> &'static [Finding] {
    static FOUND: std::sync::LazyLock<Vec<Finding>> =
        std::sync::LazyLock::new(|| tiny().run(&|| ()).unwrap());
    &FOUND
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_the_difference() {
        let findings = tiny_findings();
        for finding in findings {
            for cut in &finding.truncations {
                let difference = finding.smoothness - cut.smoothness;
                let off = (cut.lacking - difference).abs();
                assert!(off < 1e-14 * finding.smoothness.max(1e-3), "{off} {cut:?}");
            }
            let smoothness: Vec<f64> =
                finding.truncations.iter().map(|cut| cut.smoothness).collect();
            assert!(smoothness.is_sorted(), "{:?}", finding.target);
        }
    }

    /// A single blur far wider than the frequencies' waves does what the theorem says; so does
    /// the error of the fit.
    #[test]
    fn where_the_blur_removes_everything_the_theorem_holds() {
        let findings = tiny_findings();
        for finding in findings.iter().filter(|finding| finding.target.shape.decay() >= 2.0) {
            let theorems = finding.target.shape.theorems_exponent();
            let wide = finding.law([12, 64], |cut| cut.lacking_at[3]).unwrap();
            assert!((wide.exponent + theorems).abs() < 0.2, "{wide:?} {:?}", finding.target);
            let error = finding.law([12, 64], |cut| cut.error).unwrap();
            assert!((error.exponent + theorems).abs() < 0.2, "{error:?} {:?}", finding.target);
        }
    }

    #[test]
    fn the_whole_metric_follows_the_derived_exponent() {
        let findings = tiny_findings();
        for finding in findings {
            let Some(derived) = finding.target.shape.derived_exponent() else { continue };
            let seen = finding.law([8, 32], |cut| cut.lacking).unwrap();
            assert!((seen.exponent + derived).abs() < 0.35, "{seen:?} {:?}", finding.target);
        }
        let derived = |shape: Shape| shape.derived_exponent();
        assert_eq!(derived(Shape::SquareWave), None);
        assert_eq!(derived(Shape::Triangle), Some(0.5));
        assert_eq!(derived(Shape::Power(2.5)), Some(1.0));
        assert_eq!(derived(Shape::Power(3.5)), Some(3.0));
    }

    #[test]
    fn best_heads_get_better_and_are_proven_best() {
        let findings = tiny_findings();
        for finding in findings {
            assert_eq!(finding.fitted.len(), tiny().fitted().len());
            for pair in finding.fitted.windows(2) {
                assert!(pair[1].divergence < pair[0].divergence, "{pair:?}");
                assert!(pair[1].excess < 1e-9, "{pair:?}");
            }
        }
    }

    #[test]
    fn a_target_that_rings_below_zero_has_no_best_head() {
        let findings = ScalingLaw { bins: 62, floor: 0.001, from: 2, to: 7, most_fitted: 4 }
            .run(&|| ())
            .unwrap();
        assert!(findings[0].fitted.is_empty());
        assert!(!findings[1].fitted.is_empty());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let with = |n: usize| {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            let study = ScalingLaw { bins: 64, from: 2, to: 8, most_fitted: 4, ..tiny() };
            threads.install(|| study.run(&|| ()).unwrap())
        };
        assert_eq!(with(1), with(3));
        assert_eq!(doublings(1, 9), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
