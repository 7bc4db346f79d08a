//! How the playing of an agent differs from its training, setting by setting, and what each
//! difference does to a score.
//!
//! The settings are listed once, in [`ATARI`] and [`CONTINUOUS`]. What the released evaluations
//! do, and where that is known from, is in `docs/protocols.md`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    ActionChoice, ContinuousProtocol, FedBackActions, GlobalTimestep, Play, Protocol, Resize,
    ReturnUnits,
};

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
            (Play::Atari(trained), Play::Atari(other)) => {
                self.compare(ATARI, trained, other, targets, Play::Atari)
            }
            (Play::Continuous(trained), Play::Continuous(other)) => {
                self.compare(CONTINUOUS, trained, other, targets, Play::Continuous)
            }
            _ => Vec::new(),
        }
    }

    fn compare<P: Clone>(
        &self,
        settings: &[Setting<P>],
        trained: &P,
        other: &P,
        targets: &[f32],
        play: fn(P) -> Play,
    ) -> Vec<Deviation> {
        let mut found = Vec::new();
        for setting in settings {
            let (before, after) = ((setting.show)(trained), (setting.show)(other));
            if before == after {
                continue;
            }
            let mut deviating = trained.clone();
            (setting.take)(&mut deviating, other);
            found.push(Deviation {
                play: play(deviating),
                target_return: targets.first().copied().unwrap_or_default(),
                idle: (setting.idle)(self, targets).map(str::to_owned),
                difference: Difference {
                    setting: setting.name.to_owned(),
                    trained: before,
                    played: after,
                    consequence: (setting.consequence)(trained, other),
                },
            });
        }
        found
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
            trained: format!("{lowest} to {highest}"),
            played: target.to_string(),
            consequence: consequence.into(),
        })
    }
}

/// One setting of a protocol.
struct Setting<P> {
    name: &'static str,
    /// Its value, as reports spell it.
    show: fn(&P) -> String,
    /// Takes its value from another protocol.
    take: fn(&mut P, &P),
    /// What follows from training with the first and playing with the second.
    consequence: fn(&P, &P) -> String,
    /// Why it changes no episode of an agent that is asked for these returns.
    idle: fn(&Trained, &[f32]) -> Option<&'static str>,
}

fn matters(_: &Trained, _: &[f32]) -> Option<&'static str> {
    None
}

fn read_returns(agent: &Trained, _: &[f32]) -> Option<&'static str> {
    (!agent.reads_returns).then_some("the agent reads no return-to-go")
}

fn fractions(agent: &Trained, targets: &[f32]) -> Option<&'static str> {
    let whole = targets.iter().all(|target| target.fract() == 0.0);
    let whole = whole.then_some("target and rewards are whole numbers");
    read_returns(agent, targets).or(whole)
}

