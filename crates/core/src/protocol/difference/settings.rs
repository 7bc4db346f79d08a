//! Every setting of a protocol: its name, where it is, and what follows from another value.

use std::fmt;

use serde::Serialize;

use super::super::{ActionChoice, ContinuousProtocol, Play, Protocol, ReturnUnits};
use super::{Deviation, Difference, Trained};

/// Every setting but the name that an agent is trained and played with differently.
pub(super) fn games(
    trained: &Protocol,
    played: &Protocol,
    agent: &Trained,
    targets: &[f32],
) -> Vec<Deviation> {
    let mut compare = Comparison::new(trained, played, targets, Play::Atari);
    compare.setting(
        "emulation.sticky_probability",
        |p| &mut p.emulation.sticky_probability,
        |before, now| {
            let delay = if now < before { "less" } else { "more" };
            format!(
                "the emulator repeats the action before {delay} often than in the data; scores \
                 with other sticky actions are not comparable (Machado et al. 2018)"
            )
        },
    );
    compare.setting(
        "emulation.frame_skip",
        |p| &mut p.emulation.frame_skip,
        |_, _| {
            "each action lasts another time than in the data: the model sees everything move at \
             another speed"
        },
    );
    compare.setting(
        "emulation.resize",
        |p| &mut p.emulation.resize,
        |_, _| {
            "the encoder sees screens filtered otherwise than in training: bilinear resizing \
             skips pixels that area resizing averages"
        },
    );
    compare.setting(
        "emulation.max_noops",
        |p| &mut p.emulation.max_noops,
        |before, now| {
            format!(
                "play begins up to {now} raw frames into the game, in the data up to {before}: \
                 other first situations"
            )
        },
    );
    compare.setting("emulation.max_frames", |p| &mut p.emulation.max_frames, length);
    compare.setting(
        "emulation.terminal_on_life_loss",
        |p| &mut p.emulation.terminal_on_life_loss,
        |_, now| match now {
            true => "a score is that of one life, and in the data that of a whole game",
            false => "a score is that of a whole game, and in the data that of one life",
        },
    );
    compare.setting(
        "emulation.double_reset",
        |p| &mut p.emulation.double_reset,
        |_, now| match now {
            true => "the first observation is of a game that is then thrown away",
            false => "the first observation is of the game that is played, unlike in the data",
        },
    );
    compare.setting_unless(
        reads_no_returns(agent),
        "return_units",
        |p| &mut p.return_units,
        |_, now| {
            let falls = match now {
                ReturnUnits::Raw => "the game's points",
                ReturnUnits::Clipped => "at most 1 for each reward",
            };
            format!(
                "the return-to-go falls by {falls}, otherwise than in training: a target means \
                 something else, and the model soon reads numbers it was not trained on"
            )
        },
    );
    let whole = targets.iter().all(|target| target.fract() == 0.0);
    let whole = whole.then_some("target and rewards are whole numbers");
    compare.setting_unless(
        reads_no_returns(agent).or(whole),
        "integer_returns",
        |p| &mut p.integer_returns,
        |_, _| "a target's fraction is lost with the first step, or kept where training lost it",
    );
    compare.setting_unless(
        (!agent.own_action_order).then_some("the head's bins are the environment's ids"),
        "fed_back_actions",
        |p| &mut p.fed_back_actions,
        |_, _| {
            "the model reads in its history other actions than those it played: training named \
             them otherwise"
        },
    );
    compare.setting(
        "global_timestep",
        |p| &mut p.global_timestep,
        |_, _| "from an episode's second step on, the model is told another time than in training",
    );
    compare.setting(
        "temperature",
        |p| &mut p.temperature,
        |before, now| {
            let kind = if now < before { "likely" } else { "unlikely" };
            format!("{kind} actions are chosen more often than the model says")
        },
    );
    compare.found
}

