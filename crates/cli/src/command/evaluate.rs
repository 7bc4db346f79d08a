//! `overtone evaluate rollouts`: evaluates checkpoints and writes reports. `overtone evaluate
//! choose`: the choice of an agent's acting mode, and of one of several agents.
//!
//! All episodes of all targets of all checkpoints share the environments. Protocols follow one
//! after the other.

mod choose;
mod curve;
mod entry;
mod modes;
mod own_choice;
pub mod playing;
pub mod request;
mod resets;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};
use overtone_agents::Agent;
use overtone_core::{
    Task,
    protocol::{ActionChoice, Difference},
};
use overtone_eval::{
    Evaluation, Summary, paired_difference,
    statistics::Bootstrap,
    summary::estimate,
    table::{Table, or_dash},
};
use overtone_model::device;
use overtone_settings::{
    Choosable, EvaluationConfig, RunConfig, options,
    runs::{check_own, is_last, open_checkpoint, open_runs},
    suites,
};
use overtone_train::{Checkpoint, RunDir, metrics, run_dir::CONFIG};

use crate::interrupt;
use entry::Entry;

pub use choose::{
    ChooseOptions, candidate_modes, choice_seed, choose_after_training, choose_among, run as choose,
};
pub use curve::{Curve, Due};
pub use own_choice::OwnChoice;
pub use request::{EvaluationRequest, check_top_percent, play_of, requests};

overtone_model::options! {
    /// Options of `evaluate rollouts`.
    pub struct RolloutsOptions {
        /// A run's directory or name, or several (a,b), which are evaluated together; empty: the
        /// newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// last; best, the lowest loss on held-out episodes (requires train.held_out above 0); the
        /// step of a checkpoint; a checkpoint's directory; or several of them, such as
        /// last,best,1000.
        pub checkpoint: String = "last".into(),
        /// Episodes for each target.
        pub episodes: usize = 100,
        /// Target returns (or targets=) in the protocol's units: numbers (32), or percentiles of
        /// the dataset's returns, weighted by episode length (p90,p99). p90: 90 % of the recorded actions
        /// are in episodes with at most this return. Empty: p95, or with model.top_percents the
        /// run's chosen mode. reference: the reference's targets (hopper 3600,1800; halfcheetah
        /// 12000,6000; walker2d 5000,2500), else p95. The protocol released needs raw points; its
        /// default is the reference's target (Seaquest 1150, Breakout 90, Pong 20, Qbert 14000).
        pub target: String = String::new(),
        /// Evaluation protocol. matched: as the data was recorded. released (games): the
        /// reference's evaluation, bugs included. v4, v5 (robots): that revision of the
        /// environment. A setting's name, such as sticky_probability: matched with the other
        /// value of this setting. Or several, such as matched,released, whose differences from
        /// the first are printed.
        pub protocol: String = "matched".into(),
        /// Softmax temperature of sampled actions (discrete actions only). chosen: the run's choice
        /// on episodes of another seed, after training or by evaluate choose. Without a choice: the
        /// run's evaluation.temperature, else 1. The protocol released always uses 1 for chosen.
        pub temperature: Choosable = Choosable::Chosen,
        /// Action of a head with a density (continuous actions only): mode, the most probable
        /// action, or sample, a random draw.
        pub actions: ActionChoice = ActionChoice::Mode,
        /// Upper limit on the conditioning return: this quantile of the predicted return
        /// distribution, in (0, 1]; 1: no limit. chosen: as for temperature, else 0.9. Requires
        /// model.return_head.
        pub return_quantile: Choosable = Choosable::Chosen,
        /// Condition the agent on this top percentage of the dataset instead of a target return; 0:
        /// use a target return. chosen: as for temperature if no target is set, else 0. Requires
        /// model.top_percents.
        pub top_percent: Choosable = Choosable::Chosen,
        /// Seed of the episodes; the same for every run, so that all agents face the same episodes.
        pub seed: u64 = 1,
        /// Episodes in parallel, of all targets and checkpoints together; 0: all, at most 100
        /// (robots: 200).
        pub parallel: usize = 0,
        /// Compute device: auto, cpu, cuda or cuda:N; empty: the device of the (first) run's
        /// training.
        pub device: String = String::new(),
        /// Output file of the report; empty: evaluation.json in the run's directory, or
        /// evaluation-STEP.json for several checkpoints, or for one that is not the last. Settings
        /// that differ from training are in the name (-released, -t0.5, -v5, -sample). An existing
        /// report of other episodes, seeds or targets is kept, and the new name contains the
        /// difference (-n100, -seed2, -target90). Required for a checkpoint that is not the run's.
        pub out: String = String::new(),
    }
}

