//! The [`VectorEnv`] trait: many environments, each with its own episode, stepped as one
//! batch.

use overtone_core::{Actions, Observations, Outcome};

use crate::{ActionSpace, EnvError, ObservationSpace};

/// What one action led to. The observation is in [`VectorEnv::observations`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Raw reward, in the environment's own units; never clipped.
    pub reward: f32,
    /// Present when this step was the episode's last.
    pub outcome: Option<Outcome>,
}

impl Step {
    /// Gymnasium's `terminated`: the task itself ended.
    pub fn terminated(&self) -> bool {
        self.outcome == Some(Outcome::Terminated)
    }

    /// Gymnasium's `truncated`: a limit cut the episode.
    pub fn truncated(&self) -> bool {
        self.outcome == Some(Outcome::Truncated)
    }
}

/// `n_envs` environments of one kind, each playing its own episode.
///
/// Nothing resets by itself: an environment whose episode ended waits for
/// [`reset`](Self::reset). Any subset can be reset or stepped, and an episode is determined
/// by its seed and its actions: the same whatever the other environments do, and however
/// many there are. A batch may be stepped in another thread than the one that made it.
///
/// A simulator that fails in one environment does not disturb the others: the call answers
/// [`EnvError::Partly`], which names the failed and gives the steps of the rest. Every other
/// error means that nothing was done, or that nothing can go on.
pub trait VectorEnv: Send {
    /// Number of environments.
    fn n_envs(&self) -> usize;

    /// What each environment shows.
    fn observation_space(&self) -> &ObservationSpace;

    /// What each environment takes.
    fn action_space(&self) -> &ActionSpace;

    /// Begins an episode in each of `envs`, environment `envs[i]` with `seeds[i]`. An episode
    /// under way there is abandoned.
    ///
    /// # Errors
    /// For an unknown or repeated environment, unequal lengths, or a failing simulator; an
    /// environment that failed before and cannot be made anew is one that fails.
    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError>;

    /// Takes one action in each of `envs`; row `i` of `actions`, and of the answer, belongs
    /// to `envs[i]`. The other environments stand still.
    ///
    /// # Errors
    /// For an unknown or repeated environment, one without an episode under way, actions
    /// that do not fit the space, or a failing simulator.
    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError>;

    /// The current observations of all environments, `[n_envs, ..observation]`, contiguous.
    ///
    /// A row is zero before its environment's first reset, and after a step with an outcome
    /// holds whatever the simulator showed last.
    fn observations(&self) -> Observations<'_>;
}
