//! The [`VectorEnv`] trait: many environments, each with its own episode, stepped as one
//! batch.

use overtone_core::{Actions, Observations};

use crate::{ActionSpace, ObservationSpace, error::EnvError, step::Step};

/// The lowest `bits` of a seed, 1 to 64.
pub fn cut_seed(seed: u64, bits: u32) -> u64 {
    seed & (u64::MAX >> (64 - bits))
}

/// `n_envs` environments of one kind, each with its own episode.
///
/// Nothing resets automatically: an environment whose episode ended waits for
/// [`reset`](Self::reset). Any subset can be reset or stepped. An episode depends only on its seed
/// and its actions, not on the other environments or their number. A batch can be stepped in a
/// thread other than the one that created it.
///
/// A simulator that fails in one environment does not affect the others. The call returns
/// [`EnvError::Partly`], which names the failed environments and contains the steps of the others.
/// Every other error means that nothing was done, or that the batch is unusable.
pub trait VectorEnv: Send {
    /// Number of environments.
    fn n_envs(&self) -> usize;

    /// The form of the observations.
    fn observation_space(&self) -> &ObservationSpace;

    /// The form of the actions.
    fn action_space(&self) -> &ActionSpace;

    /// Starts an episode in each of `envs`: environment `envs[i]` with `seeds[i]`. An active
    /// episode there is abandoned.
    ///
    /// # Errors
    /// For an unknown or repeated environment, unequal lengths, or a failing simulator. The
    /// simulator also fails if the environment failed before and cannot be recreated.
    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError>;

    /// Bits of the seeds that every such environment takes. The seeds of evaluated and recorded
    /// episodes are [cut](cut_seed) to them.
    fn seed_bits(&self) -> u32 {
        64
    }

    /// Takes one action in each of `envs`. Row `i` of `actions` and of the result belongs to
    /// `envs[i]`. The other environments do not change.
    ///
    /// # Errors
    /// For an unknown or repeated environment, one without an active episode, actions that do not
    /// fit the space, or a failing simulator.
    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError>;

    /// The current observations of all environments, `[n_envs, ..observation]`, contiguous.
    ///
    /// A row is zero before its environment's first reset. After a step with an outcome, it holds
    /// the last observation of the simulator.
    fn observations(&self) -> Observations<'_>;

    /// Whether each discrete action is allowed in the current state of each environment,
    /// `[n_envs, n_actions]`; `None`: the environment does not say, and all are.
    fn allowed_actions(&self) -> Option<&[bool]> {
        None
    }
}
