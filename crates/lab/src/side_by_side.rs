//! Work in equal units, several at a time, each with one thread.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Results of `unit(0)`, `unit(1)`, …, each computed with one thread, several at a time.
///
/// Small tensors gain little from many threads, and a pool of its own makes a training's
/// results those of one thread whatever there is.
///
/// # Panics
/// When a unit does, or no thread can be made.
pub fn side_by_side<T: Send>(n: usize, unit: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    (0..n).into_par_iter().with_max_len(1).map(|i| alone(|| unit(i))).collect()
}

/// What `work` gives in a pool of one thread.
///
/// # Panics
/// When `work` does, or no thread can be made.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a pool of one thread can be made").install(work)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_unit_is_done_once_and_results_are_in_order() {
        let counted = AtomicUsize::new(0);
        side_by_side(5, &|_| counted.fetch_add(1, Ordering::Relaxed));
        assert_eq!(counted.into_inner(), 5);
        assert_eq!(side_by_side(7, &|i| i * i), [0, 1, 4, 9, 16, 25, 36]);
        assert_eq!(side_by_side(3, &|_| rayon::current_num_threads()), [1; 3]);
    }
}
