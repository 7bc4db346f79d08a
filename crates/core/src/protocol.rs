//! The protocol: everything about recording and playing that moves a score.
//!
//! [`Simulation`] says how the simulator is run; [`Play`] adds how the agent is conditioned and
//! how its actions are chosen. Both are stored with what they produced, so that scores can be
//! compared.

mod difference;

use serde::{Deserialize, Serialize};

pub use difference::{Deviation, Difference, Setting, TARGET, Trained, other_length};

use crate::{ActingMode, Simulation};

/// Units of the reward that lowers the return-to-go while playing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnUnits {
    /// Each reward clipped to [-1, 1], as DQN-replay stores it.
    Clipped,
    /// The game's own score.
    Raw,
}

impl ReturnUnits {
    /// `raw_reward` in these units.
    pub fn of(self, raw_reward: f32) -> f32 {
        match self {
            Self::Clipped => raw_reward.clamp(-1.0, 1.0),
            Self::Raw => raw_reward,
        }
    }
}

/// Which ids stand in the action history that conditions later actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FedBackActions {
    /// The environment's ids, as in training.
    Environment,
    /// The head's own bins: what the released Fourier-head evaluation does, although
    /// training used the environment's ids.
    HeadBins,
}

/// Which timestep indexes the global position table while playing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GlobalTimestep {
    /// The window's first timestep, as in training.
    WindowFirst,
    /// The current timestep: what the released evaluation does.
    Current,
}

/// How a distribution over actions becomes an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionChoice {
    /// The most probable action, or the prediction of a head without a distribution.
    Mode,
    /// A draw.
    Sample,
}

/// How an agent is played, whatever it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Play {
    /// The protocol's name: `matched`, as the data was recorded, or another of the suite's.
    pub name: String,
    /// How the simulator is run.
    pub simulation: Simulation,
    /// Units of target return and return-to-go.
    pub return_units: ReturnUnits,
    /// Whether the return-to-go is cut to an integer after each step.
    pub integer_returns: bool,
    /// What target and rewards are divided by before the agent reads them.
    pub return_scale: f32,
    /// Whether the return-to-go stays what was asked for, as in training on data whose whole
    /// return comes with the last step.
    pub delayed_reward: bool,
    /// Ids in the action history.
    pub fed_back_actions: FedBackActions,
    /// Which timestep indexes the global position table.
    pub global_timestep: GlobalTimestep,
    /// How actions are chosen.
    pub action_choice: ActionChoice,
    /// What is chosen for each agent.
    pub acting: ActingMode,
}

impl Play {
    /// In a simulator that is run so, with raw rewards and actions drawn as the model says.
    pub fn matched(simulation: Simulation) -> Self {
        Self {
            name: "matched".into(),
            simulation,
            return_units: ReturnUnits::Raw,
            integer_returns: false,
            return_scale: 1.0,
            delayed_reward: false,
            fed_back_actions: FedBackActions::Environment,
            global_timestep: GlobalTimestep::WindowFirst,
            action_choice: ActionChoice::Sample,
            acting: ActingMode::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_keeps_the_sign() {
        let clip = |reward| ReturnUnits::Clipped.of(reward);
        assert_eq!([-200.0, -0.5, 0.0, 0.5, 20.0].map(clip), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(ReturnUnits::Raw.of(20.0), 20.0);
    }
}