/// Every setting of [`Protocol`] but its name.
const ATARI: &[Setting<Protocol>] = &[
    Setting {
        name: "emulation.sticky_probability",
        show: |p| p.emulation.sticky_probability.to_string(),
        take: |p, other| p.emulation.sticky_probability = other.emulation.sticky_probability,
        consequence: |trained, played| {
            let [before, now] = [trained, played].map(|p| p.emulation.sticky_probability);
            let delay = if now < before { "less" } else { "more" };
            format!(
                "the emulator repeats the action before {delay} often than in the data; scores \
                 with other sticky actions are not comparable (Machado et al. 2018)"
            )
        },
        idle: matters,
    },
    Setting {
        name: "emulation.frame_skip",
        show: |p| p.emulation.frame_skip.to_string(),
        take: |p, other| p.emulation.frame_skip = other.emulation.frame_skip,
        consequence: |_, _| {
            "each action lasts another time than in the data: the model sees everything move at \
             another speed"
                .into()
        },
        idle: matters,
    },
    Setting {
        name: "emulation.resize",
        show: |p| {
            match p.emulation.resize {
                Resize::MaxThenArea => "max_then_area",
                Resize::BilinearThenMax => "bilinear_then_max",
            }
            .into()
        },
        take: |p, other| p.emulation.resize = other.emulation.resize,
        consequence: |_, _| {
            "the encoder sees screens filtered otherwise than in training: bilinear resizing \
             skips pixels that area resizing averages"
                .into()
        },
        idle: matters,
    },
    Setting {
        name: "emulation.max_noops",
        show: |p| p.emulation.max_noops.to_string(),
        take: |p, other| p.emulation.max_noops = other.emulation.max_noops,
        consequence: |trained, played| {
            let [before, now] = [trained, played].map(|p| p.emulation.max_noops);
            format!(
                "play begins up to {now} raw frames into the game, in the data up to {before}: \
                 other first situations"
            )
        },
        idle: matters,
    },
    Setting {
        name: "emulation.max_frames",
        show: |p| p.emulation.max_frames.to_string(),
        take: |p, other| p.emulation.max_frames = other.emulation.max_frames,
        consequence: |trained, played| {
            longer(played.emulation.max_frames > trained.emulation.max_frames)
        },
        idle: matters,
    },
    Setting {
        name: "emulation.terminal_on_life_loss",
        show: |p| p.emulation.terminal_on_life_loss.to_string(),
        take: |p, other| {
            p.emulation.terminal_on_life_loss = other.emulation.terminal_on_life_loss;
        },
        consequence: |_, played| {
            match played.emulation.terminal_on_life_loss {
                true => "a score is that of one life, and in the data that of a whole game",
                false => "a score is that of a whole game, and in the data that of one life",
            }
            .into()
        },
        idle: matters,
    },
    Setting {
        name: "emulation.double_reset",
        show: |p| p.emulation.double_reset.to_string(),
        take: |p, other| p.emulation.double_reset = other.emulation.double_reset,
        consequence: |_, played| {
            match played.emulation.double_reset {
                true => "the first observation is of a game that is then thrown away",
                false => "the first observation is of the game that is played, unlike in the data",
            }
            .into()
        },
        idle: matters,
    },
    Setting {
        name: "return_units",
        show: |p| {
            match p.return_units {
                ReturnUnits::Clipped => "clipped",
                ReturnUnits::Raw => "raw",
            }
            .into()
        },
        take: |p, other| p.return_units = other.return_units,
        consequence: |_, played| {
            let falls = match played.return_units {
                ReturnUnits::Raw => "the game's points",
                ReturnUnits::Clipped => "at most 1 for each reward",
            };
            format!(
                "the return-to-go falls by {falls}, otherwise than in training: a target means \
                 something else, and the model soon reads numbers it was not trained on"
            )
        },
        idle: read_returns,
    },
    Setting {
        name: "integer_returns",
        show: |p| p.integer_returns.to_string(),
        take: |p, other| p.integer_returns = other.integer_returns,
        consequence: |_, _| {
            "a target's fraction is lost with the first step, or kept where training lost it".into()
        },
        idle: fractions,
    },
    Setting {
        name: "fed_back_actions",
        show: |p| {
            match p.fed_back_actions {
                FedBackActions::Environment => "environment",
                FedBackActions::HeadBins => "head_bins",
            }
            .into()
        },
        take: |p, other| p.fed_back_actions = other.fed_back_actions,
        consequence: |_, _| {
            "the model reads in its history other actions than those it played: training named \
             them otherwise"
                .into()
        },
        idle: |agent, _| {
            (!agent.own_action_order).then_some("the head's bins are the environment's ids")
        },
    },
    Setting {
        name: "global_timestep",
        show: |p| {
            match p.global_timestep {
                GlobalTimestep::WindowFirst => "window_first",
                GlobalTimestep::Current => "current",
            }
            .into()
        },
        take: |p, other| p.global_timestep = other.global_timestep,
        consequence: |_, _| {
            "from an episode's second step on, the model is told another time than in training"
                .into()
        },
        idle: matters,
    },
    Setting {
        name: "temperature",
        show: |p| p.temperature.to_string(),
        take: |p, other| p.temperature = other.temperature,
        consequence: |trained, played| {
            let kind = if played.temperature < trained.temperature { "likely" } else { "unlikely" };
            format!("{kind} actions are chosen more often than the model says")
        },
        idle: matters,
    },
];

