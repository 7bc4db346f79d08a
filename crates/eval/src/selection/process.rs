//! The model behind [`Rule::Process`](super::Rule::Process): independent normal returns whose means
//! are normal too, with the spreads inferred from the episodes (empirical Bayes).
//!
//! ```text
//! μ_i ~ N(m, s²)        mean return of policy i; m has a flat prior
//! y   ~ N(μ_i, σ_i²)    return of an episode;  σ_i² = (S_i + ν σ²)/(n_i − 1 + ν)
//! f_i ~ N(μ_i, v²)      an estimate of μ_i, where there is one
//! ```
//!
//! `S_i` is the sum of squared deviations of the policy's `n_i` episodes, and `σ²` the variance
//! within all policies: a policy with few episodes borrows the spread of the others (ν = 2). `s` and
//! `v` maximize the likelihood over a grid. With both, the observations of one policy have the
//! weighted mean `x_i` and variance `u_i`:
//!
//! ```text
//! 1/u_i = n_i/σ_i² + 1/v²     x_i = u_i (n_i ȳ_i/σ_i² + f_i/v²)     t_i = s² + u_i
//! m̂ = Σ (x_i/t_i) / Σ (1/t_i)
//! ln L = Σ_i ln N(x_i; m̂, t_i) + Σ_i ln N(f_i − ȳ_i; 0, v² + σ_i²/n_i)
//! E μ_i = m̂ + s²/t_i (x_i − m̂)      Var μ_i = s² u_i/t_i
//! ```
//!
//! The second sum of the likelihood has only policies with both. Distances between the policies'
//! actions, which Konyushkova et al. use, are not part of the model.

use super::Played;

/// Weight of the pooled variance in a policy's own, in episodes.
const NU: f64 = 2.0;

/// Factors of the grids of `s` and `v`, relative to the spread of the observed means.
const FACTORS: [f64; 7] = [0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0];

/// Factors of `v`: estimates may be much worse than the spread of the policies.
const ESTIMATE_FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Mean and standard deviation of each policy's mean return, given its episodes.
pub struct Posterior {
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
}

/// What is known of one policy: the weighted mean of its observations and their variance.
#[derive(Clone, Copy)]
struct Known {
    mean: f64,
    /// Infinite without observations.
    variance: f64,
}

impl Posterior {
    /// The posterior after the episodes `played`, with an estimate of each policy's mean return or
    /// without.
    pub fn of(played: &[Played], estimates: Option<&[f64]>) -> Self {
        let means: Vec<f64> = played.iter().filter(|p| p.n > 0).map(Played::mean).collect();
        // The spread of the means, or of the estimates while there are few episodes.
        let spread = match estimates {
            Some(estimates) if means.len() < 3 => variance(estimates).max(variance(&means)),
            _ => variance(&means),
        };
        // Without any spread, every policy is as good as the others; the scale is arbitrary.
        let spread = if spread > 0.0 { spread } else { f64::MIN_POSITIVE.sqrt() };
        let noises = noises(played, spread);
        let scale = spread.sqrt();
        let mut best: Option<(f64, Self)> = None;
        let vs = if estimates.is_some() { &ESTIMATE_FACTORS[..] } else { &[1.0] };
        for s in FACTORS.map(|factor| factor * scale) {
            for v in vs.iter().map(|factor| factor * scale) {
                let estimates = estimates.map(|estimates| (estimates, v * v));
                let (likelihood, posterior) = given(played, &noises, s * s, estimates);
                if best.as_ref().is_none_or(|(most, _)| likelihood > *most) {
                    best = Some((likelihood, posterior));
                }
            }
        }
        let n = played.len();
        best.map_or_else(|| Self { mean: vec![0.0; n], deviation: vec![0.0; n] }, |(_, best)| best)
    }
}

/// Population variance.
fn variance(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
}

/// `σ_i²`. While no policy has two episodes, the spread between policies stands for it.
fn noises(played: &[Played], spread: f64) -> Vec<f64> {
    let within: f64 = played.iter().map(Played::squared_deviations).sum();
    let freedom: usize = played.iter().map(|policy| policy.n.saturating_sub(1)).sum();
    let pooled = (within + spread) / (freedom + 1) as f64;
    let noise = |policy: &Played| {
        (policy.squared_deviations() + NU * pooled) / (policy.n.saturating_sub(1) as f64 + NU)
    };
    played.iter().map(noise).collect()
}

