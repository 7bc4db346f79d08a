//! Engines that run cells: local processes, or jobs of a Slurm cluster.

use std::{
    borrow::Borrow,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
};

use anyhow::{Context, Result};
use overtone_console::{progress, quoted};
use overtone_study::{
    Study, StudyFolder,
    local::{self, Ended, Event, Job},
    slurm,
};

use super::cells::Resolved;
use crate::{host, interrupt};

/// Default maximum of parallel cells, because each needs memory for its data.
const MOST_AT_ONCE: usize = 8;

/// Runs cells in processes of this machine; returns the exit code: 1 if a cell failed, or Ctrl-C's
/// after an interrupt.
pub fn local(study: &Study, folder: &StudyFolder, open: &[&Resolved]) -> Result<u8> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if study.executor.cpus == 0 { all } else { study.executor.cpus };
    let program = host::program()?;
    let stop = interrupt::listen()?;
    let at_once = match study.executor.jobs {
        // Processes of one thread do not wait for each other: never slower than one process with
        // all cores, and faster with small models (docs/scaling.md).
        0 => cores.clamp(1, MOST_AT_ONCE),
        n => n,
    };
    let n = open.len();
    let at_once = at_once.min(n);
    let threads = (cores / at_once.max(1)).max(1);
    say!("{}, {at_once} in parallel with {threads} threads each", to_do(n));
    let job = |resolved: &&Resolved| {
        let id = &resolved.cell.id;
        let mut command = Command::new(&program);
        command.args(["study", "cell"]).arg(folder.path()).arg(id);
        command.arg("until_input_ends=true");
        command.env("RAYON_NUM_THREADS", threads.to_string());
        Job { id: id.clone(), command, log: folder.log(id) }
    };
    let jobs: Vec<Job> = open.iter().map(job).collect();
    let mut done = 0;
    let bar = progress::lines("cells", n);
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
                    // A killed process could not record its error.
                    if folder.failure(id).is_none() {
                        folder.note_failure(id, Some(why));
                    }
                }
            }
        }
    });
    let failed = ended.iter().filter(|(_, how)| matches!(how, Ended::Failed(_))).count();
    if stop.load(Ordering::Relaxed) {
        say!("Interrupted. Resume with: overtone study resume {}", named(study, open));
        return Ok(interrupt::EXIT_CODE);
    }
    if failed > 0 {
        warn!(
            "error: {failed} of {n} cells failed. See the reasons with `overtone study status \
             {name}`, and retry with `overtone study resume {name}`",
            name = named(study, open)
        );
        return Ok(1);
    }
    Ok(0)
}

/// A study in a command: its name, and the directory of its runs.
pub fn named(study: &Study, cells: &[impl Borrow<Resolved>]) -> String {
    let runs = cells.first().map(|first| first.borrow().settings.runs.as_path());
    match runs.filter(|runs| *runs != Path::new("runs")) {
        None => study.name.clone(),
        Some(runs) => format!("{} runs={}", study.name, quoted(runs)),
    }
}

/// `3 cells to run`
fn to_do(n: usize) -> String {
    if n == 1 { "1 cell to run".into() } else { format!("{n} cells to run") }
}

/// Submits cells to Slurm and returns.
///
/// # Errors
/// When Slurm is missing or refuses the jobs.
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
            say!("{} exists and is kept (remove it to write one from the options)", path.display());
        } else {
            folder.write_file(name, &script)?;
        }
    }
    let at_once = study.executor.jobs;
    let ids: Vec<&str> = open.iter().map(|resolved| &*resolved.cell.id).collect();
    let mut arrays = Vec::new();
    for ids in ids.chunks(slurm::MOST_TASKS) {
        // A limit on parallel jobs holds within an array, so arrays follow each other.
        let after = arrays.last().filter(|_| at_once > 0);
        let list = folder.list(ids)?;
        let job = slurm::submit(&at, &list, ids.len(), at_once, after.copied())?;
        folder.add_job(job, &list)?;
        say!("in Slurm's queue as job {job}: {}", to_do(ids.len()));
        arrays.push(job);
    }
    let report = slurm::submit_report(&at, &arrays)?;
    say!("job {report} writes the report after them: {}", at.join("report.html").display());
    say!("see their status: overtone study status {}", named(study, open));
    Ok(())
}

/// An absolute path, for scripts that run elsewhere.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}", path.display()))
}
