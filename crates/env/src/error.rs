//! What can go wrong between an evaluator and its environments.

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
    Backend(Box<dyn std::error::Error + Send + Sync>),
}
