//! [`ActionScale`]: conversion between the environment's units of continuous actions and [-1, 1],
//! the range in which agents learn and act.

use crate::space::ActionSpace;

/// Linear map between the bounds of each action dimension and [-1, 1].
///
/// A dimension with the bounds -1 and 1 keeps its value, to the bit. A dimension without two finite
/// bounds cannot be scaled ([`ActionSpace::unbounded`] lists these dimensions). Training therefore
/// sets missing bounds by the recorded actions ([`ActionSpace::bounded`]). An agent without them
/// acts within [-1, 1], and within the one bound that there may be.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionScale {
    /// Low and high of each dimension, one of them possibly infinite. `None`: not scaled.
    bounds: Vec<Option<[f64; 2]>>,
}

impl ActionScale {
    /// The scale of these actions; `None` if it changes no dimension.
    pub fn of(actions: &ActionSpace) -> Option<Self> {
        let ActionSpace::Continuous { low, high } = actions else { return None };
        let bounds = low.iter().zip(high).map(|(&low, &high)| match (low, high) {
            (-1.0, 1.0) => None,
            _ if is_finite(low) || is_finite(high) => Some([low, high].map(or_infinite)),
            _ => None,
        });
        let bounds: Vec<_> = bounds.collect();
        bounds.iter().any(Option::is_some).then_some(Self { bounds })
    }

