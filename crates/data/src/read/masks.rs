//! Masks: rows where the task is solved although the trajectory goes on (OGBench's single tasks).
//!
//! A value method does not look behind such a row, as if the task ended there. Returns and context
//! windows go on.

use crate::error::DataError;
use crate::read::source::{Source, column, same, wrong_value};

/// The array's name.
pub(crate) const MASKS: &str = "masks";

/// `[rows]`, the rows whose mask is 0; `None` without the array or if all masks are 1.
///
/// # Errors
/// If the array is not one number for each of `rows`, or a number is neither 0 nor 1.
pub(crate) fn read(source: &dyn Source, rows: usize) -> Result<Option<Vec<bool>>, DataError> {
    if !source.has(MASKS) {
        return Ok(None);
    }
    let masks = column(source, MASKS)?;
    same(source, MASKS, masks.len(), rows, "actions")?;
    if let Some(row) = masks.iter().position(|mask| ![0.0, 1.0].contains(mask)) {
        let what = format!("{}, expected 0 (the task is solved) or 1", masks[row]);
        return Err(wrong_value(source, MASKS, row, what));
    }
    let stops: Vec<bool> = masks.iter().map(|&mask| mask == 0.0).collect();
    Ok(stops.contains(&true).then_some(stops))
}
