//! [`Step`]: the result of one action.

use overtone_core::Outcome;

/// The result of one action. The observation is in [`VectorEnv::observations`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Raw reward, in the environment's own units; never clipped.
    pub reward: f32,
    /// Present when this step was the episode's last.
    pub outcome: Option<Outcome>,
}
