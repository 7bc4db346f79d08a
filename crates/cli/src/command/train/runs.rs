//! The runs of exactly one configuration: finding an unfinished one, and making a new one.

use anyhow::{Context, Result};
use overtone_settings::RunConfig;
use overtone_train::{Checkpoint, Initial, RunDir, RunLock, TrainError, run_dir::CONFIG};

/// File in a run's directory that marks finished training, before the evaluation.
const FINISHED: &str = "finished";

/// The newest run of exactly these settings that lacks updates or, by `is_evaluated`, its evaluation,
/// and that no other process has locked; with this process's lock.
pub fn unfinished(
    settings: &RunConfig,
    is_evaluated: impl Fn(&RunDir) -> bool,
) -> Option<(RunDir, RunLock)> {
    let mut runs = same_settings(settings);
    runs.find_map(|run| {
        if is_finished(&run) && is_evaluated(&run) {
            return None;
        }
        let lock = run.lock().ok()?;
        Some((run, lock))
    })
}

/// Runs of exactly these settings, the newest first. Their own `resume` does not matter.
pub fn same_settings(settings: &RunConfig) -> impl Iterator<Item = RunDir> {
    let without_resume = |text: &str| {
        let mut table: toml::Table = text.parse().ok()?;
        table.remove("resume");
        Some(table)
    };
    let wanted = settings.to_toml().ok().and_then(|text| without_resume(&text));
    let runs = wanted.is_some().then(|| RunDir::all(&settings.runs));
    runs.into_iter().flatten().filter(move |run| {
        let stored = std::fs::read_to_string(run.path().join(CONFIG));
        stored.is_ok_and(|text| without_resume(&text) == wanted)
    })
}

/// Whether a run's training is finished.
pub fn is_finished(run: &RunDir) -> bool {
    run.path().join(FINISHED).exists()
}

/// Marks a run's training as finished.
///
/// # Errors
/// When the file cannot be written.
pub fn finish(run: &RunDir) -> Result<()> {
    run.write(FINISHED, b"").map(drop).map_err(Into::into)
}

/// Makes a run of these settings, called `name` or by its model, seed and task; with this process's
/// lock. `init` is kept in it.
///
/// # Errors
/// When its directory cannot be written.
pub fn create(
    settings: &RunConfig,
    name: Option<&str>,
    init: Option<&Initial>,
) -> Result<(RunDir, RunLock)> {
    // What varies among runs comes first: TensorBoard shows the first 25 letters of a name.
    let from_settings =
        || format!("{}-s{}-{}", settings.model_name(), settings.seed, settings.task_name());
    let name = name.map_or_else(from_settings, str::to_owned);
    let run = RunDir::create(&settings.runs, &name).with_context(|| {
        format!("cannot create a directory for the run in runs={}", settings.runs.display())
    })?;
    // A directory without a configuration is not a run, so it is removed.
    let begun = run.lock().and_then(|lock| {
        init.iter().try_for_each(|init| init.keep_in(&run))?;
        run.write(CONFIG, settings.to_toml().unwrap_or_default().as_bytes()).map(|_| lock)
    });
    let lock = begun.inspect_err(|_| drop(std::fs::remove_dir_all(run.path())))?;
    Ok((run, lock))
}

/// The checkpoint to resume a run from; `None` if it does not have one.
///
/// # Errors
/// When no checkpoint can be read.
pub fn newest_checkpoint(run: &RunDir) -> Result<Option<Checkpoint>> {
    match Checkpoint::newest(&run.checkpoints()) {
        Ok((checkpoint, skipped)) => {
            for error in skipped {
                warn!("warning: skipped a checkpoint: {error}");
            }
            let path = checkpoint.path.display();
            say!("resuming after update {} from {path}", checkpoint.state.step);
            Ok(Some(checkpoint))
        }
        Err(TrainError::NoCheckpoint { .. }) => {
            say!("starting over from update 0, because the run does not have a checkpoint yet");
            Ok(None)
        }
        Err(error) => {
            let run = run.path().display();
            Err(error).with_context(|| {
                format!(
                    "cannot resume {run} (use `overtone train` … resume=never to start a new run)"
                )
            })
        }
    }
}
