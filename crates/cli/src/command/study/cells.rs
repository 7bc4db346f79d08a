//! The cells of a study as settings, and their runs: a cell's run is the one of its settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use overtone_study::{Cell, CellStatus, State, Status, Study, StudyFolder, last_step, slurm};
use overtone_train::{Checkpoint, RunDir, TrainError, run_dir::CONFIG};

use crate::{
    command::{evaluate, provenance, train},
    settings::{Choosable, EvaluationConfig, Recorded, Resume, RunConfig},
};

/// A cell, and what its words come to.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub cell: Cell,
    pub settings: RunConfig,
    /// How its run is played again, beside what its settings say.
    pub again: Vec<EvaluationConfig>,
}

/// All cells, each checked as far as words go.
///
/// # Errors
/// Names the first cell whose words describe no run.
pub fn resolve(study: &Study) -> Result<Vec<Resolved>> {
    let all = study.cells()?.into_iter().map(|cell| {
        let id = cell.id.clone();
        Resolved::new(cell, &study.evaluations).with_context(|| format!("cell {id}"))
    });
    let all: Vec<Resolved> = all.collect::<Result<_>>()?;
    let [first, others @ ..] = &all[..] else { return Ok(all) };
    for other in others {
        if other.settings.runs != first.settings.runs {
            bail!(
                "runs={} and runs={}: the runs of a study lie in one folder",
                first.settings.runs.display(),
                other.settings.runs.display()
            );
        }
        let is_said = || all.iter().all(Resolved::says_profile);
        if other.settings.profile != first.settings.profile && !is_said() {
            bail!(
                "profile=auto is not the same for all cells ({} and {}): say profile=quick or \
                 profile=paper",
                first.cell.id,
                other.cell.id
            );
        }
    }
    Ok(all)
}

/// The cell of this name alone: what another needs, a recording or a run to begin with, may be
/// missing where this one is carried out.
///
/// # Errors
/// When there is none, or its words describe no run.
pub fn resolve_one(study: &Study, id: &str) -> Result<Resolved> {
    let found = study.cells()?.into_iter().find(|cell| cell.id == id);
    let Some(cell) = found else { bail!("the study {} has no cell `{id}` any more", study.name) };
    Resolved::new(cell, &study.evaluations).with_context(|| format!("cell {id}"))
}

