//! The environments and policies of an evaluation, put together.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use anyhow::{Result, bail};
use overtone_core::{Play, Policy};
use overtone_env::VectorEnv;
use overtone_eval::{Evaluation, Player, Rollout, rollout_together};
use overtone_model::{ContinuousPolicy, TransformerPolicy, burn::tensor::Device};
use overtone_mujoco::Task;
use overtone_train::{Agent, Checkpoint};

use super::entry::Entry;
use crate::progress;

/// Episodes played at once unless options say otherwise: more make a step no cheaper. An
/// emulator takes a tenth of a second to start, a robot next to nothing.
fn at_once(protocol: &Play) -> usize {
    match protocol {
        Play::Atari(_) => 100,
        Play::Continuous(_) => 200,
    }
}

/// Plays all entries together, at most `parallel` episodes at once (0: by the task). An entry
/// of which every episode failed has no evaluation.
///
/// # Errors
/// When an environment or the device is not there, or playing fails or is stopped.
pub(super) fn play(
    entries: &[&Entry],
    device: &Device,
    is_gpu: bool,
    parallel: usize,
    stop: &AtomicBool,
) -> Result<Vec<Result<Evaluation>>> {
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let n_episodes: usize = entries.iter().map(|entry| entry.plan.n_episodes()).sum();
    let slots = match parallel {
        0 => n_episodes.min(at_once(&first.ask.protocol)),
        parallel => parallel.min(n_episodes),
    };
    let policies =
        entries.iter().map(|entry| policy(&entry.checkpoint, &entry.ask.protocol, device));
    let mut policies = policies.collect::<Result<Vec<_>>>()?;
    // Two halves where a GPU acts: the environments of one step meanwhile. On a CPU both want
    // the same cores, and one whole batch is quicker (docs/results/speed.md).
    let sizes = if is_gpu { [slots.div_ceil(2), slots / 2] } else { [slots, 0] };
    let task = first.checkpoint.state.agent.task();
    let mut envs = Vec::new();
    for size in sizes.into_iter().filter(|&size| size > 0) {
        envs.push(open(task, &first.ask.protocol, size)?);
    }
    let simulator = simulator(first)?;
    let mut groups: Vec<_> = envs.iter_mut().map(|env| &mut **env).collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(entries)
        .map(|(policy, entry)| Player { policy: &mut **policy, plan: &entry.plan })
        .collect();
    let bar = progress::episodes(n_episodes);
    let started = Instant::now();
    let played = rollout_together(&mut groups, &mut players, &mut |progress| {
        bar.set_position(progress.episodes_done as u64);
        let rate = progress.steps as f64 / started.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(format!("{} live, {rate:.0} steps/s", progress.live));
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    bar.finish_and_clear();
    let (name, rom_md5) = simulator;
    let evaluation = |(entry, played): (&&Entry, Rollout)| {
        let setting = entry.setting(name.clone(), rom_md5);
        Ok(Evaluation::new(setting, &entry.plan, played)?)
    };
    Ok(entries.iter().zip(played).map(evaluation).collect())
}

/// The policy of a checkpoint's weights, played so.
///
/// # Errors
/// When the weights cannot be read, or the protocol is another family's.
pub fn policy(
    checkpoint: &Checkpoint,
    protocol: &Play,
    device: &Device,
) -> Result<Box<dyn Policy>> {
    Ok(match (&checkpoint.state.agent, protocol) {
        (Agent::Atari(agent), Play::Atari(protocol)) => {
            let model = checkpoint.atari_model(agent, device)?;
            Box::new(TransformerPolicy::new(&model, protocol))
        }
        (Agent::Continuous(agent), Play::Continuous(protocol)) => {
            let model = checkpoint.continuous_model(agent, device)?;
            Box::new(ContinuousPolicy::new(&model, &agent.normalization, protocol)?)
        }
        _ => bail!("{} is played by another protocol", checkpoint.path.display()),
    })
}

/// So many environments of a task, played so.
///
/// # Errors
/// When what runs them is not there.
pub fn open(task: &str, protocol: &Play, size: usize) -> Result<Box<dyn VectorEnv>> {
    match protocol {
        #[cfg(feature = "python")]
        Play::Atari(protocol) => {
            if size >= 20 {
                // About a tenth of a second each, one after the other.
                say!("starting {size} emulators");
            }
            Ok(overtone_ale::open(task.parse()?, &protocol.emulation, size)?)
        }
        #[cfg(not(feature = "python"))]
        Play::Atari(_) => {
            bail!("this program was built without the feature `python`: it cannot play {task}")
        }
        Play::Continuous(protocol) => {
            let task: Task = task.parse()?;
            Ok(Box::new(overtone_mujoco::open(task, &protocol.simulation, size)?))
        }
    }
}

/// What runs the environments of an entry, and the MD5 of a game's ROM.
fn simulator(entry: &Entry) -> Result<(String, Option<&'static str>)> {
    let task = entry.checkpoint.state.agent.task();
    match &entry.ask.protocol {
        #[cfg(feature = "python")]
        Play::Atari(_) => {
            let game: overtone_ale::Game = task.parse()?;
            let version = overtone_ale::ALE_PY_VERSION;
            Ok((format!("Arcade Learning Environment {version}"), Some(game.rom_md5())))
        }
        #[cfg(not(feature = "python"))]
        Play::Atari(_) => Ok(("Arcade Learning Environment".into(), None)),
        Play::Continuous(protocol) => {
            let task: Task = task.parse()?;
            let id = task.gymnasium_id(protocol.simulation.revision);
            Ok((format!("MuJoCo {}, {id}", overtone_mujoco::MUJOCO_VERSION), None))
        }
    }
}
