//! A sum of products.

/// Parts that are summed side by side, so that they share vector instructions.
const LANES: usize = 8;

/// `Σ aᵢ bᵢ`, summed in eight parts; to the end of the shorter slice.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    let mut lanes = [0.0; LANES];
    for (a, b) in left.zip(right) {
        for i in 0..LANES {
            lanes[i] += a[i] * b[i];
        }
    }
    rest + lanes.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_products_has_every_product() {
        for n in 0..30 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let b: Vec<f64> = (0..n).map(|i| f64::from(i * i)).collect();
            // 0·0 + 1·1 + 2·4 + … is the square of 0 + 1 + 2 + ….
            assert_eq!(dot(&a, &b), f64::from(n * (n - 1) / 2).powi(2));
        }
    }
}
