//! The recording that judges a run, and which of its episodes the run trained on.

use std::{collections::HashSet, path::PathBuf};

use anyhow::{Result, bail, ensure};
use overtone_core::{Episode, Task, judgement::Trained, protocol::ReturnUnits};
use overtone_data::{
    Columns, Dataset, DatasetOptions, EpisodeMark, Located, Recording, copies, read,
};
use overtone_judge::imitation::Place;
use overtone_settings::{RunConfig, datasets_of, runs::real};
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};

use crate::command::find::{common_origin, find_one};

/// A recording to judge a run by.
#[derive(Clone, Copy, Debug)]
pub struct RecordingPart<'a> {
    /// Its name or path; empty: the run's own.
    pub dataset: &'a str,
    /// The content hash of the run's training data.
    pub trained_hash: &'a str,
    /// Maximum number of steps; 0: all.
    pub steps: usize,
    /// Smallest number of episodes, also of held-out ones.
    pub least: usize,
    /// Seed of the drawn episodes.
    pub seed: u64,
}

/// A recording that judges a run.
#[derive(Debug)]
pub struct JudgingRecording {
    /// Its finished episodes, up to a number of steps.
    pub data: Dataset,
    /// Some of these, whose actions are compared.
    pub compared: Dataset,
    /// Where the compared episodes stand in the recording.
    pub places: Vec<Place>,
    /// Whether the run trained on the episodes.
    pub trained: Trained,
}

/// The finished episodes of the training data of a run.
struct Training {
    marks: Vec<EpisodeMark>,
    /// For each of them, whether the run trained on it: it was not held out.
    is_used: Vec<bool>,
}

/// Finished episodes of a recording, with rewards as recorded: without those that the run, or a
/// run that initialised it, trained on, if enough are left.
///
/// # Errors
/// When the data is missing, damaged, of another task, a log of frames, or without finished
/// episodes; or when the run's own data has changed since.
pub fn recording_of(
    settings: &RunConfig,
    task: &Task,
    part: &RecordingPart<'_>,
) -> Result<JudgingRecording> {
    let is_own = part.dataset.is_empty();
    let own = own_data(settings, task);
    let (mut columns, located) = if is_own {
        let located = own?;
        (vectors_of(settings, task, &located)?, located)
    } else {
        let mut other = settings.clone();
        // Path and layout belong to the run's own files. Another table has the same columns.
        other.data.path = PathBuf::new();
        other.data.layout = String::new();
        let located = find_one(&other, task, part.dataset)?;
        let is_same = |own: &Located| real(&own.path) == real(&located.path);
        match own.ok().and_then(|own| own.into_iter().find(is_same)) {
            Some(same) => (vectors_of(settings, task, std::slice::from_ref(&same))?, vec![same]),
            None => (vectors_of(&other, task, std::slice::from_ref(&located))?, vec![located]),
        }
    };
    let path = columns.path.display().to_string();
    ensure!(
        columns.finished_episodes().next().is_some(),
        "{path}: no episode has an end flag, so no return is known. Check the flags with data \
         lint"
    );
    let own_training = training(settings, task, part.trained_hash);
    ensure!(
        !is_own || own_training.is_some(),
        "{path} has changed since the run trained on it. To judge by it as it is now, set \
         dataset={path}"
    );
    let judged = finished_marks(&columns);
    let mut places = finished_places(&columns);
    let mut is_seen = vec![false; judged.len()];
    let mut is_known = true;
    for training in [own_training].into_iter().chain(earlier_trainings(settings)) {
        match training.and_then(|training| training.seen(&judged)) {
            Some(seen) => is_seen.iter_mut().zip(seen).for_each(|(all, seen)| *all |= seen),
            None => is_known = false,
        }
    }
    let new: Vec<usize> = (0..judged.len()).filter(|&episode| !is_seen[episode]).collect();
    let n_seen = judged.len() - new.len();
    let trained = if n_seen > 0 && new.len() < part.least {
        Trained::Yes
    } else if is_known {
        Trained::No
    } else {
        Trained::Unknown
    };
    if n_seen > 0 && trained != Trained::Yes {
        say!("left out: {n_seen} episodes that the agent trained on");
        columns.keep_finished(&new);
        places = new.iter().map(|&episode| places[episode]).collect();
    }
    let drawn = columns.draw_episodes(part.steps, part.least, part.seed);
    let mut compared = columns.clone();
    let of_drawn = compared.draw_episodes(COMPARED_STEPS, LEAST_COMPARED, part.seed);
    let options = DatasetOptions { origin: common_origin(&located), ..DatasetOptions::default() };
    Ok(JudgingRecording {
        data: Dataset::of(columns, &options)?,
        compared: Dataset::of(compared, &options)?,
        places: of_drawn.into_iter().map(|at| places[drawn[at]]).collect(),
        trained,
    })
}

/// Maximum number of steps whose actions are compared with the recorded ones.
const COMPARED_STEPS: usize = 10_000;

/// Episodes that are compared even if they have more steps.
const LEAST_COMPARED: usize = 2;

/// Where the finished episodes stand.
fn finished_places(columns: &Columns) -> Vec<Place> {
    let all = columns.episodes.iter().enumerate().zip(&columns.finished);
    let place = |(episode, of): (usize, &Episode)| Place { episode, row: of.start };
    all.filter(|(_, finished)| **finished).map(|(episode, _)| place(episode)).collect()
}

