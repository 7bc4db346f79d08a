//! The settings of a protocol that every suite has: how the agent is conditioned and how its
//! actions are chosen. What follows from another value of each.

use std::fmt;

use serde::Serialize;

use super::super::{ActionChoice, Play, ReturnUnits};
use super::{Comparison, Trained};

/// Compares all of them.
pub(super) fn compare(comparison: &mut Comparison<'_>, agent: &Trained, targets: &[f32]) {
    let reads_no_returns = (!agent.reads_returns).then_some("the agent reads no return-to-go");
    comparison.field(
        reads_no_returns,
        "return_units",
        |play| &mut play.return_units,
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
    comparison.field(
        reads_no_returns.or(whole),
        "integer_returns",
        |play| &mut play.integer_returns,
        |_, _| "a target's fraction is lost with the first step, or kept where training lost it",
    );
    comparison.field(
        (!agent.own_action_order).then_some("the head's bins are the environment's ids"),
        "fed_back_actions",
        |play| &mut play.fed_back_actions,
        |_, _| {
            "the model reads in its history other actions than those it played: training named \
             them otherwise"
        },
    );
    comparison.field(
        (!agent.reads_global_timestep).then_some("the agent is told no time of the episode"),
        "global_timestep",
        |play| &mut play.global_timestep,
        |_, _| "from an episode's second step on, the model is told another time than in training",
    );
    let draws_nothing =
        (!agent.has_density).then_some("the head gives one action and no distribution");
    comparison.field(
        draws_nothing,
        "action_choice",
        |play| &mut play.action_choice,
        |_, now| match now {
            ActionChoice::Sample => "actions scatter around the most probable one",
            ActionChoice::Mode => "the most probable action is played every time",
        },
    );
    comparison.field(
        draws_nothing,
        "temperature",
        |play| &mut play.acting.temperature,
        |before, now| {
            let kind = if now < before { "likely" } else { "unlikely" };
            format!("{kind} actions are chosen more often than the model says")
        },
    );
    comparison.field(
        reads_no_returns,
        "return_quantile",
        |play| &mut play.acting.return_quantile,
        |_, now| match now {
            1.0 => "the agent is told what is left of the target, whatever its state allows".into(),
            q => format!(
                "the agent is told no more than the {q}-quantile of what was earned from states \
                 like its own"
            ),
        },
    );
    comparison.field(
        reads_no_returns,
        "top_percent",
        |play| &mut play.acting.top_percent,
        |_, now| match now {
            0.0 => "the agent is told a return".into(),
            best => format!(
                "the agent is told to act as in the best {best} % of the recording, whatever the \
                 target is"
            ),
        },
    );
    comparison.field(
        reads_no_returns,
        "return_scale",
        |play| &mut play.return_scale,
        |before, now| {
            let times = before / now;
            format!("the model reads {times} times the return-to-go it was trained to read")
        },
    );
    comparison.field(
        reads_no_returns,
        "delayed_reward",
        |play| &mut play.delayed_reward,
        |_, now| match now {
            true => "the return-to-go stays what was asked for, and fell in training",
            false => "the return-to-go falls with each reward, and stayed in training",
        },
    );
}

impl Comparison<'_> {
    /// Compares the setting that `field` finds. `consequence` says what follows from training
    /// with the first value and playing with the second; where `idle` says why, the setting
    /// changes no episode of this agent.
    fn field<T: Copy + Serialize, S: Into<String>>(
        &mut self,
        idle: Option<&str>,
        name: &str,
        field: fn(&mut Play) -> &mut T,
        consequence: impl FnOnce(T, T) -> S,
    ) {
        let mut play = self.trained.clone();
        let (before, now) = (*field(&mut play), *field(&mut self.played.clone()));
        let (trained, played) = (Spelled(before).to_string(), Spelled(now).to_string());
        if trained != played {
            *field(&mut play) = now;
            self.differs(idle, name, [trained, played], consequence(before, now).into(), play);
        }
    }
}

/// A setting's value, displayed as files spell it: serde can write to a formatter.
struct Spelled<T>(T);

impl<T: Serialize> fmt::Display for Spelled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}
