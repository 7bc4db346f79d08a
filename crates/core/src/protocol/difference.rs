//! Differences between the training and the acting protocol of an agent, and the effect of each on
//! a score.
//!
//! The released evaluations and the sources for them are in `docs/protocols.md`.

mod conditioning;
mod simulated;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::simulated::{Setting, other_length};
use super::Play;
use crate::decimal::decimal;
use crate::task::Task;

/// A setting with different values in training and acting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Its name in reports: `simulation.sticky_probability`, or `target_return`.
    pub setting: String,
    /// The value with which the data was recorded and the agent trained.
    pub trained: String,
    /// The value during acting.
    pub played: String,
    /// The effect, in a clause.
    pub consequence: String,
}

/// The name of the difference between a target return and the data's returns.
const TARGET: &str = "target_return";

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, trained, played, consequence } = self;
        // Training has no value for these two: it covers all their values.
        let trained_with = match setting.as_str() {
            "return_quantile" | "top_percent" => "by default",
            _ => "trained with",
        };
        write!(f, "{setting} {played}, {trained_with} {trained}: {consequence}")
    }
}

/// Training settings of an agent, as far as acting can differ from them.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The settings with which the data was recorded and the model was conditioned.
    pub play: Play,
    /// The task of training.
    pub task: Task,
    /// The settings of the task's simulator, with the suite's explanations.
    pub settings: &'static [Setting],
    /// The lowest and the highest episode return of the data; `None` if no episode ended.
    pub returns: Option<[f32; 2]>,
    /// Whether the model reads returns-to-go (behaviour cloning does not).
    pub reads_returns: bool,
    /// Whether the head orders actions differently from the environment.
    pub own_action_order: bool,
    /// Whether the head has a distribution over actions, not only one action.
    pub has_density: bool,
    /// Whether the model reads the position of a context in its episode.
    pub reads_global_timestep: bool,
}

/// The training protocol with one setting changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// The setting.
    pub difference: Difference,
    /// The protocol with that setting.
    pub play: Play,
    /// The reason why the change has no effect on any episode of this agent; `None` if it has.
    pub idle: Option<String>,
}

impl Trained {
    /// Differences between training and the protocol `played` with these `targets`. Settings
    /// without effect on this agent are left out.
    pub fn differences(&self, played: &Play, targets: &[f32]) -> Vec<Difference> {
        let settings = self.deviations(played, targets);
        let mut differences: Vec<Difference> = settings
            .into_iter()
            .filter(|deviation| deviation.idle.is_none())
            .map(|deviation| deviation.difference)
            .collect();
        if self.reads_returns {
            differences.extend(targets.iter().filter_map(|&target| self.target_difference(target)));
        }
        differences
    }

    /// Every setting that differs in `other`, each changed alone in the training protocol. The
    /// agent has the targets `targets`.
    pub fn deviations(&self, other: &Play, targets: &[f32]) -> Vec<Deviation> {
        let mut comparison =
            Comparison { trained: &self.play, played: other, deviations: Vec::new() };
        simulated::compare(&mut comparison, self);
        conditioning::compare(&mut comparison, self, targets);
        comparison.deviations
    }

    /// A target outside of the range of the data's episode returns.
    fn target_difference(&self, target: f32) -> Option<Difference> {
        let [lowest, highest] = self.returns?;
        let consequence = if target > highest {
            "no episode of the data began with so high a return-to-go: the model must \
             extrapolate, and a higher target may not raise the achieved return"
        } else if target < lowest {
            "no episode of the data began with so low a return-to-go: the model must extrapolate"
        } else {
            return None;
        };
        Some(Difference {
            setting: TARGET.into(),
            trained: format!("{} to {}", rounded(lowest), rounded(highest)),
            played: target.to_string(),
            consequence: consequence.into(),
        })
    }
}

/// Two protocols, compared setting by setting.
struct Comparison<'a> {
    trained: &'a Play,
    played: &'a Play,
    deviations: Vec<Deviation>,
}

impl Comparison<'_> {
    /// Adds a setting that differs; `play` is the training protocol with the acting value of it.
    fn differs(
        &mut self,
        idle: Option<&str>,
        setting: &str,
        [trained, played]: [String; 2],
        consequence: String,
        play: Play,
    ) {
        let difference = Difference { setting: setting.to_owned(), trained, played, consequence };
        self.deviations.push(Deviation { difference, play, idle: idle.map(str::to_owned) });
    }
}

/// Rounding for display: whole numbers unchanged, others to one decimal place.
fn rounded(number: f32) -> String {
    if number.fract() == 0.0 { number.to_string() } else { decimal(number.into(), 1) }
}

#[cfg(test)]
mod tests {
    use super::super::{ActionChoice, FedBackActions, GlobalTimestep, ReturnUnits};
    use super::*;
    use crate::{
        acting_mode::ActingMode,
        simulation::Simulation,
        space::{ActionSpace, ObservationSpace},
        task::Targets,
    };

    /// A suite's simulator with two settings, one without effect in any task.
    const SETTINGS: &[Setting] = &[
        Setting::new("wind", |before, now| {
            format!("it blows with {now}, and {before} in the data")
        }),
        Setting {
            key: "colour",
            consequence: |_, _| "everything has another colour".into(),
            idle: |_| Some("the observations have no colours"),
        },
    ];

    fn simulation() -> Simulation {
        Simulation::new([("wind", 0.25f32.into()), ("colour", "red".into()), ("odd", 1u32.into())])
    }

