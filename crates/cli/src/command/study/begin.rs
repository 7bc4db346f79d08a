//! `overtone study run` and `resume`: read a study from words, and run its cells.

use std::path::Path;

use anyhow::{Result, bail};
use overtone_console::quoted;
use overtone_study::{CellStatus, Engine, KeyValues, State, Study, StudyFolder};
use toml::Value;

use super::{
    NAME, RUNS_FOLDER, SEVERAL, StudyWords,
    cells::{self, Resolved},
    engines, plan, started,
};

/// Prefix of the word with the directory of the runs.
const RUNS: &str = "runs=";

/// `overtone study run [FILE.toml | NAME] key=value…`; returns the exit code.
pub fn run(words: &[String]) -> Result<u8> {
    let given = StudyWords::new(RUNS_FOLDER, words)?;
    let mut study = study_of(&given)?;
    study.executor = given.executor(&study.executor)?;
    carry_out(study, &given)
}

/// `overtone study resume [NAME] key=value…`, without settings; returns the exit code.
pub fn resume(words: &[String]) -> Result<u8> {
    let given = StudyWords::new(NAME, words)?;
    if let Some(word) = given.settings.first() {
        bail!(
            "`{word}` cannot change when a study resumes. Use `overtone study run` to start it \
             with other words"
        );
    }
    let is_set = words.iter().any(|word| word.starts_with(RUNS));
    let runs = if is_set { &*given.options.runs } else { "" };
    let folder = started(&given.options.study, runs)?;
    let mut study = folder.study()?;
    study.executor = given.executor(&study.executor)?;
    carry_out(study, &given)
}

/// The study of the words, which change a file or a started study.
fn study_of(given: &StudyWords) -> Result<Study> {
    let mut study = match &*given.options.study {
        "" => Study { name: Study::name_of(&given.settings), ..Study::default() },
        name if Path::new(name).is_file() => Study::read(Path::new(name))?,
        name => {
            let runs = given.settings.iter().find_map(|word| word.strip_prefix(RUNS));
            StudyFolder::find(Path::new(runs.unwrap_or("runs")), name)?.study()?
        }
    };
    for word in &given.settings {
        let values = KeyValues::new(word, |key| SEVERAL.contains(&key))?;
        let whole = values.values.join(",");
        if values.values.len() > 1 && Path::new(&whole).exists() {
            bail!(
                "{word}: `{whole}` is an existing path, but a comma separates values. Write it as \
                 `\\,` ({})",
                quoted(format!("{}={}", values.key, whole.replace(',', r"\,")))
            );
        }
        study.add(&values)?;
    }
    let name = &given.options.name;
    if !name.is_empty() {
        Study::check_name(name)?;
        study.name.clone_from(name);
    }
    Ok(study)
}

/// Checks every cell, then runs the unfinished ones; returns the exit code.
fn carry_out(mut study: Study, given: &StudyWords) -> Result<u8> {
    let cells = cells::resolve(&study)?;
    let Some(first) = cells.first() else { bail!("the study does not have a cell") };
    let runs = first.settings.runs.clone();
    let folder = StudyFolder::of(&runs, &study.name);
    cells::check_different(&cells)?;
    if given.options.plan {
        return plan::plan(&study, &folder, &cells, given.options.measure).map(|()| 0);
    }
    cells::check(&cells)?;
    check_under_way(&folder, &cells)?;
    fix_profile(&mut study, &cells)?;
    folder.write(&study)?;
    folder.check_locks()?;
    say!("study: {} ({})", study.name, folder.path().display());
    let status = cells::status(&study, &folder, &cells)?;
    say!("{}", status.summary());
    let open: Vec<&Resolved> = cells
        .iter()
        .zip(&status.cells)
        .filter(|(_, cell)| !cell.state.is_done() && !cell.state.is_under_way())
        .map(|(cell, _)| cell)
        .collect();
    let under_way = status.cells.iter().filter(|cell| cell.state.is_under_way()).count();
    if open.is_empty() {
        match under_way {
            0 => {
                let name = engines::named(&study, &cells);
                say!("all cells are finished; compare them with `overtone study report {name}`");
            }
            n => say!("{n} cells are running, and all others are finished"),
        }
        return Ok(0);
    }
    match study.executor.engine {
        Engine::Local => {
            let code = engines::local(&study, &folder, &open)?;
            let ended = cells::status(&study, &folder, &cells)?;
            say!("{}", ended.summary());
            if ended.cells.iter().any(|cell| matches!(cell.state, State::Played)) {
                super::page::write(&study, &folder, &cells)?;
            }
            let begun: Vec<&str> = open.iter().map(|resolved| &*resolved.cell.id).collect();
            let is_left =
                |cell: &&CellStatus| begun.contains(&&*cell.cell) && !cell.state.is_done();
            match ended.cells.iter().find(is_left) {
                Some(left) if code == 0 => {
                    warn!(
                        "error: the cell `{}` is unfinished, although its process succeeded. Its \
                         settings differ if {} was changed meanwhile",
                        left.cell,
                        folder.path().join("study.toml").display()
                    );
                    Ok(1)
                }
                _ => Ok(code),
            }
        }
        Engine::Slurm => engines::slurm(&study, &folder, &open).map(|()| 0),
    }
}

/// Checks that no running study is replaced, because its processes read their cells from its
/// directory when they start.
///
/// # Errors
/// Names an unfinished cell that would change or disappear.
fn check_under_way(folder: &StudyFolder, cells: &[Resolved]) -> Result<()> {
    // An unreadable study is not running.
    let Ok(before) = folder.study() else { return Ok(()) };
    let Ok(known) = cells::resolve(&before) else { return Ok(()) };
    let statuses = cells::status(&before, folder, &known)?.cells;
    if !statuses.iter().any(|cell| cell.state.is_under_way()) {
        return Ok(());
    }
    for (old, _) in known.iter().zip(&statuses).filter(|(_, cell)| !cell.state.is_done()) {
        let same = cells.iter().find(|new| new.cell.id == old.cell.id);
        if !same.is_some_and(|new| new.is_like(old)) {
            bail!(
                "the study {} is running, and these words would change or remove its cell `{}`. \
                 Wait for it, stop it, or use another name=",
                before.name,
                old.cell.id
            );
        }
    }
    Ok(())
}

/// Fixes `profile=auto` to this machine's profile, for all machines.
fn fix_profile(study: &mut Study, cells: &[Resolved]) -> Result<()> {
    // A cell's own word overrides the study's.
    let Some(open) = cells.iter().find(|cell| !cell.fixes_profile()) else { return Ok(()) };
    let profile = Value::try_from(open.settings.profile)?;
    study.settings.insert("profile".into(), profile);
    Ok(())
}
