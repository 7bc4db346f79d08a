//! `overtone study report`: the report that compares the cells of a study.

use std::path::Path;

use anyhow::{Result, bail};
use overtone_core::judgement::Judgement;
use overtone_eval::statistics::Bootstrap;
use overtone_report::{FailedRun, Page, RunFiles, StudyCell};
use overtone_settings::options;
use overtone_study::{Study, StudyFolder};
use overtone_train::RunDir;

use super::{
    StatusOptions,
    cells::{self, KnownRuns, Resolved},
    engines,
    names::{self, Name},
    started,
};
use crate::command::{
    evaluate,
    report::{self, ReportOptions},
    train,
};

/// The options of a report about runs that a study's does not have.
const OF_RUNS: [&str; 2] = ["run", "video"];

/// The options of `study status` that a study's report has.
const OF_STUDY: [&str; 2] = ["study", "runs"];

/// The options in the help of `study report`, and the text `after` them.
pub fn report_help(after: &str) -> String {
    let left_out = [&OF_RUNS[..], &["runs"]].concat();
    let lines = options::lines_without::<StatusOptions>(&["json"])
        + &options::lines_without::<ReportOptions>(&left_out);
    options::after_help(&lines, after)
}

/// `overtone study report [NAME] key=value…`.
///
/// # Errors
/// When the study or its evaluations do not exist, or the report cannot be written.
pub fn report(words: &[String]) -> Result<()> {
    let words = options::placed::<ReportOptions>(words, &["study"])?;
    let is_about_study =
        |word: &String| word.split_once('=').is_some_and(|(key, _)| OF_STUDY.contains(&key));
    let (about_study, options): (Vec<String>, Vec<String>) =
        words.into_iter().partition(is_about_study);
    let StatusOptions { study, runs, .. } = options::read(&about_study)?;
    let options: ReportOptions = options::read_without(&options, &OF_RUNS)?;
    let folder = started(&study, &runs)?;
    let bootstrap = options.bootstrap()?;
    let study = folder.study()?;
    let cells = cells::resolve(&study)?;
    let out = if options.out.is_empty() { folder.path() } else { Path::new(&options.out) };
    write_to(&study, &folder, &cells, &bootstrap, out, options.name_of_one())
}

/// Writes the report with default options, in the study's directory.
///
/// # Errors
/// As [`report`].
pub fn write(study: &Study, folder: &StudyFolder, cells: &[Resolved]) -> Result<()> {
    let options = ReportOptions::default();
    let (bootstrap, name) = (options.bootstrap()?, options.name_of_one());
    write_to(study, folder, cells, &bootstrap, folder.path(), name)
}

fn write_to(
    study: &Study,
    folder: &StudyFolder,
    cells: &[Resolved],
    bootstrap: &Bootstrap,
    out: &Path,
    name: &str,
) -> Result<()> {
    let Some(first) = cells.first() else { bail!("the study does not have a cell") };
    let known = KnownRuns::read(&first.settings.runs);
    let mut found: Vec<StudyCell> = Vec::new();
    for (resolved, Name { task, agent }) in cells.iter().zip(names::of(cells)?) {
        let label = resolved.cell.label.clone();
        let place = match found.iter().position(|cell| cell.label == label) {
            Some(place) => place,
            None => {
                let (runs, failed) = (Vec::new(), Vec::new());
                found.push(StudyCell { label, task, agent, runs, failed, missing: 0 });
                found.len() - 1
            }
        };
        let run = known.of(resolved).filter(|run| train::is_finished(run));
        let is_done = run.is_some_and(|run| resolved.is_done(run));
        match folder.failure(&resolved.cell.id).filter(|_| !is_done) {
            Some(error) => {
                found[place].failed.push(FailedRun { name: resolved.cell.id.clone(), error });
            }
            None if run.is_some_and(is_evaluated) => {}
            None => found[place].missing += 1,
        }
        if let Some(run) = run.filter(|run| is_evaluated(run) || is_judged(run)) {
            // The cell's name describes it; the number of a run's directory depends on the order in
            // which runs started.
            let name = resolved.cell.id.clone();
            found[place].runs.push(RunFiles { name, ..report::files_of(run.path())? });
        }
    }
    if found.iter().all(|cell| cell.runs.is_empty()) {
        if let Some(FailedRun { name, error }) = found.iter().flat_map(|cell| &cell.failed).next() {
            bail!(
                "no cell of {} is evaluated, and {name} failed: {error}. Retry with `overtone \
                 study resume {}`",
                study.name,
                engines::named(study, cells)
            );
        }
        bail!("no cell of {} is evaluated yet. Wait for a run to finish", study.name);
    }
    let page = Page::of_study(&study.name, &found, bootstrap)?.write(out, name)?;
    say!("report: {} (with Markdown and CSV next to it)", page.display());
    Ok(())
}

/// Whether a run has a score, by any protocol.
fn is_evaluated(run: &RunDir) -> bool {
    !evaluate::reports(run).is_empty()
}

/// Whether a run has estimates from a recording.
fn is_judged(run: &RunDir) -> bool {
    run.path().join(Judgement::FILE).is_file()
}
