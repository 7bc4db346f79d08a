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

/// What one agent is told when it must act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Which agent, `0 .. n_agents`. An agent appears at most once in a batch.
    pub agent: usize,
    /// Reward for the agent's previous action, in the protocol's return units; ignored at
    /// an episode's first turn.
    pub reward: f32,
    /// Present at an episode's first turn: forget everything, begin again.
    pub start: Option<EpisodeStart>,
}

/// How an agent begins an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeStart {
    /// Seed of everything the agent draws in this episode.
    pub seed: u64,
    /// The return asked for, in the protocol's return units.
    pub target_return: f32,
}

/// How the bins of a distribution over actions are ordered: which actions are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinOrder {
    /// As the environment numbers its actions.
    Environment,
    /// Those of Atari's 18 actions that there are, around the compass, without and then with
    /// fire, as the Fourier head's paper orders them for every head.
    Compass,
    /// Another order, which the policy's head was given.
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
    /// The environment's action of each bin.
    pub actions: &'a [usize],
    /// Which bins are neighbours.
    pub order: BinOrder,
}

/// Why a policy could not act.
pub type PolicyError = Box<dyn Error + Send + Sync>;

/// A batch of agents, each with its own history.
///
/// The same seed, observations and rewards give the same actions whatever else is in the batch, as
/// far as sums are rounded alike in batches of another size. On a CPU probabilities of a game's
/// actions were seen to differ by 1e-9, and no draw fell differently for it. On a GPU, and from one
/// device or machine to another, a draw may. The same batches give the same bits.
///
/// A policy may be handed to another thread; it acts on one at a time.
pub trait Policy: Send {
    /// Acts for the agents in `turns`; row `i` of `observations` belongs to `turns[i]`.
    ///
    /// # Errors
    /// When the policy itself fails; the evaluator ends the evaluation with it.
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError>;

    /// Chooses actions in this way from now on; histories stay.
    ///
    /// # Errors
    /// When the policy cannot choose so.
    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        Err(format!("this policy has one way to choose actions, and {choice:?} was asked for")
            .into())
    }

    /// What the last [`act`](Self::act) drew its actions from, row `i` for its turn `i`;
    /// `None` for a policy that draws from no distributions over bins, or keeps none.
    fn played(&self) -> Option<Played<'_>> {
        None
    }
}
