//! `overtone train` and `overtone resume`.

mod observers;
mod runs;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use overtone_console::{keys, quoted};
use overtone_model::device;
use overtone_settings::{Profile, Resume, RunConfig, options, runs::open_run, suites};
use overtone_train::{
    Checkpoint, InitSource, Job, Processes, RunDir, RunLock, Setting, Shortened, SingleProcess,
    TrainError, metrics,
    processes::{broadcast, on_all},
    run_dir::CONFIG,
};
use serde::{Deserialize, Serialize};

use self::observers::{Printer, SilentObserver, print_finished};
pub use self::runs::{finish, is_finished, same_settings};
use super::{
    evaluate::{self, Curve, Due, OwnChoice},
    find::is_published,
    judge,
    prepare::{Prepared, prepare},
    provenance,
};
use crate::{host, interrupt, processes};

overtone_model::options! {
    /// Options of `resume`.
    pub struct ResumeOptions {
        /// A run's directory or name; empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// Compute device: auto, cpu, cuda or cuda:N; empty: the device of the run's training.
        pub device: String = String::new(),
    }
}

/// `overtone train key=value…`; returns the exit code.
pub fn train(options: &[String]) -> Result<u8> {
    if let Some((key, [first, last])) = keys::repeated(options) {
        let key = keys::short(&key);
        say!("note: {key} is given twice, as {first} and as {last}; the last one counts");
    }
    together(|| plan(&RunConfig::resolve(options, auto_profile)?, None).map(Some))
}

/// The profile for `profile=auto`: `Paper` if there is a GPU and the published data.
pub fn auto_profile(settings: &RunConfig) -> Profile {
    let gpu = device::choose(&settings.device).is_ok_and(|chosen| chosen.is_gpu);
    if gpu && is_published(settings) { Profile::Paper } else { Profile::Quick }
}

/// Starts a run of these settings, called `name`, or resumes an unfinished one; returns the exit
/// code.
pub fn begin(settings: &RunConfig, name: &str) -> Result<u8> {
    plan(settings, Some(name))?.carry_out()
}

/// A run to train or to evaluate.
pub struct Work {
    settings: RunConfig,
    pub run: RunDir,
    prepared: Prepared,
    checkpoint: Option<Checkpoint>,
    /// Held by the process that writes.
    _lock: Option<RunLock>,
}

impl Work {
    /// Runs in this process only; returns the exit code.
    pub fn carry_out(self) -> Result<u8> {
        carry_out(Ok(self), &SingleProcess)
    }
}

/// Plans a new run or the resume of an unfinished one. A new run is called `name`, or by its model,
/// seed and task.
pub fn plan(settings: &RunConfig, name: Option<&str>) -> Result<Work> {
    device::choose(&settings.device)?;
    evaluate::check_playable(settings)?;
    processes::check_parts(settings.train.micro_batches)?;
    let begun = match settings.resume {
        // An unreadable run cannot be evaluated either.
        Resume::Auto => runs::unfinished(settings, |run| {
            let evaluation = &settings.evaluation;
            evaluation.episodes == 0 || evaluate::is_played(run, evaluation).unwrap_or(true)
        }),
        Resume::Never => None,
    };
    let prepared = prepare(settings, settings.initial(begun.as_ref().map(|(run, _)| run))?)?;
    check_evaluation(settings, &prepared)?;

    if let Some((run, lock)) = begun {
        let what = if is_finished(&run) {
            "a run of these settings without its evaluation"
        } else {
            "an unfinished run of these settings"
        };
        say!("found {what}; resuming it (use resume=never to start a new run)");
        return resume_locked(settings, run, lock, prepared);
    }
    let (run, lock) = runs::create(settings, name, prepared.init.as_ref())?;
    Ok(Work { settings: settings.clone(), run, prepared, checkpoint: None, _lock: Some(lock) })
}

/// Reports errors of the evaluation before training.
pub fn check_evaluation(settings: &RunConfig, prepared: &Prepared) -> Result<()> {
    if settings.evaluation.plays() {
        let returns = prepared.data.episode_returns();
        let no_choice = OwnChoice::default();
        evaluate::requests(&settings.evaluation, &prepared.agent, &returns, &no_choice)?;
    }
    Ok(())
}

/// `overtone resume [run=…]`; returns the exit code.
pub fn resume(words: &[String]) -> Result<u8> {
    together(|| plan_resume_command(words))
}

fn plan_resume_command(words: &[String]) -> Result<Option<Work>> {
    let is_setting =
        |word: &&String| word.split_once('=').is_some_and(|(key, _)| key.contains('.'));
    if let Some(word) = words.iter().find(is_setting) {
        bail!(
            "{word} cannot change when a run resumes. To fine-tune, start a new run: `overtone \
             train init=RUN {word}`"
        );
    }
    let ResumeOptions { run, runs, device } = options::read(words)?;
    let run = open_run(&runs, &run)?;
    let mut settings = RunConfig::load(&run.path().join(CONFIG))?;
    if !device.is_empty() {
        settings.device = device;
    }
    plan_resume(&settings, &run)
}

