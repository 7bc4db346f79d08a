//! [`Task`]: what is learned and played, whatever the suite and the model.

use serde::{Deserialize, Serialize};

use crate::protocol::{ActionChoice, Play, ReturnUnits};
use crate::{ActionSpace, ObservationSpace, Simulation};

/// What is learned and played: a suite's name for it, its spaces, and what is known of it.
///
/// Tasks are rows of a suite's table. A checkpoint holds the task it was trained for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The suite, such as `ale`.
    pub suite: String,
    /// The suite's name of it, such as `bank_heist`.
    pub name: String,
    /// Its name for people and in folders of data, such as `BankHeist`.
    pub title: String,
    /// What it shows.
    pub observations: ObservationSpace,
    /// What it takes.
    pub actions: ActionSpace,
    /// Most actions of an episode, where the task has such a limit.
    pub horizon: Option<usize>,
    /// Units of the rewards in its published data.
    pub return_units: ReturnUnits,
    /// The scores that become 0 and 100; absent where no convention covers the task.
    pub reference: Option<Reference>,
    /// Returns to ask for.
    pub targets: Targets,
    /// How the simulator was run when the published data was recorded.
    pub simulation: Simulation,
}

/// The two scores that become 0 and 100: `100 · (score − low) / (high − low)`.
///
/// Which two is a convention, and the numbers differ: a report always names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Where they come from, such as `wang2016`.
    pub convention: String,
    /// What 0 and 100 mean, in words.
    pub meaning: String,
    /// Becomes 0: random play.
    pub low: f64,
    /// Becomes 100: human or expert play.
    pub high: f64,
}

/// The returns that the references ask an agent for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// In the units of the data; empty where the reference has none in these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usual: Vec<f32>,
    /// In raw units: what the evaluation of the published scores asks for, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<f32>,
}

impl Task {
    /// A task of your own, which is in no suite's table: `own/NAME`. Playing needs only its spaces.
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

    /// Playing as the data was recorded, with the return-to-go in the data's units; as the
    /// published data was where `recording` is not known. Of real-valued actions the most
    /// probable is played, others are drawn.
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
    /// `score`, normalized.
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