    /// The bounds of each dimension in the environment's units: `[-2, 2], [-1, 1]`.
    pub fn describe(&self) -> String {
        let bounds = self.bounds.iter().map(|bounds| bounds.unwrap_or([-1.0, 1.0]));
        let words = bounds.map(|[low, high]| format!("[{low}, {high}]"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Low and high of each dimension, one of them possibly infinite; `None`: not scaled.
    pub fn bounds(&self) -> &[Option<[f64; 2]>] {
        &self.bounds
    }

    /// Whether [`from_unit`](Self::from_unit) may change an action within [-1, 1] to one that comes
    /// back as another: where bounds are equal, or only one is finite.
    pub fn may_clamp(&self) -> bool {
        let clamps = |[low, high]: [f64; 2]| high <= low || (high - low).is_infinite();
        self.bounds.iter().flatten().any(|bounds| clamps(*bounds))
    }

    /// Number of action dimensions.
    pub fn width(&self) -> usize {
        self.bounds.len()
    }

    /// From the environment's units to [-1, 1]: `2 (x - low) / (high - low) - 1`, for `actions` of
    /// shape `[n, width]`. A value outside of the bounds stays outside. If both bounds are equal,
    /// the result is 0.
    pub fn to_unit(&self, actions: &mut [f32]) {
        self.each(actions, |x, [low, high]| match high - low {
            f64::INFINITY => x,
            width if width > 0.0 => 2.0 * (x - low) / width - 1.0,
            _ => 0.0,
        });
    }

    /// From [-1, 1] to the environment's units: `low + (x + 1) / 2 · (high - low)`, clamped to the
    /// bounds, for `actions` of shape `[n, width]`.
    pub fn from_unit(&self, actions: &mut [f32]) {
        self.each(actions, |x, [low, high]| {
            let scaled = match high - low {
                f64::INFINITY => x,
                width => low + 0.5 * (x + 1.0) * width,
            };
            scaled.clamp(low, high.max(low))
        });
    }

    fn each(&self, actions: &mut [f32], scale: impl Fn(f64, [f64; 2]) -> f64) {
        for action in actions.chunks_exact_mut(self.width()) {
            for (number, bounds) in action.iter_mut().zip(&self.bounds) {
                if let Some(bounds) = *bounds {
                    *number = scale(f64::from(*number), bounds) as f32;
                }
            }
        }
    }
}

/// Whether a bound is finite. Libraries write a missing bound as infinity or as the largest `f32`.
fn is_finite(bound: f32) -> bool {
    bound.abs() < 1e30
}

/// A bound; infinite if it is missing.
fn or_infinite(bound: f32) -> f64 {
    if is_finite(bound) { f64::from(bound) } else { f64::INFINITY.copysign(f64::from(bound)) }
}

impl ActionSpace {
    /// Indices of the dimensions of a continuous action that lack a finite bound.
    pub fn unbounded(&self) -> Vec<usize> {
        let Self::Continuous { low, high } = self else { return Vec::new() };
        let bounds = low.iter().zip(high).enumerate();
        bounds
            .filter(|(_, (low, high))| !(is_finite(**low) && is_finite(**high)))
            .map(|(position, _)| position)
            .collect()
    }

    /// The same space with each missing bound taken from `ranges`, `[smallest, largest]`. If the
    /// other bound is beyond that value, the missing bound is set to the other bound.
    #[must_use]
    pub fn bounded(&self, ranges: &[[f32; 2]]) -> Self {
        let Self::Continuous { low, high } = self else { return self.clone() };
        let (mut low, mut high) = (low.clone(), high.clone());
        for ((low, high), &[least, most]) in low.iter_mut().zip(&mut high).zip(ranges) {
            match (is_finite(*low), is_finite(*high)) {
                (true, true) => {}
                (true, false) => *high = most.max(*low),
                (false, true) => *low = least.min(*high),
                (false, false) => [*low, *high] = [least, most],
            }
        }
        Self::Continuous { low, high }
    }

    /// Whether an agent with the actions `learned` can act in a task with these actions: they are
    /// the same, or the agent's data set missing bounds.
    pub fn allows(&self, learned: &Self) -> bool {
        match learned {
            Self::Discrete { .. } => self == learned,
            Self::Continuous { low, high } => {
                let ranges: Vec<[f32; 2]> =
                    low.iter().zip(high).map(|(&low, &high)| [low, high]).collect();
                self.bounded(&ranges) == *learned
            }
        }
    }

    /// The range from which each dimension of a random action is drawn; empty for discrete actions.
    ///
    /// This range is the bounds. If one is missing, it is [-1, 1], as for acting agents, as far as
    /// the other bound allows. If that is empty, it is the interval of length 2 next to the bound.
    pub fn drawn_between(&self) -> Vec<[f32; 2]> {
        let Self::Continuous { low, high } = self else { return Vec::new() };
        let between = |(&low, &high): (&f32, &f32)| match (is_finite(low), is_finite(high)) {
            (true, true) => [low, high.max(low)],
            (true, false) if low >= 1.0 => [low, low + 2.0],
            (false, true) if high <= -1.0 => [high - 2.0, high],
            (true, false) => [low.max(-1.0), 1.0],
            (false, true) => [-1.0, high.min(1.0)],
            (false, false) => [-1.0, 1.0],
        };
        low.iter().zip(high).map(between).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(bounds: &[[f32; 2]]) -> ActionSpace {
        let [low, high] = [0, 1].map(|side| bounds.iter().map(|bound| bound[side]).collect());
        ActionSpace::Continuous { low, high }
    }

    #[test]
    fn bounds_are_described_in_words() {
        let space = ActionSpace::Continuous { low: vec![-2.0, -1.0], high: vec![2.5, 1.0] };
        assert_eq!(ActionScale::of(&space).unwrap().describe(), "[-2, 2.5], [-1, 1]");
    }

    #[test]
    fn bounds_become_one_and_minus_one_and_back() {
        // A torque, a wheel and a pedal, and a constant dimension.
        let scale = ActionScale::of(&space(&[[-2.0, 2.0], [-1.0, 1.0], [0.0, 1.0], [3.0, 3.0]]));
        let scale = scale.unwrap();
        let recorded = [-2.0, -0.3, 0.25, 3.0, 1.0, 0.9, 1.0, 3.0];
        let mut actions = recorded;
        scale.to_unit(&mut actions);
        assert_eq!(actions, [-1.0, -0.3, -0.5, 0.0, 0.5, 0.9, 1.0, 0.0]);
        scale.from_unit(&mut actions);
        assert_eq!(actions, recorded);
    }

    #[test]
    fn an_agent_cannot_leave_the_bounds() {
        let scale = ActionScale::of(&space(&[[-0.4, 0.7], [-3.0, 1e-3]])).unwrap();
        let mut actions = [-1.0, 1.0, 1.0, -1.0, 1.5, -7.0];
        scale.from_unit(&mut actions);
        assert_eq!(actions, [-0.4, 1e-3, 0.7, -3.0, 0.7, -3.0]);
    }

    #[test]
    fn the_usual_bounds_and_no_bounds_change_nothing() {
        assert_eq!(ActionScale::of(&ActionSpace::unit(3)), None);
        assert_eq!(ActionScale::of(&ActionSpace::numbered(3)), None);
        assert_eq!(ActionScale::of(&space(&[[f32::NEG_INFINITY, f32::INFINITY]])), None);
        let no_bounds = space(&[[f32::NEG_INFINITY, f32::INFINITY], [0.0, f32::MAX]]);
        assert_eq!(no_bounds.unbounded(), [0, 1]);
        assert!(space(&[[-2.0, 2.0]]).unbounded().is_empty());
        let drawn = [[-1.0, 1.0], [0.0, 1.0]];
        assert_eq!(no_bounds.drawn_between(), drawn);
        let far = space(&[[3.0, f32::INFINITY], [f32::NEG_INFINITY, -7.0], [-0.4, 0.7]]);
        assert_eq!(far.drawn_between(), [[3.0, 5.0], [-9.0, -7.0], [-0.4, 0.7]]);
        let known = space(&[
            [0.0, f32::INFINITY],
            [f32::NEG_INFINITY, -7.0],
            [f32::NEG_INFINITY, f32::MAX],
            [-1.0, 1.0],
        ]);
        let recorded = [[0.2, 5.0], [-9.0, -8.0], [0.5, 1.5], [0.0, 0.0]];
        let expected = space(&[[0.0, 5.0], [-9.0, -7.0], [0.5, 1.5], [-1.0, 1.0]]);
        assert_eq!(known.bounded(&recorded), expected);
        assert!(known.allows(&expected) && known.allows(&known));
        // Two bounds are the task's own, and so is the one of two.
        for other in [
            [[0.0, 5.0], [-9.0, -7.0], [0.5, 1.5], [-1.0, 2.0]],
            [[0.5, 5.0], [-9.0, -7.0], [0.5, 1.5], [-1.0, 1.0]],
        ] {
            assert!(!known.allows(&space(&other)));
        }
        assert!(!known.allows(&ActionSpace::numbered(4)) && !known.allows(&space(&[[0.0, 1.0]])));
        // Next to a dimension with two bounds, the others stay the same to the bit.
        let scale = ActionScale::of(&space(&[[f32::NEG_INFINITY, 1.0], [-1.0, 1.0], [0.0, 4.0]]));
        let scale = scale.unwrap();
        let mut actions = [0.1, -0.3, 1.0];
        scale.to_unit(&mut actions);
        assert_eq!(actions.map(f32::to_bits), [0.1f32, -0.3, -0.5].map(f32::to_bits));
    }

    #[test]
    fn a_single_bound_holds() {
        let scale = ActionScale::of(&space(&[[0.0, f32::INFINITY], [f32::MIN, -0.5]])).unwrap();
        let mut actions = [-0.44, 0.1, 0.44, -0.7];
        scale.from_unit(&mut actions);
        assert_eq!(actions, [0.0, -0.5, 0.44, -0.7]);
        let recorded = [7.0, -9.0];
        let mut actions = recorded;
        scale.to_unit(&mut actions);
        assert_eq!(actions, recorded);
    }
}
