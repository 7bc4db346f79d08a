//! [`JudgeError`]: why a judgement cannot be made; [`Progress`], which can stop it.

use std::ops::ControlFlow;

use crate::{forced::ReplayError, weights::WeightsError};

/// Smallest number of episodes: an interval from fewer means little.
pub const LEAST_EPISODES: usize = 20;

/// Longest episode whose returns may count without a discount, in steps.
pub const LONGEST_UNDISCOUNTED: usize = 100;

/// A judgement that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// Frames.
    #[error("the recording has pixel observations; only vectors can be judged")]
    Pixels,
    /// Trajectories that continue after the task is solved have no single return.
    #[error(
        "the recording has masks of 0 within its trajectories, so a trajectory does not have one \
         return. Cut it into episodes there (terminals), and leave masks out"
    )]
    Stops,
    /// Too few episodes.
    #[error(
        "the recording has {0} finished episodes; a judgement needs at least {LEAST_EPISODES}. \
         Record more, or check the end flags with data lint"
    )]
    FewEpisodes(usize),
    /// Nothing distinguishes good episodes from bad ones.
    #[error(
        "all {0} recorded episodes have the same return, so the recording cannot tell good actions \
         from bad ones"
    )]
    SameReturns(usize),
    /// Values of long episodes without a discount do not settle.
    #[error(
        "discount=1 needs episodes of at most {LONGEST_UNDISCOUNTED} steps, and the longest has {0}. \
         Use a discount below 1, such as 0.99"
    )]
    Undiscounted(usize),
    /// The caller stopped the judgement.
    #[error("the judgement was stopped")]
    Stopped,
    /// Neither weights nor critics.
    #[error(
        "updates=0 leaves importance weights only, which need discrete actions with recorded \
         log-probabilities (behavior_log_probs). Leave updates out"
    )]
    NoMethod,
    /// Ratios of probabilities without the recorded policy's.
    #[error(
        "the policy's probabilities of the recorded actions alone need the recorded log-probabilities \
         (behavior_log_probs), which this recording does not have. For discrete actions, give the \
         policy's probabilities of all actions, [rows, actions]"
    )]
    NoLogProbs,
    /// The replay failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Every episode has one step and was cut after it.
    #[error("the recording has no step with a known next step or an end of the task")]
    NoStep,
    /// A critic has a value that is not a number.
    #[error("the values of critic {critic} are not finite after {updates} updates")]
    Diverged {
        /// Its number, from 0.
        critic: usize,
        /// Updates that it made.
        updates: usize,
    },
    /// The loss of the clone is not finite.
    #[error(
        "the loss of the clone of the recorded policy is not finite after {updates} updates. Check \
         the recorded observations and actions with data lint"
    )]
    CloneDiverged {
        /// Updates of the clone.
        updates: usize,
    },
    /// The weights failed.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// Receives the name of a step, the number of its parts that are done, and their number; may stop
/// the judgement.
pub type Progress<'a> = dyn FnMut(&'static str, usize, usize) -> ControlFlow<()> + 'a;

/// An error if the caller stopped the judgement.
pub(crate) fn stop_or_go(flow: ControlFlow<()>) -> Result<(), JudgeError> {
    if flow.is_break() { Err(JudgeError::Stopped) } else { Ok(()) }
}