/// The log-likelihood up to a constant and the posterior, given `s²` and the estimates with `v²`.
fn given(
    played: &[Played],
    noises: &[f64],
    s2: f64,
    estimates: Option<(&[f64], f64)>,
) -> (f64, Posterior) {
    let log_normal = |x: f64, variance: f64| -0.5 * (variance.ln() + x * x / variance);
    let mut likelihood = 0.0;
    let known: Vec<Known> = played
        .iter()
        .zip(noises)
        .enumerate()
        .map(|(i, (policy, noise))| {
            let of_mean = noise / policy.n as f64;
            let measured = (policy.n > 0).then(|| Known { mean: policy.mean(), variance: of_mean });
            let estimate = estimates.map(|(f, v2)| Known { mean: f[i], variance: v2 });
            match (measured, estimate) {
                (Some(a), Some(b)) => {
                    likelihood += log_normal(a.mean - b.mean, a.variance + b.variance);
                    let variance = 1.0 / (1.0 / a.variance + 1.0 / b.variance);
                    let mean = variance * (a.mean / a.variance + b.mean / b.variance);
                    Known { mean, variance }
                }
                (Some(only), None) | (None, Some(only)) => only,
                (None, None) => Known { mean: 0.0, variance: f64::INFINITY },
            }
        })
        .collect();
    let observed = || known.iter().filter(|known| known.variance.is_finite());
    let precision: f64 = observed().map(|known| 1.0 / (s2 + known.variance)).sum();
    let weighted: f64 = observed().map(|known| known.mean / (s2 + known.variance)).sum();
    let center = if precision > 0.0 { weighted / precision } else { 0.0 };
    let of_means = observed().map(|known| log_normal(known.mean - center, s2 + known.variance));
    likelihood += of_means.sum::<f64>();
    let shrunk = |known: &Known| match known.variance {
        f64::INFINITY => (center, s2.sqrt()),
        u => {
            let t = s2 + u;
            (center + s2 / t * (known.mean - center), (s2 * u / t).sqrt())
        }
    };
    let (mean, deviation) = known.iter().map(shrunk).unzip();
    (likelihood, Posterior { mean, deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(returns: &[f64]) -> Played {
        let mut played = Played::default();
        returns.iter().for_each(|&x| played.add(x));
        played
    }

    #[test]
    fn many_episodes_leave_the_means_as_they_are() {
        let around = |center: f64| {
            let all: Vec<f64> = (0..2000).map(|i| center + f64::from(i % 7) - 3.0).collect();
            played(&all)
        };
        let all = [around(10.0), around(20.0), around(50.0)];
        let Posterior { mean, deviation } = Posterior::of(&all, None);
        for (policy, (mean, deviation)) in all.iter().zip(mean.iter().zip(&deviation)) {
            assert!((mean - policy.mean()).abs() < 0.01, "{mean}");
            // sqrt of variance 4 over 2000 episodes.
            assert!((deviation - (4.0_f64 / 2000.0).sqrt()).abs() < 2e-3, "{deviation}");
        }
    }

    #[test]
    fn noisy_means_are_drawn_to_their_center() {
        let all = [played(&[0.0, 100.0]), played(&[10.0, 110.0]), played(&[-20.0, 80.0])];
        let Posterior { mean, deviation } = Posterior::of(&all, None);
        let center = 280.0 / 6.0;
        for (policy, mean) in all.iter().zip(&mean) {
            let ratio = (mean - center) / (policy.mean() - center);
            assert!(ratio > 0.0 && ratio < 0.5, "{ratio}");
        }
        assert!(deviation.iter().all(|&sd| sd > 0.0));
    }

    /// The closed form against a plain numerical integration over `μ_1`, for known `s`, `v` and two
    /// policies of which one has no episodes.
    #[test]
    fn the_posterior_equals_numerical_integration() {
        let (s2, v2, noise) = (4.0, 9.0, 2.0);
        let policies = [played(&[3.0, 5.0]), Played::default()];
        let f = [6.0, 1.0];
        let (_, posterior) = given(&policies, &[noise, noise], s2, Some((&f[..], v2)));
        // m̂ by its formula, then the density of μ on a fine grid.
        let (u0, u1) = (1.0 / (2.0 / noise + 1.0 / v2), v2);
        let (x0, x1) = (u0 * (2.0 * 4.0 / noise + 6.0 / v2), 1.0);
        let (t0, t1) = (s2 + u0, s2 + u1);
        let center = (x0 / t0 + x1 / t1) / (1.0 / t0 + 1.0 / t1);
        let density = |mu: f64, i: usize| {
            let squares: f64 = [[3.0, 5.0], [f64::NAN; 2]][i]
                .iter()
                .filter(|y: &&f64| y.is_finite())
                .map(|y| (y - mu).powi(2) / noise)
                .sum();
            (-0.5 * ((mu - center).powi(2) / s2 + squares + (f[i] - mu).powi(2) / v2)).exp()
        };
        for i in 0..2 {
            let grid = (-40_000..40_000).map(|k| f64::from(k) * 1e-3);
            let sums = grid.fold([0.0; 3], |[a, b, c], mu| {
                let p = density(mu, i);
                [a + p, b + p * mu, c + p * mu * mu]
            });
            let mean = sums[1] / sums[0];
            let deviation = (sums[2] / sums[0] - mean * mean).sqrt();
            assert!((posterior.mean[i] - mean).abs() < 1e-9, "{i}");
            assert!((posterior.deviation[i] - deviation).abs() < 1e-9, "{i}");
        }
    }
}
