//! `overtone evaluate rollouts`: plays checkpoints and reports. `overtone evaluate ablation`:
//! what each setting of the protocol is worth. `overtone evaluate choose`: the acting
//! mode that suits an agent.
//!
//! All episodes of all targets of all checkpoints share the emulators; protocols are played one
//! after the other.

mod ablation;
pub mod ask;
mod choose;
mod curve;
mod entry;
mod modes;
mod own_choice;
pub mod playing;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};
use overtone_agents::Agent;
use overtone_eval::{Evaluation, Summary, table::Table};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir, metrics, run_dir::CONFIG};

pub use ablation::{OPTIONS as ABLATION_OPTIONS, ablation};
use ask::Ask;
pub use ask::{check_top_percent, play_of, what_to_ask};
pub use choose::{OPTIONS as CHOOSE_OPTIONS, choose_after_training, run as choose};
pub use curve::{Curve, Due};
use entry::Entry;
pub use own_choice::OwnChoice;

use crate::{
    interrupt, keys,
    runs::{check_own, is_last, open_checkpoint, open_runs},
    settings::{self, EvaluationConfig, Every},
};

/// What to do where an agent can be trained and not played.
pub const NOT_PLAYABLE: &str =
    "the agent could not be played after training (evaluation.episodes=0 trains alone)";

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name, or several (a,b), played together; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes, needs train.held_out above 0; the step of a checkpoint, or a checkpoint's folder; or several of them, as last,best,1000.
checkpoint = "last"
# Episodes for each target.
episodes = 100
# Returns to ask for (or targets=), in the protocol's units, as numbers or percentiles of the data's returns, by actions: 32 or p90,p99; p90: 90 % of the recorded actions are in episodes that earned no more; empty: p95, or with model.top_percents as was chosen for the run. reference: the reference's for the task (hopper 3600,1800; halfcheetah 12000,6000; walker2d 5000,2500), else p95.
target = ""
# Games: returns that the protocol released asks for, in raw points; empty: those of target, else the reference's (Seaquest 1150, Breakout 90, Pong 20, Qbert 14000).
released_target = ""
# matched, as the data was recorded; or another of the suite's: released (games), the reference's evaluation with its accidents; v4, v5 (robots), that revision of the environment; or several, as matched,released.
protocol = "matched"
# A list of actions: softmax temperature of the actions that are drawn. chosen: the one that was chosen for the run by episodes of another seed, after its training or by evaluate choose; where none was, what the run says in evaluation.temperature, else 1; in the protocol released 1.
temperature = "chosen"
# Real-valued actions: of a head with a density, mode, its most probable action, or sample, a draw.
actions = "mode"
# Agents with model.return_head: the agent is told no more than this quantile of what was earned from states like its own, above 0; 1: whatever is left of the target. chosen: as with temperature, else 0.9.
return_quantile = "chosen"
# Agents with model.top_percents: the agent is told to act as in the top 10 % of the recording, say, in place of a return; 0: it is told a return. chosen: as with temperature where no target is asked for, else 0.
top_percent = "chosen"
# Seed of the episodes; the same for every run, so that agents meet the same episodes.
seed = 1
# Episodes played at once, of all targets and checkpoints together; 0: all, but no more than 100 (robots: 200).
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the (first) run was trained.
device = ""
# Where to write the report; empty: evaluation.json in the run's folder, evaluation-STEP.json for several checkpoints of a run, and for one that is not its last; played otherwise than trained, with what differs before the ending (-released, -t0.5, -v5, -sample). A report of other episodes, seeds or targets that is there stays, and the new one's name says what differs (-n100, -seed2, -target90). Needed for a checkpoint that is not the run's.
out = ""
"#;

