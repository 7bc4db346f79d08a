//! The protocol: everything about recording and playing that moves a score.
//!
//! [`Emulation`] describes how the environment was run when data was recorded, or is run
//! when an agent plays; [`Protocol`] adds how the agent is conditioned and sampled. Both are
//! stored in dataset manifests, checkpoints and reports, so that scores can be compared.

mod difference;

use serde::{Deserialize, Serialize};

pub use difference::{Deviation, Difference, TARGET, Trained};

/// How two raw screens become one 84 × 84 observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// Pixel-wise maximum of the last two raw grey screens, then area interpolation
    /// (Dopamine; how the DQN Replay Dataset was recorded).
    MaxThenArea,
    /// Each of the two screens resized bilinearly, then their maximum (the Decision
    /// Transformer's evaluation).
    BilinearThenMax,
}

/// How the Arcade Learning Environment is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulation {
    /// Probability that the emulator repeats the previous action on a raw frame.
    pub sticky_probability: f32,
    /// Raw frames per action.
    pub frame_skip: u32,
    /// How raw screens become an observation.
    pub resize: Resize,
    /// At most so many no-op raw frames at an episode's start, uniform from 0.
    pub max_noops: u32,
    /// Raw frames after which an episode is truncated.
    pub max_frames: u32,
    /// Whether losing a life ends the episode.
    pub terminal_on_life_loss: bool,
    /// Whether each episode is reset twice, with the first observation taken from the first
    /// reset (an accident of the Decision Transformer's evaluation).
    pub double_reset: bool,
}

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

/// How an agent is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// The preset's name: `matched` or `released`.
    pub name: String,
    /// How the environment is run.
    pub emulation: Emulation,
    /// Units of target return and return-to-go.
    pub return_units: ReturnUnits,
    /// Whether the return-to-go is cut to an integer after each step.
    pub integer_returns: bool,
    /// Ids in the action history.
    pub fed_back_actions: FedBackActions,
    /// Which timestep indexes the global position table.
    pub global_timestep: GlobalTimestep,
    /// Softmax temperature of the sampled actions.
    pub temperature: f32,
}

/// Which revision of Gymnasium's locomotion environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revision {
    /// `-v4`: the tasks as D4RL's `-v2` has them.
    V4,
    /// `-v5`: a fall is not rewarded for being upright, and Walker2d's feet are alike.
    V5,
}

impl Revision {
    /// As it ends an environment's name: `v4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V5 => "v5",
        }
    }
}

/// How a simulated robot is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// Which revision of the environment.
    pub revision: Revision,
    /// Steps after which an episode is truncated.
    pub max_steps: u32,
}

impl Simulation {
    /// The nearest to how D4RL's locomotion data was recorded (Fu et al. 2020).
    pub fn d4rl() -> Self {
        Self { revision: Revision::V4, max_steps: 1000 }
    }
}

/// How a distribution over real-valued actions becomes an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionChoice {
    /// The most probable action, or the prediction of a head without a distribution.
    Mode,
    /// A draw.
    Sample,
}

/// How an agent with real-valued actions is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousProtocol {
    /// The preset's name: `matched`, as the data was recorded.
    pub name: String,
    /// How the environment is run.
    pub simulation: Simulation,
    /// How actions are chosen.
    pub action_choice: ActionChoice,
    /// What rewards are divided by before they lower the return-to-go.
    pub return_scale: f32,
    /// Whether the return-to-go stays what was asked for, as in training on data whose whole
    /// return comes with the last step.
    pub delayed_reward: bool,
}

/// How an agent is played, whatever it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Play {
    /// An Atari game.
    Atari(Protocol),
    /// A task with real-valued actions.
    Continuous(ContinuousProtocol),
}

impl Play {
    /// The preset's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Atari(protocol) => &protocol.name,
            Self::Continuous(protocol) => &protocol.name,
        }
    }

    /// Units of target return and return-to-go.
    pub fn return_units(&self) -> ReturnUnits {
        match self {
            Self::Atari(protocol) => protocol.return_units,
            Self::Continuous(_) => ReturnUnits::Raw,
        }
    }

    /// Whether both run the environment alike, however they condition the agent.
    pub fn runs_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Atari(one), Self::Atari(other)) => one.emulation == other.emulation,
            (Self::Continuous(one), Self::Continuous(other)) => one.simulation == other.simulation,
            _ => false,
        }
    }
}

impl Emulation {
    /// How the DQN Replay Dataset was recorded (Agarwal et al. 2020; Dopamine's defaults).
    pub fn dqn_replay() -> Self {
        Self {
            sticky_probability: 0.25,
            frame_skip: 4,
            resize: Resize::MaxThenArea,
            max_noops: 0,
            max_frames: 108_000,
            terminal_on_life_loss: false,
            double_reset: false,
        }
    }
}

impl Protocol {
    /// Plays as the data was recorded, with the return-to-go in the data's units.
    pub fn matched(recording: &Emulation) -> Self {
        Self {
            name: "matched".into(),
            emulation: recording.clone(),
            return_units: ReturnUnits::Clipped,
            integer_returns: false,
            fed_back_actions: FedBackActions::Environment,
            global_timestep: GlobalTimestep::WindowFirst,
            temperature: 1.0,
        }
    }

    /// The released Decision Transformer and Fourier-head evaluation, accidents included,
    /// for comparison with published scores.
    pub fn released() -> Self {
        Self {
            name: "released".into(),
            emulation: Emulation {
                sticky_probability: 0.0,
                frame_skip: 4,
                resize: Resize::BilinearThenMax,
                max_noops: 29,
                max_frames: 108_000,
                terminal_on_life_loss: false,
                double_reset: true,
            },
            return_units: ReturnUnits::Raw,
            integer_returns: true,
            fed_back_actions: FedBackActions::HeadBins,
            global_timestep: GlobalTimestep::Current,
            temperature: 1.0,
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
