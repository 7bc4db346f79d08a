//! Errors between an evaluator and its environments.

use crate::step::Step;

/// The error of a simulator.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a batch of environments refused a call, or failed.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// An index past the last environment.
    #[error("environment {env} does not exist: the batch has {n_envs}")]
    NoSuchEnv {
        /// The requested index.
        env: usize,
        /// Number of environments.
        n_envs: usize,
    },
    /// An environment that appears twice in one call.
    #[error("environment {env} is named twice in one call")]
    Repeated {
        /// Its index.
        env: usize,
    },
    /// A step without an active episode.
    #[error("environment {env} has no active episode. Reset it first")]
    NoEpisode {
        /// Its index.
        env: usize,
    },
    /// Seeds or actions do not match the environments one to one.
    #[error("{got} {what} for {expected} environments")]
    CountMismatch {
        /// `seeds` or `actions`.
        what: &'static str,
        /// How many were passed.
        got: usize,
        /// Number of environments in the call.
        expected: usize,
    },
    /// An action index outside the action set.
    #[error("action {action} for environment {env}: the action set has {n_actions}")]
    ActionOutOfRange {
        /// The environment's index.
        env: usize,
        /// The passed action.
        action: usize,
        /// Number of actions.
        n_actions: usize,
    },
    /// Discrete actions for a continuous space, vectors of another width, or the reverse.
    #[error("the actions are {got}, the environment takes {expected}")]
    ActionKind {
        /// The passed actions, in words.
        got: String,
        /// The actions of the space, in words.
        expected: String,
    },
    /// The simulator behind the environments failed.
    #[error(transparent)]
    Backend(Cause),
    /// A failure of some environments. The others carried out the call. The failed ones have no
    /// active episode and can be reset.
    #[error("{}", first(.failures))]
    Partly {
        /// The environments that failed, with their errors; never empty.
        failures: Vec<Failure>,
        /// The steps of the other environments, in the order of the call; empty for a reset.
        steps: Vec<(usize, Step)>,
    },
}

/// One environment that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its index.
    pub env: usize,
    /// Its error.
    pub cause: Cause,
}

fn first(failures: &[Failure]) -> String {
    match failures {
        [] => "no environment failed".into(),
        [only] => only.cause.to_string(),
        [first, others @ ..] => {
            format!("{} (and {} more environments failed)", first.cause, others.len())
        }
    }
}

impl EnvError {
    /// The steps of `envs` if all succeeded, else [`EnvError::Partly`].
    ///
    /// # Errors
    /// When an environment failed.
    pub fn of_steps<E: Into<Cause>>(
        envs: &[usize],
        results: impl IntoIterator<Item = Result<Step, E>>,
    ) -> Result<Vec<Step>, Self> {
        let (mut failures, mut steps) = (Vec::new(), Vec::new());
        for (&env, result) in envs.iter().zip(results) {
            match result {
                Ok(step) => steps.push((env, step)),
                Err(cause) => failures.push(Failure { env, cause: cause.into() }),
            }
        }
        if failures.is_empty() {
            Ok(steps.into_iter().map(|(_, step)| step).collect())
        } else {
            Err(Self::Partly { failures, steps })
        }
    }

    /// `Ok` if every reset of `envs` succeeded, else [`EnvError::Partly`].
    ///
    /// # Errors
    /// When an environment failed.
    pub fn of_resets<E: Into<Cause>>(
        envs: &[usize],
        results: impl IntoIterator<Item = Result<(), E>>,
    ) -> Result<(), Self> {
        let failure = |(&env, result): (&usize, Result<(), E>)| {
            result.err().map(|cause| Failure { env, cause: cause.into() })
        };
        let failures: Vec<Failure> = envs.iter().zip(results).filter_map(failure).collect();
        if failures.is_empty() { Ok(()) } else { Err(Self::Partly { failures, steps: Vec::new() }) }
    }
}
