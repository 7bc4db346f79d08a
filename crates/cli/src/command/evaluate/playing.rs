//! Rollouts of an evaluation: its environments and policies.

use std::{ops::ControlFlow, time::Instant};

use anyhow::{Result, bail};
use overtone_agents::policy;
use overtone_console::progress;
use overtone_core::{Play, Task};
use overtone_env::VectorEnv;
use overtone_eval::{Evaluation, Player, Rollout, rollout_together};
use overtone_model::device::Chosen;
use overtone_settings::suites;

use super::entry::Entry;

/// Steps after which an episode without a step limit counts as endless: several times the longest
/// limit of known tasks, 27,000 in games.
const ENDLESS: u64 = 100_000;

/// An example of a task's name with a step limit.
const LIMITED: &str = "task=gymnasium/my_module:MyEnv-v0,max_episode_steps=1000";

/// Evaluates all entries together until `is_over`, with at most `parallel` episodes in parallel (0:
/// by the task). An entry has an error if every episode failed.
///
/// # Errors
/// When an environment or the device is missing, or the rollouts fail or are stopped.
pub(super) fn play(
    entries: &[&Entry],
    chosen: &Chosen,
    parallel: usize,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Result<Evaluation>>> {
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let (task, protocol) = (first.task(), &first.request.protocol);
    let suite = suites::of(task)?;
    let n_episodes: usize = entries.iter().map(|entry| entry.plan.n_episodes()).sum();
    let parallel = if parallel == 0 { suite.episodes_at_once() } else { parallel };
    let slots = parallel.min(n_episodes);
    let policies = entries
        .iter()
        .map(|entry| policy(&entry.checkpoint, &entry.request.protocol, &chosen.device));
    let mut policies = policies.collect::<Result<Vec<_>, _>>()?;
    // Two halves on a GPU: the environments of one half step while the GPU computes for the other.
    // On a CPU both use the same cores, and one batch is faster (docs/results/speed.md).
    let sizes = if chosen.is_gpu { [slots.div_ceil(2), slots / 2] } else { [slots, 0] };
    let mut envs = Vec::new();
    for size in sizes.into_iter().filter(|&size| size > 0) {
        envs.push(open(task, protocol, size)?);
    }
    let mut groups: Vec<_> = envs.iter_mut().map(|env| &mut **env).collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(entries)
        .map(|(policy, entry)| Player { policy: &mut **policy, plan: &entry.plan })
        .collect();
    let is_limited = suite.horizon(task, &protocol.simulation).is_some();
    if !is_limited {
        say!(
            "{} does not have a step limit: an episode of {ENDLESS} steps is an error. To cut \
             episodes, record with episode_steps=, or set a limit in the task ({LIMITED})",
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
            "{}: an episode has not ended after {ENDLESS} steps, and there is no step limit. \
             Record with episode_steps=, or set a limit in the task ({LIMITED})",
            task.id()
        );
    }
    let played = played?;
    let simulator = suite.simulator(task, &protocol.simulation)?;
    let evaluation = |(entry, played): (&&Entry, Rollout)| {
        Ok(Evaluation::new(entry.setting(simulator.clone())?, &entry.plan, played)?)
    };
    Ok(entries.iter().zip(played).map(evaluation).collect())
}

/// Opens `size` environments.
///
/// # Errors
/// When their simulator is missing.
pub fn open(task: &Task, protocol: &Play, size: usize) -> Result<Box<dyn VectorEnv>> {
    let suite = suites::of(task)?;
    // Environments start one after the other.
    if suite.seconds_to_start() * size as f64 >= 2.0 {
        say!("starting {size} environments");
    }
    Ok(suite.open(task, &protocol.simulation, size)?)
}
