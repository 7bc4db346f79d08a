//! The [`Policy`] trait: a batch of agents, observations in, actions out.

use std::error::Error;

use serde::{Deserialize, Serialize};

use crate::protocol::ActionChoice;

/// A batch of observations, row by row.
#[derive(Clone, Copy, Debug)]
pub enum Observations<'a> {
    /// Pixels, `[n, …]`; for Atari `[n, 4, 84, 84]`, oldest frame first.
    Pixels(&'a [u8]),
    /// Vectors, `[n, width]`, in the environment's own units.
    Vectors(&'a [f32]),
}

/// A batch of actions, one per acting agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Actions {
    /// Indices into the environment's action set.
    Discrete(Vec<usize>),
    /// Vectors, `[n, width]`.
    Continuous {
        /// Numbers per action.
        width: usize,
        /// `n · width` numbers.
        values: Vec<f32>,
    },
}

/// The input of one agent for one action, apart from its observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The agent's index, `0 .. n_agents`. An agent appears at most once in a batch.
    pub agent: usize,
    /// Reward for the agent's previous action, in the protocol's return units. Ignored at an
    /// episode's first turn.
    pub reward: f32,
    /// Set at an episode's first turn: the agent clears its history.
    pub start: Option<EpisodeStart>,
}

/// The start of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeStart {
    /// Seed of all random numbers that the agent draws in this episode.
    pub seed: u64,
    /// The target return, in the protocol's return units.
    pub target_return: f32,
}

/// Order of the bins of a distribution over actions: which actions are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinOrder {
    /// The environment's order.
    Environment,
    /// Around the compass, without fire and then with fire, restricted to the game's actions out of
    /// Atari's 18. The Fourier head's paper orders them so for every head.
    Compass,
    /// Another order, set in the policy's head.
    Head,
}

impl BinOrder {
    /// The order in words, after "bins in".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Environment => "the environment's order",
            Self::Compass => "compass order",
            Self::Head => "the head's own order",
        }
    }
}

/// The distributions that a batch of actions was drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played<'a> {
    /// `[turns, n_bins]`, each row summing to 1.
    pub probs: &'a [f64],
    /// The environment's action index of each bin.
    pub actions: &'a [usize],
    /// The order of the bins.
    pub order: BinOrder,
}

/// The reason why a policy could not act.
pub type PolicyError = Box<dyn Error + Send + Sync>;

/// A batch of agents, each with its own history.
///
/// The same seed, observations and rewards give the same actions whatever else is in the batch, as
/// far as batches of different sizes round sums alike. On a CPU, we measured differences of 1e-9 in
/// action probabilities, and no different draw. On a GPU, and between devices or machines, a draw
/// may differ. The same batches give the same bits.
///
/// A policy can move to another thread, but acts on one thread at a time.
pub trait Policy: Send {
    /// Acts for the agents in `turns`; row `i` of `observations` belongs to `turns[i]`.
    ///
    /// # Errors
    /// When the policy itself fails; the error ends the evaluation.
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError>;

    /// Allows only some discrete actions in the next [`act`](Self::act) alone, even if it fails:
    /// `[turns, n_actions]`.
    ///
    /// # Errors
    /// When the policy does not support it.
    fn allow(&mut self, _allowed: Vec<bool>) -> Result<(), PolicyError> {
        Err("this policy does not support masks of actions".into())
    }

    /// Replaces the actions of the last [`act`](Self::act) in the histories of these agents, where
    /// another action was taken: a person, a limit or a random action overrode the policy, or a
    /// recording is replayed. Actions are in the units of `act`. A policy without previous actions
    /// in its input ignores them.
    ///
    /// # Errors
    /// When an agent has not acted, or the actions do not fit the policy.
    fn took(&mut self, _turns: &[Turn], _actions: &Actions) -> Result<(), PolicyError> {
        Ok(())
    }

    /// Sets the action selection from now on; histories stay.
    ///
    /// # Errors
    /// When the policy does not support this selection.
    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        Err(format!("this policy has only one action selection, and {choice:?} is not supported")
            .into())
    }

    /// The distributions behind the actions of the last [`act`](Self::act): row `i` for turn `i`.
    /// `None` for a policy without distributions over bins, or one that does not store them.
    fn played(&self) -> Option<Played<'_>> {
        None
    }
}
