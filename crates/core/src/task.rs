//! [`Task`]: a learning task, independent of suite and model.

use serde::{Deserialize, Serialize};

use crate::protocol::{ActionChoice, Play, ReturnUnits};
use crate::{
    simulation::Simulation,
    space::{ActionSpace, ObservationSpace},
};

/// A learning task: the suite's name for it, its spaces, and its known properties.
///
/// Tasks are rows of a suite's table. A checkpoint stores the task of its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The suite, such as `ale`.
    pub suite: String,
    /// The suite's name for it, such as `bank_heist`.
    pub name: String,
    /// Its name for people and in directories of data, such as `BankHeist`.
    pub title: String,
    /// The form of its observations.
    pub observations: ObservationSpace,
    /// The form of its actions.
    pub actions: ActionSpace,
    /// Maximum number of actions of an episode, if the task has a limit.
    pub horizon: Option<usize>,
    /// Units of the rewards in its published data.
    pub return_units: ReturnUnits,
    /// The scores that become 0 and 100; `None` if no convention covers the task.
    pub reference: Option<Reference>,
    /// Target returns.
    pub targets: Targets,
    /// The simulator's settings when the published data was recorded.
    pub simulation: Simulation,
}

/// The two scores that become 0 and 100: `100 · (score − low) / (high − low)`.
///
/// A convention defines the two scores, and conventions differ: a report always names its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The source of the scores, such as `wang2016`.
    pub convention: String,
    /// The meaning of 0 and 100, in words.
    pub meaning: String,
    /// The score that becomes 0: random actions.
    pub low: f64,
    /// The score that becomes 100: human or expert level.
    pub high: f64,
}

/// The target returns of the references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// In the units of the data; empty if the reference has none in these units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usual: Vec<f32>,
    /// In raw units: the target of the published scores' evaluation, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<f32>,
}

impl Task {
    /// A user's own task, which is not in any suite's table: `own/NAME`. Acting needs only its
    /// spaces.
    pub fn own(name: &str, observations: ObservationSpace, actions: ActionSpace) -> Self {
        Self {
            suite: "own".into(),
            name: name.into(),
            title: name.into(),
            observations,
            actions,
            horizon: None,
            return_units: ReturnUnits::Raw,
            reference: None,
            targets: Targets::default(),
            simulation: Simulation::default(),
        }
    }

    /// `ale/bank_heist`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.suite, self.name)
    }

    /// The protocol with which the data was recorded, with the return-to-go in the data's units.
    /// `recording` defaults to the settings of the published data. Continuous actions are the mode
    /// of the distribution, discrete actions are sampled.
    pub fn matched(&self, recording: Option<&Simulation>) -> Play {
        Play {
            return_units: self.return_units,
            action_choice: match self.actions {
                ActionSpace::Discrete { .. } => ActionChoice::Sample,
                ActionSpace::Continuous { .. } => ActionChoice::Mode,
            },
            ..Play::matched(recording.unwrap_or(&self.simulation).clone())
        }
    }
}

impl Reference {
    /// The normalized `score`.
    ///
    /// ```
    /// let wang2016 = overtone_core::Reference {
    ///     convention: "wang2016".into(),
    ///     meaning: "random 0, human 100".into(),
    ///     low: 68.0,
    ///     high: 42055.0,
    /// };
    /// assert_eq!(wang2016.normalize(68.0), 0.0);
    /// assert_eq!(wang2016.normalize(42055.0), 100.0);
    /// ```
    pub fn normalize(&self, score: f64) -> f64 {
        100.0 * (score - self.low) / (self.high - self.low)
    }
}
