//! What carries cells out: processes here, or jobs of a Slurm cluster.

use std::{
    borrow::Borrow,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
};

use anyhow::{Context, Result};
use overtone_console::caller::quoted;
use overtone_study::{
    Share, Study, StudyFolder, Work,
    local::{self, Ended, Event, Job},
    slurm,
};

use super::cells::{KnownRuns, Resolved};
use crate::{command::train, host, interrupt, progress};

/// Most cells at once that nobody asked for: each needs memory for its data.
const MOST_AT_ONCE: usize = 8;

/// Does cells in processes of this machine; gives the exit code: 1 where one failed, that of
/// Ctrl-C where it was asked to end.
pub fn local(study: &Study, folder: &StudyFolder, open: &[&Resolved]) -> Result<u8> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if study.executor.cpus == 0 { all } else { study.executor.cpus };
    let program = host::program()?;
    let stop = interrupt::listen()?;
    let mut failed = 0;
    let mut phase = |works: Vec<Work>| {
        let at_once = match study.executor.jobs {
            // Processes of one thread wait for nothing: never slower than one process with all
            // cores, and quicker with small models (docs/scaling.md).
            0 => cores.clamp(1, MOST_AT_ONCE),
            n => n,
        };
        let at_once = at_once.min(works.len());
        let threads = (cores / at_once.max(1)).max(1);
        let n = works.len();
        say!("{}, {at_once} at once with {threads} threads each", told(&works));
        let job = |work: &Work| {
            let mut command = Command::new(&program);
            command.args(["study", "cell", "--until-input-ends"]).arg(folder.path());
            command.arg(work.to_string());
            command.env("RAYON_NUM_THREADS", threads.to_string());
            Job { id: work.to_string(), command, log: folder.log(work) }
        };
        let jobs: Vec<Job> = works.iter().map(job).collect();
        let mut done = 0;
        let bar = progress::lines("cells", jobs.len());
        let ended = local::run(jobs, at_once, &stop, &mut |event| match event {
            Event::Started(id) => say!("begins: {id}"),
            Event::Ended(id, how) => {
                done += 1;
                bar.inc(1);
                match how {
                    Ended::Done => say!("done ({done} of {n}): {id}"),
                    Ended::Stopped => say!("stopped: {id}"),
                    Ended::Failed(why) => {
                        warn!("failed: {id}: {why}");
                        // A process that was killed could not say why.
                        let work = works.iter().find(|work| work.to_string() == *id);
                        let is_noted =
                            |work: &&Work| folder.failure(std::slice::from_ref(*work)).is_some();
                        if let Some(work) = work.filter(|work| !is_noted(work)) {
                            folder.note_failure(work, Some(why));
                        }
                    }
                }
            }
        });
        failed += ended.iter().filter(|(_, how)| matches!(how, Ended::Failed(_))).count();
    };
    let [first, second] = phases(study, open);
    let mut n = first.len();
    if !first.is_empty() {
        phase(first);
    }
    let trained = trained(open);
    let second: Vec<Work> =
        second.into_iter().filter(|work| trained.contains(&&*work.cell)).collect();
    if !second.is_empty() && !stop.load(Ordering::Relaxed) {
        n += second.len();
        phase(second);
    }
    if stop.load(Ordering::Relaxed) {
        say!("stopped; go on with: just study resume {}", named(study, open));
        return Ok(interrupt::EXIT_CODE);
    }
    if failed > 0 {
        warn!(
            "error: {failed} of {n} {} failed; `just study status {name}` says why, and `just study \
             resume {name}` tries them again",
            if study.executor.parts < 2 { "cells" } else { "processes" },
            name = named(study, open)
        );
        return Ok(1);
    }
    Ok(0)
}

/// What is done first, and what when that ended: all of each cell; or its training, and then the
/// parts of its playing.
fn phases(study: &Study, open: &[&Resolved]) -> [Vec<Work>; 2] {
    let trained = trained(open);
    let works = open.iter().flat_map(|resolved| Work::of(&resolved.cell.id, study.executor.parts));
    let (second, first) = works
        .filter(|work| work.share != Share::Training || !trained.contains(&&*work.cell))
        .partition(|work| matches!(work.share, Share::Part { .. }));
    [first, second]
}

/// The ids of those cells whose runs have only to be played.
fn trained<'a>(open: &[&'a Resolved]) -> Vec<&'a str> {
    let Some(first) = open.first() else { return Vec::new() };
    let known = KnownRuns::read(&first.settings.runs);
    let is_trained = |resolved: &&&Resolved| {
        known.of(resolved).is_some_and(|run| train::is_trained(run, &resolved.settings))
    };
    open.iter().filter(is_trained).map(|resolved| &*resolved.cell.id).collect()
}

/// What a study of such cells is called in a command: its name, and where its runs lie.
pub fn named(study: &Study, cells: &[impl Borrow<Resolved>]) -> String {
    let runs = cells.first().map(|first| first.borrow().settings.runs.as_path());
    match runs.filter(|runs| *runs != Path::new("runs")) {
        None => study.name.clone(),
        Some(runs) => format!("{} runs={}", study.name, quoted(runs)),
    }
}

/// `3 cells to do`, `3 cells to train`, `12 parts to play`.
fn told(works: &[Work]) -> String {
    let (thing, what) = match works.first().map(|work| work.share) {
        Some(Share::Part { .. }) => ("part", "play"),
        Some(Share::Training) => ("cell", "train"),
        _ => ("cell", "do"),
    };
    match works.len() {
        1 => format!("1 {thing} to {what}"),
        n => format!("{n} {thing}s to {what}"),
    }
}

/// Hands cells to Slurm and returns.
///
/// # Errors
/// When Slurm is not there or refuses.
pub fn slurm(study: &Study, folder: &StudyFolder, open: &[&Resolved]) -> Result<()> {
    let program = host::program()?;
    let at = absolute(folder.path())?;
    let scripts = [
        ("job.sh", slurm::job_script(&study.name, &study.executor, &program, &at)),
        ("report.sh", slurm::report_script(&study.name, &study.executor, &program, &at)),
    ];
    for (name, script) in scripts {
        let path = folder.path().join(name);
        if path.exists() {
            say!(
                "{} is there and stays as it is (remove it for one by the options)",
                path.display()
            );
        } else {
            folder.write_file(name, &script)?;
        }
    }
    let at_once = study.executor.jobs;
    // The arrays of the phase before.
    let mut before = Vec::new();
    for works in phases(study, open).into_iter().filter(|works| !works.is_empty()) {
        let mut arrays = Vec::new();
        for works in works.chunks(slurm::MOST_TASKS) {
            // At most so many at once are those of one array: then arrays follow each other.
            let after = match arrays.last() {
                Some(last) if at_once > 0 => std::slice::from_ref(last),
                _ => &before[..],
            };
            let list = folder.list(works)?;
            let job = slurm::submit(&at, &list, works.len(), at_once, after)?;
            folder.add_job(job, &list)?;
            say!("in Slurm's queue as job {job}: {}", told(works));
            arrays.push(job);
        }
        before = arrays;
    }
    if before.is_empty() {
        return Ok(());
    }
    let report = slurm::submit_report(&at, &before)?;
    say!(
        "the page is written by job {report}, when they ended: {}",
        at.join("report.html").display()
    );
    say!("where they stand: just study status {}", named(study, open));
    Ok(())
}

/// An absolute path, for scripts that run elsewhere.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}", path.display()))
}
