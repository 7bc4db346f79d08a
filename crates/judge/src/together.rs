//! [`levels_together`]: levels of intervals whose answers hold together (Holm 1979).
//!
//! With `m` modes at 95 % each, one of them is called better by chance in up to `5·m` of 100
//! recordings. Holm's procedure tests `m` differences at `1 − α/m`. The modes that differ at this
//! level are done; the other `k` are tested at `1 − α/k`, until none of them differs. All answers
//! are then right in at least 95 of 100 recordings, however the modes depend on each other.

/// The level at which each of `n` differences is tested, so that all answers together hold at
/// `level`. `differs` is whether the interval of a difference excludes zero at a level; it must
/// not do so at a higher level only.
///
/// # Errors
/// Errors of `differs`.
pub(crate) fn levels_together<E>(
    n: usize,
    level: f64,
    mut differs: impl FnMut(usize, f64) -> Result<bool, E>,
) -> Result<Vec<f64>, E> {
    let mut levels = vec![level; n];
    let mut open: Vec<usize> = (0..n).collect();
    while !open.is_empty() {
        let of_each = 1.0 - (1.0 - level) / open.len() as f64;
        let mut undecided = Vec::new();
        for &at in &open {
            levels[at] = of_each;
            if !differs(at, of_each)? {
                undecided.push(at);
            }
        }
        if undecided.len() == open.len() {
            break;
        }
        open = undecided;
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The levels for differences with these p-values.
    fn levels(p_values: &[f64]) -> Vec<f64> {
        let differs = |at: usize, level: f64| Ok::<_, Infallible>(p_values[at] < 1.0 - level);
        levels_together(p_values.len(), 0.95, differs).unwrap()
    }

    #[test]
    fn levels_step_down_by_hand() {
        assert_eq!(levels(&[]), [0.0; 0]);
        assert_eq!(levels(&[0.2]), [0.95]);
        // .01 < .05/3, then .02 < .05/2, then .04 < .05.
        let three = levels(&[0.04, 0.01, 0.02]);
        for (got, alpha) in three.iter().zip([0.05, 0.05 / 3.0, 0.05 / 2.0]) {
            assert!((1.0 - got - alpha).abs() < 1e-12, "{three:?}");
        }
        // .02 is not below .05/3, so nothing is decided.
        let none = levels(&[0.02, 0.02, 0.9]);
        assert!(none.iter().all(|level| (1.0 - level - 0.05 / 3.0).abs() < 1e-12), "{none:?}");
    }
}
