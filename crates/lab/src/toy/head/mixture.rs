//! A mixture of G Gaussians on bins and as a likelihood, as one loss.
//!
//! Means are `tanh` of the network's results, standard deviations `softplus` of parameters
//! that are the same for every input, weights equal. As a likelihood the loss is
//! `-ln(p(z) + 1e-10)`; on bins it is `-ln(p(b_j) + κ) + ln Σ_i (p(b_i) + κ)`.

use std::f64::consts::TAU;

use multiversion::multiversion;
use overtone_model::head::fourier::KAPPA;
use overtone_model::head::fourier_likelihood::DENSITY_FLOOR;

use super::Targets;
use crate::toy::data::bin_centre;
use crate::toy::network::ForLoss;
use crate::toy::number::Number;
use crate::toy::product::{LANES, padded};

/// The narrowest standard deviation, as in the heads of `overtone-model`.
const MIN_STD: f64 = 1e-6;
/// So far away that every density is zero there.
const FAR: f64 = 1e3;

/// See the [module's documentation](self).
#[derive(Clone, Debug)]
pub struct Mixture<T> {
    components: usize,
    /// m; `None` for the likelihood head.
    bins: Option<usize>,
    /// Centres of the bins, padded far away.
    centres: Vec<T>,
}

/// A component of one row.
#[derive(Clone, Copy, Debug)]
struct Gaussian<T> {
    mean: T,
    /// `1/σ`
    narrow: T,
    /// `1/(G σ √2π)`
    height: T,
}

impl<T: Number> Gaussian<T> {
    /// How many σ `z` lies above the mean, and the density there.
    #[inline(always)]
    fn at(self, z: T) -> (T, T) {
        let x = (z - self.mean) * self.narrow;
        (x, self.height * (T::of(-0.5) * (x * x)).exp())
    }
}

impl<T: Number> Mixture<T> {
    /// On `bins` bins.
    pub fn quantised(components: usize, bins: usize) -> Self {
        let centre = |bin| T::of(if bin < bins { bin_centre(bin, bins) } else { FAR });
        Self { components, bins: Some(bins), centres: (0..padded(bins)).map(centre).collect() }
    }

    /// On the whole line.
    pub fn likelihood(components: usize) -> Self {
        Self { components, bins: None, centres: Vec::new() }
    }

    /// G.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Standard deviations before the softplus: on bins, of one bin's width; else `ln 2`, which
    /// makes 1.1. Both are the reference's.
    pub fn free(&self) -> Vec<f64> {
        let raw = match self.bins {
            Some(bins) => (2.0 / bins as f64).exp_m1().ln(),
            None => 2f64.ln(),
        };
        vec![raw; self.components]
    }

    fn gaussian(&self, output: T, raw: T) -> Gaussian<T> {
        let std = softplus(raw.wide()).max(MIN_STD);
        Gaussian {
            mean: T::of(output.wide().tanh()),
            narrow: T::of(1.0 / std),
            height: T::of(1.0 / (self.components as f64 * std * TAU.sqrt())),
        }
    }

    fn row(&self, outputs: &[T], free: &[T]) -> Vec<Gaussian<T>> {
        outputs.iter().zip(free).map(|(&output, &raw)| self.gaussian(output, raw)).collect()
    }

