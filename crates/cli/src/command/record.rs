//! `overtone record`: rollouts as a dataset. `overtone data convert`: any dataset as such a file.

mod cast;
mod rollouts;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, process};

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use overtone_console::{progress, quoted};
use overtone_core::{ObservationSpace, Simulation, Task, decimal, protocol::ActionChoice};
use overtone_data::read::{open_with_last, reader_of};
use overtone_data::write::{check_free, place_of, write_columns, write_frames};
use overtone_data::{
    About, DataError, Form, MinariWriter, Origin, Preparation, RecordedTask, Recording, ReplayLog,
    Selection, TableColumns, Written, cache_folder, datasets_folder, description_of,
};
use overtone_env::Suite;
use overtone_settings::{
    Choosable, is_path, options,
    suites::{self, Data},
};

use super::data::{path_of, task_of};
use crate::{command::evaluate::playing, interrupt};
use cast::Cast;
use rollouts::{Rollouts, Rules};

overtone_model::options! {
    /// Options of `record`.
    pub struct RecordOptions {
        /// The task: task=SUITE/NAME, or game=…, env=…, gymnasium=…; empty: the task of the first
        /// run in policy=.
        pub task: String = String::new(),
        /// Output: a directory in Minari's layout, a file (NAME.hdf5), or minari:NAME/DATASET-v0 in
        /// Minari's directory. Required.
        pub to: String = String::new(),
        /// Policies: random, a run's directory or name, or several (random,RUN,RUN).
        pub policy: String = "random".into(),
        /// Relative number of episodes of each policy, in the order of policy=, such as 1,2,1;
        /// empty: equal.
        pub share: String = String::new(),
        /// Switch policies within an episode after a random number of steps in this range
        /// (50..200); share= is the relative frequency of each policy. Empty: one policy for each
        /// episode.
        pub switch: String = String::new(),
        /// Probability of a random action instead of the policy's. It enters the policy's history.
        pub epsilon: f64 = 0.0,
        /// Softmax temperature of the runs' actions (discrete actions only). chosen: each run's
        /// own, as in evaluate rollouts.
        pub temperature: Choosable = Choosable::Chosen,
        /// Action of a head with a density (continuous actions only): mode, the most probable
        /// action, or sample, a random draw.
        pub actions: ActionChoice = ActionChoice::Mode,
        /// Target return of the runs, as in evaluate rollouts (one number or percentile); empty:
        /// the run's chosen mode, or p95 of its data.
        pub target: String = String::new(),
        /// Minimum number of steps; only whole episodes are recorded.
        pub transitions: usize = 10000,
        /// Step limit of an episode; 0: the task's own limit.
        pub episode_steps: usize = 0,
        /// Seed of the environments and of every draw; the same seed and policies record the same
        /// dataset (on a CPU).
        pub seed: u64 = 1,
        /// Episodes in parallel; 0: by the task.
        pub parallel: usize = 0,
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// Compute device of the runs: auto, cpu, cuda or cuda:N.
        pub device: String = "auto".into(),
    }
}

