//! `overtone record`: rollouts as a dataset. `overtone data convert`: any recording as such a file.

mod cast;
mod rollouts;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use overtone_core::Task;
use overtone_data::read::{open_as, reader_of};
use overtone_data::write::{place_of, write_columns};
use overtone_data::{About, MinariWriter, RecordedTask, Recording, Written};

use crate::command::evaluate::playing;
use crate::{interrupt, keys, progress, settings, suites};
use cast::Cast;
use rollouts::{Rollouts, Rules};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# What is played: task=SUITE/NAME, or game=…, env=…, gymnasium=…; empty: the task of the first run in policy=.
task = ""
# Where to write: a folder as Minari keeps them, a file (NAME.hdf5), or minari:NAME/DATASET-v0, which goes to Minari's folder. Must be given.
to = ""
# Who acts: random, a run's folder or name, or several (random,RUN,RUN).
policy = "random"
# Share of the episodes of each policy, in the order of policy=, as 1,2,1; empty: equal.
share = ""
# Policies take turns inside an episode, each for so many steps, drawn between two numbers (50..200); share= says how often each is drawn. Empty: one policy an episode.
switch = ""
# Probability of a random action in place of the policy's.
epsilon = 0.0
# A list of actions: softmax temperature of the runs' actions.
temperature = 1.0
# Real-valued actions: of a head with a density, mode, its most probable action, or sample, a draw.
actions = "mode"
# The return that runs are asked for, as in evaluate rollouts (one number or percentile); empty: the first of the task's usual ones, or p95 of the run's data.
target = ""
# Steps at least: whole episodes are recorded until there are so many.
transitions = 10000
# Steps after which an episode is cut, as by a step limit; 0: the task's own limit.
episode_steps = 0
# Seed of the environments and of every draw; the same seed and policies record the same (on a CPU).
seed = 1
# Episodes played at once; 0: by the task.
parallel = 0
# Folder of the runs.
runs = "runs"
# Where the runs compute: auto, cpu, cuda or cuda:N.
device = "auto"
"#;

/// `overtone record key=value…`.
pub fn run(options: &[String]) -> Result<()> {
    let (words, task) = settings::named_task(options)?;
    let mut keys = keys::flatten(&OPTIONS.parse()?);
    keys::apply(&mut keys, &words)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let count = |key: &str| {
        let number = keys.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
        usize::try_from(number).ok().with_context(|| format!("{key}={number}: must be 0 or more"))
    };
    if text("to").is_empty() {
        bail!("to=: say where to write (to=records/first, or to=first.hdf5)");
    }
    let epsilon = keys.get("epsilon").and_then(toml::Value::as_float).unwrap_or(0.0);
    if !(0.0..=1.0).contains(&epsilon) {
        bail!("epsilon={epsilon}: must be a probability, from 0 to 1");
    }
    let (transitions, limit) = (count("transitions")?, count("episode_steps")?);
    if transitions == 0 {
        bail!("transitions=0: there is nothing to record");
    }
    let seed = count("seed")? as u64;
    let mut cast = Cast::of(&text, task)?;
    let task = cast.task;
    let suite = suites::of(task)?;
    suite.check(task)?;
    let slots = match count("parallel")? {
        0 => suite.episodes_at_once().min(transitions.div_ceil(1000).max(16)),
        parallel => parallel,
    };
    let mut env = playing::open(task, &cast.protocol, slots)?;
    let (simulation, told) = (cast.protocol.simulation.clone(), cast.told.clone());
    let about = About {
        task,
        simulation: Some(&simulation),
        env_spec: suite.env_spec(task),
        algorithm: told.clone(),
        description: format!(
            "Recorded by Overtone in {}: {told}, epsilon {epsilon}, seed {seed}.",
            task.title
        ),
    };
    let mut writer = MinariWriter::create(&place_of(&text("to"))?, about)?;
    say!("recording {} by {}, {slots} episodes at once", task.id(), told);
    let rules = Rules { transitions, limit, epsilon, seed, switch: cast.switch };
    let stop = interrupt::listen()?;
    let bar = progress::recording(transitions);
    let started = Instant::now();
    let mut rollouts = Rollouts::new(&mut *env, &mut cast, rules);
    while let Some(episodes) = rollouts.step()? {
        for episode in episodes {
            writer.episode(&episode)?;
        }
        bar.set_position((writer.transitions()).min(transitions as u64));
        if stop.load(Ordering::Relaxed) {
            bail!("stopped; nothing was kept");
        }
    }
    bar.finish_and_clear();
    let (returns, failed) = (rollouts.returns(), rollouts.failed());
    let seconds = started.elapsed().as_secs_f64();
    let written = writer.finish()?;
    if let Some((n, reason)) = failed {
        eprintln!("warning: {n} episodes failed and are left out, the first because: {reason}");
    }
    let n = returns.len().max(1) as f64;
    say!(
        "recorded {} transitions in {} episodes, mean return {:.1}, in {seconds:.1} s ({:.0} \
         transitions/s)",
        written.transitions,
        written.episodes,
        returns.iter().sum::<f64>() / n,
        written.transitions as f64 / seconds.max(1e-9)
    );
    say_written(&written);
    Ok(())
}