    /// The mean loss of a batch.
    pub fn loss(&self, parts: ForLoss<'_, T>, targets: Targets<'_, T>) -> f64 {
        let rows = parts.outputs.len() / parts.columns;
        let share = 1.0 / rows as f64;
        // The gradient of max(softplus, least): the sigmoid, or zero.
        let slope = |raw: f64| match softplus(raw) {
            std if std < MIN_STD => 0.0,
            _ => 1.0 / (1.0 + (-raw).exp()),
        };
        let slopes: Vec<f64> = parts.free.iter().map(|raw| slope(raw.wide())).collect();
        let mut logs = 0.0;
        for row in 0..rows {
            let outputs = &parts.outputs[row * parts.columns..][..self.components];
            let gaussians = self.row(outputs, parts.free);
            let (target, floor) = match self.bins {
                Some(_) => (self.centres[targets.bins[row]], KAPPA),
                None => (targets.values[row], DENSITY_FLOOR),
            };
            let here: Vec<(T, T)> = gaussians.iter().map(|gaussian| gaussian.at(target)).collect();
            let density = here.iter().map(|(_, p)| p.wide()).sum::<f64>() + floor;
            logs += density.ln();
            let everywhere: Vec<[T; 3]> =
                gaussians.iter().map(|&gaussian| moments(&self.centres, gaussian)).collect();
            let total = self.bins.map(|bins| {
                everywhere.iter().map(|sums| sums[0].wide()).sum::<f64>() + bins as f64 * KAPPA
            });
            logs -= total.map_or(0.0, f64::ln);
            for (g, gaussian) in gaussians.iter().enumerate() {
                let (x, p) = (here[g].0.wide(), here[g].1.wide());
                let narrow = gaussian.narrow.wide();
                // By the mean, and by the standard deviation.
                let mut pull = [p * x / density, p * (x * x - 1.0) / density];
                if let Some(total) = total {
                    pull[0] -= everywhere[g][1].wide() / total;
                    pull[1] -= everywhere[g][2].wide() / total;
                }
                let [by_mean, by_std] = pull.map(|pull| -share * narrow * pull);
                let mean = gaussian.mean.wide();
                parts.by_outputs[row * parts.columns + g] = T::of(by_mean * (1.0 - mean * mean));
                parts.by_free[g] += T::of(by_std * slopes[g]);
            }
        }
        -logs * share
    }

    /// See [`super::Head::probs`].
    pub fn probs(&self, outputs: &[T], columns: usize, free: &[T], m: usize) -> Vec<f64> {
        let mut probs = Vec::with_capacity(outputs.len() / columns * m);
        for row in outputs.chunks_exact(columns) {
            let gaussians = self.row(&row[..self.components], free);
            let from = probs.len();
            probs.extend((0..m).map(|bin| {
                let z = T::of(bin_centre(bin, m));
                gaussians.iter().map(|gaussian| gaussian.at(z).1.wide()).sum::<f64>()
            }));
            match self.bins {
                Some(_) => {
                    probs[from..].iter_mut().for_each(|p| *p += KAPPA);
                    let sum: f64 = probs[from..].iter().sum();
                    probs[from..].iter_mut().for_each(|p| *p /= sum);
                }
                None => probs[from..].iter_mut().for_each(|p| *p *= 2.0 / m as f64),
            }
        }
        probs
    }

    /// See [`super::Head::densities`].
    pub fn densities(
        &self,
        outputs: &[T],
        columns: usize,
        free: &[T],
        points: &[f64],
    ) -> Option<Vec<f64>> {
        if self.bins.is_some() {
            return None;
        }
        let density = |(row, &z): (&[T], &f64)| {
            let gaussians = self.row(&row[..self.components], free);
            gaussians.iter().map(|gaussian| gaussian.at(T::of(z)).1.wide()).sum()
        };
        Some(outputs.chunks_exact(columns).zip(points).map(density).collect())
    }
}

/// `ln(1 + eˣ)`
fn softplus(x: f64) -> f64 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

/// `Σ p`, `Σ p x` and `Σ p (x² - 1)` over all centres, `x` in σ from the mean.
#[multiversion(targets = "simd")]
fn moments<T: Number>(centres: &[T], gaussian: Gaussian<T>) -> [T; 3] {
    let mut sums = [[T::ZERO; LANES]; 3];
    for centres in centres.chunks_exact(LANES) {
        for (i, centre) in centres.iter().enumerate() {
            let (x, p) = gaussian.at(*centre);
            sums[0][i] += p;
            sums[1][i] += p * x;
            sums[2][i] += p * (x * x - T::ONE);
        }
    }
    sums.map(|lanes| lanes.into_iter().fold(T::ZERO, |sum, part| sum + part))
}