/// Every setting of [`ContinuousProtocol`] but its name.
const CONTINUOUS: &[Setting<ContinuousProtocol>] = &[
    Setting {
        name: "simulation.revision",
        show: |p| p.simulation.revision.name().into(),
        take: |p, other| p.simulation.revision = other.simulation.revision,
        consequence: |_, _| {
            "the step of a fall earns no reward for being upright in v5, in v4 it does, and \
             Walker2d's feet have equal friction in v5 alone"
                .into()
        },
        idle: |agent, _| {
            (!agent.revisions_differ).then_some("the revisions are the same in this task")
        },
    },
    Setting {
        name: "simulation.max_steps",
        show: |p| p.simulation.max_steps.to_string(),
        take: |p, other| p.simulation.max_steps = other.simulation.max_steps,
        consequence: |trained, played| {
            longer(played.simulation.max_steps > trained.simulation.max_steps)
        },
        idle: matters,
    },
    Setting {
        name: "action_choice",
        show: |p| {
            match p.action_choice {
                ActionChoice::Mode => "mode",
                ActionChoice::Sample => "sample",
            }
            .into()
        },
        take: |p, other| p.action_choice = other.action_choice,
        consequence: |_, played| {
            match played.action_choice {
                ActionChoice::Sample => "actions scatter around the most probable one",
                ActionChoice::Mode => "the most probable action is played every time",
            }
            .into()
        },
        idle: |agent, _| {
            (!agent.has_density).then_some("the head gives one action and no distribution")
        },
    },
    Setting {
        name: "return_scale",
        show: |p| p.return_scale.to_string(),
        take: |p, other| p.return_scale = other.return_scale,
        consequence: |trained, played| {
            let times = trained.return_scale / played.return_scale;
            format!("the model reads {times} times the return-to-go it was trained to read")
        },
        idle: read_returns,
    },
    Setting {
        name: "delayed_reward",
        show: |p| p.delayed_reward.to_string(),
        take: |p, other| p.delayed_reward = other.delayed_reward,
        consequence: |_, played| {
            match played.delayed_reward {
                true => "the return-to-go stays what was asked for, and fell in training",
                false => "the return-to-go falls with each reward, and stayed in training",
            }
            .into()
        },
        idle: read_returns,
    },
];

fn longer(longer: bool) -> String {
    match longer {
        true => "an episode may last longer than any of the data, and collect more",
        false => "an episode is cut sooner than in the data, and collects less",
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::super::{Emulation, Revision, Simulation};
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
    fn complete<P: Clone + PartialEq + fmt::Debug>(
        settings: &[Setting<P>],
        trained: &P,
        other: &P,
        named: impl Fn(P) -> P,
    ) {
        let mut taken = trained.clone();
        for setting in settings {
            assert_ne!((setting.show)(trained), (setting.show)(other), "{}", setting.name);
            (setting.take)(&mut taken, other);
            assert_eq!((setting.show)(&taken), (setting.show)(other), "{}", setting.name);
            let clause = (setting.consequence)(trained, other);
            assert!(clause.len() > 20 && !clause.ends_with('.'), "{clause}");
        }
        assert_eq!(named(taken), *other, "a setting is not compared");
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
        complete(ATARI, &matched(), &other, |p| Protocol { name: "other".into(), ..p });
        let Play::Continuous(trained) = robot().play else { unreachable!() };
        let other = ContinuousProtocol {
            name: "other".into(),
            simulation: Simulation { revision: Revision::V5, max_steps: 10 },
            action_choice: ActionChoice::Sample,
            return_scale: 1.0,
            delayed_reward: true,
        };
        let named = |p| ContinuousProtocol { name: "other".into(), ..p };
        complete(CONTINUOUS, &trained, &other, named);
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
        let unknown = Trained { returns: None, ..atari() };
        assert_eq!(unknown.differences(&atari().play, &[1e9]), []);
    }
}