/// `overtone evaluate rollouts key=value…`.
pub fn rollouts(options: &[String]) -> Result<()> {
    let keys = keys::given(OPTIONS, options)?;
    let text = |key: &str| keys::text(&keys, key);
    let root = PathBuf::from(text("runs"));
    let runs = open_runs(&root, &text("run"))?;
    let names: Vec<String> =
        text("checkpoint").split(',').map(|name| name.trim().to_owned()).collect();
    let whole = |key: &str| keys::whole(&keys, key, 0);
    let evaluation = EvaluationConfig {
        episodes: whole("episodes")?,
        target: text("target"),
        released_target: Some(text("released_target")),
        protocol: text("protocol"),
        temperature: ask::choosable("temperature", keys["temperature"].clone())?,
        actions: ask::action_choice(&text("actions"))?,
        return_quantile: ask::choosable("return_quantile", keys["return_quantile"].clone())?,
        top_percent: ask::choosable("top_percent", keys["top_percent"].clone())?,
        seed: whole("seed")? as u64,
        parallel: whole("parallel")?,
        every: Every::Checkpoints(0),
        every_episodes: 0,
    };
    if evaluation.episodes == 0 {
        bail!("episodes=0: there is nothing to play");
    }
    let device = device_or(text("device"), &runs[0])?;
    let mut batches: Vec<Vec<Planned>> = Vec::new();
    for run in runs {
        for name in &names {
            let checkpoint = open_checkpoint(&run, name)?;
            ask::check_given(options, &Agent::of(&checkpoint)?.task)?;
            // A run's own report is of its last weights.
            let has_step = names.len() > 1 || name != "last" && !is_last(&run, &checkpoint);
            let step = has_step.then_some(checkpoint.state.step);
            let planned = plan(&run, &checkpoint, step, &evaluation)?;
            let outs = || batches.iter().flatten().map(|planned| &planned.out);
            if outs().any(|out| planned.iter().any(|planned| planned.out == *out)) {
                let (step, run) = (checkpoint.state.step, run.path().display());
                // The best checkpoint may be another that is named too; nobody can know before.
                if names.iter().any(|name| name == "best") {
                    say!("the {name} checkpoint is of update {step}, which is played already");
                    continue;
                }
                bail!("update {step} of {run} is named twice");
            }
            batches.resize_with(planned.len(), Vec::new);
            batches.iter_mut().zip(planned).for_each(|(batch, planned)| batch.push(planned));
        }
    }
    let mut all: Vec<&mut Planned> = batches.iter_mut().flatten().collect();
    match (text("out").as_str(), &mut all[..]) {
        ("", _) => {}
        (path, [planned]) => planned.out = PathBuf::from(path),
        (path, all) => {
            bail!("out={path}: names one report, and {} will be written", all.len())
        }
    }
    // Found before playing, not after.
    for planned in all {
        if text("out").is_empty() {
            check_own(&planned.entry.run, &planned.entry.checkpoint)?;
            planned.step_aside();
        }
        check_out(&planned.out)?;
    }
    let stop = interrupt::listen()?;
    let how = How { options: &evaluation, device: &device, stop: &stop };
    play_batches(&batches, &how)
}

/// How batches are played, whatever is in them.
struct How<'a> {
    options: &'a EvaluationConfig,
    device: &'a str,
    stop: &'a AtomicBool,
}

impl How<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What is played, and where the report goes.
struct Planned {
    entry: Entry,
    out: PathBuf,
    /// Whether a report of other episodes has the usual place, and this one lies beside it.
    is_beside: bool,
}

impl Planned {
    /// Where the report goes when one of the same weights and of other episodes is at `out`.
    fn beside(&self) -> Option<PathBuf> {
        let there = Evaluation::read(&self.out).ok()?;
        let plan = &self.entry.plan;
        let step = there.setting.checkpoint.as_ref().map(|played| played.step);
        let is_of_it = step == Some(self.entry.checkpoint.state.step);
        let n_episodes = (there.episodes.len() + there.failed.len()) / there.asked.len();
        let mut differing = String::new();
        if n_episodes != plan.episodes {
            differing += &format!("-n{}", plan.episodes);
        }
        if there.seed != plan.seed {
            differing += &format!("-seed{}", plan.seed);
        }
        if there.asked != plan.targets {
            let targets: Vec<String> = plan.targets.iter().map(f32::to_string).collect();
            differing += &format!("-target{}", targets.join("_"));
        }
        let name = self.out.file_stem()?.to_string_lossy().into_owned();
        (is_of_it && !differing.is_empty())
            .then(|| self.out.with_file_name(format!("{name}{differing}.json")))
    }

    /// Leaves a report of other episodes where it is.
    fn step_aside(&mut self) {
        if let Some(beside) = self.beside() {
            say!(
                "{} is of other episodes and stays; the new report is {}",
                self.out.display(),
                beside.display()
            );
            (self.out, self.is_beside) = (beside, true);
        }
    }