/// Checks before training that the agent can be evaluated afterwards.
///
/// # Errors
/// When the task's simulator is missing, in one sentence.
pub fn check_playable(settings: &RunConfig) -> Result<()> {
    let task = settings.task()?;
    if !settings.evaluation.plays() {
        return Ok(());
    }
    suites::of(task)?.check(task).context(
        "the agent cannot be evaluated after training (use evaluation.episodes=0 to train only)",
    )
}

/// `overtone evaluate rollouts key=value…`.
pub fn rollouts(words: &[String]) -> Result<()> {
    let options: RolloutsOptions = options::read(words)?;
    let runs = open_runs(&options.runs, &options.run)?;
    let names: Vec<&str> = options.checkpoint.split(',').map(str::trim).collect();
    options::at_least_1([("episodes", options.episodes as u64)])?;
    let evaluation = EvaluationConfig {
        episodes: options.episodes,
        target: options.target,
        protocol: options.protocol,
        temperature: options.temperature,
        actions: options.actions,
        return_quantile: options.return_quantile,
        top_percent: options.top_percent,
        seed: options.seed,
        parallel: options.parallel,
        ..EvaluationConfig::one_episode()
    };
    let device = device_or(options.device, &runs[0])?;
    let mut batches: Vec<Vec<Planned>> = Vec::new();
    for run in runs {
        for &name in &names {
            let checkpoint = open_checkpoint(&run, name)?;
            request::check_applicable(words, &Agent::of(&checkpoint)?.task)?;
            // The run's own report is about its last weights.
            let has_step = names.len() > 1 || name != "last" && !is_last(&run, &checkpoint);
            let step = has_step.then_some(checkpoint.state.step);
            let planned = plan(&run, &checkpoint, step, &evaluation)?;
            let outs = || batches.iter().flatten().map(|planned| &planned.out);
            if outs().any(|out| planned.iter().any(|planned| planned.out == *out)) {
                let (step, run) = (checkpoint.state.step, run.path().display());
                // `best` may be another named checkpoint, which is only known now.
                if names.contains(&"best") {
                    say!(
                        "the {name} checkpoint is update {step}, which is already in this \
                         evaluation"
                    );
                    continue;
                }
                bail!("update {step} of {run} is repeated. Name each checkpoint once");
            }
            batches.resize_with(planned.len(), Vec::new);
            batches.iter_mut().zip(planned).for_each(|(batch, planned)| batch.push(planned));
        }
    }
    let mut all: Vec<&mut Planned> = batches.iter_mut().flatten().collect();
    match (options.out.as_str(), &mut all[..]) {
        ("", _) => {}
        (path, [planned]) => planned.out = PathBuf::from(path),
        (path, all) => {
            bail!(
                "out={path}: expected one report, got {}. Leave out= out to write them into the \
                 runs' directories",
                all.len()
            )
        }
    }
    // Errors of the output are reported before the evaluation.
    for planned in all {
        if options.out.is_empty() {
            check_own(&planned.entry.run, &planned.entry.checkpoint)?;
            planned.keep_existing();
        }
        check_out(&planned.out)?;
    }
    let stop = interrupt::listen()?;
    let settings = BatchSettings { options: &evaluation, device: &device, stop: &stop };
    play_batches(&batches, &settings)
}

/// Settings of all batches.
struct BatchSettings<'a> {
    options: &'a EvaluationConfig,
    device: &'a str,
    stop: &'a AtomicBool,
}

impl BatchSettings<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A planned evaluation, and the path of its report.
struct Planned {
    entry: Entry,
    out: PathBuf,
    /// Whether an existing report keeps the usual name, and this one has another.
    has_other_name: bool,
}

impl Planned {
    /// The other path of the report, if `out` has a report of the same weights and other episodes.
    fn other_path(&self) -> Option<PathBuf> {
        let there = Evaluation::read(&self.out).ok()?;
        let plan = &self.entry.plan;
        let step = there.setting.checkpoint.as_ref().map(|played| played.step);
        let is_of_it = step == Some(self.entry.checkpoint.state.step);
        let n_episodes = (there.episodes.len() + there.failed.len()) / there.target_returns.len();
        let mut differing = String::new();
        if n_episodes != plan.episodes {
            differing += &format!("-n{}", plan.episodes);
        }
        if there.seed != plan.seed {
            differing += &format!("-seed{}", plan.seed);
        }
        if there.target_returns != plan.targets {
            let targets: Vec<String> = plan.targets.iter().map(f32::to_string).collect();
            differing += &format!("-target{}", targets.join("_"));
        }
        let name = self.out.file_stem()?.to_string_lossy().into_owned();
        (is_of_it && !differing.is_empty())
            .then(|| self.out.with_file_name(format!("{name}{differing}.json")))
    }

    /// Keeps an existing report of other episodes.
    fn keep_existing(&mut self) {
        if let Some(other) = self.other_path() {
            say!(
                "{} is about other episodes and is kept; the new report is {}",
                self.out.display(),
                other.display()
            );
            (self.out, self.has_other_name) = (other, true);
        }
    }

