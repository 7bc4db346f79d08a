//! [`Slots`]: the environments of a batch that have an active episode. Implementations of
//! `VectorEnv` check every call with it, so all report the same misuse with the same error.

use overtone_core::Actions;

use crate::error::Cause;
use crate::{ActionSpace, error::EnvError, step::Step};

/// The environments of a batch that have an active episode.
#[derive(Clone, Debug)]
pub struct Slots {
    running: Vec<bool>,
}

impl Slots {
    /// `n_envs` environments, none with an episode.
    pub fn new(n_envs: usize) -> Self {
        Self { running: vec![false; n_envs] }
    }

    /// Number of environments.
    pub fn n_envs(&self) -> usize {
        self.running.len()
    }

    /// Checks a reset.
    ///
    /// # Errors
    /// For an unknown or repeated environment, or unequal lengths.
    pub fn check_reset(&self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.check_distinct(envs)?;
        check_count("seeds", seeds.len(), envs.len())
    }

    /// Checks a step.
    ///
    /// # Errors
    /// For an unknown or repeated environment, one without an episode, or actions that do
    /// not fit `space`.
    pub fn check_step(
        &self,
        envs: &[usize],
        actions: &Actions,
        space: &ActionSpace,
    ) -> Result<(), EnvError> {
        self.check_distinct(envs)?;
        if let Some(&env) = envs.iter().find(|&&env| !self.running[env]) {
            return Err(EnvError::NoEpisode { env });
        }
        match (space, actions) {
            (ActionSpace::Discrete { names }, Actions::Discrete(indices)) => {
                check_count("actions", indices.len(), envs.len())?;
                let n_actions = names.len();
                match envs.iter().zip(indices).find(|&(_, &action)| action >= n_actions) {
                    Some((&env, &action)) => {
                        Err(EnvError::ActionOutOfRange { env, action, n_actions })
                    }
                    None => Ok(()),
                }
            }
            (ActionSpace::Continuous { low, .. }, Actions::Continuous { width, values })
                if low.len() == *width =>
            {
                check_count("actions", values.len() / width, envs.len())
            }
            _ => Err(EnvError::ActionKind { got: actions.describe(), expected: space.describe() }),
        }
    }

    /// Records that an episode started in `env`.
    pub fn begin(&mut self, env: usize) {
        self.running[env] = true;
    }

    /// Records that the episode in `env` ended.
    pub fn end(&mut self, env: usize) {
        self.running[env] = false;
    }

    /// Records in which of `envs` an episode started, and returns the result of
    /// [`VectorEnv::reset`].
    ///
    /// # Errors
    /// As [`EnvError::of_resets`].
    ///
    /// [`VectorEnv::reset`]: crate::VectorEnv::reset
    pub fn after_reset<E: Into<Cause>>(
        &mut self,
        envs: &[usize],
        results: Vec<Result<(), E>>,
    ) -> Result<(), EnvError> {
        for (&env, result) in envs.iter().zip(&results) {
            self.running[env] = result.is_ok();
        }
        EnvError::of_resets(envs, results)
    }

    /// Records in which of `envs` the episode ended, by an outcome or a failure, and returns the
    /// result of [`VectorEnv::step`].
    ///
    /// # Errors
    /// As [`EnvError::of_steps`].
    ///
    /// [`VectorEnv::step`]: crate::VectorEnv::step
    pub fn after_step<E: Into<Cause>>(
        &mut self,
        envs: &[usize],
        results: Vec<Result<Step, E>>,
    ) -> Result<Vec<Step>, EnvError> {
        for (&env, result) in envs.iter().zip(&results) {
            self.running[env] = matches!(result, Ok(Step { outcome: None, .. }));
        }
        EnvError::of_steps(envs, results)
    }

    fn check_distinct(&self, envs: &[usize]) -> Result<(), EnvError> {
        let mut seen = vec![false; self.running.len()];
        for &env in envs {
            match seen.get_mut(env) {
                None => return Err(EnvError::NoSuchEnv { env, n_envs: self.running.len() }),
                Some(seen) if *seen => return Err(EnvError::Repeated { env }),
                Some(seen) => *seen = true,
            }
        }
        Ok(())
    }
}

fn check_count(what: &'static str, got: usize, expected: usize) -> Result<(), EnvError> {
    if got == expected { Ok(()) } else { Err(EnvError::CountMismatch { what, got, expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discrete(n: usize) -> ActionSpace {
        ActionSpace::Discrete { names: (0..n).map(|i| i.to_string()).collect() }
    }

    /// Three environments, with an active episode in 0 and 2.
    fn slots() -> Slots {
        let mut slots = Slots::new(3);
        slots.begin(0);
        slots.begin(1);
        slots.begin(2);
        slots.end(1);
        slots
    }

    #[track_caller]
    fn refused(envs: &[usize], actions: Actions, space: ActionSpace, message: &str) {
        let error = slots().check_step(envs, &actions, &space).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn valid_steps_are_accepted() {
        slots().check_step(&[2, 0], &Actions::Discrete(vec![4, 0]), &discrete(5)).unwrap();
        let vectors = Actions::Continuous { width: 3, values: vec![0.0; 3] };
        let space = ActionSpace::unit(3);
        slots().check_step(&[2], &vectors, &space).unwrap();
    }

    #[test]
    fn misuse_is_named() {
        let act = |indices: &[usize]| Actions::Discrete(indices.to_vec());
        refused(&[3], act(&[0]), discrete(5), "environment 3 does not exist: the batch has 3");
        refused(&[0, 0], act(&[0, 0]), discrete(5), "environment 0 is named twice in one call");
        refused(
            &[1],
            act(&[0]),
            discrete(5),
            "environment 1 has no active episode. Reset it first",
        );
        refused(&[0, 2], act(&[0]), discrete(5), "1 actions for 2 environments");
        refused(
            &[0, 2],
            act(&[4, 5]),
            discrete(5),
            "action 5 for environment 2: the action set has 5",
        );
        refused(
            &[0],
            Actions::Continuous { width: 6, values: vec![0.0; 6] },
            ActionSpace::unit(3),
            "the actions are vectors of 6 numbers, the environment takes vectors of 3 numbers",
        );
        let error = slots().check_reset(&[0, 1], &[7]).unwrap_err();
        assert_eq!(error.to_string(), "1 seeds for 2 environments");
    }
}
