//! The cells of a study as settings, and their runs. A cell's run is the run of the same settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use overtone_settings::{Choosable, EvaluationConfig, Recorded, Resume, RunConfig};
use overtone_study::{Cell, CellStatus, State, Status, Study, StudyFolder, last_step, slurm};
use overtone_train::{Checkpoint, RunDir, TrainError, run_dir::CONFIG};

use crate::command::{evaluate, find::find, provenance, train};

/// A cell with its settings.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub cell: Cell,
    pub settings: RunConfig,
    /// Further evaluations of its run, in addition to its settings'.
    pub further_evaluations: Vec<EvaluationConfig>,
}

/// All cells, each with checked words.
///
/// # Errors
/// Names the first cell whose words do not describe a run.
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
                "runs={} and runs={}: expected one directory for all runs of a study",
                first.settings.runs.display(),
                other.settings.runs.display()
            );
        }
        let all_fix_profile = || all.iter().all(Resolved::fixes_profile);
        if other.settings.profile != first.settings.profile && !all_fix_profile() {
            bail!(
                "profile=auto differs between cells ({} and {}). Use profile=quick or \
                 profile=paper",
                first.cell.id,
                other.cell.id
            );
        }
    }
    Ok(all)
}

/// The single cell called `id`. Datasets and initial runs of other cells may be missing on this
/// machine.
///
/// # Errors
/// When it does not exist, or its words do not describe a run.
pub fn resolve_one(study: &Study, id: &str) -> Result<Resolved> {
    let found = study.cells()?.into_iter().find(|cell| cell.id == id);
    let Some(cell) = found else {
        bail!("the study {} does not have a cell `{id}` any more", study.name)
    };
    Resolved::new(cell, &study.evaluations).with_context(|| format!("cell {id}"))
}

/// The words of a line of options. Text after a comma and a blank belongs to the value before it:
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
                bail!("evaluations: `{word}`: expected a key of evaluation");
            }
            Ok(settings_of(&[&cell.words[..], &words].concat())?.evaluation)
        });
        let again: Vec<EvaluationConfig> = again.collect::<Result<_>>()?;
        for (at, (evaluation, line)) in again.iter().zip(lines).enumerate() {
            if settings.evaluation.episodes == 0 && evaluation.episodes > 0 {
                bail!(
                    "evaluations: `{line}`: the settings have evaluation.episodes=0, so there is \
                     no first evaluation to add to. Put this line's keys into the settings"
                );
            }
            let mut earlier = std::iter::once(&settings.evaluation).chain(&again[..at]);
            if earlier.any(|other| may_be_confused(other, evaluation)) {
                bail!(
                    "evaluations: `{line}` has the protocol and acting mode of another evaluation, \
                     or may have them after the choice of a mode. The study's report cannot tell \
                     the two apart. Use several targets in one evaluation, such as \
                     evaluation.target=p50,p95, or fix another acting mode"
                );
            }
            let modes =
                mode_settings(&settings.evaluation).into_iter().zip(mode_settings(evaluation));
            if modes.into_iter().any(|(own, other)| other == Choosable::Chosen && own != other) {
                bail!(
                    "evaluations: `{line}`: only the settings can choose an acting mode after \
                     training. Use chosen in the settings, and fixed modes here"
                );
            }
        }
        Ok(Self { cell, settings, further_evaluations: again })
    }

    /// Whether its words fix a profile.
    pub fn fixes_profile(&self) -> bool {
        let fixes = |word: &String| word.starts_with("profile=") && word != "profile=auto";
        self.cell.words.iter().any(fixes)
    }

    /// Whether this cell and another have the same run and the same evaluations.
    pub fn is_like(&self, other: &Self) -> bool {
        let [own, its] = [self, other].map(|resolved| without_place(resolved.settings.clone()));
        own == its && self.further_evaluations == other.further_evaluations
    }

    /// Whether `run` is finished and evaluated.
    pub fn is_done(&self, run: &RunDir) -> bool {
        train::is_finished(run) && self.awaited(run).next().is_none()
    }

    /// The missing evaluations of `run`.
    pub fn awaited<'a>(&'a self, run: &'a RunDir) -> impl Iterator<Item = &'a EvaluationConfig> {
        // A run whose checkpoints were removed after its evaluation stays evaluated.
        let is_there = |_| {
            let newest = Checkpoint::newest(&run.checkpoints());
            let is_gone = matches!(newest, Err(TrainError::NoCheckpoint { .. }));
            is_gone && !evaluate::reports(run).is_empty()
        };
        self.played().filter(move |evaluation| {
            evaluation.episodes > 0
                && !evaluate::is_played(run, evaluation).unwrap_or_else(is_there)
        })
    }

    /// All evaluations: the one in its settings, then the further ones.
    pub fn played(&self) -> impl Iterator<Item = &EvaluationConfig> {
        std::iter::once(&self.settings.evaluation).chain(&self.further_evaluations)
    }
}

