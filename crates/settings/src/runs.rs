//! Runs and checkpoints by the names in a command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use overtone_train::{Checkpoint, RunDir};

/// Opens the run called `name`; the newest if `name` is empty.
///
/// # Errors
/// When it does not exist.
pub fn open_run(root: &Path, name: &str) -> Result<RunDir> {
    Ok(if name.is_empty() { RunDir::newest(root)? } else { RunDir::open(root, name)? })
}

/// Opens the runs of comma-separated `names`. A single name may contain a comma.
pub fn open_runs(root: &Path, names: &str) -> Result<Vec<RunDir>> {
    match open_run(root, names) {
        Ok(run) => Ok(vec![run]),
        Err(error) if !names.contains(',') => Err(error),
        Err(_) => {
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            ensure!(
                !names.contains(&""),
                "run={}: one of the names is empty. Leave the extra comma out",
                names.join(",")
            );
            names.into_iter().map(|name| open_run(root, name)).collect()
        }
    }
}

/// Opens the checkpoint `last`, `best`, of a step, or in a directory.
pub fn open_checkpoint(run: &RunDir, name: &str) -> Result<Checkpoint> {
    ensure!(
        !name.is_empty(),
        "checkpoint=: expected last, best, a step or a checkpoint's directory"
    );
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

/// Whether `checkpoint` has a run's newest weights.
pub fn is_last(run: &RunDir, checkpoint: &Checkpoint) -> bool {
    let newest = Checkpoint::newest(&run.checkpoints());
    newest.is_ok_and(|(newest, _)| newest.state.step == checkpoint.state.step)
}

/// # Errors
/// When `checkpoint` does not belong to `run`, whose directory would get its report.
pub fn check_own(run: &RunDir, checkpoint: &Checkpoint) -> Result<()> {
    ensure!(
        own_path(run, &checkpoint.path).is_some(),
        "checkpoint={}: does not belong to {}. Set its own run with run=, or the output with out=",
        checkpoint.path.display(),
        run.path().display()
    );
    Ok(())
}

/// The value of `checkpoint=` for a checkpoint: a step of the run, or a directory elsewhere.
pub fn checkpoint_name(run: &RunDir, checkpoint: &Checkpoint) -> String {
    match own_path(run, &checkpoint.path) {
        Some(_) => checkpoint.state.step.to_string(),
        None => real(&checkpoint.path).display().to_string(),
    }
}

/// The path of a checkpoint in the run's directory; `None` if it does not belong to the run.
pub fn own_path(run: &RunDir, checkpoint: &Path) -> Option<PathBuf> {
    let checkpoint = real(checkpoint);
    let inside = checkpoint.strip_prefix(real(&run.checkpoints())).ok()?;
    Some(Path::new("checkpoints").join(inside))
}

/// The absolute path without links, or the path itself if it does not exist.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
