//! Sums over rows in partitions, each with its own sum, so that the result does not depend on the
//! number of threads.

use rayon::prelude::*;

use crate::rows::add_rows;

/// Maximum number of partitions of the rows of a batch: work for as many threads.
pub(crate) const PARTITIONS: usize = 8;

/// Elements of a sum per task.
const PART: usize = 8 * 1024;

/// Splits off the first `length` elements.
pub(crate) fn take<'a>(rest: &mut &'a mut [f32], length: usize) -> &'a mut [f32] {
    let (part, tail) = std::mem::take(rest).split_at_mut(length);
    *rest = tail;
    part
}

/// The sum of all partitions, of `length` elements each, in order; it replaces the first.
pub(crate) fn add_partitions(sums: &mut [f32], length: usize) -> &mut [f32] {
    let (total, others) = sums.split_at_mut(length);
    total.par_chunks_mut(PART).enumerate().for_each(|(i, total)| {
        for other in others.chunks_exact(length) {
            add_rows(&other[i * PART..][..total.len()], total);
        }
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_add_up() {
        let length = PART + 5;
        let mut sums: Vec<f32> = (0..3 * length).map(|i| (i % 100) as f32).collect();
        let expected: Vec<f32> = (0..length)
            .map(|i| (0..3).map(|partition| ((partition * length + i) % 100) as f32).sum())
            .collect();
        assert_eq!(add_partitions(&mut sums, length), expected);
    }
}
