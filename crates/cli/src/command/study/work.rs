//! One cell, run by its own process.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    io::Read,
    path::Path,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
};

use anyhow::{Context, Result, anyhow, bail};
use overtone_console::errors;
use overtone_settings::options;
use overtone_study::StudyFolder;
use overtone_train::Checkpoint;

use super::cells::{self, KnownRuns, Resolved};
use crate::{
    command::{evaluate, train},
    interrupt,
};

overtone_model::options! {
    /// Options of `study cell`.
    pub struct CellOptions {
        /// Stop when standard input closes.
        pub until_input_ends: bool = false,
    }
}

/// `overtone study cell DIRECTORY CELL key=value…`: starts or resumes the run of a cell of the study
/// in the directory, and evaluates it; returns the exit code. The directory records the error of a
/// failed cell.
pub fn cell(words: &[String]) -> Result<u8> {
    let [folder, id, words @ ..] = words else {
        bail!("expected the directory of a study and one of its cells");
    };
    let CellOptions { until_input_ends } = options::read(words)?;
    let folder = StudyFolder::find(Path::new(""), folder)?;
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
    // Only the cell's name: the suffixes `-2` and `-3` would depend on the order of starts.
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
        // An interrupted cell did not fail, but a job that saves nothing would restart forever.
        if before.is_none() || before != kept_of_playing(&resolved) {
            return Ok(interrupt::EXIT_CODE);
        }
        ended = Err(anyhow!(
            "the evaluation was stopped in two jobs in a row, and starts over in each. Remove \
             job.sh, and use a longer time="
        ));
    }
    if let Err(error) = &ended {
        folder.note_failure(id, Some(&errors::sentence(error)));
    }
    ended
}

/// Whether this process belongs to a job that Slurm restarted.
fn is_restarted() -> bool {
    let restarts = std::env::var("SLURM_RESTART_COUNT").ok().and_then(|n| n.parse::<u64>().ok());
    restarts.is_some_and(|n| n > 0)
}

/// The files that a cell's evaluations have saved: reports, and files of the newest checkpoint such
/// as the acting mode. `None` if the run is unfinished.
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
        Some(run) => train::resume_run(settings, run),
        None => train::begin(settings, name),
    }
}

/// Runs the missing evaluations of the cell's run.
fn play(resolved: &Resolved, stop: &AtomicBool) -> Result<u8> {
    let settings = &resolved.settings;
    let known = KnownRuns::read(&settings.runs);
    let run = known.of(resolved).filter(|run| train::is_finished(run));
    let run = run.context("its run is unfinished, so it cannot be evaluated")?;
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

/// Sets `stop` when the parent process closes this process's input, or ends.
fn end_with_input(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
}
