//! Axes: the places of values on an axis, and the round numbers next to it.

use super::Scale;

/// One axis: its ends, and its ticks, including both ends.
pub(crate) struct Axis {
    scale: Scale,
    /// In the axis's own unit: the value, or its decimal logarithm.
    range: [f64; 2],
    ticks: Vec<f64>,
    /// Distance between ticks on a linear axis.
    step: f64,
}

/// Maximum shown size: differences of two values must be finite.
const LARGEST: f64 = 1e100;
/// Numbers on an axis are written without exponent if the largest is in this range.
const PLAIN: std::ops::Range<f64> = 1e-6..1e7;

impl Axis {
    /// An axis that encloses `values`; values that it cannot show are left out.
    pub(crate) fn enclosing(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let ends = [f64::INFINITY, f64::NEG_INFINITY];
        let shown = values.filter(|&x| scale.shows(x)).map(|x| scale.measure(x));
        let [mut low, mut high] = shown.fold(ends, |[low, high], x| [low.min(x), high.max(x)]);
        if low > high {
            [low, high] = [0.0, 1.0];
        }
        match scale {
            Scale::Linear => linear(low, high),
            Scale::Log => logarithmic(low, high),
        }
    }

    /// The place of a value on the axis, from 0 to 1; not finite if it cannot be shown.
    pub(crate) fn fraction(&self, x: f64) -> f64 {
        if !self.scale.shows(x) {
            return f64::NAN;
        }
        (self.scale.measure(x) - self.range[0]) / (self.range[1] - self.range[0])
    }

    /// Values with a number next to them.
    pub(crate) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// The number next to a tick.
    pub(crate) fn label(&self, x: f64) -> String {
        let digits = match self.scale {
            Scale::Linear => {
                let magnitude = |x: f64| x.abs().log10().floor();
                let largest = self.ticks.iter().fold(0.0_f64, |most, tick| most.max(tick.abs()));
                if !PLAIN.contains(&largest) {
                    let digits = (magnitude(largest) - magnitude(self.step)).clamp(0.0, 9.0);
                    let digits = digits as usize;
                    return if x == 0.0 { "0".into() } else { format!("{x:.digits$e}") };
                }
                (-magnitude(self.step)).clamp(0.0, 16.0) as usize
            }
            Scale::Log if !(1e-3..1e5).contains(&x) => return format!("{x:.0e}"),
            Scale::Log => (-x.log10().floor()).max(0.0) as usize,
        };
        // Not "-0".
        format!("{:.digits$}", x + 0.0)
    }
}

impl Scale {
    fn shows(self, x: f64) -> bool {
        x.abs() < LARGEST && (self == Self::Linear || x > 0.0)
    }

    fn measure(self, x: f64) -> f64 {
        match self {
            Self::Linear => x,
            Self::Log => x.log10(),
        }
    }
}

/// Ticks at distances of 1, 2 or 5 times a power of ten, at most six steps.
fn linear(mut low: f64, mut high: f64) -> Axis {
    // Equal ends, or ends too near for ticks between them, are moved apart.
    let size = low.abs().max(high.abs());
    let least = size.max(1e-300) * 1e-9;
    if high - low <= least {
        // Relative to the size of the numbers: a constant 3e-4 is not a 0 between -0.5 and 0.5.
        let apart = if size < 1e-300 { 0.5 } else { least.max((size / 4.0).min(0.5)) };
        [low, high] = [low - apart, high + apart];
    }
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    // Dividing by 5 leaves room: a rounded-up step needs at most 6 steps.
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    // An end that equals a tick up to rounding does not need another tick beyond it.
    let [first, last] = [(low / step + 1e-9).floor(), (high / step - 1e-9).ceil()];
    let n = (last - first).round() as usize;
    let ticks = (0..=n).map(|i| (first + i as f64) * step).collect();
    Axis { scale: Scale::Linear, range: [first * step, last * step], ticks, step }
}

