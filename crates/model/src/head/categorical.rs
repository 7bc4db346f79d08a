//! Selection from categories by their logits, on the host.

/// Softmax at `temperature`, not normalized; the largest entry is 1.
pub fn weights(logits: &[f32], temperature: f32) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: &f32| (f64::from(logit - highest) / f64::from(temperature)).exp();
    logits.iter().map(weight).collect()
}

/// The category whose interval of the cumulative distribution contains `draw`, uniform in [0, 1).
pub fn sample(weights: &[f64], draw: f64) -> usize {
    let total: f64 = weights.iter().sum();
    let mut below = 0.0;
    for (category, weight) in weights.iter().enumerate() {
        below += weight;
        if draw * total < below {
            return category;
        }
    }
    weights.len() - 1
}

/// The most probable category; the first of equals.
pub fn most_probable(logits: &[f32]) -> usize {
    (1..logits.len()).fold(0, |best, next| if logits[next] > logits[best] { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::{most_probable, sample, weights};

    #[test]
    fn sampling_inverts_the_cumulative_distribution() {
        let logits = [0.25f32.ln(), 0.5f32.ln(), 0.25f32.ln()];
        let at = |draw| sample(&weights(&logits, 1.0), draw);
        assert_eq!([0.0, 0.2, 0.3, 0.7, 0.8, 0.999].map(at), [0, 0, 1, 1, 2, 2]);
        // At half the temperature the weights are squared: 1/16, 1/4, 1/16 → 1/6, 4/6, 1/6.
        assert_eq!(
            [0.1, 0.2, 0.8, 0.9].map(|draw| sample(&weights(&logits, 0.5), draw)),
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn the_most_probable_has_the_largest_logit() {
        assert_eq!(most_probable(&[-1.0]), 0);
        assert_eq!(most_probable(&[-1.0, 3.0, 2.0, 3.0]), 1);
    }
}
