//! [`Imitation`]: the contents of `imitation.json`, how an agent's actions differ from recorded ones.
//!
//! It is not a score: an agent that differs may be better or worse.

use serde::{Deserialize, Serialize};

use crate::{acting_mode::ActingMode, judgement::Trained};

/// Actions of one acting mode next to recorded actions, on whole episodes of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imitation {
    /// The layout of this file: [`Imitation::FORMAT`].
    pub format: u32,
    /// Name of the run.
    pub run: String,
    /// Update of the run's checkpoint.
    pub step: u64,
    /// The mode.
    pub mode: ActingMode,
    /// Whether the agent is conditioned on a return.
    pub is_conditioned: bool,
    /// The recording's name or path.
    pub dataset: String,
    /// Whether the run trained on these episodes.
    pub trained: Trained,
    /// Episodes.
    pub episodes: usize,
    /// Their steps.
    pub steps: usize,
    /// Whether actions are discrete: an agreement is then the share of equal actions, otherwise R².
    pub is_discrete: bool,
    /// For each number of the action that is not constant; one entry for discrete actions.
    pub numbers: Vec<Number>,
    /// Mean over these numbers.
    pub all: Agreement,
    /// Agreement of the agent's action with the recorded action before: how much it repeats.
    pub repeats: f64,
    /// Mean log-likelihood of the recorded action: of the agent, and of the actions' frequencies. Absent
    /// for agents without probabilities.
    pub log_likelihood: Option<[f64; 2]>,
    /// The agent's agreement in each quarter of the episodes; empty for episodes of a few steps.
    pub quarters: Vec<f64>,
    /// The agent's agreement in the tenth of the episodes with the highest returns, and in the others.
    /// Absent if returns are equal or episodes fewer than ten.
    pub top_and_rest: Option<[f64; 2]>,
    /// Distance of the agent's action from actions that were recorded at similar observations, in mean
    /// distances of these from one another; for discrete actions, the share of steps with an action that
    /// is not among them.
    pub departure: f64,
    /// Steps at which both differ most.
    pub largest: Vec<Difference>,
}

impl Imitation {
    /// File name in the directory of the run.
    pub const FILE: &str = "imitation.json";

    /// The layout that this version writes. A change of a field increases it.
    pub const FORMAT: u32 = 1;

    /// The mode in a few words, as of a [`Judgement`](crate::judgement::Judgement).
    pub fn label(&self) -> String {
        self.mode.label_of(self.is_conditioned)
    }

    /// Whether the agent has learned to repeat the action before. Its action is then nearer to that one
    /// than to the recorded one, and than recorded actions are to one another, and it explains less than
    /// half of what repetition leaves open.
    pub fn is_copycat(&self) -> bool {
        let Agreement { agent, constant, previous, .. } = self.all;
        let is_near = self.repeats > agent && self.repeats > previous + MARGIN;
        let gains_little = agent - previous < (1.0 - previous) / 2.0;
        is_near && gains_little && previous > constant + MARGIN
    }
}

/// Smallest difference of agreements that counts.
const MARGIN: f64 = 0.02;

/// A number of the action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// Its position in the action; 0 for discrete actions.
    pub number: usize,
    /// The agreements.
    pub agreement: Agreement,
}

/// Agreement with the recorded actions, of the agent and of three simple rules.
///
/// For a number of a continuous action, R² = 1 − Σ (a − â)² / Σ (a − ā)²: 1 is equal, 0 is as far as
/// the mean action, and a rule may be below 0. For discrete actions, the share of equal ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// The agent.
    pub agent: f64,
    /// The mean action (0 by definition), or the most frequent one.
    pub constant: f64,
    /// The action before, from the second step of an episode on.
    pub previous: f64,
    /// The action at the most similar observation of another episode.
    pub nearest: f64,
}

/// A step at which the agent differs from the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Position of the episode in the recording.
    pub episode: usize,
    /// Row in the recording.
    pub row: usize,
    /// The agent's action, in the recording's units.
    pub agent: Vec<f32>,
    /// The recorded action.
    pub recorded: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(agent: f64, previous: f64, repeats: f64) -> Imitation {
        let all = Agreement { agent, constant: 0.0, previous, nearest: 0.25 };
        Imitation {
            format: Imitation::FORMAT,
            run: "cube-1".into(),
            step: 500,
            mode: ActingMode::default(),
            is_conditioned: true,
            dataset: "cube".into(),
            trained: Trained::No,
            episodes: 3,
            steps: 90,
            is_discrete: false,
            numbers: vec![Number { number: 2, agreement: all }],
            all,
            repeats,
            log_likelihood: None,
            quarters: vec![0.5, 0.25, 0.5, 0.25],
            top_and_rest: Some([0.5, 0.25]),
            departure: 1.5,
            largest: vec![Difference {
                episode: 1,
                row: 40,
                agent: vec![0.5],
                recorded: vec![-0.5],
            }],
        }
    }

    #[test]
    fn a_copycat_is_nearer_to_the_action_before_than_to_the_recorded_one() {
        assert!(with(0.85, 0.85, 0.99).is_copycat());
        assert!(with(0.863, 0.817, 0.921).is_copycat(), "a transformer on OGBench's play");
        assert!(
            !with(0.6, 0.82, 0.62).is_copycat(),
            "its actions are only as smooth as recorded ones"
        );
        assert!(!with(0.95, 0.85, 0.87).is_copycat(), "it knows more than the action before");
        assert!(!with(0.4, 0.85, 0.3).is_copycat(), "it is far from both");
        assert!(!with(0.01, 0.0, 0.5).is_copycat(), "repeating agrees with nothing");
    }

    #[test]
    fn it_survives_json() {
        let imitation = with(0.5, 0.25, 0.125);
        let json = serde_json::to_string(&imitation).unwrap();
        assert_eq!(serde_json::from_str::<Imitation>(&json).unwrap(), imitation);
        assert!(!json.contains("score"), "it is not a score");
    }
}
