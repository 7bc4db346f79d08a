//! [`Step`]: the result of one action.

use overtone_core::Outcome;

/// The result of one action. The observation is in
/// [`VectorEnv::observations`](crate::VectorEnv::observations).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Raw reward, in the environment's own units; never clipped.
    pub reward: f32,
    /// Present when this step was the episode's last.
    pub outcome: Option<Outcome>,
    /// Whether the episode succeeded, with its last step; `None` if the environment does not say.
    /// An outcome says only that the episode ended.
    pub success: Option<bool>,
}
