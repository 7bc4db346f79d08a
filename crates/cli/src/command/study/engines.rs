//! What carries cells out: processes here, or jobs of a Slurm cluster.

use std::{process::Command, sync::atomic::Ordering};

use anyhow::Result;
use overtone_study::{
    Cell, Study, StudyFolder,
    local::{self, Ended, Event, Job},
    slurm,
};

use super::{begin::absolute, cells::Resolved};
use crate::{host, interrupt};

/// Most cells at once that nobody asked for: each needs memory for its data.
const MOST_AT_ONCE: usize = 8;

/// Does cells in processes of this machine; gives the exit code: 1 where one failed, that of
/// Ctrl-C where it was asked to end.
pub fn local(study: &Study, folder: &StudyFolder, open: &[&Resolved]) -> Result<u8> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if study.executor.cpus == 0 { all } else { study.executor.cpus };
    let at_once = match study.executor.jobs {
        0 => (cores / 2).clamp(1, MOST_AT_ONCE),
        n => n,
    };
    let at_once = at_once.min(open.len());
    let threads = (cores / at_once).max(1);
    say!("{} cells to do, {at_once} at once with {threads} threads each", open.len());
    let program = host::program()?;
    let job = |resolved: &&Resolved| {
        let mut command = Command::new(&program);
        command.args(["study", "cell", "--until-input-ends"]).arg(folder.path());
        command.arg(&resolved.cell.id);
        command.env("RAYON_NUM_THREADS", threads.to_string());
        Job { id: resolved.cell.id.clone(), command, log: folder.log(&resolved.cell) }
    };
    let cell_of = |id: &str| -> Option<&Cell> {
        open.iter().map(|resolved| &resolved.cell).find(|cell| cell.id == id)
    };
    let stop = interrupt::listen()?;
    let jobs: Vec<Job> = open.iter().map(job).collect();
    let n = jobs.len();
    let mut done = 0;
    let ended = local::run(jobs, at_once, &stop, &mut |event| match event {
        Event::Started(id) => say!("begins: {id}"),
        Event::Ended(id, how) => {
            done += 1;
            match how {
                Ended::Done => say!("done ({done} of {n}): {id}"),
                Ended::Stopped => say!("stopped: {id}"),
                Ended::Failed(why) => {
                    eprintln!("failed: {id}: {why}");
                    // A process that was killed could not say why.
                    if let Some(cell) = cell_of(id).filter(|cell| folder.failure(cell).is_none()) {
                        folder.note_failure(cell, Some(why));
                    }
                }
            }
        }
    });
    if stop.load(Ordering::Relaxed) {
        say!("stopped; go on with: overtone study resume {}", study.name);
        return Ok(interrupt::EXIT_CODE);
    }
    let failed = ended.iter().filter(|(_, how)| matches!(how, Ended::Failed(_))).count();
    if failed > 0 {
        eprintln!(
            "error: {failed} of {n} cells failed; `overtone study status {}` says why, and \
             `overtone study resume {}` tries them again",
            study.name, study.name
        );
        return Ok(1);
    }
    Ok(0)
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
    let cells: Vec<&Cell> = open.iter().map(|resolved| &resolved.cell).collect();
    let list = folder.list_cells(&cells)?;
    let job = slurm::submit(&at, &list, cells.len(), study.executor.jobs)?;
    folder.add_job(job, &list)?;
    say!("{} cells are in Slurm's queue as job {job}", cells.len());
    let report = slurm::submit_report(&at, job)?;
    say!(
        "the page is written by job {report}, when they ended: {}",
        at.join("report.html").display()
    );
    say!("where they stand: overtone study status {}", study.name);
    Ok(())
}
