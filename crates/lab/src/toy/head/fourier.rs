//! The Fourier head on bins and as a likelihood, as one loss.
//!
//! With `A(z) = Σ_l a_l e^{ilπz}` and `P = Σ|a_l|²` the density is `p(z) = |A(z)|²/(2P)`
//! (Gillman et al. 2025, Algorithm 1, in the form without an autocorrelation). Over `m > N`
//! bins `Σ_j |A(b_j)|² = m P`: the centres `b_j` make all frequencies below `m` orthogonal.
//! So the probability of a bin is `y_j = |A(b_j)|²/(m P)`, and its cross-entropy
//! `-ln((y_j + κ)/(1 + m κ))` asks for `A` at the right bin alone. It is the likelihood's
//! `-ln(p(z) + 1e-10)` at the bin's centre with other constants, and a step costs no more for
//! more bins.
//!
//! Eight rows at a time fill the lanes of a vector: `a_l` of eight rows side by side.

use std::f64::consts::PI;

use multiversion::multiversion;
use overtone_model::head::Regularizer;
use overtone_model::head::fourier::KAPPA;
use overtone_model::head::fourier_likelihood::DENSITY_FLOOR;

use super::Targets;
use crate::toy::data::bin_centre;
use crate::toy::network::ForLoss;
use crate::toy::number::Number;
use crate::toy::product::{LANES, Left, padded, product};

/// Divides initial weights and biases, as in the reference.
pub const DIVISOR: f64 = 100.0;

/// One number of eight rows.
type Lanes<T> = [T; LANES];

/// See the [module's documentation](self).
#[derive(Clone, Debug)]
pub struct Fourier<T> {
    /// N + 1.
    terms: usize,
    /// m; `None` for the likelihood head.
    bins: Option<usize>,
    /// γ times the reference's factor.
    scale: f64,
    /// `cos lπb_j`, then `sin lπb_j`, `l = 0 ..= N`, bin after bin.
    phases: Vec<T>,
    /// Eight rows of coefficients, phases and gradients: real parts, then imaginary parts.
    block: Block<T>,
}

#[derive(Clone, Debug)]
struct Block<T> {
    coefficients: Vec<Lanes<T>>,
    phases: Vec<Lanes<T>>,
    gradients: Vec<Lanes<T>>,
}

/// `A` is divided by `normal · P`; the loss is `-ln(p + floor) + ln(total)`.
#[derive(Clone, Copy)]
struct Constants<T> {
    normal: T,
    floor: T,
    /// 1 over the number of rows.
    share: T,
    /// The regulariser's factor of `k²|c_k|²`, divided by the number of rows.
    scale: T,
}

impl<T: Number> Fourier<T> {
    /// On `bins` bins.
    ///
    /// # Panics
    /// Unless `0 < frequencies < bins`.
    pub fn quantised(frequencies: usize, gamma: f64, bins: usize) -> Self {
        assert!(frequencies < bins, "{frequencies} frequencies on {bins} bins");
        let mut head = Self::likelihood(frequencies, gamma);
        head.bins = Some(bins);
        head.phases =
            (0..bins).flat_map(|bin| phases(bin_centre(bin, bins), frequencies)).collect();
        head
    }

    /// On [-1, 1], continued periodically.
    ///
    /// # Panics
    /// When there is no frequency.
    pub fn likelihood(frequencies: usize, gamma: f64) -> Self {
        assert!(frequencies > 0, "no frequencies");
        let block = vec![[T::ZERO; LANES]; 2 * (frequencies + 1)];
        Self {
            terms: frequencies + 1,
            bins: None,
            scale: gamma * Regularizer::Reference.scale(0),
            phases: Vec::new(),
            block: Block { coefficients: block.clone(), phases: block.clone(), gradients: block },
        }
    }

    /// `2(N+1)`: real parts, then imaginary parts.
    pub fn outputs(&self) -> usize {
        2 * self.terms
    }

    /// The mean loss of a batch, regulariser included.
    pub fn loss(&mut self, parts: ForLoss<'_, T>, targets: Targets<'_, T>) -> f64 {
        let rows = parts.outputs.len() / parts.columns;
        let (normal, floor, total) = match self.bins {
            Some(bins) => (bins as f64, KAPPA, 1.0 + bins as f64 * KAPPA),
            None => (2.0, DENSITY_FLOOR, 1.0),
        };
        let constants = Constants {
            normal: T::of(normal),
            floor: T::of(floor),
            share: T::of(1.0 / rows as f64),
            scale: T::of(self.scale / rows as f64),
        };
        let (mut logs, mut roughness) = (0.0, 0.0);
        for first in (0..rows).step_by(LANES) {
            let n = LANES.min(rows - first);
            self.gather(parts.outputs, parts.columns, first, n, targets);
            let Block { coefficients, phases, gradients } = &mut self.block;
            let densities = likelihood(coefficients, phases, gradients, constants);
            logs += densities[..n].iter().map(|p| (p.wide() + floor).ln()).sum::<f64>();
            if self.scale > 0.0 {
                let by_row = regularise(coefficients, gradients, constants.scale);
                roughness += by_row[..n].iter().map(|value| value.wide()).sum::<f64>();
            }
            for (lane, by_row) in parts.by_outputs[first * parts.columns..]
                .chunks_exact_mut(parts.columns)
                .take(n)
                .enumerate()
            {
                for (by, lanes) in by_row.iter_mut().zip(&self.block.gradients) {
                    *by = lanes[lane];
                }
            }
        }
        total.ln() - logs / rows as f64 + roughness
    }