/// `overtone record key=value…`.
pub fn run(words: &[String]) -> Result<()> {
    let (words, task) = overtone_settings::named_tasks(words, None)?;
    let options: RecordOptions = options::read(&words)?;
    let RecordOptions { epsilon, transitions, seed, .. } = options;
    if options.to.is_empty() {
        bail!("to=: no output is set. Set one, such as to=records/first or to=first.hdf5");
    }
    if !(0.0..=1.0).contains(&epsilon) {
        bail!("epsilon={epsilon}: expected a probability in [0, 1]");
    }
    options::at_least_1([("transitions", transitions as u64)])?;
    let mut cast = Cast::of(&options, &words, task)?;
    let task = cast.task;
    let suite = suites::of(task)?;
    suite.check(task)?;
    let slots = match options.parallel {
        0 => suite.episodes_at_once().min(transitions.div_ceil(1000).max(16)),
        parallel => parallel,
    };
    if options.episode_steps > 0 {
        cast.protocol.simulation =
            limited(suite, task, &cast.protocol.simulation, options.episode_steps)?;
    }
    let mut env = playing::open(task, &cast.protocol, slots)?;
    let (simulation, policies) = (cast.protocol.simulation.clone(), cast.description.clone());
    let about = About {
        task,
        simulation: Some(&simulation),
        env_spec: suite.env_spec(task),
        algorithm: policies.clone(),
        description: format!(
            "Recorded by Overtone in {}: {policies}, epsilon {epsilon}, seed {seed}.",
            task.title
        ),
    };
    let mut writer = MinariWriter::create(&place_of(&options.to)?, about)?;
    say!("recording {} by {}, {slots} episodes in parallel", task.id(), policies);
    let endless = match suite.horizon(task, &simulation) {
        Some(_) => None,
        None => {
            // Such an episode has ten times as many steps as the whole recording.
            let most = 10 * transitions.max(1000);
            say!(
                "{} does not have a step limit: an episode of {most} steps is an error \
                 (episode_steps= sets a limit)",
                task.id()
            );
            Some(most)
        }
    };
    let rules = Rules { transitions, epsilon, seed, switch: cast.switch, endless };
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
            return Err(interrupt::Stopped("nothing was kept").into());
        }
    }
    bar.finish_and_clear();
    let (returns, failed) = (rollouts.returns(), rollouts.failed());
    let seconds = started.elapsed().as_secs_f64();
    let written = writer.finish()?;
    if let Some((n, reason)) = failed {
        warn!("warning: {n} episodes failed and are left out; the first error: {reason}");
    }
    let n = returns.len().max(1) as f64;
    say!(
        "recorded {} transitions in {} episodes, mean return {}, in {seconds:.1} s ({:.0} \
         transitions/s)",
        written.transitions,
        written.episodes,
        decimal(returns.iter().sum::<f64>() / n, 1),
        written.transitions as f64 / seconds.max(1e-9)
    );
    say_written(&written);
    Ok(())
}

/// The simulation with a step limit of `steps`, or its own if that is shorter.
fn limited(
    suite: &dyn Suite,
    task: &Task,
    simulation: &Simulation,
    steps: usize,
) -> Result<Simulation> {
    let steps = suite.horizon(task, simulation).map_or(steps, |horizon| horizon.min(steps));
    let limited = u32::try_from(steps).ok().and_then(|steps| suite.limited(simulation, steps));
    limited.with_context(|| {
        format!(
            "episode_steps={steps}: {} does not support this limit. Use another number, or leave \
             it out",
            task.id()
        )
    })
}

/// Note in the description of a dataset without the last observation of an episode.
const NO_LAST: &str = "  The observation after the last action of an episode is unknown: the last \
                       observation is repeated.";

overtone_model::options! {
    /// Options of `data convert`.
    pub struct ConvertOptions {
        /// The dataset, in any format, or the first word without =. Required.
        pub from: PathBuf = PathBuf::new(),
        /// The output, or the second word without =: a directory, a file (NAME.hdf5), or
        /// minari:NAME/DATASET-v0. Required.
        pub to: String = String::new(),
        /// The format, if the files do not contain it: ogbench; or numbers, for bytes that are not
        /// images.
        pub layout: String = String::new(),
        /// As of data inspect.
        pub columns: TableColumns = TableColumns::default(),
        /// The task, if the dataset does not name it, such as mujoco/hopper.
        pub task: String = String::new(),
    }
}

