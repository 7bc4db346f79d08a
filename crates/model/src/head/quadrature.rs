//! Gauss–Legendre quadrature: nodes and positive weights for integrals over [-1, 1].

use std::f64::consts::PI;

/// `(node, weight)` of the rule with `n` points, which integrates polynomials of degree `2n - 1`
/// exactly. Nodes ascend.
pub fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    (1..=n)
        .map(|i| {
            // Newton's method on P_n from Tricomi's approximation of its i-th root.
            let mut x = -(PI * (i as f64 - 0.25) / (n as f64 + 0.5)).cos();
            let mut slope = 0.0;
            for _ in 0..8 {
                // (k + 1) P_{k+1} = (2k + 1) x P_k - k P_{k-1}
                let (mut before, mut p) = (0.0, 1.0);
                for k in 0..n {
                    let k = k as f64;
                    (before, p) = (p, ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0));
                }
                slope = n as f64 * (x * p - before) / (x * x - 1.0);
                x -= p / slope;
            }
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::gauss_legendre;

    #[test]
    fn polynomials_are_integrated_exactly() {
        for n in [1, 2, 5, 28, 76] {
            let rule = gauss_legendre(n);
            for degree in 0..2 * n {
                let got: f64 = rule.iter().map(|(x, w)| w * x.powi(degree as i32)).sum();
                // ∫ x^d dx over [-1, 1] is 2/(d + 1) for even d and 0 for odd.
                let expected = if degree % 2 == 0 { 2.0 / (degree + 1) as f64 } else { 0.0 };
                assert!((got - expected).abs() < 1e-13, "n {n}, degree {degree}: {got}");
            }
        }
    }

    #[test]
    fn two_points_are_plus_minus_the_root_of_a_third() {
        let third = 1.0 / 3.0f64.sqrt();
        for ((x, w), expected) in gauss_legendre(2).into_iter().zip([-third, third]) {
            assert!((x - expected).abs() < 1e-15 && (w - 1.0).abs() < 1e-15);
        }
    }
}