    /// Whether a report of the planned weights has the planned targets and seed, and at least as
    /// many episodes. After more training, an earlier report is about older weights.
    ///
    /// # Errors
    /// When a report cannot be read.
    fn is_there(&self) -> Result<bool> {
        let plan = &self.entry.plan;
        let outs = [self.other_path(), Some(self.out.clone())].into_iter().flatten();
        for out in outs.filter(|out| out.is_file()) {
            let there = Evaluation::read(&out)?;
            let step = there.setting.checkpoint.as_ref().map(|played| played.step);
            let n_episodes = there.episodes.len() + there.failed.len();
            if step == Some(self.entry.checkpoint.state.step)
                && n_episodes >= plan.n_episodes()
                && there.seed == plan.seed
                && there.target_returns == plan.targets
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One plan for each protocol of `options`; the names of the reports contain `step`.
///
/// # Errors
/// When `options` are invalid for the agent.
fn plan(
    run: &RunDir,
    checkpoint: &Checkpoint,
    step: Option<u64>,
    options: &EvaluationConfig,
) -> Result<Vec<Planned>> {
    let agent = Agent::of(checkpoint)?;
    let chosen = OwnChoice::of(run, checkpoint)?;
    let requests = requests(options, &agent, &checkpoint.state.episode_returns, &chosen)?;
    requests.iter().try_for_each(|request| request::check_seed(options.seed, request, &chosen))?;
    let planned = |request: EvaluationRequest| {
        let step = step.map(|step| format!("-{step}")).unwrap_or_default();
        // Scores by another protocol never replace the scores of the agent's own.
        let out = run.path().join(format!("evaluation{step}{}.json", request.suffix));
        let counts = [options.episodes as u64, options.seed];
        let entry = Entry::new(run, checkpoint, &agent, request, counts);
        Planned { entry, out, has_other_name: false }
    };
    Ok(requests.into_iter().map(planned).collect())
}

/// # Errors
/// When no file can be written to `out`.
fn check_out(out: &Path) -> Result<()> {
    let found = out.parent().is_some_and(|folder| folder == Path::new("") || folder.is_dir());
    if out.is_dir() || !found {
        bail!("out={}: expected a file in an existing directory", out.display());
    }
    Evaluation::check_writable(out).context("cannot write the report (out= sets another file)")
}

/// The device `name`, or if it is empty, the device of the training of `run`.
fn device_or(name: String, run: &RunDir) -> Result<String> {
    match name.is_empty() {
        true => overtone_settings::device_of(&run.path().join(CONFIG)),
        false => Ok(name),
    }
}

/// Evaluates `checkpoint` and writes `evaluation.json` into the run. Settings that differ from the
/// run's own are in the file's name.
///
/// # Errors
/// When the environment or the device is missing, or the rollouts fail.
pub fn play(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let mut planned = plan(run, checkpoint, None, options)?;
    planned.iter_mut().for_each(Planned::keep_existing);
    let batches: Vec<Vec<Planned>> = planned.into_iter().map(|planned| vec![planned]).collect();
    play_batches(&batches, &BatchSettings { options, device, stop })
}

/// Whether all reports that [`play`] writes exist: about the run's newest weights, with the seed and
/// the targets of `options`, and at least as many episodes.
///
/// # Errors
/// When the run does not have a complete checkpoint, `options` are invalid, or a report cannot be
/// read.
pub fn is_played(run: &RunDir, options: &EvaluationConfig) -> Result<bool> {
    let (checkpoint, _) = Checkpoint::newest(&run.checkpoints())?;
    if choose::is_awaited(run, &checkpoint, options)? {
        return Ok(false);
    }
    for planned in plan(run, &checkpoint, None, options)? {
        if !planned.is_there()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The file name of a run's first report, preferably by its own protocol.
pub fn first_report(run: &RunDir) -> String {
    let first = reports(run).into_iter().next();
    let name = first.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| Evaluation::FILE.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The reports in a run's directory; none if it cannot be read.
pub fn reports(run: &RunDir) -> Vec<PathBuf> {
    Evaluation::files(run.path()).unwrap_or_default()
}

/// Evaluates the batches one after the other, each with its protocol. Several batches get one table
/// of scores, with the differences from the first protocol.
fn play_batches(batches: &[Vec<Planned>], settings: &BatchSettings<'_>) -> Result<()> {
    for batch in batches {
        check_same_simulation(batch.iter().map(|planned| &planned.entry))?;
    }
    let bootstrap = Bootstrap::default();
    let difference = format!("difference [{} % interval]", bootstrap.percent());
    let columns = ["run", "updates", "protocol", "target", "n", "raw mean ± sd", "normalized"];
    let mut table =
        Table::new(columns.into_iter().chain(["success [interval]", difference.as_str()]));
    let mut first: Vec<Evaluation> = Vec::new();
    for batch in batches {
        let played = play_batch(batch, settings)?;
        for (at, (planned, evaluation)) in played.iter().enumerate() {
            for target in &evaluation.targets {
                let normalized = target.normalized.as_ref().map(Summary::with_spread);
                let difference = match first.get(at) {
                    Some(first) => {
                        paired_difference(first, evaluation, target.target_return, &bootstrap)?
                    }
                    None => None,
                };
                table.row(vec![
                    planned.entry.run.path().display().to_string(),
                    planned.entry.checkpoint.state.step.to_string(),
                    evaluation.setting.protocol.name.clone(),
                    or_dash(evaluation.setting.condition(target.target_return)),
                    target.raw_return.n.to_string(),
                    target.raw_return.with_spread(),
                    or_dash(normalized),
                    or_dash(target.success.map(|rate| estimate(&rate, 2))),
                    or_dash(difference),
                ]);
            }
        }
        if first.is_empty() {
            first = played.into_iter().map(|(_, evaluation)| evaluation).collect();
        }
    }
    if batches.len() > 1 {
        say!(
            "All protocols (targets in the protocol's units; a difference from the first \
             protocol is the mean over the same episodes):"
        );
        say!("{}", table.without_dashes());
    }
    Ok(())
}

/// A task with its environment's actions: an agent's data may have set missing bounds.
fn in_environment(task: &Task) -> Task {
    let known = suites::as_trained(task).ok();
    let known = known.filter(|known| known.actions.allows(&task.actions));
    let actions = known.map_or(&task.actions, |known| &known.actions).clone();
    Task { actions, ..task.clone() }
}

/// # Errors
/// When the entries need different environments.
fn check_same_simulation<'a>(mut entries: impl Iterator<Item = &'a Entry>) -> Result<()> {
    let Some(first) = entries.next() else { return Ok(()) };
    let same_simulation = |other: &&Entry| {
        in_environment(first.task()) == in_environment(other.task())
            && first.request.protocol.simulation == other.request.protocol.simulation
    };
    match entries.find(|entry| !same_simulation(entry)) {
        None => Ok(()),
        Some(other) => bail!(
            "{} and {} have different tasks or simulations. Use a command for each",
            first.run.path().display(),
            other.run.path().display()
        ),
    }
}

/// Evaluates a batch together; writes and returns its reports.
///
/// # Errors
/// When the rollouts fail, or every episode of an entry failed. The reports of other entries are
/// written.
fn play_batch<'a>(
    batch: &'a [Planned],
    settings: &BatchSettings<'_>,
) -> Result<Vec<(&'a Planned, Evaluation)>> {
    let entries: Vec<&Entry> = batch.iter().map(|planned| &planned.entry).collect();
    entries.iter().for_each(|entry| entry.announce());
    let resets: Vec<Option<Difference>> =
        entries.iter().map(|entry| resets::difference(entry)).collect();
    let chosen = device::choose(settings.device)?;
    let played =
        playing::play(&entries, &chosen, settings.options.parallel, &|| settings.is_stopped())?;
    let (mut evaluated, mut failed) = (Vec::with_capacity(batch.len()), None);
    // Printed before writing, which may fail.
    for ((planned, evaluation), difference) in batch.iter().zip(played).zip(resets) {
        match evaluation {
            Ok(mut evaluation) => {
                if let Some(difference) = difference {
                    warn!("warning: {difference}");
                    evaluation.setting.differences.push(difference);
                }
                say!("{}", evaluation.to_text());
                evaluated.push((planned, evaluation));
            }
            Err(error) => {
                let path = planned.entry.checkpoint.path.display();
                failed.get_or_insert(error.context(format!("evaluating {path}")));
            }
        }
    }
    for (Planned { entry, out, has_other_name }, evaluation) in &evaluated {
        evaluation.write(out).context("cannot write the report")?;
        say!("evaluation: {}", out.display());
        if let Some(warning) = evaluation.warning() {
            warn!("warning: {warning}");
        }
        // Curves show only the run's own weights by the run's own protocol, once.
        if !(entry.request.is_own && entry.is_own()) || *has_other_name {
            continue;
        }
        let step = entry.checkpoint.state.step;
        let mode = OwnChoice::of(&entry.run, &entry.checkpoint)?;
        let mode = mode.from_settings(&entry.agent.matched());
        let scores = curve::last_scores(evaluation, mode);
        let written = metrics::write_scores(entry.run.path(), step, &scores);
        if let Err(error) = written {
            warn!("warning: cannot add the scores to the run's curves: {error}");
        }
    }
    match failed {
        None => Ok(evaluated),
        Some(error) => Err(error),
    }
}
