//! One number, trained by squared error: it can only learn the mean.

use crate::toy::data::bin_holding;
use crate::toy::network::ForLoss;
use crate::toy::number::Number;

/// See the [module's documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct Pointwise;

impl Pointwise {
    /// The mean squared error of a batch.
    pub fn loss<T: Number>(self, parts: ForLoss<'_, T>, targets: &[T]) -> f64 {
        let n = targets.len() as f64;
        let rows = parts.outputs.chunks_exact(parts.columns);
        let by_rows = parts.by_outputs.chunks_exact_mut(parts.columns);
        let mut total = 0.0;
        for ((output, by_output), &target) in rows.zip(by_rows).zip(targets) {
            let error = output[0] - target;
            by_output[0] = error * T::of(2.0 / n);
            total += error.wide().powi(2);
        }
        total / n
    }

    /// 1 in the bin of `m` that holds the prediction.
    pub fn probs<T: Number>(self, outputs: &[T], columns: usize, m: usize) -> Vec<f64> {
        let mut probs = vec![0.0; outputs.len() / columns * m];
        for (output, probs) in outputs.chunks_exact(columns).zip(probs.chunks_exact_mut(m)) {
            probs[bin_holding(output[0].wide(), m)] = 1.0;
        }
        probs
    }
}
