//! Densities on [−1, 1] whose Fourier coefficients are known.

use std::f64::consts::PI;

use overtone_eval::FourierTransform;

/// How a target's Fourier coefficients go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// `c_k ∝ 1/k^t` for every `k`: one singularity, at 0. For `t` = 2 it is `(1 − |x|)²`.
    Power(f64),
    /// `1 − |x|`: `c_k ∝ 1/k²` for odd `k`.
    Triangle,
    /// 1 for `|x| < 1/2`: `c_k ∝ ±1/k` for odd `k`.
    SquareWave,
}

impl Shape {
    /// All that are looked at, from the roughest.
    pub const ALL: [Self; 7] = [
        Self::SquareWave,
        Self::Triangle,
        Self::Power(2.0),
        Self::Power(2.5),
        Self::Power(3.0),
        Self::Power(3.5),
        Self::Power(4.0),
    ];

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Power(t) => format!("power, t = {t}"),
            Self::Triangle => "triangle".into(),
            Self::SquareWave => "square wave".into(),
        }
    }

    /// The `t` in `1/k^t`.
    pub fn decay(self) -> f64 {
        match self {
            Self::Power(t) => t,
            Self::Triangle => 2.0,
            Self::SquareWave => 1.0,
        }
    }
}

/// The density `1/2 + Σ_{k ≥ 1} c_k cos(kπx)`: a shape, lifted off the ground.
///
/// All its `c_k` are real because it is symmetric; the complex coefficients are
/// `a_{±k} = c_k/2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Its shape, which touches 0.
    pub shape: Shape,
    /// The density's least value: the shape is shrunk towards the uniform density, 1/2.
    pub floor: f64,
}

impl Target {
    /// `c_1 ..= c_n`.
    pub fn coefficients(self, n: usize) -> Vec<f64> {
        let lifted = 1.0 - 2.0 * self.floor;
        let power = match self.shape {
            // At ±1 the sum is −Σ (−1)^(k+1)/k^t, which 1/2 balances.
            Shape::Power(t) => 0.5 / alternating_zeta(t),
            _ => 0.0,
        };
        (1..=n)
            .map(|k| {
                let (odd, k) = (k % 2 == 1, k as f64);
                lifted
                    * match self.shape {
                        Shape::Power(t) => power * k.powf(-t),
                        Shape::Triangle if odd => 4.0 / (PI * k).powi(2),
                        Shape::SquareWave if odd => 2.0 / (PI * k) * (0.5 * PI * k).sin(),
                        Shape::Triangle | Shape::SquareWave => 0.0,
                    }
            })
            .collect()
    }
}

/// `Σ_{k ≥ 1} (−1)^(k+1)/k^t`, from a partial sum and the average of the next two.
fn alternating_zeta(t: f64) -> f64 {
    const LAST: i32 = 40_000;
    let term = |k: i32| f64::from(k).powf(-t) * if k % 2 == 1 { 1.0 } else { -1.0 };
    // From the smallest terms, so that they are not lost beside the first.
    (1..=LAST).rev().map(term).sum::<f64>() + 0.5 * term(LAST + 1)
}

/// `Σ_k c_k cos(kπb_j) / (m/2)` at the centres `b_j = −1 + (1 + 2j)/m` of `m` bins, for the
/// frequencies `k` from `first` on, which are all less than `m/2`.
///
/// With `constant` = 1/2 as the coefficient of frequency 0, it is a distribution: the theorem's
/// `y^(N)`, for the sum of a density below the Nyquist frequency over the bins is `m/2`
/// (Lemma A.6).
///
/// # Panics
/// When a frequency is not below `m/2`.
pub fn on_bins(
    transform: &FourierTransform,
    constant: f64,
    first: usize,
    coefficients: &[f64],
) -> Vec<f64> {
    let m = transform.n();
    let mut spectrum = vec![[0.0; 2]; m];
    spectrum[0] = [2.0 * constant, 0.0];
    for (k, &c) in (first..).zip(coefficients) {
        assert!(k > 0 && 2 * k < m, "frequency {k} over {m} bins");
        // cos(kπb_j) is the real part of e^{ikπ(1/m − 1)} e^{2πijk/m}; half of it is at m − k.
        let (sine, cosine) = (PI * k as f64 / m as f64).sin_cos();
        let c = if k % 2 == 0 { c } else { -c };
        spectrum[k] = [c * cosine, c * sine];
        spectrum[m - k] = [c * cosine, -c * sine];
    }
    transform.inverse_real(&spectrum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centre(j: usize, m: usize) -> f64 {
        -1.0 + (1 + 2 * j) as f64 / m as f64
    }

    fn on(m: usize, shape: Shape, floor: f64) -> Vec<f64> {
        let coefficients = Target { shape, floor }.coefficients(m / 2 - 1);
        on_bins(&FourierTransform::new(m), 0.5, 1, &coefficients)
    }

    #[test]
    fn bins_hold_the_sum_of_cosines() {
        let m = 20;
        let pmf = on_bins(
            &FourierTransform::new(m),
            0.5,
            1,
            &[0.3, 0.0, 0.0, -0.2, 0.0, 0.0, 0.0, 0.0, 0.1],
        );
        for (j, y) in pmf.iter().enumerate() {
            let x = PI * centre(j, m);
            let density = 0.5 + 0.3 * x.cos() - 0.2 * (4.0 * x).cos() + 0.1 * (9.0 * x).cos();
            assert!((y - density / 10.0).abs() < 1e-15, "{j}");
        }
        assert!((pmf.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn the_shapes_are_the_ones_they_are_named_for() {
        let m = 2000;
        let closed = |shape: Shape, x: f64| match shape {
            Shape::Triangle => 1.0 - x.abs(),
            Shape::SquareWave => f64::from(x.abs() < 0.5),
            // 1.5 (1 − |x|)² has the coefficients 6/(π²k²).
            Shape::Power(_) => 1.5 * (1.0 - x.abs()).powi(2),
        };
        for (shape, tolerance) in
            [(Shape::Triangle, 1e-3), (Shape::SquareWave, 0.02), (Shape::Power(2.0), 2e-3)]
        {
            for (j, y) in on(m, shape, 0.1).iter().enumerate() {
                let x = centre(j, m);
                let lifted = 0.1 + 0.8 * closed(shape, x);
                // The square wave rings next to its jumps.
                if shape != Shape::SquareWave || (x.abs() - 0.5).abs() > 0.05 {
                    assert!((y * m as f64 / 2.0 - lifted).abs() < tolerance, "{shape:?} {x}");
                }
            }
        }
    }

    #[test]
    fn every_power_touches_its_floor_at_the_ends() {
        for t in [2.0, 2.5, 3.0, 4.0] {
            let pmf = on(512, Shape::Power(t), 0.05);
            let least = pmf.iter().copied().fold(f64::INFINITY, f64::min) * 256.0;
            assert!((least - 0.05).abs() < 1e-3 && pmf[0] <= pmf[1], "{t}: {least}");
        }
        // π²/12 and 7π⁴/720.
        assert!((alternating_zeta(2.0) - PI * PI / 12.0).abs() < 1e-13);
        assert!((alternating_zeta(4.0) - 7.0 * PI.powi(4) / 720.0).abs() < 1e-13);
    }
}