/// Ticks at powers of ten, thinned if they would overlap; over less than two powers, also at their
/// doubles and fivefolds. `low` and `high` are logarithms.
fn logarithmic(low: f64, high: f64) -> Axis {
    let factors: &[f64] = if high - low < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = low.floor() as i32..=high.ceil() as i32 + 1;
    let round: Vec<f64> = powers
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .collect();
    // An end that equals a tick up to rounding does not need another tick beyond it.
    let first = round.iter().rposition(|x| x.log10() <= low + 1e-9).unwrap_or(0);
    let above = round.iter().skip(first + 1).position(|x| x.log10() >= high - 1e-9);
    let last = above.map_or(round.len() - 1, |position| first + 1 + position);
    let range = [round[first], round[last]].map(f64::log10);
    let every = (last - first) / 7 + 1;
    let ticks = round[first..=last].iter().copied().step_by(every).collect();
    Axis { scale: Scale::Log, range, ticks, step: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scale: Scale, values: &[f64], labels: &[&str]) {
        let axis = Axis::enclosing(scale, values.iter().copied());
        assert_eq!(axis.ticks().iter().map(|x| axis.label(*x)).collect::<Vec<_>>(), labels);
        for x in values.iter().filter(|x| scale.shows(**x)) {
            assert!((-1e-9..=1.0 + 1e-9).contains(&axis.fraction(*x)), "{x}");
        }
    }

    #[test]
    fn ticks_are_round_and_enclose() {
        let linear = |values: &[f64], labels: &[&str]| check(Scale::Linear, values, labels);
        linear(&[3.0, 200.0], &["0", "50", "100", "150", "200"]);
        linear(&[0.0004, 0.0011], &["0.0004", "0.0006", "0.0008", "0.0010", "0.0012"]);
        linear(&[-1.0, 1.0], &["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        linear(&[2.0, f64::NAN], &["1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6"]);
        linear(&[], &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn a_constant_is_read_from_its_axis() {
        let linear = |values: &[f64], labels: &[&str]| check(Scale::Linear, values, labels);
        // A quarter up and down: 2.25e-4 to 3.75e-4 in steps of 5e-5.
        linear(&[3e-4, 3e-4], &["0.00020", "0.00025", "0.00030", "0.00035", "0.00040"]);
        linear(&[-0.04], &["-0.050", "-0.045", "-0.040", "-0.035", "-0.030"]);
        linear(
            &[2e-8, 2e-8],
            &["1.4e-8", "1.6e-8", "1.8e-8", "2.0e-8", "2.2e-8", "2.4e-8", "2.6e-8"],
        );
        linear(&[475.0], &["474.4", "474.6", "474.8", "475.0", "475.2", "475.4", "475.6"]);
        linear(&[0.0, 0.0], &["-0.6", "-0.4", "-0.2", "0.0", "0.2", "0.4", "0.6"]);
        for power in -290..90 {
            let value = 3.7 * 10f64.powi(power);
            let axis = Axis::enclosing(Scale::Linear, [value, value].into_iter());
            let [first, last] = [axis.ticks()[0], axis.ticks()[axis.ticks().len() - 1]];
            assert!(last - first <= value.max(1e-9 * value), "{value}: {first} to {last}");
            assert!(
                (0.2..0.8).contains(&axis.fraction(value)),
                "{value}: {}",
                axis.fraction(value)
            );
        }
    }

    #[test]
    fn any_number_has_an_axis() {
        let linear = |values: &[f64], labels: &[&str]| check(Scale::Linear, values, labels);
        linear(&[0.0, 6e-7], &["0", "2e-7", "4e-7", "6e-7"]);
        linear(&[0.0, 2e9], &["0", "5.0e8", "1.0e9", "1.5e9", "2.0e9"]);
        for values in [[9.2e18, 9.2e18], [1e99, -1e99], [1e-310, 0.0], [1e17, 1e17 + 16.0]] {
            let axis = Axis::enclosing(Scale::Linear, values.into_iter());
            assert!((2..12).contains(&axis.ticks().len()), "{values:?}: {:?}", axis.ticks());
            assert!(axis.ticks().iter().all(|tick| axis.label(*tick).len() < 20));
            assert!(values.iter().all(|x| axis.fraction(*x).is_finite()), "{values:?}");
        }
        let axis = Axis::enclosing(Scale::Linear, [f64::MAX, f64::MIN, 1.0].into_iter());
        assert!(axis.fraction(f64::MAX).is_nan() && axis.fraction(1.0).is_finite());
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_parts_of_them() {
        let log = |values: &[f64], labels: &[&str]| check(Scale::Log, values, labels);
        log(&[2.0, 20.0], &["2", "5", "10", "20"]);
        log(&[2.0, 2000.0, -1.0, 0.0], &["1", "10", "100", "1000", "10000"]);
        log(&[0.03, 0.04], &["0.02", "0.05"]);
        log(&[2e-7, 3e-4], &["1e-7", "1e-6", "1e-5", "1e-4", "0.001"]);
        log(&[10.0, 10.0], &["10", "20"]);
    }

    #[test]
    fn a_logarithmic_axis_has_no_place_for_zero() {
        let axis = Axis::enclosing(Scale::Log, [0.0, 1.0, 100.0].into_iter());
        assert!(axis.fraction(0.0).is_nan() && (axis.fraction(10.0) - 0.5).abs() < 1e-12);
    }
}
