//! `overtone study run` and `resume`: from words to a study whose cells are carried out.

use std::path::Path;

use anyhow::{Result, bail};
use overtone_console::quoted;
use overtone_study::{Asked, CellStatus, Engine, State, Study, StudyFolder};
use toml::Value;

use super::{
    Given, RUNS, SEVERAL,
    cells::{self, Resolved},
    engines, is_name, plan, resume_options, run_options, started,
};

/// `overtone study run [FILE.toml | NAME] key=value…`; gives the exit code.
pub fn run(words: &[String]) -> Result<u8> {
    // Of a `=` in a study's name alone nobody knows whether it is a setting's.
    let is_there = |word: &str| {
        let path = Path::new(word);
        path.is_file() || path.join("study.toml").is_file()
    };
    let given = Given::new(&run_options(), words, is_there)?;
    let mut study = study_of(&given)?;
    study.executor = given.executor(&study.executor)?;
    carry_out(study, &given)
}

/// `overtone study resume [NAME] key=value…`: options alone; gives the exit code.
pub fn resume(words: &[String]) -> Result<u8> {
    let given = Given::new(&resume_options(), words, |word| is_name(word, words))?;
    if let Some(word) = given.settings.first() {
        bail!(
            "`{word}`: a study goes on as it was started; `overtone study run` starts it with other words"
        );
    }
    let runs = words.iter().filter(|word| word.starts_with(RUNS)).cloned();
    let folder = started(&given.names.iter().cloned().chain(runs).collect::<Vec<_>>())?;
    let mut study = folder.study()?;
    study.executor = given.executor(&study.executor)?;
    carry_out(study, &given)
}

/// The study that words describe, on top of a file or of one that was started.
fn study_of(given: &Given) -> Result<Study> {
    let mut study = match given.names.first() {
        None => Study { name: Study::name_of(&given.settings), ..Study::default() },
        Some(name) if Path::new(name).is_file() => Study::read(Path::new(name))?,
        Some(name) => {
            let runs = given.settings.iter().find_map(|word| word.strip_prefix(RUNS));
            StudyFolder::find(Path::new(runs.unwrap_or("runs")), name)?.study()?
        }
    };
    for word in &given.settings {
        let asked = Asked::new(word, |key| SEVERAL.contains(&key))?;
        let whole = asked.values.join(",");
        if asked.values.len() > 1 && Path::new(&whole).exists() {
            bail!(
                "{word}: `{whole}` is one path, and a comma parts two values: write it as `\\,` ({})",
                quoted(format!("{}={}", asked.key, whole.replace(',', r"\,")))
            );
        }
        study.add(&asked)?;
    }
    let name = given.text("name");
    if !name.is_empty() {
        Study::check_name(&name)?;
        study.name = name;
    }
    Ok(study)
}

/// Checks every cell, then does those that are not done; gives the exit code.
fn carry_out(mut study: Study, given: &Given) -> Result<u8> {
    let cells = cells::resolve(&study)?;
    let Some(first) = cells.first() else { bail!("the study has no cell") };
    let runs = first.settings.runs.clone();
    let folder = StudyFolder::of(&runs, &study.name);
    cells::check_different(&cells)?;
    if given.is("plan") {
        return plan::plan(&study, &folder, &cells, given.is("measure")).map(|()| 0);
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
        .filter(|(_, told)| !told.state.is_done() && !told.state.is_under_way())
        .map(|(cell, _)| cell)
        .collect();
    let under_way = status.cells.iter().filter(|told| told.state.is_under_way()).count();
    if open.is_empty() {
        match under_way {
            0 => {
                let name = engines::named(&study, &cells);
                say!("nothing is left to do; `overtone study report {name}` compares");
            }
            n => say!("{n} cells are under way, and no other is left to do"),
        }
        return Ok(0);
    }
    match study.executor.engine {
        Engine::Local => {
            let code = engines::local(&study, &folder, &open)?;
            let ended = cells::status(&study, &folder, &cells)?;
            say!("{}", ended.summary());
            if ended.cells.iter().any(|told| matches!(told.state, State::Played)) {
                super::page::write(&study, &folder, &cells)?;
            }
            let begun: Vec<&str> = open.iter().map(|resolved| &*resolved.cell.id).collect();
            let is_left =
                |told: &&CellStatus| begun.contains(&&*told.cell) && !told.state.is_done();
            match ended.cells.iter().find(is_left) {
                Some(left) if code == 0 => {
                    warn!(
                        "error: the cell `{}` is not done, although its process ended well: it \
                         had other settings if {} was changed meanwhile",
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

/// Checks that no study under way is replaced: its processes read their cells in its folder when
/// they begin.
///
/// # Errors
/// Names a cell that is not done yet, and would be another or none.
fn check_under_way(folder: &StudyFolder, cells: &[Resolved]) -> Result<()> {
    // What cannot be read, nobody carries out.
    let Ok(before) = folder.study() else { return Ok(()) };
    let Ok(known) = cells::resolve(&before) else { return Ok(()) };
    let told = cells::status(&before, folder, &known)?.cells;
    if !told.iter().any(|told| told.state.is_under_way()) {
        return Ok(());
    }
    for (old, _) in known.iter().zip(&told).filter(|(_, told)| !told.state.is_done()) {
        let same = cells.iter().find(|new| new.cell.id == old.cell.id);
        if !same.is_some_and(|new| new.is_like(old)) {
            bail!(
                "the study {} is under way, and by these words its cell `{}` would be another, or \
                 none: wait for it, stop it, or give this one another name=",
                before.name,
                old.cell.id
            );
        }
    }
    Ok(())
}

/// What `profile=auto` is here, it is on every machine.
fn fix_profile(study: &mut Study, cells: &[Resolved]) -> Result<()> {
    // A cell's own word counts more than the study's.
    let Some(open) = cells.iter().find(|cell| !cell.says_profile()) else { return Ok(()) };
    let profile = Value::try_from(open.settings.profile)?;
    study.settings.insert("profile".into(), profile);
    Ok(())
}
