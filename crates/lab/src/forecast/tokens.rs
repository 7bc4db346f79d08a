//! From a series to tokens and back: scaling by the mean, then bins (Ansari et al. 2024,
//! Section 3.1).

use overtone_core::seed::Generator;
use rand::RngExt;

use super::binning::{Binning, quantile};
use super::series::Series;

/// Scaled values have bins of their own between minus this and this, as in Chronos.
pub const LIMIT: f64 = 15.0;

/// What is known of a series, and what comes then.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The context, from the oldest value.
    pub history: Vec<f64>,
    /// The horizon.
    pub future: Vec<f64>,
    /// Values of one cycle.
    pub season: usize,
}

impl Window {
    /// What values are divided by: the mean absolute value of the context, 1 where that is 0.
    pub fn scale(&self) -> f64 {
        let mean = self.history.iter().map(|x| x.abs()).sum::<f64>() / self.history.len() as f64;
        if mean > 0.0 { mean } else { 1.0 }
    }

    /// The bins of context and horizon, scaled.
    pub fn tokens(&self, binning: &Binning) -> Vec<i32> {
        let scale = self.scale();
        let values = self.history.iter().chain(&self.future);
        values.map(|x| binning.bin_of(x / scale) as i32).collect()
    }
}

/// The window of `series` whose context begins at `start`.
fn window(series: &Series, start: usize, context: usize, horizon: usize) -> Window {
    let (history, future) = series.values[start..start + context + horizon].split_at(context);
    Window { history: history.to_vec(), future: future.to_vec(), season: series.season }
}

/// The last window of each series; series too short for one have none.
pub fn last_windows(series: &[Series], context: usize, horizon: usize) -> Vec<Window> {
    let long = series.iter().filter(|series| series.values.len() >= context + horizon);
    let last = |series: &Series| series.values.len() - context - horizon;
    long.map(|series| window(series, last(series), context, horizon)).collect()
}

/// Windows of one series a horizon apart, the last one ending where the series does: no value
/// is forecast twice.
pub fn rolling_windows(series: &Series, context: usize, horizon: usize) -> Vec<Window> {
    let Some(last) = series.values.len().checked_sub(context + horizon) else { return Vec::new() };
    let starts = (last % horizon..=last).step_by(horizon);
    starts.map(|start| window(series, start, context, horizon)).collect()
}

/// A window of a series, both drawn uniformly.
///
/// # Panics
/// When a series is too short, or there is none.
pub fn random_window(
    series: &[Series],
    context: usize,
    horizon: usize,
    generator: &mut Generator,
) -> Window {
    let one = &series[generator.random_range(0..series.len())];
    let start = generator.random_range(0..=one.values.len() - context - horizon);
    window(one, start, context, horizon)
}

/// The interval between two quantiles of the scaled values of training windows, cut to
/// ±[`LIMIT`]: the dense interval of mixed-precision bins.
///
/// # Panics
/// When there is no window.
pub fn dense_interval(training: &[Window], quantiles: [f64; 2]) -> [f64; 2] {
    let mut values = Vec::new();
    for window in training {
        let scale = window.scale();
        values.extend(window.history.iter().chain(&window.future).map(|x| x / scale));
    }
    values.sort_by(f64::total_cmp);
    quantiles.map(|q| quantile(&values, q).clamp(-LIMIT, LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::seed;

    fn count(n: usize) -> Series {
        Series { season: 2, values: (0..n).map(|x| x as f64).collect() }
    }

    #[test]
    fn tokens_by_hand() {
        // |−2|, |6|, |4| are 4 on average: −½, 1½, 1 and then 2, 5.
        let window = Window { history: vec![-2.0, 6.0, 4.0], future: vec![8.0, 20.0], season: 1 };
        assert_eq!(window.scale(), 4.0);
        assert_eq!(window.tokens(&Binning::uniform(6, [-3.0, 3.0])), [2, 4, 4, 5, 5]);
        assert_eq!(Window { history: vec![0.0; 3], ..window }.scale(), 1.0);
    }

    #[test]
    fn windows_by_hand() {
        // Eleven values, four of context and three to forecast: they end at 11 and at 8.
        let windows = rolling_windows(&count(11), 4, 3);
        let starts: Vec<f64> = windows.iter().map(|window| window.history[0]).collect();
        assert_eq!(starts, [1.0, 4.0]);
        assert_eq!(windows[1].future, [8.0, 9.0, 10.0]);
        assert_eq!(windows[1].history, [4.0, 5.0, 6.0, 7.0]);
        assert_eq!(last_windows(&[count(11), count(6), count(7)], 4, 3).len(), 2);
        assert_eq!(last_windows(&[count(11)], 4, 3)[0], windows[1]);
        assert!(rolling_windows(&count(6), 4, 3).is_empty());
        assert_eq!(rolling_windows(&count(7), 4, 3).len(), 1);
    }

    #[test]
    fn random_windows_reach_both_ends() {
        let mut generator = seed::generator(1, "windows");
        let starts: std::collections::BTreeSet<u8> = (0..200)
            .map(|_| random_window(&[count(9)], 4, 3, &mut generator).history[0] as u8)
            .collect();
        assert_eq!(Vec::from_iter(starts), [0, 1, 2]);
    }

    #[test]
    fn the_dense_interval_holds_most_scaled_values() {
        let window =
            |x: f64| Window { history: vec![x, 3.0 * x], future: vec![5.0 * x], season: 1 };
        let windows = [window(2.0), window(50.0)]; // scaled: ½, 1½, 2½
        assert_eq!(dense_interval(&windows, [0.0, 1.0]), [0.5, 2.5]);
        assert_eq!(dense_interval(&windows, [0.0, 0.5]), [0.5, 1.5]);
    }
}
