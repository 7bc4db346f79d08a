//! What can go wrong between an evaluator and its environments.

use crate::Step;

/// Why a simulator failed.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a batch of environments refused a call, or failed.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// An index past the last environment.
    #[error("there is no environment {env}: the batch has {n_envs}")]
    NoSuchEnv {
        /// The index asked for.
        env: usize,
        /// How many there are.
        n_envs: usize,
    },
    /// One call names an environment twice.
    #[error("environment {env} is named twice in one call")]
    Repeated {
        /// Its index.
        env: usize,
    },
    /// A step without an episode under way.
    #[error("environment {env} has no episode under way: reset it first")]
    NoEpisode {
        /// Its index.
        env: usize,
    },
    /// Seeds or actions do not match the environments one to one.
    #[error("{got} {what} for {expected} environments")]
    CountMismatch {
        /// `seeds` or `actions`.
        what: &'static str,
        /// How many were given.
        got: usize,
        /// How many environments the call names.
        expected: usize,
    },
    /// An action index outside the action set.
    #[error("action {action} for environment {env}: the action set has {n_actions}")]
    ActionOutOfRange {
        /// The environment's index.
        env: usize,
        /// The action given.
        action: usize,
        /// Number of actions.
        n_actions: usize,
    },
    /// Discrete actions for a continuous space, vectors of another width, or the reverse.
    #[error("the actions are {got}, the environment takes {expected}")]
    ActionKind {
        /// What was given, in words.
        got: String,
        /// What the space takes, in words.
        expected: String,
    },
    /// The simulator behind the environments failed.
    #[error(transparent)]
    Backend(Cause),
    /// Some environments failed, each alone: the others did what the call asked. The failed
    /// have no episode any more, and may be reset.
    #[error("{}", first(.failures))]
    Partly {
        /// Which failed, and why; never empty.
        failures: Vec<Failure>,
        /// What the action led to in the others, in the order of the call; empty for a reset.
        steps: Vec<(usize, Step)>,
    },
}

/// One environment that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its index.
    pub env: usize,
    /// Why.
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
    /// The steps of `envs` where none of them failed, else [`EnvError::Partly`].
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
        match failures.is_empty() {
            true => Ok(steps.into_iter().map(|(_, step)| step).collect()),
            false => Err(Self::Partly { failures, steps }),
        }
    }

    /// Nothing where none of `envs` failed to begin an episode, else [`EnvError::Partly`].
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
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Self::Partly { failures, steps: Vec::new() }),
        }
    }
}
