//! One cell, done by a process of its own.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    io::Read,
    path::Path,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
};

use anyhow::{Context, Result, anyhow};
use overtone_console::errors;
use overtone_study::StudyFolder;
use overtone_train::Checkpoint;

use super::cells::{self, KnownRuns, Resolved};
use crate::{
    command::{evaluate, train},
    interrupt,
};

/// Does a cell of the study in `folder`: begins its run, or resumes it, and plays it; gives the
/// exit code. Why it failed is noted in the study's folder.
pub fn cell(folder: &Path, id: &str, until_input_ends: bool) -> Result<u8> {
    let folder = StudyFolder::find(Path::new(""), &folder.display().to_string())?;
    let study = folder.study()?;
    let stop = interrupt::listen()?;
    if until_input_ends {
        end_with_input(stop.clone());
    }
    let _lock = folder.lock(id)?;
    folder.note_failure(id, None);
    let resolved = cells::resolve_one(&study, id)
        .inspect_err(|error| folder.note_failure(id, Some(&errors::sentence(error))))?;
    let before = if is_restarted() { kept_of_playing(&resolved) } else { None };
    // Of the cell alone: `-2` and `-3` behind it would depend on who began first.
    let name = format!("{}-{}", study.name, resolved.cell.id);
    let mut ended = train(&resolved, &name).and_then(|code| match code {
        0 => play(&resolved, &stop),
        code => Ok(code),
    });
    let is_stopped = match &ended {
        Ok(code) => *code == interrupt::EXIT_CODE,
        Err(error) => interrupt::is_stop(error),
    };
    if is_stopped {
        // What was asked to end did not fail; but a job that keeps nothing would begin for ever.
        if before.is_none() || before != kept_of_playing(&resolved) {
            return Ok(interrupt::EXIT_CODE);
        }
        ended = Err(anyhow!(
            "playing was stopped in one job after the other, and begins anew in each: give a \
             longer time= (remove job.sh first)"
        ));
    }
    if let Err(error) = &ended {
        folder.note_failure(id, Some(&errors::sentence(error)));
    }
    ended
}

/// Whether this process is of a job that Slurm began before.
fn is_restarted() -> bool {
    let restarts = std::env::var("SLURM_RESTART_COUNT").ok().and_then(|n| n.parse::<u64>().ok());
    restarts.is_some_and(|n| n > 0)
}

/// The files that playing a cell's run has left: reports, and those of its newest checkpoint, among
/// them the acting mode. None if the run is not at its end.
fn kept_of_playing(resolved: &Resolved) -> Option<BTreeSet<OsString>> {
    let known = KnownRuns::read(&resolved.settings.runs);
    let run = known.of(resolved).filter(|run| train::is_finished(run))?;
    let names = |folder: &Path| -> Vec<OsString> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    };
    let newest = Checkpoint::newest(&run.checkpoints()).ok();
    let mut kept: BTreeSet<OsString> =
        newest.map(|(newest, _)| names(&newest.path)).unwrap_or_default().into_iter().collect();
    let reports = names(run.path()).into_iter();
    kept.extend(reports.filter(|name| name.to_string_lossy().starts_with("evaluation")));
    Some(kept)
}

fn train(resolved: &Resolved, name: &str) -> Result<u8> {
    let settings = &resolved.settings;
    match KnownRuns::read(&settings.runs).of(resolved) {
        Some(run) => train::take_up(settings, run),
        None => train::begin(settings, name),
    }
}

/// Plays what was not played yet of the cell's run.
fn play(resolved: &Resolved, stop: &AtomicBool) -> Result<u8> {
    let settings = &resolved.settings;
    let known = KnownRuns::read(&settings.runs);
    let run = known.of(resolved).filter(|run| train::is_finished(run));
    let run = run.context("its run is not at its end, so there is nothing to play")?;
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