/// `overtone data convert FROM TO key=value…`.
pub fn convert(words: &[String]) -> Result<()> {
    let ConvertOptions { from, to, layout, columns, task } =
        &options::read_placed(words, &["from", "to"])?;
    let from = &*path_of("from", from)?;
    ensure!(
        !to.is_empty(),
        "the output is empty. Use a directory, a file (NAME.hdf5) or minari:NAME/DATASET-v0"
    );
    let recorded = RecordedTask::of(from)?;
    let form = Form { layout: layout.clone(), columns: columns.clone() };
    let data = Data::at(from, form.clone());
    let named = || reader_of(from).ok().and_then(|reader| reader.task(from));
    let task: &'static Task = match &**task {
        "" => match suites::of_data(&data)? {
            Some(task) => task,
            None => {
                let known = task_of(from);
                let named = named().and_then(|name| suites::named(&name).ok());
                known.or(named).with_context(|| {
                    format!(
                        "{}: the dataset does not name its task. Use task=SUITE/NAME, or \
                         task=own/NAME if there is no environment",
                        from.display()
                    )
                })?
            }
        },
        name => suites::with_data(name, Some(&data))?,
    };
    let card = match datasets_folder().and_then(|datasets| description_of(from, &datasets)) {
        // A missing datasets directory is not an error here: the dataset has no description then.
        Err(DataError::Missing { .. }) => None,
        read => read?,
    };
    let simulation = recorded.simulation.clone().or(card.map(|card| card.recording));
    let about = |format: &str, last: &str| About {
        task,
        simulation: simulation.as_ref(),
        env_spec: recorded.env_spec.clone(),
        algorithm: "unknown".into(),
        description: format!(
            "Converted by Overtone from {} ({format}).{last}",
            from.file_name().unwrap_or_default().to_string_lossy(),
        ),
    };
    let place = place_of(to)?;
    check_free(&place)?;
    let stop = interrupt::listen()?;
    let (recording, last) = open_with_last(from, &form)?;
    let written = match recording {
        Recording::Columns(mut columns) => {
            columns.list_actions(task)?;
            columns.check_spaces(task)?;
            let bar = progress::parts("converting", columns.n_transitions());
            let progress = &mut on_progress(&bar, &stop);
            let about = about(columns.format, if last.is_some() { "" } else { NO_LAST });
            let written = write_columns(&columns, last.as_ref(), &place, about, progress);
            bar.finish_and_clear();
            written.map_err(or_stopped)?
        }
        Recording::ReplayLog(log) => {
            convert_log(log, task, &place, about("DQN-replay", NO_LAST), stop)?
        }
    };
    say!("converted {} transitions in {} episodes", written.transitions, written.episodes);
    say_written(&written);
    Ok(())
}

/// A progress callback that moves `bar` and breaks when `stop` is set.
fn on_progress(bar: &ProgressBar, stop: &AtomicBool) -> impl FnMut(u64) -> ControlFlow<()> {
    move |done| {
        bar.set_position(done);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The error of a conversion; Ctrl-C has its own.
fn or_stopped(error: DataError) -> anyhow::Error {
    match error {
        DataError::Stopped => interrupt::Stopped("nothing was kept").into(),
        error => error.into(),
    }
}

/// Writes a log of frames as one file, through a temporary copy of the store for training.
fn convert_log(
    log: ReplayLog,
    task: &Task,
    place: &Path,
    about: About<'_>,
    stop: Arc<AtomicBool>,
) -> Result<Written> {
    if !matches!(task.observations, ObservationSpace::Pixels { .. }) {
        bail!(
            "{}: expected observations of {} numbers, as in {}, got a log of a game's frames",
            log.folder.folder.display(),
            task.observations.size(),
            task.id()
        );
    }
    let n_actions = Some(task.actions.size());
    let origin = Origin { n_actions, ..Origin::other() };
    let all = usize::try_from(log.counts.transitions).unwrap_or(usize::MAX);
    let folder = Converting(cache_folder()?.join(format!("converting-{}", process::id())));
    let mut plan = Preparation::new(log, origin, Selection::uniform(all), 0, &folder.0)?;
    plan.stop = stop;
    say!("plan: {plan}");
    let bar = progress::bytes("inflating", plan.ready);
    let dataset = plan.ensure(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let dataset = dataset.map_err(or_stopped)?;
    dataset
        .check_spaces(task)
        .with_context(|| format!("converting {}", plan.log().folder.folder.display()))?;
    let bar = progress::parts("writing", dataset.n_transitions());
    let written = write_frames(&dataset, place, about, &mut on_progress(&bar, &plan.stop));
    bar.finish_and_clear();
    written.map_err(or_stopped)
}

/// A temporary directory of this process for converting a log.
struct Converting(PathBuf);

impl Drop for Converting {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn say_written(written: &Written) {
    let path = written.path.display().to_string();
    say!("content_sha256 {}", &written.content_hash[..16]);
    // A word without a `/` is a dataset's name.
    let here = if is_path(&path) { "" } else { "./" };
    say!("dataset: {path} (overtone train dataset={})", quoted(format!("{here}{path}")));
}