/// The words of a line of options. What follows a comma and a blank belongs to the value before it:
/// `evaluation.target=p50, p95`.
fn words_of(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.ends_with(',') || word.starts_with(',') => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

impl Resolved {
    fn new(cell: Cell, lines: &[String]) -> Result<Self> {
        let settings = settings_of(&cell.words)?;
        settings.algorithm_config(settings.task()?, Recorded::ANY, None)?;
        let again = lines.iter().map(|line| {
            let words = words_of(line);
            if let Some(word) = words.iter().find(|word| !word.starts_with("evaluation.")) {
                bail!("evaluations: `{word}`: a run is played again by keys of evaluation alone");
            }
            Ok(settings_of(&[&cell.words[..], &words].concat())?.evaluation)
        });
        let again: Vec<EvaluationConfig> = again.collect::<Result<_>>()?;
        let mut names = reports_of(&settings.evaluation);
        let mut earlier = vec![&settings.evaluation];
        for (evaluation, line) in again.iter().zip(lines) {
            if settings.evaluation.episodes == 0 && evaluation.episodes > 0 {
                bail!(
                    "evaluations: `{line}`: runs are played otherwise beside what the settings say, \
                     and evaluation.episodes=0 there plays nothing: put this line's keys into the \
                     settings"
                );
            }
            let own = reports_of(evaluation);
            if own.iter().any(|report| names.contains(report)) {
                bail!(
                    "evaluations: `{line}` would take the place of another report of the run, whose \
                     file is named by how an agent is played alone, not by target, seed or \
                     episodes: ask for several returns in one, evaluation.target=p50,p95"
                );
            }
            names.extend(own);
            if earlier.iter().any(|other| may_share_report(other, evaluation)) {
                bail!(
                    "evaluations: `{line}` would take the place of another report of the run where \
                     what is chosen after training comes out as what is said here: ask for the same \
                     target, seed and episodes as there, or say in the settings how agents are \
                     played"
                );
            }
            earlier.push(evaluation);
            let said = ways_of(&settings.evaluation).into_iter().zip(ways_of(evaluation));
            if said.into_iter().any(|(own, said)| said == Choosable::Chosen && own != said) {
                bail!(
                    "evaluations: `{line}`: an acting mode is chosen after training, where the settings say \
                     so: say chosen there, and here what else is played"
                );
            }
        }
        Ok(Self { cell, settings, again })
    }

    /// Whether its words say a profile.
    pub fn says_profile(&self) -> bool {
        let says = |word: &String| word.starts_with("profile=") && word != "profile=auto";
        self.cell.words.iter().any(says)
    }

    /// Whether this cell and another have the same run, and it is played in the same modes.
    pub fn is_like(&self, other: &Self) -> bool {
        let [own, its] = [self, other].map(|resolved| anywhere(resolved.settings.clone()));
        own == its && self.again == other.again
    }

    /// Whether nothing is left to do in `run`.
    pub fn is_done(&self, run: &RunDir) -> bool {
        train::is_finished(run) && self.awaited(run).next().is_none()
    }

    /// What was not played yet.
    pub fn awaited<'a>(&'a self, run: &'a RunDir) -> impl Iterator<Item = &'a EvaluationConfig> {
        // A run whose checkpoints were removed after it was played stays played.
        let is_there = |_| {
            let newest = Checkpoint::newest(&run.checkpoints());
            let is_gone = matches!(newest, Err(TrainError::NoCheckpoint { .. }));
            is_gone && !evaluate::reports(run).is_empty()
        };
        let own = Some(&self.settings.evaluation).filter(|own| {
            own.episodes > 0 && !evaluate::is_played(run, own).unwrap_or_else(is_there)
        });
        // No run's settings say these, and the study's may have changed.
        let again = self.again.iter().filter(move |again| {
            again.episodes > 0 && !evaluate::is_played_so(run, again).unwrap_or_else(is_there)
        });
        own.into_iter().chain(again)
    }

    /// What it is played by: as its settings say, and otherwise.
    pub fn played(&self) -> impl Iterator<Item = &EvaluationConfig> {
        std::iter::once(&self.settings.evaluation).chain(&self.again)
    }
}

/// Of each protocol, what the name of the report is made of.
fn reports_of(evaluation: &EvaluationConfig) -> Vec<impl PartialEq + use<>> {
    let told = |protocol: &str| (protocol.to_owned(), ways_of(evaluation), evaluation.actions);
    protocols_of(evaluation).map(told).collect()
}

fn protocols_of(evaluation: &EvaluationConfig) -> impl Iterator<Item = &str> {
    evaluation.protocol.split(',').map(str::trim)
}

/// Whether a choice after training may give two evaluations one report, which is not the same for
/// both: a file is named by how an agent was played.
fn may_share_report(one: &EvaluationConfig, other: &EvaluationConfig) -> bool {
    let is_alike = |(one, other): (Choosable, Choosable)| {
        one == other || [one, other].contains(&Choosable::Chosen)
    };
    let asked = |of: &EvaluationConfig| (of.target.clone(), of.seed, of.episodes);
    one.actions == other.actions
        && ways_of(one).into_iter().zip(ways_of(other)).all(is_alike)
        && protocols_of(one).any(|protocol| protocols_of(other).any(|named| named == protocol))
        && asked(one) != asked(other)
}

/// What is said of temperature, return quantile and share.
fn ways_of(evaluation: &EvaluationConfig) -> [Choosable; 3] {
    [evaluation.temperature, evaluation.return_quantile, evaluation.top_percent]
}

fn settings_of(words: &[String]) -> Result<RunConfig> {
    RunConfig::resolve(words, train::auto_profile)
}

/// Checks what words cannot say: whether the data and what plays the tasks are there.
///
/// # Errors
/// Names the first cell for which something is missing.
pub fn check(cells: &[Resolved]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for Resolved { cell, settings, .. } in cells {
        let data = (&settings.task, &settings.dataset, &settings.data.path, &settings.data.run);
        if !seen.insert((data, settings.evaluation.episodes > 0)) {
            continue;
        }
        settings
            .check_data()
            .and_then(|()| settings.check_playable())
            .with_context(|| format!("cell {}", cell.id))?;
    }
    Ok(())
}

/// Checks that each cell has a run of its own: a run is found by its settings alone.
///
/// # Errors
/// Names the first two that would have one together.
pub fn check_different(cells: &[Resolved]) -> Result<()> {
    let mut known = BTreeMap::new();
    for Resolved { cell, settings, .. } in cells {
        if let Some(other) = known.insert(anywhere(settings.clone()).to_toml()?, &cell.id) {
            bail!(
                "cells {other} and {} come to the same settings, so they would be one run: leave \
                 one of them out",
                cell.id
            );
        }
    }
    Ok(())
}

/// The runs in a folder with their settings.
pub struct KnownRuns(Vec<(RunDir, RunConfig)>);

impl KnownRuns {
    /// Reads them. What is no run of this version is none of a study's.
    pub fn read(runs: &Path) -> Self {
        let with_settings = |run: RunDir| {
            let settings = RunConfig::load(&run.path().join(CONFIG)).ok()?;
            Some((run, anywhere(settings)))
        };
        Self(RunDir::all(runs).into_iter().filter_map(with_settings).collect())
    }

    /// The run of a cell: of several one that is done, or else the newest.
    pub fn of(&self, cell: &Resolved) -> Option<&RunDir> {
        let wanted = anywhere(cell.settings.clone());
        let mut same =
            self.0.iter().filter(|(_, settings)| *settings == wanted).map(|(run, _)| run);
        let newest = same.next()?;
        let done = std::iter::once(newest).chain(same).find(|run| cell.is_done(run));
        Some(done.unwrap_or(newest))
    }
}

/// The same settings, wherever the run lies and whatever it says about going on. A run beside it
/// that it began with is called by its name.
fn anywhere(settings: RunConfig) -> RunConfig {
    let init = Path::new(&settings.init);
    let beside = init.parent().zip(init.file_name()).filter(|(folder, _)| {
        let absolute = |path: &Path| std::path::absolute(path).ok();
        absolute(folder).is_some_and(|folder| absolute(&settings.runs) == Some(folder))
    });
    let init = match beside {
        Some((_, name)) => name.to_string_lossy().into_owned(),
        None => settings.init.clone(),
    };
    RunConfig { runs: PathBuf::new(), init, ..settings.with(Resume::Auto) }
}

/// Where every cell of a study stands.
///
/// # Errors
/// When Slurm does not say which of its jobs it has not ended yet.
pub fn status(study: &Study, folder: &StudyFolder, cells: &[Resolved]) -> Result<Status> {
    let runs = cells.first().map_or_else(PathBuf::new, |first| first.settings.runs.clone());
    let known = KnownRuns::read(&runs);
    let jobs = folder.jobs();
    let arrays: Vec<u64> = jobs.iter().map(|(job, _)| *job).collect();
    let live = slurm::live(&arrays)?;
    let job_of = |id: &str| {
        let tasks = jobs.iter().flat_map(|(job, cells)| {
            cells.iter().enumerate().map(move |(task, cell)| (*job, task, cell))
        });
        let mut of_cell = tasks.filter(|(_, _, cell)| *cell == id);
        of_cell.find_map(|(job, task, _)| {
            live.get(&(job, task)).map(|state| (format!("{job}_{task}"), state.as_str()))
        })
    };
    let told = cells.iter().map(|resolved| {
        let run = known.of(resolved);
        let state = state(resolved, run, job_of(&resolved.cell.id), folder);
        CellStatus {
            cell: resolved.cell.id.clone(),
            label: resolved.cell.label.clone(),
            state,
            run: run.map(|run| run.path().display().to_string()),
        }
    });
    Ok(Status::new(&study.name, told.collect()))
}

fn state(
    resolved: &Resolved,
    run: Option<&RunDir>,
    job: Option<(String, &str)>,
    folder: &StudyFolder,
) -> State {
    let step = run.map_or(0, |run| last_step(run.path()));
    let planned = Some(resolved.settings.train.updates).filter(|updates| *updates > 0);
    let of = planned.or_else(|| provenance::updates(run?));
    let is_worked_on =
        run.is_some_and(RunDir::is_worked_on) || folder.is_worked_on(&resolved.cell.id);
    match job {
        _ if is_worked_on => State::Running { step, of },
        Some((_, "RUNNING" | "COMPLETING")) => State::Running { step, of },
        Some((job, _)) => State::Queued { job },
        None => match run {
            Some(run) if resolved.is_done(run) => match resolved.settings.evaluation.episodes {
                0 => State::Trained,
                _ => State::Played,
            },
            run => match (folder.failure(&resolved.cell.id), run) {
                (Some(error), _) => State::Failed { error },
                (None, Some(_)) => State::Stopped { step, of },
                (None, None) => State::Waiting,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn a_blank_after_a_comma_belongs_to_the_value() {
        let line = "evaluation.target=p50, p95  evaluation.seed=2";
        assert_eq!(words_of(line), ["evaluation.target=p50,p95", "evaluation.seed=2"]);
    }
}
