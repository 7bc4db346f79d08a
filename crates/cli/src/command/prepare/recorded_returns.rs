//! Units of a dataset's returns for a model.

use overtone_data::Dataset;
use overtone_model::AverageReturn;

/// The scale that maps most returns to [-1, 1]: the 95th percentile of their absolute values, to
/// two digits; 1 if it is 0.
pub fn own_scale(returns: impl Iterator<Item = f32>) -> f32 {
    let size = percentile(&ascending(returns.map(f32::abs)), 95);
    // Through text, which is exact in decimals.
    format!("{size:.1e}").parse().ok().filter(|&scale| scale > 0.0).unwrap_or(1.0)
}

/// Relative difference below which numbers differ only by the rounding of sums.
const ROUNDING: f32 = 1e-5;

/// The 5th and 95th percentiles over steps. If they differ only by rounding, a range around them
/// that is wider than the rounding.
pub fn range(values: impl Iterator<Item = f32>) -> [f32; 2] {
    let sorted = ascending(values);
    let [low, high] = [5, 95].map(|percent| percentile(&sorted, percent));
    let size = low.abs().max(high.abs());
    if high - low > ROUNDING * size {
        return [low, high];
    }
    let half = (1e-3 * size).max(1.0);
    [low - half, low + half]
}

/// The average return-to-go per remaining step, for every step.
pub fn rates(dataset: &Dataset, average: AverageReturn) -> impl Iterator<Item = f32> {
    dataset.episodes().as_slice().iter().flat_map(move |episode| {
        let to_go = dataset.returns_to_go()[episode.range()].iter();
        (0..).zip(to_go).map(move |(timestep, to_go)| to_go * average.factor(timestep))
    })
}

fn ascending(numbers: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut sorted: Vec<f32> = numbers.filter(|x| x.is_finite()).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    sorted
}

/// The percentile of ascending numbers; 0 for an empty slice.
fn percentile(ascending: &[f32], percent: usize) -> f32 {
    let place = (ascending.len() * percent).div_ceil(100).max(1) - 1;
    ascending.get(place).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{own_scale, range};

    #[test]
    fn the_scale_of_returns() {
        let numbers: Vec<f32> = (1..=20).map(|n| -10.0 * n as f32).collect();
        // The 19th of 20 sizes, 190.
        assert_eq!(own_scale(numbers.into_iter()), 190.0);
        assert_eq!(own_scale([1234.0].into_iter()), 1200.0);
        assert_eq!(own_scale([0.0149, f32::NAN].into_iter()), 0.015);
        assert_eq!((own_scale([].into_iter()), own_scale([0.0, -0.0].into_iter())), (1.0, 1.0));
    }

    #[test]
    fn the_range_of_returns() {
        let numbers: Vec<f32> = (1..=40).rev().map(|n| n as f32).collect();
        assert_eq!(range(numbers.into_iter()), [2.0, 38.0]);
        assert_eq!(range([7.0, f32::NAN, 7.0].into_iter()), [6.0, 8.0]);
        assert_eq!(range([].into_iter()), [-1.0, 1.0]);
        // Rounding is not a spread, and the range around a large number is not lost to rounding.
        assert_eq!(range([100.0, 100.0001].into_iter()), [99.0, 101.0]);
        let [low, high] = range([1e10; 3].into_iter());
        assert!(low < 9.991e9 && high > 1.0009e10, "{low} {high}");
    }
}
