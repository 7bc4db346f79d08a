//! The protocol: every setting of recording and acting that changes a score.
//!
//! [`Simulation`] holds the simulator's settings. [`Play`] adds the conditioning of the agent and
//! its action selection. Both are stored with the data and scores that they produced, so that
//! scores can be compared.

mod difference;

use serde::{Deserialize, Serialize};

pub use difference::{Deviation, Difference, Setting, Trained, other_length};

use crate::{acting_mode::ActingMode, simulation::Simulation};

/// Units of the reward that is subtracted from the return-to-go during acting.
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

/// Action ids in the history that conditions later actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FedBackActions {
    /// The environment's ids, as in training.
    Environment,
    /// The head's own bins, as in the released Fourier-head evaluation, although training used the
    /// environment's ids.
    HeadBins,
}

/// Timestep that indexes the global position table during acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GlobalTimestep {
    /// The window's first timestep, as in training.
    WindowFirst,
    /// The current timestep, as in the released evaluation.
    Current,
}

/// Selection of an action from a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionChoice {
    /// The most probable action, or the prediction of a head without distribution.
    Mode,
    /// A sample.
    Sample,
}

/// Acting protocol of an agent in any task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Play {
    /// The protocol's name: `matched` (as the data was recorded), or another protocol of the suite.
    pub name: String,
    /// The simulator's settings.
    pub simulation: Simulation,
    /// Units of target return and return-to-go.
    pub return_units: ReturnUnits,
    /// Whether the return-to-go is truncated to an integer after each step.
    pub integer_returns: bool,
    /// Divisor of target and rewards before the agent reads them.
    pub return_scale: f32,
    /// Whether the return-to-go stays at the target, as in training on data with the whole return
    /// in the last step.
    pub delayed_reward: bool,
    /// Ids in the action history.
    pub fed_back_actions: FedBackActions,
    /// Timestep that indexes the global position table.
    pub global_timestep: GlobalTimestep,
    /// The action selection.
    pub action_choice: ActionChoice,
    /// The settings that are selected for each agent.
    pub acting: ActingMode,
}

impl Play {
    /// With this simulation, raw rewards and sampled actions.
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
