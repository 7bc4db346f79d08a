//! [`Agent`]: what a checkpoint says about the agent whose weights it holds.

use overtone_core::{ActionSpace, Normalization, ObservationSpace, Simulation};
use overtone_model::ModelConfig;
use serde::{Deserialize, Serialize};

/// What an agent is and where it acts: with the weights, all that playing needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Agent {
    /// Plays an Atari game.
    Atari(AtariAgent),
    /// Moves a simulated robot.
    Continuous(ContinuousTaskAgent),
}

/// An agent of an Atari game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtariAgent {
    /// The game, such as `Seaquest`.
    pub game: String,
    /// What the model sees.
    pub observations: ObservationSpace,
    /// What it does.
    pub actions: ActionSpace,
    /// The model.
    pub model: ModelConfig,
    /// How the data was recorded, where it is known.
    pub recording: Option<Simulation>,
}

/// An agent of a task with real-valued actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousTaskAgent {
    /// The environment, such as `Hopper`.
    pub env: String,
    /// Which of its datasets it learned from, such as `medium`.
    pub dataset: String,
    /// What the model sees.
    pub observations: ObservationSpace,
    /// What it does.
    pub actions: ActionSpace,
    /// The model.
    pub model: ModelConfig,
    /// What is done to observations before the model sees them.
    pub normalization: Normalization,
    /// What returns-to-go are divided by.
    pub return_scale: f32,
    /// Whether all reward came with an episode's last step.
    pub delayed_reward: bool,
    /// How the data was recorded, where it is known.
    pub recording: Option<Simulation>,
}

impl Agent {
    /// The game or environment, such as `Seaquest`.
    pub fn task(&self) -> &str {
        match self {
            Self::Atari(agent) => &agent.game,
            Self::Continuous(agent) => &agent.env,
        }
    }

    /// The model, and what it sees and does.
    pub fn model(&self) -> (&ModelConfig, &ObservationSpace, &ActionSpace) {
        match self {
            Self::Atari(agent) => (&agent.model, &agent.observations, &agent.actions),
            Self::Continuous(agent) => (&agent.model, &agent.observations, &agent.actions),
        }
    }
}