/// The location of each dataset of the run.
fn own_data(settings: &RunConfig, task: &Task) -> Result<Vec<Located>> {
    datasets_of(&settings.dataset).iter().map(|name| find_one(settings, task, name)).collect()
}

/// Recordings of vectors as one, in the task's form, in the layout of these settings.
fn vectors_of(settings: &RunConfig, task: &Task, several: &[Located]) -> Result<Columns> {
    let read = |located: &Located| -> Result<Columns> {
        match read::open_as(&located.path, &settings.data.form())? {
            Recording::Columns(columns) => Ok(columns.fitted_to(task)?),
            Recording::ReplayLog(_) => bail!(
                "{}: the recording has pixel observations; only vectors can be judged",
                located.path.display()
            ),
        }
    };
    let mut all = several.iter().map(read).collect::<Result<Vec<_>>>()?;
    let columns = match all.len() {
        1 => all.swap_remove(0),
        _ => Columns::concat(all, &settings.data.shares.0)?,
    };
    columns.check()?;
    Ok(columns)
}

/// The training of a run of these settings on data with the content `trained_hash`. `None` if the
/// data is missing or has changed.
fn training(settings: &RunConfig, task: &Task, trained_hash: &str) -> Option<Training> {
    let located = own_data(settings, task).ok()?;
    let mut columns = vectors_of(settings, task, &located).ok()?;
    let marks = finished_marks(&columns);
    if task.return_units == ReturnUnits::Clipped {
        columns.clip_rewards();
    }
    let data = Dataset::of(columns, &settings.dataset_options(common_origin(&located))).ok()?;
    if data.content_hash() != trained_hash {
        return None;
    }
    let mut is_used = vec![true; marks.len()];
    // Held-out episodes are known by their position if training used all that are finished.
    if data.counts().episodes == marks.len() {
        data.split().held_out.iter().for_each(|&episode| is_used[episode] = false);
    }
    Some(Training { marks, is_used })
}

/// The trainings of the runs that initialised this one (`init=`), the latest first. `None` for
/// one that is not known; earlier ones are then not known either.
fn earlier_trainings(settings: &RunConfig) -> Vec<Option<Training>> {
    if settings.init.is_empty() {
        return Vec::new();
    }
    let Some((config, checkpoint)) = initial_run(settings) else { return vec![None] };
    let task = config.task().ok();
    let latest = task.and_then(|task| training(&config, task, &checkpoint.state.dataset_hash));
    let mut all = vec![latest];
    all.extend(earlier_trainings(&config));
    all
}

/// The settings of the run that initialised this one, and the checkpoint.
fn initial_run(settings: &RunConfig) -> Option<(RunConfig, Checkpoint)> {
    let (name, step) = settings.init.rsplit_once(':')?;
    let run = RunDir::open(&settings.runs, name).ok()?;
    let checkpoint = Checkpoint::at_step(&run.checkpoints(), step.parse().ok()?).ok()?;
    Some((RunConfig::load(&run.path().join(CONFIG)).ok()?, checkpoint))
}

impl Training {
    /// For each episode of a recording, whether training used it; `None` if that is not known.
    ///
    /// If one recording contains the other, positions tell. Otherwise the marks of copies do. Episodes
    /// without a mark may equal a trained one by chance, as rounds of a shop do.
    fn seen(&self, judged: &[EpisodeMark]) -> Option<Vec<bool>> {
        let mut is_seen = vec![false; judged.len()];
        if let Some(start) = position_of(&self.marks, judged) {
            is_seen.copy_from_slice(&self.is_used[start..start + judged.len()]);
            return Some(is_seen);
        }
        if let Some(start) = position_of(judged, &self.marks) {
            is_seen[start..start + self.marks.len()].copy_from_slice(&self.is_used);
            return Some(is_seen);
        }
        let used = self.marks.iter().zip(&self.is_used).filter(|(_, is_used)| **is_used);
        let used: Vec<EpisodeMark> = used.map(|(mark, _)| *mark).collect();
        let firsts = copies(&[&used, judged].concat());
        let (of_used, of_judged) = firsts.split_at(used.len());
        let of_used: HashSet<&usize> = of_used.iter().collect();
        let wholes: HashSet<[u8; 32]> = used.iter().map(|mark| mark.whole).collect();
        for ((mark, first), is_seen) in judged.iter().zip(of_judged).zip(&mut is_seen) {
            *is_seen = of_used.contains(first);
            if !*is_seen && wholes.contains(&mark.whole) {
                return None;
            }
        }
        Some(is_seen)
    }
}

/// The position at which `part` stands in `whole`.
fn position_of(whole: &[EpisodeMark], part: &[EpisodeMark]) -> Option<usize> {
    whole.windows(part.len().max(1)).position(|window| window == part)
}

/// The marks of the finished episodes, in order.
fn finished_marks(columns: &Columns) -> Vec<EpisodeMark> {
    let marks = columns.episode_marks().into_iter().zip(&columns.finished);
    marks.filter_map(|(mark, finished)| finished.then_some(mark)).collect()
}
