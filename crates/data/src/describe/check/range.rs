//! [`Range`]: the spread of one number.

use std::fmt;

use overtone_core::decimal;
use serde::Serialize;

/// Spread of one number over all steps; all 0 without steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation over the steps (n, not n - 1: as observations are normalized).
    pub std: f64,
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, std, min, max } = self;
        let [mean, std, min, max] =
            [*mean, *std, f64::from(*min), f64::from(*max)].map(|number| decimal(number, 4));
        write!(f, "mean {mean} ± {std} (std), min {min}, max {max}")
    }
}