/// Resumes a run, unless it is finished and evaluated; a second evaluation would replace its
/// report.
pub fn resume_run(settings: &RunConfig, run: &RunDir) -> Result<u8> {
    plan_resume(settings, run)?.map_or(Ok(0), Work::carry_out)
}

/// The work on an existing run; `None` if it is finished and evaluated.
fn plan_resume(settings: &RunConfig, run: &RunDir) -> Result<Option<Work>> {
    let evaluation = &settings.evaluation;
    let played = evaluation.episodes > 0 && evaluate::is_played(run, evaluation).unwrap_or(false);
    if is_finished(run) && played {
        let path = run.path();
        let again = format!("overtone evaluate rollouts run={}", quoted(path));
        say!("{} is finished and evaluated. To evaluate it again: `{again}`", path.display());
        return Ok(None);
    }
    processes::check_parts(settings.train.micro_batches)?;
    // Before the data is read, which may take minutes.
    device::choose(&settings.device)?;
    let lock = run.lock()?;
    let prepared = prepare(settings, settings.initial(Some(run))?)?;
    resume_locked(settings, run.clone(), lock, prepared).map(Some)
}

fn resume_locked(
    settings: &RunConfig,
    run: RunDir,
    lock: RunLock,
    prepared: Prepared,
) -> Result<Work> {
    let checkpoint = runs::newest_checkpoint(&run)?;
    Ok(Work { settings: settings.clone(), run, prepared, checkpoint, _lock: Some(lock) })
}

/// The message from process 0 to the others about the run.
#[derive(Serialize, Deserialize)]
struct WorkMessage {
    run: String,
    /// The step of the checkpoint to resume from.
    step: Option<u64>,
    device: String,
}

/// Runs `plan` on all processes that were started together; returns the exit code. Process 0 plans
/// and prepares the data, and the others read it.
fn together(plan: impl FnOnce() -> Result<Option<Work>>) -> Result<u8> {
    processes::joined(|processes| {
        if processes.rank() > 0 {
            let message = broadcast(processes, &[]).map_err(TrainError::from)?;
            // Process 0 prints the reason for the missing work.
            return if message.is_empty() {
                Ok(0)
            } else {
                carry_out(work_of(&message), processes)
            };
        }
        let plan = plan();
        let message = match &plan {
            Ok(Some(work)) => serde_json::to_vec(&WorkMessage {
                run: work.run.path().to_string_lossy().into_owned(),
                step: work.checkpoint.as_ref().map(|checkpoint| checkpoint.state.step),
                device: work.settings.device.clone(),
            })
            .unwrap_or_default(),
            Ok(None) | Err(_) => Vec::new(),
        };
        broadcast(processes, &message).map_err(TrainError::from)?;
        plan?.map_or(Ok(0), |work| carry_out(Ok(work), processes))
    })
}

/// The work in the message from process 0.
fn work_of(message: &[u8]) -> Result<Work> {
    let WorkMessage { run, step, device } = serde_json::from_slice(message)?;
    let run = RunDir::open(Path::new(""), &run)?;
    let mut settings = RunConfig::load(&run.path().join(CONFIG))?;
    settings.device = processes::own_device(device);
    let checkpoint = step.map(|step| Checkpoint::at_step(&run.checkpoints(), step)).transpose()?;
    let prepared = prepare(&settings, settings.initial(Some(&run))?)?;
    Ok(Work { settings, run, prepared, checkpoint, _lock: None })
}