/// `overtone data convert IN OUT`.
pub fn convert(from: &Path, to: &str, layout: &str, task: Option<&str>) -> Result<()> {
    let recorded = RecordedTask::of(from)?;
    let named = || reader_of(from).ok().and_then(|reader| reader.task(from));
    let task: &'static Task = match task {
        Some(name) => suites::by_id(name)?,
        None => match suites::of_recording(&recorded)? {
            Some(task) => task,
            None => {
                let known = super::data::task_of(from);
                let named = named().and_then(|name| suites::named(&name).ok());
                known.or(named).with_context(|| {
                    format!("{}: which task is it of? Say --task SUITE/NAME", from.display())
                })?
            }
        },
    };
    let columns = match open_as(from, layout)? {
        Recording::Columns(columns) => columns,
        Recording::ReplayLog(_) => bail!(
            "{}: a log of frames is not made into one file; training converts it by itself",
            from.display()
        ),
    };
    let simulation = recorded.simulation.clone();
    let about = About {
        task,
        simulation: simulation.as_ref(),
        env_spec: recorded.env_spec.clone(),
        algorithm: "unknown".into(),
        description: format!(
            "Converted by Overtone from {} ({}). Where the last action of an episode led is not \
             known: its last observation stands there again.",
            from.file_name().unwrap_or_default().to_string_lossy(),
            columns.format
        ),
    };
    check_fits(&columns, task, from)?;
    let bar = progress::parts("converting", columns.n_transitions());
    let place = place_of(to)?;
    let written = write_columns(&columns, &place, about, &mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    say!("converted {} transitions in {} episodes", written.transitions, written.episodes);
    say_written(&written);
    Ok(())
}

/// Refuses a recording of other spaces than the task's.
fn check_fits(columns: &overtone_data::Columns, task: &Task, from: &Path) -> Result<()> {
    use overtone_core::{ActionSpace, ObservationSpace};
    use overtone_data::{Acted, Seen};
    let seen = match (&columns.observations, &task.observations) {
        (Seen::Vectors { width, .. }, ObservationSpace::Vectors { width: wanted }) => {
            width == wanted
        }
        (Seen::Frames { .. }, ObservationSpace::Pixels { .. }) => true,
        _ => false,
    };
    let acted = match (&columns.actions, &task.actions) {
        (Acted::Discrete { n_actions, .. }, ActionSpace::Discrete { names }) => {
            *n_actions <= names.len()
        }
        (Acted::Continuous { width, .. }, ActionSpace::Continuous { low, .. }) => {
            *width == low.len()
        }
        _ => false,
    };
    if !(seen && acted) {
        bail!(
            "{}: its observations or actions are not those of {} ({} numbers observed, {})",
            from.display(),
            task.id(),
            task.observations.size(),
            task.actions.describe()
        );
    }
    Ok(())
}

fn say_written(written: &Written) {
    let path = written.path.display();
    say!("content {}", &written.content_hash[..16]);
    say!("dataset: {path} (overtone train dataset={path})");
}
