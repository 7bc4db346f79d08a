//! The discrete Fourier transform for any length up to a few thousand.

use std::f64::consts::TAU;

/// A complex number, `[real, imaginary]`.
pub type Complex = [f64; 2];

/// The transform of one length: `X_k = Σ_j x_j e^{-2πijk/n}`.
///
/// Even lengths are halved as often as possible (Cooley and Tukey 1965). The remaining odd factor
/// is summed by the definition. Length 4096 takes 12 · 4096 steps, length 50 takes 50 · 25 steps,
/// and a prime `n` takes `n²` steps.
#[derive(Clone, Debug)]
pub struct FourierTransform {
    /// `e^{-2πik/n}`
    roots: Vec<Complex>,
}

impl FourierTransform {
    /// A transform for sequences of `n` numbers.
    pub fn new(n: usize) -> Self {
        let root = |k| {
            let (sin, cos) = (TAU * k as f64 / n as f64).sin_cos();
            [cos, -sin]
        };
        Self { roots: (0..n).map(root).collect() }
    }

    /// The length.
    pub fn n(&self) -> usize {
        self.roots.len()
    }

    /// The transform of `x`.
    ///
    /// # Panics
    /// When the length is not `n`.
    pub fn forward(&self, x: &[Complex]) -> Vec<Complex> {
        assert_eq!(x.len(), self.n(), "a transform of {} numbers", self.n());
        let mut out = vec![[0.0; 2]; self.n()];
        self.every(x, 1, &mut out);
        out
    }

    /// The transform of real numbers.
    ///
    /// ```
    /// use overtone_eval::FourierTransform;
    /// let spectrum = FourierTransform::new(4).real(&[1.0, 2.0, 3.0, 4.0]);
    /// assert!((spectrum[0][0] - 10.0).abs() < 1e-12); // the sum
    /// assert!((spectrum[1][0] + 2.0).abs() < 1e-12 && (spectrum[1][1] - 2.0).abs() < 1e-12);
    /// ```
    ///
    /// # Panics
    /// When the length is not `n`.
    pub fn real(&self, x: &[f64]) -> Vec<Complex> {
        self.forward(&x.iter().map(|&x| [x, 0.0]).collect::<Vec<_>>())
    }

    /// The real sequence with this transform: `x_j = (1/n) Re Σ_k X_k e^{2πijk/n}`.
    ///
    /// # Panics
    /// When the length is not `n`.
    pub fn inverse_real(&self, spectrum: &[Complex]) -> Vec<f64> {
        let conjugate: Vec<Complex> = spectrum.iter().map(|&[re, im]| [re, -im]).collect();
        self.forward(&conjugate).iter().map(|[re, _]| re / self.n() as f64).collect()
    }

    /// The transform of every `stride`-th number of `x`.
    fn every(&self, x: &[Complex], stride: usize, out: &mut [Complex]) {
        let n = out.len();
        if n == 1 {
            out[0] = x[0];
        } else if n.is_multiple_of(2) {
            let (even, odd) = out.split_at_mut(n / 2);
            self.every(x, 2 * stride, even);
            self.every(&x[stride..], 2 * stride, odd);
            for (k, (even, odd)) in even.iter_mut().zip(odd).enumerate() {
                let turned = times(*odd, self.roots[k * stride]);
                *odd = [even[0] - turned[0], even[1] - turned[1]];
                *even = [even[0] + turned[0], even[1] + turned[1]];
            }
        } else {
            for (k, out) in out.iter_mut().enumerate() {
                *out =
                    x.iter().step_by(stride).take(n).enumerate().fold([0.0; 2], |sum, (j, &x)| {
                        let term = times(x, self.roots[j * k % n * stride]);
                        [sum[0] + term[0], sum[1] + term[1]]
                    });
            }
        }
    }
}

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some irregular numbers.
    fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|j| ((j * j + 3) as f64).sin()).collect()
    }

    #[test]
    fn the_transform_equals_its_definition() {
        // A power of two, two and four times an odd number, an odd number, and one.
        for n in [16, 18, 36, 15, 1] {
            let x = numbers(n);
            let spectrum = FourierTransform::new(n).real(&x);
            for (k, [re, im]) in spectrum.into_iter().enumerate() {
                let angle = |j: usize| TAU * (j * k) as f64 / n as f64;
                let expected = x.iter().enumerate().fold([0.0; 2], |sum, (j, x)| {
                    [sum[0] + x * angle(j).cos(), sum[1] - x * angle(j).sin()]
                });
                let off = (re - expected[0]).abs().max((im - expected[1]).abs());
                assert!(off < 1e-12, "n={n}, k={k}: off by {off:e}");
            }
        }
    }

    #[test]
    fn the_inverse_recovers_the_sequence() {
        for n in [64, 50, 21] {
            let (x, transform) = (numbers(n), FourierTransform::new(n));
            for (got, x) in transform.inverse_real(&transform.real(&x)).iter().zip(&x) {
                assert!((got - x).abs() < 1e-13);
            }
        }
    }
}