    /// Fills the block's coefficients and phases with `n` rows from `first`; lanes without a
    /// row repeat the first.
    fn gather(
        &mut self,
        outputs: &[T],
        columns: usize,
        first: usize,
        n: usize,
        targets: Targets<'_, T>,
    ) {
        let width = self.outputs();
        for lane in 0..LANES {
            let row = first + if lane < n { lane } else { 0 };
            let (coefficients, phases) = (&mut self.block.coefficients, &mut self.block.phases);
            for (into, value) in coefficients.iter_mut().zip(&outputs[row * columns..]) {
                into[lane] = *value;
            }
            match self.bins {
                Some(_) => {
                    let table = &self.phases[targets.bins[row] * width..][..width];
                    for (into, value) in phases.iter_mut().zip(table) {
                        into[lane] = *value;
                    }
                }
                None => {
                    // e^{iπz}, to be multiplied up.
                    let (sin, cos) = (PI * targets.values[row].wide()).sin_cos();
                    phases[1][lane] = T::of(cos);
                    phases[self.terms + 1][lane] = T::of(sin);
                }
            }
        }
        if self.bins.is_none() {
            powers(&mut self.block.phases);
        }
    }

    /// See [`super::Head::probs`]; quantised, `(y_j + κ)/(1 + mκ)`.
    pub fn probs(&self, outputs: &[T], columns: usize, m: usize) -> Vec<f64> {
        let (rows, width) = (outputs.len() / columns, padded(2 * m));
        let table = self.table(m, width);
        let mut amplitudes = vec![T::ZERO; rows * width];
        let left = Left::rows(outputs, rows, self.outputs(), columns);
        product(left, &table, width, &mut amplitudes);
        let mut probs = Vec::with_capacity(rows * m);
        for (row, amplitudes) in outputs.chunks_exact(columns).zip(amplitudes.chunks_exact(width)) {
            let power: f64 = row[..self.outputs()].iter().map(|a| a.wide().powi(2)).sum();
            let squares = amplitudes[..m].iter().zip(&amplitudes[m..2 * m]);
            let shares = squares
                .map(|(re, im)| (re.wide().powi(2) + im.wide().powi(2)) / (m as f64 * power));
            match self.bins {
                Some(_) => {
                    probs.extend(shares.map(|y| (y + KAPPA) / (1.0 + m as f64 * KAPPA)));
                }
                None => probs.extend(shares),
            }
        }
        probs
    }

    /// `[2(N+1), width]`: coefficients times it are real parts of `A` at the centres of `m`
    /// bins, then imaginary parts.
    fn table(&self, m: usize, width: usize) -> Vec<T> {
        let mut table = vec![T::ZERO; self.outputs() * width];
        for bin in 0..m {
            for (l, phase) in phases::<f64>(bin_centre(bin, m), self.terms - 1).enumerate() {
                // (u + iv)(cos + i sin) = u cos - v sin + i (u sin + v cos)
                let (term, cos) = (l % self.terms, l < self.terms);
                let (u, v) = (term * width + bin, (self.terms + term) * width + bin);
                if cos {
                    (table[u], table[v + m]) = (T::of(phase), T::of(phase));
                } else {
                    (table[u + m], table[v]) = (T::of(phase), T::of(-phase));
                }
            }
        }
        table
    }

    /// See [`super::Head::densities`].
    pub fn densities(&self, outputs: &[T], columns: usize, points: &[f64]) -> Option<Vec<f64>> {
        if self.bins.is_some() {
            return None;
        }
        let density = |(row, &z): (&[T], &f64)| {
            let (u, v) = row[..self.outputs()].split_at(self.terms);
            let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
            for (l, (u, v)) in u.iter().zip(v).enumerate() {
                let (u, v) = (u.wide(), v.wide());
                let (sin, cos) = (l as f64 * PI * z).sin_cos();
                re += u * cos - v * sin;
                im += u * sin + v * cos;
                power += u * u + v * v;
            }
            (re * re + im * im) / (2.0 * power)
        };
        Some(outputs.chunks_exact(columns).zip(points).map(density).collect())
    }
}

