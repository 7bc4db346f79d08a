//! Comparison of the settings that every suite has: conditioning and action selection, and the
//! effect of another value of each.

use std::fmt;

use serde::Serialize;

use super::super::{ActionChoice, Play, ReturnUnits};
use super::{Comparison, Trained};

/// Compares all settings of this file.
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
                "the return-to-go falls by {falls}, unlike in training: a target means \
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
            "the model reads other action ids in its history than those of the actions it \
             chose: training used the environment's ids"
        },
    );
    comparison.field(
        (!agent.reads_global_timestep).then_some("the agent does not read the timestep"),
        "global_timestep",
        |play| &mut play.global_timestep,
        |_, _| "from the second step on, the model reads another timestep than in training",
    );
    let draws_nothing =
        (!agent.has_density).then_some("the head gives one action and no distribution");
    comparison.field(
        draws_nothing,
        "action_choice",
        |play| &mut play.action_choice,
        |_, now| match now {
            ActionChoice::Sample => "actions scatter around the most probable one",
            ActionChoice::Mode => "the most probable action is always taken",
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
            1.0 => "the agent is conditioned on the rest of the target, whatever its state allows"
                .into(),
            q => format!(
                "the agent is conditioned on at most the {q}-quantile of the return predicted \
                 from its state"
            ),
        },
    );
    comparison.field(
        reads_no_returns,
        "top_percent",
        |play| &mut play.acting.top_percent,
        |_, now| match now {
            0.0 => "the agent is conditioned on a return".into(),
            best => format!(
                "the agent is conditioned on the top {best} % of the dataset by return, \
                 whatever the target is"
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
        |_, now| {
            if now {
                "the return-to-go stays at the target, and fell in training"
            } else {
                "the return-to-go falls with each reward, and stayed in training"
            }
        },
    );
}

impl Comparison<'_> {
    /// Compares one setting, which `field` selects. `consequence` describes the effect of training
    /// with the first value and acting with the second. `idle`: the reason why the setting has no
    /// effect on this agent, if there is one.
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

/// A value that displays as in files: serde can write to a formatter.
struct Spelled<T>(T);

impl<T: Serialize> fmt::Display for Spelled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}
