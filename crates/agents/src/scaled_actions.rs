//! [`in_units_of`]: an agent that acts within [-1, 1], converted to its environment's units.
//!
//! Training scales in the other direction, in `overtone_train::TrainingData::with_actions_of`. Both
//! use the same [`ActionScale`].

use overtone_core::{
    ActionScale, ActionSpace, Actions, Observations, Played, Policy, PolicyError, Turn,
    protocol::ActionChoice,
};

/// `policy` with its continuous actions scaled from [-1, 1] to the bounds of `actions`. If the
/// bounds are -1 and 1, it is `policy` itself. Actions in its history stay within [-1, 1], and as
/// they were taken, as in training.
pub fn in_units_of(actions: &ActionSpace, policy: Box<dyn Policy>) -> Box<dyn Policy> {
    match ActionScale::of(actions) {
        None => policy,
        Some(scale) => Box::new(Scaled { policy, scale }),
    }
}

struct Scaled {
    policy: Box<dyn Policy>,
    scale: ActionScale,
}

impl Policy for Scaled {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let mut actions = self.policy.act(turns, observations)?;
        if let Actions::Continuous { values, .. } = &mut actions {
            self.scale.from_unit(values);
        }
        if self.scale.may_clamp() && !turns.is_empty() {
            self.took(turns, &actions)?;
        }
        Ok(actions)
    }

    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.policy.allow(allowed)
    }

    fn took(&mut self, turns: &[Turn], actions: &Actions) -> Result<(), PolicyError> {
        let mut actions = actions.clone();
        if let Actions::Continuous { values, .. } = &mut actions {
            self.scale.to_unit(values);
        }
        self.policy.took(turns, &actions)
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.policy.choose(choice)
    }

    fn played(&self) -> Option<Played<'_>> {
        self.policy.played()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that always takes the same actions, and expects them to be taken.
    struct Stubborn(Actions);

    impl Policy for Stubborn {
        fn act(&mut self, _: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
            Ok(self.0.clone())
        }

        fn took(&mut self, _: &[Turn], actions: &Actions) -> Result<(), PolicyError> {
            let numbers = |actions: &Actions| match actions {
                Actions::Continuous { values, .. } => values.clone(),
                Actions::Discrete(_) => Vec::new(),
            };
            let differs = |(a, b): (f32, f32)| (a - b).abs() > 1e-6;
            if numbers(actions).into_iter().zip(numbers(&self.0)).any(differs) {
                Err(format!("{actions:?}").into())
            } else {
                Ok(())
            }
        }
    }

    #[track_caller]
    fn check(low: [f32; 2], high: [f32; 2], expected: [f32; 4]) {
        let actions = Actions::Continuous { width: 2, values: vec![0.1, -1.0, 1.0, 0.5] };
        let space = ActionSpace::Continuous { low: low.to_vec(), high: high.to_vec() };
        let mut policy = in_units_of(&space, Box::new(Stubborn(actions)));
        let acted = policy.act(&[], Observations::Vectors(&[])).unwrap();
        let expected = Actions::Continuous { width: 2, values: expected.to_vec() };
        assert_eq!(acted, expected);
        policy.took(&[], &expected).unwrap();
    }

    #[test]
    fn actions_are_between_the_bounds_of_the_environment() {
        check([-1.0, -1.0], [1.0, 1.0], [0.1, -1.0, 1.0, 0.5]);
        // A throttle from 0 to 1, and a torque of up to 2.
        check([0.0, -2.0], [1.0, 2.0], [0.55, -2.0, 1.0, 1.0]);
    }
}