/// `cos lπz` for `l = 0 ..= N`, then `sin lπz`.
fn phases<T: Number>(z: f64, frequencies: usize) -> impl Iterator<Item = T> {
    let angle = move |l: usize| l as f64 * PI * z;
    let cos = (0..=frequencies).map(move |l| T::of(angle(l).cos()));
    cos.chain((0..=frequencies).map(move |l| T::of(angle(l).sin())))
}

/// `e^{ilπz}` for all `l`, given that for `l = 1`.
#[multiversion(targets = "simd")]
fn powers<T: Number>(phases: &mut [Lanes<T>]) {
    let terms = phases.len() / 2;
    phases[0] = [T::ONE; LANES];
    phases[terms] = [T::ZERO; LANES];
    let (cos, sin) = phases.split_at_mut(terms);
    for l in 2..terms {
        for lane in 0..LANES {
            let (c, s) = (cos[l - 1][lane], sin[l - 1][lane]);
            cos[l][lane] = c * cos[1][lane] - s * sin[1][lane];
            sin[l][lane] = s * cos[1][lane] + c * sin[1][lane];
        }
    }
}

/// `p = |A|²/(normal · P)` of each lane; `gradients` become those of
/// `-share · ln(p + floor)`.
#[multiversion(targets = "simd")]
fn likelihood<T: Number>(
    coefficients: &[Lanes<T>],
    phases: &[Lanes<T>],
    gradients: &mut [Lanes<T>],
    constants: Constants<T>,
) -> Lanes<T> {
    let terms = coefficients.len() / 2;
    let (u, v) = coefficients.split_at(terms);
    let (cos, sin) = phases.split_at(terms);
    let (by_u, by_v) = gradients.split_at_mut(terms);
    let (mut re, mut im, mut power) = ([T::ZERO; LANES], [T::ZERO; LANES], [T::ZERO; LANES]);
    for (((u, v), cos), sin) in u.iter().zip(v).zip(cos).zip(sin) {
        for i in 0..LANES {
            re[i] += u[i] * cos[i] - v[i] * sin[i];
            im[i] += u[i] * sin[i] + v[i] * cos[i];
            power[i] += u[i] * u[i] + v[i] * v[i];
        }
    }
    let mut densities = [T::ZERO; LANES];
    let mut by_power = [T::ZERO; LANES];
    for i in 0..LANES {
        let scale = T::ONE / (constants.normal * power[i]);
        densities[i] = (re[i] * re[i] + im[i] * im[i]) * scale;
        let by_density = -constants.share / (densities[i] + constants.floor);
        // Twice: what multiplies Re, Im and each coefficient.
        let twice = by_density + by_density;
        re[i] = re[i] * twice * scale;
        im[i] = im[i] * twice * scale;
        by_power[i] = -twice * densities[i] / power[i];
    }
    let (by_re, by_im) = (re, im);
    for l in 0..terms {
        for i in 0..LANES {
            let (c, s) = (cos[l][i], sin[l][i]);
            by_u[l][i] = by_re[i] * c + by_im[i] * s + by_power[i] * u[l][i];
            by_v[l][i] = by_im[i] * c - by_re[i] * s + by_power[i] * v[l][i];
        }
    }
    densities
}

/// `scale · Σ_k k²|c_k|²` of each lane with `c_k = Σ_l a_{l+k} conj(a_l)`; its gradient is
/// added to `gradients`.
#[multiversion(targets = "simd")]
fn regularise<T: Number>(
    coefficients: &[Lanes<T>],
    gradients: &mut [Lanes<T>],
    scale: T,
) -> Lanes<T> {
    let terms = coefficients.len() / 2;
    let (u, v) = coefficients.split_at(terms);
    let (by_u, by_v) = gradients.split_at_mut(terms);
    let mut totals = [T::ZERO; LANES];
    for k in 1..terms {
        let weight = scale * T::of((k * k) as f64);
        let (mut re, mut im) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for l in 0..terms - k {
            for i in 0..LANES {
                re[i] += u[l + k][i] * u[l][i] + v[l + k][i] * v[l][i];
                im[i] += v[l + k][i] * u[l][i] - u[l + k][i] * v[l][i];
            }
        }
        for i in 0..LANES {
            totals[i] += weight * (re[i] * re[i] + im[i] * im[i]);
            re[i] = (weight + weight) * re[i];
            im[i] = (weight + weight) * im[i];
        }
        for l in 0..terms - k {
            for i in 0..LANES {
                by_u[l + k][i] += re[i] * u[l][i] - im[i] * v[l][i];
                by_v[l + k][i] += re[i] * v[l][i] + im[i] * u[l][i];
                by_u[l][i] += re[i] * u[l + k][i] + im[i] * v[l + k][i];
                by_v[l][i] += re[i] * v[l + k][i] - im[i] * u[l + k][i];
            }
        }
    }
    totals
}
