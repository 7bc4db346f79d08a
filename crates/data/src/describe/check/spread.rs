//! How numbers are spread.

use serde::Serialize;

/// Returns, and what they are counted in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Returns {
    /// `clipped` where the log holds rewards clipped to [-1, 1] and not the game's score, else
    /// `raw`.
    pub units: &'static str,
    /// The returns themselves.
    #[serde(flatten)]
    pub spread: Spread,
}

/// How some numbers are spread; all 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their sample standard deviation (n - 1); 0 for one number.
    pub sd: f64,
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`, in any order.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            sd: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
            min,
            median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
            max,
        }
    }
}