    /// A Fourier head, trained on data with returns from 0 to 40.
    fn agent() -> Trained {
        let task = Task {
            suite: "toy".into(),
            name: "kite".into(),
            title: "Kite".into(),
            observations: ObservationSpace::Vectors { width: 3 },
            actions: ActionSpace::Discrete { names: vec!["pull".into(), "wait".into()] },
            horizon: None,
            return_units: ReturnUnits::Clipped,
            reference: None,
            targets: Targets::default(),
            simulation: simulation(),
        };
        Trained {
            play: task.matched(None),
            task,
            settings: SETTINGS,
            returns: Some([0.0, 40.0]),
            reads_returns: true,
            own_action_order: true,
            has_density: true,
            reads_global_timestep: true,
        }
    }

    /// A protocol that differs from [`agent`]'s in every setting.
    fn other() -> Play {
        Play {
            name: "other".into(),
            simulation: Simulation::new([
                ("wind", 0.5f32.into()),
                ("colour", "blue".into()),
                ("odd", 3u32.into()),
            ]),
            return_units: ReturnUnits::Raw,
            integer_returns: true,
            return_scale: 2.0,
            delayed_reward: true,
            fed_back_actions: FedBackActions::HeadBins,
            global_timestep: GlobalTimestep::Current,
            action_choice: ActionChoice::Mode,
            acting: ActingMode { temperature: 0.5, return_quantile: 0.5, top_percent: 10.0 },
        }
    }

    fn settings(differences: &[Difference]) -> Vec<&str> {
        differences.iter().map(|difference| difference.setting.as_str()).collect()
    }

    /// Replacing every setting by the value in `other` must give `other`.
    #[test]
    fn every_setting_is_compared() {
        let mut agent = agent();
        for left in (1..=13).rev() {
            let mut deviations = agent.deviations(&other(), &[0.5]);
            assert_eq!(deviations.len(), left, "{deviations:?}");
            let Deviation { difference, play, .. } = deviations.swap_remove(0);
            let clause = difference.consequence;
            assert!(clause.len() > 20 && !clause.ends_with('.'), "{clause}");
            agent.play = play;
        }
        agent.play.name = other().name;
        assert_eq!(agent.play, other(), "a setting is not compared");
    }

    #[test]
    fn playing_as_trained_differs_in_nothing() {
        assert_eq!(agent().differences(&agent().play, &[0.0, 32.0, 40.0]), []);
        let of_another_suite = Play { simulation: Simulation::default(), ..agent().play };
        assert_eq!(agent().differences(&of_another_suite, &[32.0]), [], "no setting in common");
    }

    #[test]
    fn settings_have_the_names_of_their_places() {
        let differences = agent().differences(&other(), &[1150.0]);
        let expected = [
            "simulation.wind",
            "simulation.odd",
            "return_units",
            "fed_back_actions",
            "global_timestep",
            "action_choice",
            "temperature",
            "return_quantile",
            "top_percent",
            "return_scale",
            "delayed_reward",
            "target_return",
        ];
        assert_eq!(settings(&differences), expected);
        let wind =
            "simulation.wind 0.5, trained with 0.25: it blows with 0.5, and 0.25 in the data";
        assert_eq!(differences[0].to_string(), wind);
        // A fraction is lost; without any, nothing is.
        assert!(settings(&agent().differences(&other(), &[2.5])).contains(&"integer_returns"));
    }

    #[test]
    fn settings_without_effect_are_not_differences() {
        let linear = Trained { own_action_order: false, ..agent() };
        assert!(!settings(&linear.differences(&other(), &[10.0])).contains(&"fed_back_actions"));
        let clone = Trained { reads_returns: false, ..agent() };
        for setting in settings(&clone.differences(&other(), &[2000.5])) {
            assert!(!setting.contains("return"), "{setting}");
        }
        let deviations = clone.deviations(&other(), &[2000.5]);
        let idle = |setting: &str| {
            let deviation = deviations.iter().find(|d| d.difference.setting == setting).unwrap();
            deviation.idle.as_deref()
        };
        assert_eq!(idle("return_units"), Some("the agent reads no return-to-go"));
        assert_eq!(idle("simulation.colour"), Some("the observations have no colours"));
        let critic = Trained { has_density: false, reads_global_timestep: false, ..agent() };
        let differences = critic.differences(&other(), &[10.0]);
        for setting in ["global_timestep", "action_choice", "temperature"] {
            assert!(!settings(&differences).contains(&setting), "{setting}");
        }
    }

    #[test]
    fn a_deviation_changes_one_setting() {
        let deviations = agent().deviations(&other(), &[32.0]);
        assert_eq!(deviations.len(), 13);
        for deviation in deviations {
            let alone = agent().deviations(&deviation.play, &[32.0]);
            assert_eq!(alone.len(), 1);
            assert_eq!(alone[0].difference, deviation.difference);
        }
    }

    #[test]
    fn targets_outside_of_the_data_are_named() {
        let differences = agent().differences(&agent().play, &[40.0, 40.5, -1.0]);
        let ranges: Vec<_> =
            differences.iter().map(|d| (d.trained.as_str(), d.played.as_str())).collect();
        assert_eq!(ranges, [("0 to 40", "40.5"), ("0 to 40", "-1")]);
        assert!(
            differences[0].consequence.contains("so high")
                && differences[1].consequence.contains("so low")
        );
        let robot = Trained { returns: Some([87.20228, 3570.234]), ..agent() };
        let [difference] = &robot.differences(&robot.play, &[3600.0])[..] else { panic!("one") };
        assert_eq!(difference.trained, "87.2 to 3570.2");
        let unknown = Trained { returns: None, ..agent() };
        assert_eq!(unknown.differences(&agent().play, &[1e9]), []);
    }
}
