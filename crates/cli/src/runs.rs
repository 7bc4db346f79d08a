//! Which runs and checkpoints a command means, by their names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use overtone_train::{Checkpoint, RunDir};

/// The run of this name; the newest without a name.
///
/// # Errors
/// When it is not there.
pub fn open_run(root: &Path, name: &str) -> Result<RunDir> {
    Ok(if name.is_empty() { RunDir::newest(root)? } else { RunDir::open(root, name)? })
}

/// The runs of these names, separated by commas; one whose own name has a comma by that.
pub fn open_runs(root: &Path, names: &str) -> Result<Vec<RunDir>> {
    match open_run(root, names) {
        Ok(run) => Ok(vec![run]),
        Err(error) if !names.contains(',') => Err(error),
        Err(_) => {
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            ensure!(!names.contains(&""), "run={}: one of the names is empty", names.join(","));
            names.into_iter().map(|name| open_run(root, name)).collect()
        }
    }
}

/// `last`, `best`, a step, or a folder.
pub fn open_checkpoint(run: &RunDir, name: &str) -> Result<Checkpoint> {
    ensure!(!name.is_empty(), "checkpoint=: say last, best, a step or the folder of a checkpoint");
    if name == "last" || name == "best" {
        let (checkpoint, skipped) = match name {
            "last" => Checkpoint::newest(&run.checkpoints())?,
            _ => Checkpoint::best(&run.checkpoints()).context("checkpoint=best")?,
        };
        for error in skipped {
            warn!("warning: skipped a checkpoint: {error}");
        }
        return Ok(checkpoint);
    }
    Ok(match name.parse::<u64>() {
        Ok(step) => Checkpoint::at_step(&run.checkpoints(), step)?,
        Err(_) => Checkpoint::open(Path::new(name))?,
    })
}

/// Whether a run has no newer weights.
pub fn is_last(run: &RunDir, checkpoint: &Checkpoint) -> bool {
    let newest = Checkpoint::newest(&run.checkpoints());
    newest.is_ok_and(|(newest, _)| newest.state.step == checkpoint.state.step)
}

/// # Errors
/// When what is said of `checkpoint` would go into the folder of `run`, which is not its own.
pub fn check_own(run: &RunDir, checkpoint: &Checkpoint) -> Result<()> {
    ensure!(
        own_path(run, &checkpoint.path).is_some(),
        "checkpoint={}: is not one of {}: name the run that it belongs to (run=), or say with out= \
         where the evaluation goes",
        checkpoint.path.display(),
        run.path().display()
    );
    Ok(())
}

/// What `checkpoint=` must say to play a checkpoint again: a step of the run, or a folder
/// elsewhere.
pub fn checkpoint_name(run: &RunDir, checkpoint: &Checkpoint) -> String {
    match own_path(run, &checkpoint.path) {
        Some(_) => checkpoint.state.step.to_string(),
        None => real(&checkpoint.path).display().to_string(),
    }
}

/// Where a checkpoint lies in the run's folder; `None` if it is not one of the run's.
pub fn own_path(run: &RunDir, checkpoint: &Path) -> Option<PathBuf> {
    let checkpoint = real(checkpoint);
    let inside = checkpoint.strip_prefix(real(&run.checkpoints())).ok()?;
    Some(Path::new("checkpoints").join(inside))
}

/// The path from the root, without links; the path itself where there is nothing.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