    /// Whether a report at `out` is about the weights that are planned, of whatever version it is.
    fn is_there(&self, out: &Path) -> Result<bool> {
        Ok(out.is_file() && Evaluation::step_in(out)? == Some(self.entry.checkpoint.state.step))
    }
}

/// One plan for each protocol of `options`; `step` is written into the names of the reports.
///
/// # Errors
/// When what `options` say cannot be asked for.
fn plan(
    run: &RunDir,
    checkpoint: &Checkpoint,
    step: Option<u64>,
    options: &EvaluationConfig,
) -> Result<Vec<Planned>> {
    let agent = Agent::of(checkpoint)?;
    let chosen = OwnChoice::of(run, checkpoint)?;
    let asks = what_to_ask(options, &agent, &checkpoint.state.episode_returns, &chosen)?;
    asks.iter().try_for_each(|ask| ask::check_seed(options.seed, ask, &chosen))?;
    let planned = |ask: Ask| {
        let step = step.map(|step| format!("-{step}")).unwrap_or_default();
        // Scores by another protocol never take the place of those as trained.
        let out = run.path().join(format!("evaluation{step}{}.json", ask.suffix));
        let counts = [options.episodes as u64, options.seed];
        let entry = Entry::new(run, checkpoint, &agent, ask, counts);
        Planned { entry, out, is_beside: false }
    };
    Ok(asks.into_iter().map(planned).collect())
}

/// # Errors
/// When no file can be written to `out`.
fn check_out(out: &Path) -> Result<()> {
    let found = out.parent().is_some_and(|folder| folder == Path::new("") || folder.is_dir());
    if out.is_dir() || !found {
        bail!("out={}: must be a file in a folder that is there", out.display());
    }
    Evaluation::check_writable(out).context("out= names another place for the report")
}

/// Where to compute: as asked for, or else where `run` was trained.
fn device_or(asked: String, run: &RunDir) -> Result<String> {
    match asked.is_empty() {
        true => settings::device_of(&run.path().join(CONFIG)),
        false => Ok(asked),
    }
}

/// Plays `checkpoint` and writes `evaluation.json` into the run; with
/// what differs in the name where it is played otherwise than it should be by its own settings.
///
/// # Errors
/// When the environment or the device is not there, or playing fails.
pub fn play(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let mut planned = plan(run, checkpoint, None, options)?;
    planned.iter_mut().for_each(Planned::step_aside);
    let batches: Vec<Vec<Planned>> = planned.into_iter().map(|planned| vec![planned]).collect();
    play_batches(&batches, &How { options, device, stop })
}

/// Whether all reports that [`play`] writes of a run are there, and are about its newest weights.
///
/// # Errors
/// When the run has no whole checkpoint, what `options` say cannot be asked for, or a report
/// cannot be read.
pub fn is_played(run: &RunDir, options: &EvaluationConfig) -> Result<bool> {
    all_reports(run, options, |planned| planned.is_there(&planned.out))
}