/// Whether two different evaluations have a protocol in common, and may have the same acting mode
/// after a choice.
fn may_be_confused(one: &EvaluationConfig, other: &EvaluationConfig) -> bool {
    let may_agree = |(one, other): (Choosable, Choosable)| {
        one == other || [one, other].contains(&Choosable::Chosen)
    };
    let protocols = |of: &EvaluationConfig| -> Vec<String> {
        of.protocol.split(',').map(|name| name.trim().to_owned()).collect()
    };
    let episodes = |of: &EvaluationConfig| (of.target.clone(), of.seed, of.episodes);
    one.actions == other.actions
        && mode_settings(one).into_iter().zip(mode_settings(other)).all(may_agree)
        && protocols(one).iter().any(|protocol| protocols(other).contains(protocol))
        && episodes(one) != episodes(other)
}

/// The settings of temperature, return quantile and top percent.
fn mode_settings(evaluation: &EvaluationConfig) -> [Choosable; 3] {
    [evaluation.temperature, evaluation.return_quantile, evaluation.top_percent]
}

fn settings_of(words: &[String]) -> Result<RunConfig> {
    RunConfig::resolve(words, train::auto_profile)
}

/// Checks that the data and the environments of the cells exist.
///
/// # Errors
/// Names the first cell for which something is missing.
pub fn check(cells: &[Resolved]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for Resolved { cell, settings, .. } in cells {
        let shares = format!("{:?}", settings.data.shares);
        let data = (&settings.task, &settings.dataset, &settings.data.path, &settings.data.run);
        if !seen.insert((data, shares, settings.evaluation.episodes > 0)) {
            continue;
        }
        find(settings)
            .and_then(|_| evaluate::check_playable(settings))
            .with_context(|| format!("cell {}", cell.id))?;
    }
    Ok(())
}

/// Checks that each cell has its own run, because a run is identified by its settings.
///
/// # Errors
/// Names the first two cells with the same run.
pub fn check_different(cells: &[Resolved]) -> Result<()> {
    let mut known = BTreeMap::new();
    for Resolved { cell, settings, .. } in cells {
        if let Some(other) = known.insert(without_place(settings.clone()).to_toml()?, &cell.id) {
            bail!(
                "cells {other} and {} have the same settings, so they would be one run. Leave one \
                 of them out",
                cell.id
            );
        }
    }
    Ok(())
}

/// The runs in a directory with their settings.
pub struct KnownRuns(Vec<(RunDir, RunConfig)>);

impl KnownRuns {
    /// Reads the runs, without runs of other versions.
    pub fn read(runs: &Path) -> Self {
        let with_settings = |run: RunDir| {
            let settings = RunConfig::load(&run.path().join(CONFIG)).ok()?;
            Some((run, without_place(settings)))
        };
        Self(RunDir::all(runs).into_iter().filter_map(with_settings).collect())
    }

    /// The run of a cell: a finished one, or else the newest.
    pub fn of(&self, cell: &Resolved) -> Option<&RunDir> {
        let wanted = without_place(cell.settings.clone());
        let mut same =
            self.0.iter().filter(|(_, settings)| *settings == wanted).map(|(run, _)| run);
        let newest = same.next()?;
        let done = std::iter::once(newest).chain(same).find(|run| cell.is_done(run));
        Some(done.unwrap_or(newest))
    }
}

/// The settings without the run's directory and `resume`. An initial run in the same directory is
/// given by its name only.
fn without_place(settings: RunConfig) -> RunConfig {
    let init = Path::new(&settings.init);
    let in_runs = init.parent().zip(init.file_name()).filter(|(folder, _)| {
        let absolute = |path: &Path| std::path::absolute(path).ok();
        absolute(folder).is_some_and(|folder| absolute(&settings.runs) == Some(folder))
    });
    let init = match in_runs {
        Some((_, name)) => name.to_string_lossy().into_owned(),
        None => settings.init.clone(),
    };
    RunConfig { runs: PathBuf::new(), init, ..settings.with(Resume::Auto) }
}

/// The status of every cell of a study.
///
/// # Errors
/// When Slurm does not report its running jobs.
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
    let statuses = cells.iter().map(|resolved| {
        let run = known.of(resolved);
        let state = state(resolved, run, job_of(&resolved.cell.id), folder);
        CellStatus {
            cell: resolved.cell.id.clone(),
            label: resolved.cell.label.clone(),
            state,
            run: run.map(|run| run.path().display().to_string()),
        }
    });
    Ok(Status::new(&study.name, statuses.collect()))
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
    let is_in_use = run.is_some_and(RunDir::is_in_use) || folder.is_in_use(&resolved.cell.id);
    match job {
        _ if is_in_use => State::Running { step, of },
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
