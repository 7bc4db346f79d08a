//! [`breaks`]: rows whose next observation is not the observation of the next row.

use crate::error::DataError;
use crate::read::column::ObservationColumn;
use crate::read::observed::observed;
use crate::read::source::Source;

/// Maximum relative distance between a number of the next observation and of the row after it:
/// rounding, if one of them was kept as a double.
const ROUNDING: f32 = 1e-5;

/// Whether the observation after a step differs from the observation of the next row. Non-finite
/// values are reported elsewhere.
fn differ(led: &[f32], after: &[f32]) -> bool {
    let far =
        |(a, b): (&f32, &f32)| (a - b).abs() > ROUNDING * (1.0 + a.abs()) && (a - b).is_finite();
    led.iter().zip(after).any(far)
}

/// `[rows]`, whether the next observation of each row, in array `next`, is not the observation of
/// the next row; empty if there is no such array of their form.
///
/// # Errors
/// When the array cannot be read.
pub(crate) fn breaks(
    source: &dyn Source,
    next: &str,
    observations: &ObservationColumn,
) -> Result<Vec<bool>, DataError> {
    let rows = observations.rows();
    let has_rows = source.has(next) && source.shape(next)?.first() == Some(&rows);
    if !has_rows || rows == 0 {
        return Ok(Vec::new());
    }
    let led = observed(source, next, None)?.seen();
    let width = observations.width();
    let row = |at: usize| at * width..(at + 1) * width;
    let is_break = |at: usize| match (&led, observations) {
        (
            ObservationColumn::Vectors { values: led, .. },
            ObservationColumn::Vectors { values, .. },
        ) => differ(&led[row(at)], &values[row(at + 1)]),
        (ObservationColumn::Frames { pixels: led }, ObservationColumn::Frames { pixels }) => {
            led[row(at)] != pixels[row(at + 1)]
        }
        _ => false,
    };
    if led.width() != width {
        return Ok(Vec::new());
    }
    Ok((0..rows - 1).map(is_break).chain([false]).collect())
}
