//! What carries cells out: processes here, or jobs of a Slurm cluster.

use std::{
    borrow::Borrow,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
};

use anyhow::{Context, Result};
use overtone_console::quoted;
use overtone_study::{
    Study, StudyFolder,
    local::{self, Ended, Event, Job},
    slurm,
};

use super::cells::Resolved;
use crate::{host, interrupt, progress};

/// Most cells at once that nobody asked for: each needs memory for its data.
const MOST_AT_ONCE: usize = 8;

/// Does cells in processes of this machine; gives the exit code: 1 where one failed, that of
/// Ctrl-C where it was asked to end.
pub fn local(study: &Study, folder: &StudyFolder, open: &[&Resolved]) -> Result<u8> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if study.executor.cpus == 0 { all } else { study.executor.cpus };
    let program = host::program()?;
    let stop = interrupt::listen()?;
    let at_once = match study.executor.jobs {
        // Processes of one thread wait for nothing: never slower than one process with all
        // cores, and quicker with small models (docs/scaling.md).
        0 => cores.clamp(1, MOST_AT_ONCE),
        n => n,
    };
    let n = open.len();
    let at_once = at_once.min(n);
    let threads = (cores / at_once.max(1)).max(1);
    say!("{}, {at_once} at once with {threads} threads each", to_do(n));
    let job = |resolved: &&Resolved| {
        let id = &resolved.cell.id;
        let mut command = Command::new(&program);
        command.args(["study", "cell", "--until-input-ends"]).arg(folder.path());
        command.arg(id);
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
                    // A process that was killed could not say why.
                    if folder.failure(id).is_none() {
                        folder.note_failure(id, Some(why));
                    }
                }
            }
        }
    });
    let failed = ended.iter().filter(|(_, how)| matches!(how, Ended::Failed(_))).count();
    if stop.load(Ordering::Relaxed) {
        say!("stopped; go on with: overtone study resume {}", named(study, open));
        return Ok(interrupt::EXIT_CODE);
    }
    if failed > 0 {
        warn!(
            "error: {failed} of {n} cells failed; `overtone study status {name}` says why, and `overtone study \
             resume {name}` tries them again",
            name = named(study, open)
        );
        return Ok(1);
    }
    Ok(0)
}

/// What a study of such cells is called in a command: its name, and where its runs lie.
pub fn named(study: &Study, cells: &[impl Borrow<Resolved>]) -> String {
    let runs = cells.first().map(|first| first.borrow().settings.runs.as_path());
    match runs.filter(|runs| *runs != Path::new("runs")) {
        None => study.name.clone(),
        Some(runs) => format!("{} runs={}", study.name, quoted(runs)),
    }
}

/// `3 cells to do`
fn to_do(n: usize) -> String {
    if n == 1 { "1 cell to do".into() } else { format!("{n} cells to do") }
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
    let ids: Vec<&str> = open.iter().map(|resolved| &*resolved.cell.id).collect();
    let mut arrays = Vec::new();
    for ids in ids.chunks(slurm::MOST_TASKS) {
        // At most so many at once are those of one array: then arrays follow each other.
        let after = arrays.last().filter(|_| at_once > 0);
        let list = folder.list(ids)?;
        let job = slurm::submit(&at, &list, ids.len(), at_once, after.copied())?;
        folder.add_job(job, &list)?;
        say!("in Slurm's queue as job {job}: {}", to_do(ids.len()));
        arrays.push(job);
    }
    let report = slurm::submit_report(&at, &arrays)?;
    say!(
        "the page is written by job {report}, when they ended: {}",
        at.join("report.html").display()
    );
    say!("where they stand: overtone study status {}", named(study, open));
    Ok(())
}

/// An absolute path, for scripts that run elsewhere.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}", path.display()))
}
