//! Gamma and beta numbers, each shape by the method that NumPy takes for it.

use super::{Pcg64, Ziggurats};

/// Draws beta numbers.
#[derive(Clone, Debug, Default)]
pub struct Beta {
    ziggurats: Ziggurats,
}

impl Beta {
    /// A number on [0, 1] with density ∝ `x^{a-1} (1-x)^{b-1}`.
    pub fn draw(&self, a: f64, b: f64, generator: &mut Pcg64) -> f64 {
        if a <= 1.0 && b <= 1.0 {
            return johnk(a, b, generator);
        }
        let x = self.gamma(a, generator);
        let y = self.gamma(b, generator);
        x / (x + y)
    }

    /// A number with density ∝ `x^{shape-1} e^{-x}`.
    fn gamma(&self, shape: f64, generator: &mut Pcg64) -> f64 {
        if shape == 1.0 {
            self.ziggurats.exponential(generator)
        } else if shape < 1.0 {
            self.small_gamma(shape, generator)
        } else {
            self.large_gamma(shape, generator)
        }
    }

    /// Ahrens and Dieter 1974 (GS), for shapes below 1.
    fn small_gamma(&self, shape: f64, generator: &mut Pcg64) -> f64 {
        if shape == 0.0 {
            return 0.0;
        }
        loop {
            let u = generator.uniform();
            let limit = self.ziggurats.exponential(generator);
            if u <= 1.0 - shape {
                let x = u.powf(1.0 / shape);
                if x <= limit {
                    return x;
                }
            } else {
                let y = -((1.0 - u) / shape).ln();
                let x = (1.0 - shape + shape * y).powf(1.0 / shape);
                if x <= limit + y {
                    return x;
                }
            }
        }
    }

    /// Marsaglia and Tsang 2000b, for shapes above 1: `d (1 + c x)³` of a normal `x`.
    fn large_gamma(&self, shape: f64, generator: &mut Pcg64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let (x, v) = loop {
                let x = self.ziggurats.normal(generator);
                let v = 1.0 + c * x;
                if v > 0.0 {
                    break (x, v * v * v);
                }
            };
            let u = generator.uniform();
            if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln())
            {
                return d * v;
            }
        }
    }
}

/// Jöhnk 1964: two powers of uniform numbers that add up to at most 1.
fn johnk(a: f64, b: f64, generator: &mut Pcg64) -> f64 {
    loop {
        let (u, v) = (generator.uniform(), generator.uniform());
        let (x, y) = (u.powf(1.0 / a), v.powf(1.0 / b));
        let sum = x + y;
        if sum <= 1.0 && u + v > 0.0 {
            if sum > 0.0 {
                return x / sum;
            }
            // Both powers underflowed: the same quotient from their logarithms.
            let (x, y) = (u.ln() / a, v.ln() / b);
            let largest = x.max(y);
            return (x - largest - ((x - largest).exp() + (y - largest).exp()).ln()).exp();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got / expected - 1.0).abs() < 1e-13, "{got} against {expected}");
        }
    }

    /// Expected: NumPy 2.4's `default_rng(7)`.
    #[test]
    fn it_is_the_stream_of_default_rng() {
        let (beta, mut generator) = (Beta::default(), Pcg64::new(7));
        let gammas = [0.3, 0.7, 2.5, 40.0].map(|shape| beta.gamma(shape, &mut generator));
        check(
            &gammas,
            &[0.2088435968050906, 1.1408393317738528, 1.5639528986795916, 40.04666699994917],
        );
        let mut generator = Pcg64::new(7);
        let betas = [(0.3, 0.7), (0.5, 3.0), (30.0, 4.0), (20.0, 70.0)]
            .map(|(a, b)| beta.draw(a, b, &mut generator));
        check(
            &betas,
            &[0.7829477271673816, 0.03154543619648175, 0.8523932680720591, 0.2248516533884112],
        );
    }

    #[test]
    fn small_shapes_stay_on_the_interval() {
        // With shapes of 1e-4, both powers underflow about once in 20 draws.
        let mut generator = Pcg64::new(1);
        let draws: Vec<f64> = (0..400).map(|_| johnk(1e-4, 1e-4, &mut generator)).collect();
        assert!(draws.iter().all(|x| (0.0..=1.0).contains(x)));
        let ones = draws.iter().filter(|&&x| x > 0.5).count();
        assert!((150..250).contains(&ones), "{ones}");
        let beta = Beta::default();
        assert_eq!(beta.gamma(0.0, &mut generator), 0.0);
        assert!(beta.gamma(1.0, &mut generator) > 0.0);
    }
}