/// The same, and whether these reports are of the seed and the returns of `options`, and of as many
/// episodes at least: of what a run's own settings do not say.
///
/// # Errors
/// As [`is_played`].
pub fn is_played_so(run: &RunDir, options: &EvaluationConfig) -> Result<bool> {
    all_reports(run, options, |planned| {
        let plan = &planned.entry.plan;
        for out in [planned.beside(), Some(planned.out.clone())].into_iter().flatten() {
            if !planned.is_there(&out)? {
                continue;
            }
            let there = Evaluation::read(&out)?;
            let n_episodes = there.episodes.len() + there.failed.len();
            let is_whole = n_episodes >= plan.episodes * plan.targets.len();
            if is_whole && there.seed == plan.seed && there.asked == plan.targets {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn all_reports(
    run: &RunDir,
    options: &EvaluationConfig,
    is_it: impl Fn(&Planned) -> Result<bool>,
) -> Result<bool> {
    let (checkpoint, _) = Checkpoint::newest(&run.checkpoints())?;
    if choose::is_awaited(run, &checkpoint, options)? {
        return Ok(false);
    }
    for planned in plan(run, &checkpoint, None, options)? {
        // Of a run that was looked at, and then went on, a report is about weights of before.
        if !is_it(&planned)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The file name of a run's report, by its own protocol where it was played so.
pub fn first_report(run: &RunDir) -> String {
    let first = reports(run).into_iter().next();
    let name = first.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| Evaluation::FILE.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The reports in a run's folder, none where it cannot be read.
pub fn reports(run: &RunDir) -> Vec<PathBuf> {
    Evaluation::files(run.path()).unwrap_or_default()
}

/// Plays one batch after the other, each by a protocol of its own; after several, says their
/// scores in one table.
fn play_batches(batches: &[Vec<Planned>], how: &How<'_>) -> Result<()> {
    for batch in batches {
        check_alike(batch)?;
    }
    let mut table =
        Table::new(&["run", "updates", "protocol", "target", "n", "raw mean ± sd", "normalized"]);
    for batch in batches {
        for (planned, evaluation) in play_batch(batch, how)? {
            for target in &evaluation.targets {
                let normalized = target.normalized.as_ref().map(Summary::with_spread);
                table.row(vec![
                    planned.entry.run.path().display().to_string(),
                    planned.entry.checkpoint.state.step.to_string(),
                    evaluation.setting.protocol.name.clone(),
                    evaluation.setting.told(target.target_return).unwrap_or_else(|| "-".into()),
                    target.raw_return.n.to_string(),
                    target.raw_return.with_spread(),
                    normalized.unwrap_or_else(|| "-".into()),
                ]);
            }
        }
    }
    if batches.len() > 1 {
        say!("Side by side (targets in the protocol's units; these scores may not be compared):");
        say!("{table}");
    }
    Ok(())
}

/// # Errors
/// When a batch cannot be played in the same environments.
fn check_alike(batch: &[Planned]) -> Result<()> {
    let [first, others @ ..] = batch else { return Ok(()) };
    let alike = |planned: &&Planned| {
        let [one, other] = [first, *planned].map(|planned| &planned.entry);
        one.agent.task == other.agent.task
            && one.ask.protocol.simulation == other.ask.protocol.simulation
    };
    match others.iter().find(|planned| !alike(planned)) {
        None => Ok(()),
        Some(other) => bail!(
            "{} and {} were recorded from different tasks, or differently: evaluate them \
             one after the other",
            first.entry.run.path().display(),
            other.entry.run.path().display()
        ),
    }
}

/// Plays a batch together, and writes and returns its reports.
///
/// # Errors
/// When playing fails, or every episode of an entry failed; the reports of the others are
/// written.
fn play_batch<'a>(batch: &'a [Planned], how: &How<'_>) -> Result<Vec<(&'a Planned, Evaluation)>> {
    let entries: Vec<&Entry> = batch.iter().map(|planned| &planned.entry).collect();
    entries.iter().for_each(|entry| entry.announce());
    let chosen = device::choose(how.device)?;
    let played = playing::play(&entries, &chosen, how.options.parallel, &|| how.is_stopped())?;
    let (mut told, mut failed) = (Vec::with_capacity(batch.len()), None);
    // Told before anything is written, which may fail.
    for (planned, evaluation) in batch.iter().zip(played) {
        match evaluation {
            Ok(evaluation) => {
                say!("{}", evaluation.to_text());
                told.push((planned, evaluation));
            }
            Err(error) => {
                let path = planned.entry.checkpoint.path.display();
                failed.get_or_insert(error.context(format!("playing {path}")));
            }
        }
    }
    for (Planned { entry, out, is_beside }, evaluation) in &told {
        evaluation.write(out).context("cannot write the report")?;
        say!("evaluation: {}", out.display());
        if let Some(warning) = evaluation.warning() {
            warn!("warning: {warning}");
        }
        let scores = curve::scores(evaluation);
        // The curves are of the run's own weights, played by the run's own protocol, once.
        if !(entry.ask.is_own && entry.is_own()) || *is_beside {
            continue;
        }
        let (step, words) = (entry.checkpoint.state.step, curve::words(evaluation));
        let written = metrics::write_scores(entry.run.path(), step, &scores, &words);
        if let Err(error) = written {
            warn!("warning: the scores are not among the run's curves: {error}");
        }
    }
    match failed {
        None => Ok(told),
        Some(error) => Err(error),
    }
}
