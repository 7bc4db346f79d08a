//! How the playing of an agent differs from its training, setting by setting, and what each
//! difference does to a score.
//!
//! What the released evaluations do, and where that is known from, is in `docs/protocols.md`.

mod settings;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::settings::{games, robots};
use super::Play;

/// A setting that is played otherwise than the data was recorded and the agent trained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Its name in reports: `emulation.sticky_probability`, or [`TARGET`].
    pub setting: String,
    /// As the data was recorded and the agent trained.
    pub trained: String,
    /// As it is played.
    pub played: String,
    /// What follows, in a clause.
    pub consequence: String,
}

/// The name of the difference between a target return and the data's returns.
pub const TARGET: &str = "target_return";

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, trained, played, consequence } = self;
        write!(f, "{setting} {played}, trained with {trained}: {consequence}")
    }
}

/// How an agent was trained, as far as its playing can differ from that.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// How the data was recorded and the model was conditioned.
    pub play: Play,
    /// The lowest and the highest episode return of the data; absent when no episode ended.
    pub returns: Option<[f32; 2]>,
    /// Whether the model reads returns-to-go: behaviour cloning does not.
    pub reads_returns: bool,
    /// Whether the head orders actions otherwise than the environment numbers them.
    pub own_action_order: bool,
    /// Whether the head gives a distribution of real-valued actions, and not one action.
    pub has_density: bool,
    /// Whether the environment's revisions differ in this task.
    pub revisions_differ: bool,
}

/// Playing as trained but for one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// The setting.
    pub difference: Difference,
    /// The protocol with that setting.
    pub play: Play,
    /// The return to ask for.
    pub target_return: f32,
    /// Why no episode of this agent can change by it; absent where one can.
    pub idle: Option<String>,
}

impl Trained {
    /// What differs when the agent is played so and asked for `targets`; settings that change
    /// no episode of this agent are left out.
    pub fn differences(&self, played: &Play, targets: &[f32]) -> Vec<Difference> {
        let settings = self.deviations(played, targets);
        let mut found: Vec<Difference> = settings
            .into_iter()
            .filter(|deviation| deviation.idle.is_none())
            .map(|deviation| deviation.difference)
            .collect();
        if self.reads_returns {
            found.extend(targets.iter().filter_map(|&target| self.target_difference(target)));
        }
        found
    }

    /// Each setting that `other` has differently, alone: the protocol of training with it. The
    /// agent is asked for `targets`, and each deviation names the first.
    pub fn deviations(&self, other: &Play, targets: &[f32]) -> Vec<Deviation> {
        match (&self.play, other) {
            (Play::Atari(trained), Play::Atari(other)) => games(trained, other, self, targets),
            (Play::Continuous(trained), Play::Continuous(other)) => {
                robots(trained, other, self, targets)
            }
            _ => Vec::new(),
        }
    }

