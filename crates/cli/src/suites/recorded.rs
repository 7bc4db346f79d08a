//! Tasks that a recording shows: those of one's own, and those whose suite cannot be asked for
//! them here. Training needs no more.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};
use overtone_core::{ActionSpace, ObservationSpace, Task, names::plain};
use overtone_data::{RecordedSpaces, RecordedTask, read::NUMBERS};
use overtone_env::Suite;

use super::{all, by_id, own::Own};

/// A recording that is at hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Data {
    /// A file or folder.
    pub path: PathBuf,
    /// Its format, where its files do not say it.
    pub layout: String,
}

/// Every task that a recording showed in this process.
static KNOWN: Mutex<BTreeMap<(String, Data), &'static Task>> = Mutex::new(BTreeMap::new());

/// The task with this id, such as `ale/seaquest`, as its suite knows it; else as `data` shows it.
///
/// # Errors
/// When there is none, and when `data` cannot be read for a task of one's own.
pub fn with_data(id: &str, data: Option<&Data>) -> Result<&'static Task> {
    let known = |data: &Data| {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(id.to_owned(), data.clone())).copied()
    };
    if let Some(task) = data.and_then(known) {
        return Ok(task);
    }
    let shown = match (id.split_once('/'), data) {
        (Some((suite, name)), Some(data)) if suite == Own.name() => Some(own(name, data)?),
        (Some((suite, name)), Some(data)) => match as_layout(id, suite, name, &data.layout) {
            Ok(task) => return Ok(task),
            // What stands in the recording helps, or else what the suite says is told.
            Err(error) => match recorded(suite, name, data) {
                Ok(Some(task)) => Some(task),
                Ok(None) | Err(_) => return Err(error),
            },
        },
        (_, _) => None,
    };
    let (Some(task), Some(data)) = (shown, data) else { return by_id(id) };
    let task: &'static Task = Box::leak(Box::new(task));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.insert((id.to_owned(), data.clone()), task);
    Ok(task)
}

/// The task that an agent was trained for, as its suite has it here: its pictures are numbers
/// where they were for the agent.
///
/// # Errors
/// When there is none.
pub fn as_trained(trained: &Task) -> Result<&'static Task> {
    let task = by_id(&trained.id());
    let are_numbers = matches!(trained.observations, ObservationSpace::Vectors { .. });
    let is_same = task.as_ref().is_ok_and(|task| task.observations == trained.observations);
    match are_numbers && !is_same {
        true => as_layout(&trained.id(), &trained.suite, &trained.name, NUMBERS),
        false => task,
    }
}

/// The task `name` of a suite, its pictures as numbers where the layout of its data says so.
fn as_layout(id: &str, suite: &str, name: &str, layout: &str) -> Result<&'static Task> {
    if plain(layout) == NUMBERS
        && let Some(suite) = all().find(|known| known.name() == suite)
        && let Some(task) = suite.as_numbers(name)
    {
        return Ok(task?);
    }
    by_id(id)
}

/// The task of one's own that `data` shows.
fn own(name: &str, data: &Data) -> Result<Task> {
    if name.is_empty() {
        bail!("task=own/: give it a name, such as own/plant");
    }
    let spaces =
        RecordedSpaces::of(&data.path, &data.layout).with_context(|| format!("task=own/{name}"))?;
    Ok(Task::own(name, spaces.observations.clone(), spaces.bounded_actions()))
}

/// The task `name` of a suite that says what it makes of a recording of it; none where `data` is
/// of another task, or of a suite that does not.
fn recorded(suite: &str, name: &str, data: &Data) -> Result<Option<Task>> {
    let Some(suite) = all().find(|known| known.name() == suite) else { return Ok(None) };
    let said = RecordedTask::of(&data.path)?;
    let of_task = said.task.as_deref().and_then(|id| id.split_once('/'));
    let of_task = of_task.filter(|(of, _)| *of == suite.name()).map(|(_, name)| name.to_owned());
    let Some(said_name) = of_task.or_else(|| Some(said.env.as_ref()?.with_kwargs())) else {
        return Ok(None);
    };
    if plain(&said_name) != plain(name) {
        return Ok(None);
    }
    let spaces = RecordedSpaces::of(&data.path, &data.layout)?;
    let max_steps = said.env.and_then(|env| env.max_episode_steps);
    Ok(suite.recorded(&said_name, &spaces.observations, &spaces.actions, max_steps))
}

/// What a task of one's own shows and takes, in a sentence.
pub fn describe(task: &Task) -> String {
    let shown = match &task.observations {
        ObservationSpace::Vectors { width } => format!("{width} numbers"),
        ObservationSpace::Pixels { .. } => "pictures".into(),
    };
    let done = match &task.actions {
        ActionSpace::Discrete { names } => format!("a list of {}", names.len()),
        ActionSpace::Continuous { low, high } => {
            let bounds = low.iter().zip(high).take(MOST_TOLD);
            let bounds: Vec<String> =
                bounds.map(|(low, high)| format!("[{low}, {high}]")).collect();
            let more = if low.len() > MOST_TOLD { ", …" } else { "" };
            format!("{} numbers, in {}{more}", low.len(), bounds.join(", "))
        }
    };
    format!("{} as its recording shows it: observations {shown}; actions {done}", task.id())
}

/// So many bounds are told.
const MOST_TOLD: usize = 8;