/// As [`games`].
pub(super) fn robots(
    trained: &ContinuousProtocol,
    played: &ContinuousProtocol,
    agent: &Trained,
    targets: &[f32],
) -> Vec<Deviation> {
    let mut compare = Comparison::new(trained, played, targets, Play::Continuous);
    compare.setting_unless(
        (!agent.revisions_differ).then_some("the revisions are the same in this task"),
        "simulation.revision",
        |p| &mut p.simulation.revision,
        |_, _| {
            "the step of a fall earns no reward for being upright in v5, in v4 it does, and \
             Walker2d's feet have equal friction in v5 alone"
        },
    );
    compare.setting("simulation.max_steps", |p| &mut p.simulation.max_steps, length);
    compare.setting_unless(
        (!agent.has_density).then_some("the head gives one action and no distribution"),
        "action_choice",
        |p| &mut p.action_choice,
        |_, now| match now {
            ActionChoice::Sample => "actions scatter around the most probable one",
            ActionChoice::Mode => "the most probable action is played every time",
        },
    );
    compare.setting_unless(
        reads_no_returns(agent),
        "return_scale",
        |p| &mut p.return_scale,
        |before, now| {
            let times = before / now;
            format!("the model reads {times} times the return-to-go it was trained to read")
        },
    );
    compare.setting_unless(
        reads_no_returns(agent),
        "delayed_reward",
        |p| &mut p.delayed_reward,
        |_, now| match now {
            true => "the return-to-go stays what was asked for, and fell in training",
            false => "the return-to-go falls with each reward, and stayed in training",
        },
    );
    compare.found
}

/// Why settings of the return-to-go change nothing, where they do not.
fn reads_no_returns(agent: &Trained) -> Option<&'static str> {
    (!agent.reads_returns).then_some("the agent reads no return-to-go")
}

/// What follows from another length at which episodes are cut.
fn length(before: u32, now: u32) -> &'static str {
    match now > before {
        true => "an episode may last longer than any of the data, and collect more",
        false => "an episode is cut sooner than in the data, and collects less",
    }
}

/// Two protocols, compared setting by setting.
struct Comparison<'a, P> {
    trained: &'a P,
    played: &'a P,
    /// The return that deviations ask for.
    target_return: f32,
    play: fn(P) -> Play,
    found: Vec<Deviation>,
}

impl<'a, P: Clone> Comparison<'a, P> {
    fn new(trained: &'a P, played: &'a P, targets: &[f32], play: fn(P) -> Play) -> Self {
        let target_return = targets.first().copied().unwrap_or_default();
        Self { trained, played, target_return, play, found: Vec::new() }
    }

    /// Compares the setting that `field` finds. `consequence` says what follows from training
    /// with the first value and playing with the second.
    fn setting<T: Copy + Serialize, S: Into<String>>(
        &mut self,
        name: &str,
        field: fn(&mut P) -> &mut T,
        consequence: impl FnOnce(T, T) -> S,
    ) {
        self.setting_unless(None, name, field, consequence);
    }

    /// The same of a setting that changes no episode of this agent where `idle` says why.
    fn setting_unless<T: Copy + Serialize, S: Into<String>>(
        &mut self,
        idle: Option<&str>,
        name: &str,
        field: fn(&mut P) -> &mut T,
        consequence: impl FnOnce(T, T) -> S,
    ) {
        let mut deviating = self.trained.clone();
        let (before, now) = (*field(&mut deviating), *field(&mut self.played.clone()));
        let (trained, played) = (Spelled(before).to_string(), Spelled(now).to_string());
        if trained == played {
            return;
        }
        *field(&mut deviating) = now;
        self.found.push(Deviation {
            difference: Difference {
                setting: name.to_owned(),
                trained,
                played,
                consequence: consequence(before, now).into(),
            },
            play: (self.play)(deviating),
            target_return: self.target_return,
            idle: idle.map(str::to_owned),
        });
    }
}

/// A setting's value, displayed as files spell it: serde can write to a formatter.
struct Spelled<T>(T);

impl<T: Serialize> fmt::Display for Spelled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}