/// Trains with all processes and evaluates with process 0; returns the exit code. If one process
/// cannot start, none does.
fn carry_out(work: Result<Work>, processes: &dyn Processes) -> Result<u8> {
    let (n, leads) = (processes.count(), processes.rank() == 0);
    let ready = work.and_then(|work| {
        let Work { settings, run, prepared, checkpoint, _lock } = work;
        let device = device::choose(&settings.device)?;
        let Prepared { data, agent, init } = prepared;
        let job = Job {
            run: run.clone(),
            config: settings.train.clone(),
            data,
            agent: agent.to_value(),
            seed: settings.seed,
            device: device.device.clone(),
            init,
            resume: checkpoint,
        };
        let trainer = agent.algorithm.trainer(&agent.task, job)?;
        if leads {
            let (done, n_updates) = (trainer.state().step, trainer.n_updates());
            provenance::note(&run, done, n_updates, n)?;
        }
        Ok((settings, run, agent.algorithm, device, trainer, interrupt::listen()?, _lock))
    });
    let (settings, run, algorithm, device, trainer, stop, _lock) = on_all(processes, ready)?;
    let RunConfig { device: device_name, train, evaluation, .. } = &settings;
    say!("profile: {}", settings.describe_profile());
    match n {
        1 => say!("device: {}", device.name),
        _ => say!("device: {}", processes::describe(n, &device)),
    }
    if device.is_gpu {
        say!("kernels: compiled during the first steps, which takes 10 to 30 s");
    }
    let described = match algorithm.model() {
        None => algorithm.describe(),
        Some(model) => format!("{}, context {}", algorithm.describe(), model.context_length()),
    };
    say!(
        "model: {} parameters, {}; {} updates of {} contexts",
        trainer.n_parameters(),
        described,
        trainer.n_updates(),
        train.batch_size
    );
    for Shortened { key, requested, taken } in trainer.shortened() {
        let all = match key.starts_with("train.warmup") {
            true => " (train.reference_schedule=true uses all)",
            false => "",
        };
        say!(
            "{key}: {taken:.1} updates, a tenth of the run, instead of the {requested:.0} of the \
             settings{all}"
        );
    }
    if let Some(began) = &trainer.state().init_source {
        let InitSource { run, step, sha256 } = began;
        say!("init: weights of {run} after update {step}, SHA-256 {sha256}");
    }
    say!("{}", trainer.memory());
    let runs = run.path().parent().filter(|runs| !runs.as_os_str().is_empty());
    let runs = quoted(runs.unwrap_or(Path::new(".")));
    say!("run: {} (curves: tensorboard --logdir {runs})", run.path().display());
    let (done, n_updates) = (trainer.state().step, trainer.n_updates());
    let due = Due::of(&settings, n_updates);
    if !leads {
        let finished = trainer.train_among(processes, &stop, &mut SilentObserver { due });
        return finished.map(|_| 0).map_err(|error| lost(error, &run));
    }
    host::run_is(run.path());
    let written = hyperparameters(&settings)
        .and_then(|settings| Ok(metrics::write_settings(run.path(), &settings)?));
    if let Err(error) = written {
        warn!("warning: cannot write the settings for TensorBoard's tab HParams: {error:#}");
    }
    let curve = due.map(|due| Curve::new(&settings, due, done, &run, &device, &stop));
    let mut printer = Printer::new(done, n_updates, curve);
    let finished = trainer
        .train_among(processes, &stop, &mut printer)
        .inspect_err(|_| printer.bar.abandon())
        .map_err(|error| lost(error, &run))?;
    printer.bar.finish();
    print_finished(&finished);
    if let Some(line) = printer.curve.as_ref().and_then(Curve::cost) {
        say!("{line}");
    }
    let stopped = || {
        match host::stop() {
            Some(_) => say!(
                "Interrupted. {} has a checkpoint, and the same call resumes it",
                run.path().display()
            ),
            None => say!("Interrupted. Resume with: overtone resume run={}", quoted(run.path())),
        }
        Ok(interrupt::EXIT_CODE)
    };
    if finished.interrupted {
        return stopped();
    }
    finish(&run)?;
    match judge_without_environment(&settings, &run, &finished.checkpoint) {
        Err(error) if interrupt::is_stop(&error) => return stopped(),
        judged => judged?,
    }
    if evaluation.episodes == 0 {
        return Ok(0);
    }
    let checkpoint = &finished.checkpoint;
    let chosen = evaluate::choose_after_training(&run, checkpoint, evaluation, device_name, &stop);
    let played =
        chosen.and_then(|()| evaluate::play(&run, checkpoint, evaluation, device_name, &stop));
    match played {
        Err(error) if interrupt::is_stop(&error) => stopped(),
        played => {
            played.with_context(|| format!("evaluating {}", checkpoint.path.display()))?;
            Ok(0)
        }
    }
}

/// The settings for TensorBoard's tab HParams, without directory, device and `resume`.
fn hyperparameters(settings: &RunConfig) -> Result<Vec<(String, Setting)>> {
    let all = keys::flatten(&settings.to_table()?);
    let own = all.iter().filter(|(key, _)| !["runs", "resume", "device"].contains(&key.as_str()));
    let setting = |value: &toml::Value| match value {
        toml::Value::Boolean(flag) => Setting::Flag(*flag),
        toml::Value::Integer(number) => Setting::Number(*number as f64),
        toml::Value::Float(number) => Setting::Number(*number),
        other => Setting::Word(keys::plain(other)),
    };
    Ok(own.map(|(key, value)| (key.clone(), setting(value))).collect())
}

/// Judges an agent without an environment, and prints how to use it.
fn judge_without_environment(
    settings: &RunConfig,
    run: &RunDir,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let task = settings.task()?;
    if suites::of(task)?.has_environments() {
        return Ok(());
    }
    judge::after_training(run, checkpoint, &settings.evaluation.target)?;
    say!(
        "{} does not have an environment, so the agent has no score. Use it from Python: \
         overtone.load(\"{}\").policy()",
        task.id(),
        run.path().display()
    );
    Ok(())
}

/// An error of training, with the command to resume if another process is lost.
fn lost(error: TrainError, run: &RunDir) -> anyhow::Error {
    match error {
        TrainError::Lost { .. } => {
            anyhow!("{error}. Resume with: overtone resume run={}", quoted(run.path()))
        }
        error => error.into(),
    }
}
