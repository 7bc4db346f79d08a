//! One cell, done by a process of its own.

use std::{
    io::Read,
    path::Path,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
};

use anyhow::{Context, Result, bail};
use overtone_console::errors;
use overtone_study::StudyFolder;
use overtone_train::Checkpoint;

use super::cells::{self, KnownRuns, Resolved};
use crate::{
    command::{evaluate, train},
    interrupt,
};

/// Does the cell of this id of the study in `folder`: begins its run, or goes on with it, and
/// plays it; gives the exit code. Why it failed is noted in the study's folder.
pub fn cell(folder: &Path, id: &str, until_input_ends: bool) -> Result<u8> {
    let folder = StudyFolder::find(Path::new(""), &folder.display().to_string())?;
    let all = cells::resolve(&folder.study()?)?;
    let Some(resolved) = all.into_iter().find(|resolved| resolved.cell.id == id) else {
        bail!("the study in {} has no cell `{id}` any more", folder.path().display());
    };
    let stop = interrupt::listen()?;
    if until_input_ends {
        end_with_input(stop.clone());
    }
    let _lock = folder.lock(&resolved.cell)?;
    folder.note_failure(&resolved.cell, None);
    let ended = work(&resolved, &stop);
    if let Err(error) = &ended {
        folder.note_failure(&resolved.cell, Some(&errors::sentence(error)));
    }
    ended
}

fn work(resolved: &Resolved, stop: &AtomicBool) -> Result<u8> {
    let settings = &resolved.settings;
    let known = || KnownRuns::read(&settings.runs);
    let code = match known().of(resolved) {
        Some(run) => train::take_up(settings, run)?,
        None => train::begin(settings)?,
    };
    if code != 0 || resolved.again.is_empty() {
        return Ok(code);
    }
    let known = known();
    let run = known.of(resolved).context("the run that was trained cannot be found")?;
    let awaited: Vec<_> = resolved.awaited(run).collect();
    if awaited.is_empty() {
        return Ok(0);
    }
    let _lock = run.lock()?;
    let (checkpoint, _) = Checkpoint::newest(&run.checkpoints())?;
    for evaluation in awaited {
        evaluate::play(run, &checkpoint, evaluation, &settings.device, stop)
            .with_context(|| format!("evaluating {}", checkpoint.path.display()))?;
    }
    Ok(0)
}

/// Ends what is under way when whoever started this process closes its input, or is gone.
fn end_with_input(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
}
