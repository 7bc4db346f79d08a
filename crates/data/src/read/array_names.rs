//! Names of arrays that several formats have.

/// The array of log-probabilities, in memory and in `.npz` files.
pub(crate) const LOG_PROBS: &str = "behavior_log_probs";
/// The same in D4RL's files, and in files of our own.
pub(crate) const LOG_PROBS_IN_INFOS: &str = "infos/action_log_probs";
