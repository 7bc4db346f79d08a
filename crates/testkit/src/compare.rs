//! Comparing numbers with numbers.

/// The largest `|a - b|`, and where; `None` when both are empty.
///
/// # Panics
/// When the lengths differ.
#[track_caller]
pub fn largest_difference(got: &[f64], expected: &[f64]) -> Option<(f64, usize)> {
    assert_eq!(got.len(), expected.len(), "lengths differ");
    got.iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .enumerate()
        .map(|(index, difference)| (difference, index))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Panics unless every `|a - b| <= absolute + relative · |b|`.
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths differ");
    for (index, (&a, &b)) in got.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= absolute + relative * b.abs(),
            "{what}[{index}]: got {a:e}, expected {b:e} (relative {relative:e}, absolute {absolute:e})"
        );
    }
}