    /// A target that no episode of the data began with.
    fn target_difference(&self, target: f32) -> Option<Difference> {
        let [lowest, highest] = self.returns?;
        let consequence = if target > highest {
            "no episode of the data began with so high a return-to-go: the model must \
             extrapolate, and asking for more need not bring more"
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

/// For people: whole numbers as they are, others to one place.
fn rounded(number: f32) -> String {
    if number.fract() == 0.0 { number.to_string() } else { format!("{number:.1}") }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ActionChoice, ContinuousProtocol, Emulation, FedBackActions, GlobalTimestep, Protocol,
        Resize, ReturnUnits, Revision, Simulation,
    };
    use super::*;

    fn matched() -> Protocol {
        Protocol::matched(&Emulation::dqn_replay())
    }

    /// With a Fourier head, on data of returns from 0 to 40.
    fn atari() -> Trained {
        Trained {
            play: Play::Atari(matched()),
            returns: Some([0.0, 40.0]),
            reads_returns: true,
            own_action_order: true,
            has_density: true,
            revisions_differ: true,
        }
    }

    fn robot() -> Trained {
        let play = Play::Continuous(ContinuousProtocol {
            name: "matched".into(),
            simulation: Simulation::d4rl(),
            action_choice: ActionChoice::Mode,
            return_scale: 1000.0,
            delayed_reward: false,
        });
        Trained { play, ..atari() }
    }

    fn settings(differences: &[Difference]) -> Vec<&str> {
        differences.iter().map(|difference| difference.setting.as_str()).collect()
    }

    /// Taking every setting from `other`, which differs in all of them, must give `other`.
    #[track_caller]
    fn complete(mut agent: Trained, other: &Play, n_settings: usize) {
        for left in (1..=n_settings).rev() {
            let mut deviations = agent.deviations(other, &[0.5]);
            assert_eq!(deviations.len(), left, "{deviations:?}");
            let Deviation { difference, play, .. } = deviations.swap_remove(0);
            let clause = difference.consequence;
            assert!(clause.len() > 20 && !clause.ends_with('.'), "{clause}");
            agent.play = play;
        }
        match &mut agent.play {
            Play::Atari(protocol) => protocol.name = other.name().into(),
            Play::Continuous(protocol) => protocol.name = other.name().into(),
        }
        assert_eq!(agent.play, *other, "a setting is not compared");
    }

    #[test]
    fn every_setting_is_compared() {
        let other = Protocol {
            name: "other".into(),
            emulation: Emulation {
                sticky_probability: 0.5,
                frame_skip: 3,
                resize: Resize::BilinearThenMax,
                max_noops: 7,
                max_frames: 1000,
                terminal_on_life_loss: true,
                double_reset: true,
            },
            return_units: ReturnUnits::Raw,
            integer_returns: true,
            fed_back_actions: FedBackActions::HeadBins,
            global_timestep: GlobalTimestep::Current,
            temperature: 0.5,
        };
        complete(atari(), &Play::Atari(other), 12);
        let other = ContinuousProtocol {
            name: "other".into(),
            simulation: Simulation { revision: Revision::V5, max_steps: 10 },
            action_choice: ActionChoice::Sample,
            return_scale: 1.0,
            delayed_reward: true,
        };
        complete(robot(), &Play::Continuous(other), 5);
    }

    #[test]
    fn playing_as_trained_differs_in_nothing() {
        assert_eq!(atari().differences(&atari().play, &[0.0, 32.0, 40.0]), []);
        assert_eq!(robot().differences(&robot().play, &[40.0]), []);
        assert_eq!(robot().differences(&atari().play, &[40.0]), [], "other families");
    }

    #[test]
    fn the_released_protocol_differs_in_what_it_is_known_for() {
        let released = Play::Atari(Protocol::released());
        let found = atari().differences(&released, &[1150.0]);
        let expected = [
            "emulation.sticky_probability",
            "emulation.resize",
            "emulation.max_noops",
            "emulation.double_reset",
            "return_units",
            "fed_back_actions",
            "global_timestep",
            "target_return",
        ];
        assert_eq!(settings(&found), expected);
        assert_eq!((found[0].trained.as_str(), found[0].played.as_str()), ("0.25", "0"));
        assert!(found[0].to_string().starts_with(
            "emulation.sticky_probability 0, trained with 0.25: the emulator repeats the action \
             before less often"
        ));
        // A fraction is lost; without any, nothing is.
        assert!(settings(&atari().differences(&released, &[2.5])).contains(&"integer_returns"));
    }

    #[test]
    fn what_cannot_change_an_episode_is_no_difference() {
        let released = Play::Atari(Protocol::released());
        let linear = Trained { own_action_order: false, ..atari() };
        assert!(!settings(&linear.differences(&released, &[10.0])).contains(&"fed_back_actions"));
        let clone = Trained { reads_returns: false, ..atari() };
        for setting in settings(&clone.differences(&released, &[2000.5])) {
            assert!(!setting.contains("return"), "{setting}");
        }
        let deviations = clone.deviations(&released, &[2000.5]);
        let idle = deviations.iter().find(|d| d.difference.setting == "return_units").unwrap();
        assert_eq!(idle.idle.as_deref(), Some("the agent reads no return-to-go"));
    }

    #[test]
    fn a_deviation_changes_one_setting() {
        let found = atari().deviations(&Play::Atari(Protocol::released()), &[32.0]);
        assert_eq!(found.len(), 8);
        for deviation in found {
            assert_eq!(deviation.target_return, 32.0);
            let alone = atari().deviations(&deviation.play, &[32.0]);
            assert_eq!(alone.len(), 1);
            assert_eq!(alone[0].difference, deviation.difference);
        }
    }

    #[test]
    fn targets_outside_of_the_data_are_named() {
        let found = atari().differences(&atari().play, &[40.0, 40.5, -1.0]);
        let told: Vec<_> = found.iter().map(|d| (d.trained.as_str(), d.played.as_str())).collect();
        assert_eq!(told, [("0 to 40", "40.5"), ("0 to 40", "-1")]);
        assert!(
            found[0].consequence.contains("so high") && found[1].consequence.contains("so low")
        );
        let robot = Trained { returns: Some([87.20228, 3570.234]), ..atari() };
        let [difference] = &robot.differences(&robot.play, &[3600.0])[..] else { panic!("one") };
        assert_eq!(difference.trained, "87.2 to 3570.2");
        let unknown = Trained { returns: None, ..atari() };
        assert_eq!(unknown.differences(&atari().play, &[1e9]), []);
    }
}
