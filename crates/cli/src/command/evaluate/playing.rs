//! The environments and policies of an evaluation, put together.

use std::{ops::ControlFlow, time::Instant};

use anyhow::{Context, Result, bail};
use overtone_agents::policy;
use overtone_core::{Play, Task};
use overtone_env::{Simulator, VectorEnv};
use overtone_eval::{Evaluation, Plan, Player, Rollout, rollout_together};
use overtone_model::device::Chosen;

use super::entry::Entry;
use crate::{progress, suites};

/// Actions after which an episode is taken for one that never ends, where no limit cuts it:
/// several times the longest of known tasks, a game's 27,000.
const ENDLESS: u64 = 100_000;

/// How a task's name says a limit.
const LIMITED: &str = "task=gymnasium/my_module:MyEnv-v0,max_episode_steps=1000";

/// Plays all entries together, at most `parallel` episodes at once (0: by the task), until
/// `is_over`. An entry of which every episode failed has no evaluation.
///
/// # Errors
/// When an environment or the device is not there, or playing fails or is stopped.
pub(super) fn play(
    entries: &[&Entry],
    chosen: &Chosen,
    parallel: usize,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Result<Evaluation>>> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let plans: Vec<Plan> = entries.iter().map(|entry| entry.plan.clone()).collect();
    let played = rollouts(entries, &plans, chosen, parallel, is_over)?;
    let simulator = simulator(entries.iter().copied())?;
    let evaluation = |(entry, played): (&&Entry, Rollout)| {
        let setting = entry.setting(simulator.clone())?;
        Ok(Evaluation::new(setting, &entry.plan, played)?)
    };
    Ok(entries.iter().zip(played).map(evaluation).collect())
}

/// What runs the environments of entries, which are alike in that.
///
/// # Errors
/// When it is not there.
pub(super) fn simulator<'a>(mut entries: impl Iterator<Item = &'a Entry>) -> Result<Simulator> {
    let first = entries.next().context("there is nothing to play")?;
    let task = first.task();
    Ok(suites::of(task)?.simulator(task, &first.ask.protocol.simulation)?)
}

/// Episodes at once: as many as `parallel` says, or as the task's suite likes, and no more than
/// there are.
///
/// # Errors
/// When no suite has the task.
pub(super) fn slots<'a>(
    entries: &[&Entry],
    plans: impl Iterator<Item = &'a Plan>,
    parallel: usize,
) -> Result<usize> {
    let n_episodes = plans.map(Plan::n_episodes).sum();
    let first = entries.first().context("there is nothing to play")?;
    Ok(match parallel {
        0 => suites::of(first.task())?.episodes_at_once().min(n_episodes),
        parallel => parallel.min(n_episodes),
    })
}

/// Plays of each entry what its plan says, all together, at most `parallel` episodes at once.
///
/// # Errors
/// As [`play`].
pub(super) fn rollouts(
    entries: &[&Entry],
    plans: &[Plan],
    chosen: &Chosen,
    parallel: usize,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Rollout>> {
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let task = first.task();
    let n_episodes: usize = plans.iter().map(Plan::n_episodes).sum();
    let slots = slots(entries, plans.iter(), parallel)?;
    let policies =
        entries.iter().map(|entry| policy(&entry.checkpoint, &entry.ask.protocol, &chosen.device));
    let mut policies = policies.collect::<Result<Vec<_>, _>>()?;
    // Two halves where a GPU acts: the environments of one step meanwhile. On a CPU both want
    // the same cores, and one whole batch is quicker (docs/results/speed.md).
    let sizes = if chosen.is_gpu { [slots.div_ceil(2), slots / 2] } else { [slots, 0] };
    let mut envs = Vec::new();
    for size in sizes.into_iter().filter(|&size| size > 0) {
        envs.push(open(task, &first.ask.protocol, size)?);
    }
    let mut groups: Vec<_> = envs.iter_mut().map(|env| &mut **env).collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(plans)
        .map(|(policy, plan)| Player { policy: &mut **policy, plan })
        .collect();
    let suite = suites::of(task)?;
    let is_limited = suite.horizon(task, &first.ask.protocol.simulation).is_some();
    if !is_limited {
        say!(
            "{} has no step limit: an episode of {ENDLESS} steps is an error. To cut episodes, \
             record with episode_steps=, or name a limit in the task ({LIMITED})",
            task.id()
        );
    }
    let mut is_endless = false;
    let bar = progress::episodes(n_episodes);
    let started = Instant::now();
    let played = rollout_together(&mut groups, &mut players, &mut |progress| {
        bar.set_position(progress.episodes_done as u64);
        let rate = progress.steps as f64 / started.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(format!("{} live, {rate:.0} steps/s", progress.live));
        is_endless = !is_limited && progress.longest >= ENDLESS;
        match is_endless || is_over() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    if is_endless {
        bail!(
            "{}: an episode has not ended after {ENDLESS} steps, and no step limit cuts it: record \
             with episode_steps=, or name a limit in the task ({LIMITED})",
            task.id()
        );
    }
    Ok(played?)
}

/// So many environments of a task, played so.
///
/// # Errors
/// When what runs them is not there.
pub fn open(task: &Task, protocol: &Play, size: usize) -> Result<Box<dyn VectorEnv>> {
    let suite = suites::of(task)?;
    // One after the other.
    if suite.seconds_to_start() * size as f64 >= 2.0 {
        say!("starting {size} environments");
    }
    Ok(suite.open(task, &protocol.simulation, size)?)
}
