//! Logits of the bins, one affine layer: cross-entropy and its gradient.

use multiversion::multiversion;

use crate::toy::network::ForLoss;
use crate::toy::number::Number;
use crate::toy::product::LANES;

/// See the [module's documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// Number of bins.
    pub bins: usize,
}

impl Linear {
    /// The mean cross-entropy of a batch; `bins` are the right ones.
    pub fn loss<T: Number>(self, parts: ForLoss<'_, T>, bins: &[usize]) -> f64 {
        let scale = T::of(1.0 / bins.len() as f64);
        let rows = parts.outputs.chunks_exact(parts.columns);
        let by_rows = parts.by_outputs.chunks_exact_mut(parts.columns);
        let mut total = 0.0;
        for ((logits, by_logits), &bin) in rows.zip(by_rows).zip(bins) {
            let (largest, sum) = softmax(logits, self.bins, by_logits, scale);
            by_logits[bin] = by_logits[bin] - scale;
            total += sum.wide().ln() + largest.wide() - logits[bin].wide();
        }
        total / bins.len() as f64
    }

    /// The softmax of each row.
    pub fn probs<T: Number>(self, outputs: &[T], columns: usize) -> Vec<f64> {
        let mut probs = Vec::with_capacity(outputs.len() / columns * self.bins);
        for logits in outputs.chunks_exact(columns) {
            let logits = logits[..self.bins].iter().map(|logit| logit.wide());
            let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
            let from = probs.len();
            probs.extend(logits.map(|logit| (logit - largest).exp()));
            let sum: f64 = probs[from..].iter().sum();
            probs[from..].iter_mut().for_each(|p| *p /= sum);
        }
        probs
    }
}

/// `scale · softmax` of the first `bins` logits, zeros behind; the largest of them and the
/// sum of `e^{logit - largest}`.
#[multiversion(targets = "simd")]
fn softmax<T: Number>(logits: &[T], bins: usize, into: &mut [T], scale: T) -> (T, T) {
    let mut most = [logits[0]; LANES];
    for logits in logits[..bins].chunks(LANES) {
        for (most, logit) in most.iter_mut().zip(logits) {
            *most = most.or_more(*logit);
        }
    }
    let largest = most.into_iter().fold(logits[0], T::or_more);
    for (into, logit) in into.iter_mut().zip(logits) {
        *into = (*logit - largest).exp();
    }
    into[bins..].fill(T::ZERO);
    let mut sums = [T::ZERO; LANES];
    for values in into.chunks_exact(LANES) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += *value;
        }
    }
    let sum = sums.into_iter().fold(T::ZERO, |sum, part| sum + part);
    let factor = scale / sum;
    for value in into.iter_mut() {
        *value = *value * factor;
    }
    (largest, sum)
}
