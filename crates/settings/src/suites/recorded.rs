//! Tasks that a dataset defines: the user's own, and those whose environment is missing here.
//! Training does not need more.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, anyhow, bail};
use overtone_core::{ActionSpace, ObservationSpace, Task, names::plain};
use overtone_data::{Form, RecordedSpaces, RecordedTask, read::NUMBERS};
use overtone_env::Suite;

use super::{all, by_id, own::Own};

/// A local dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Data {
    /// A file or directory.
    pub path: PathBuf,
    /// The other recordings of a mixture.
    pub others: Vec<PathBuf>,
    /// How they are read, as far as they do not say it.
    pub form: Form,
}

impl Data {
    /// One recording.
    pub fn at(path: impl Into<PathBuf>, form: Form) -> Self {
        Self { path: path.into(), others: Vec::new(), form }
    }
}

/// Every task that a dataset defined in this process.
static KNOWN: Mutex<BTreeMap<(String, Data), &'static Task>> = Mutex::new(BTreeMap::new());

/// The task with this id, such as `ale/seaquest`, from its suite, else from `data`.
///
/// # Errors
/// When the task does not exist, or `data` cannot be read for a task of the user's own.
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
        (Some((suite, name)), Some(data)) => match as_layout(id, suite, name, &data.form.layout) {
            Ok(task) => return Ok(task),
            // The dataset may define the task; otherwise the suite's error counts.
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

/// The suite's task for a trained agent. Its images are vectors if they were for the agent.
///
/// # Errors
/// When the suite does not have it.
pub fn as_trained(trained: &Task) -> Result<&'static Task> {
    let task = by_id(&trained.id());
    let are_numbers = matches!(trained.observations, ObservationSpace::Vectors { .. });
    let is_same = task.as_ref().is_ok_and(|task| task.observations == trained.observations);
    match are_numbers && !is_same {
        true => as_layout(&trained.id(), &trained.suite, &trained.name, NUMBERS),
        false => task,
    }
}

/// The task `name` of a suite, with images as vectors if the layout of its data is `numbers`.
fn as_layout(id: &str, suite: &str, name: &str, layout: &str) -> Result<&'static Task> {
    if plain(layout) == NUMBERS
        && let Some(suite) = all().find(|known| known.name() == suite)
        && let Some(task) = suite.as_numbers(name)
    {
        return Ok(task?);
    }
    by_id(id)
}

/// The user's own task that `data` defines; several recordings define it together.
fn own(name: &str, data: &Data) -> Result<Task> {
    if name.is_empty() {
        bail!("task=own/: the name is empty. Use a name, such as own/plant");
    }
    let of =
        |path| RecordedSpaces::of(path, &data.form).with_context(|| format!("task=own/{name}"));
    let mut spaces = of(&data.path)?;
    for other in &data.others {
        spaces.extend(&of(other)?).map_err(|reason| {
            anyhow!(
                "task=own/{name}: {}, {}: the recordings contradict each other ({reason}). Save \
                 the same `action_low` and `action_high`, or `n_actions`, with each",
                data.path.display(),
                other.display()
            )
        })?;
    }
    Ok(Task::own(name, spaces.observations.clone(), spaces.bounded_actions()))
}

/// The task `name` that a suite derives from `data`; `None` if `data` is of another task, or the
/// suite does not derive tasks.
fn recorded(suite: &str, name: &str, data: &Data) -> Result<Option<Task>> {
    let Some(suite) = all().find(|known| known.name() == suite) else { return Ok(None) };
    let description = RecordedTask::of(&data.path)?;
    let of_task = description.task.as_deref().and_then(|id| id.split_once('/'));
    let of_task = of_task.filter(|(of, _)| *of == suite.name()).map(|(_, name)| name.to_owned());
    let Some(own_name) = of_task.or_else(|| Some(description.env.as_ref()?.with_kwargs())) else {
        return Ok(None);
    };
    if plain(&own_name) != plain(name) {
        return Ok(None);
    }
    let spaces = RecordedSpaces::of(&data.path, &data.form)?;
    let max_steps = description.env.and_then(|env| env.max_episode_steps);
    Ok(suite.recorded(&own_name, &spaces.observations, &spaces.actions, max_steps))
}

/// A description of the observations and actions of the user's own task.
pub fn describe(task: &Task) -> String {
    let observations = match &task.observations {
        ObservationSpace::Vectors { width } => format!("{width} numbers"),
        ObservationSpace::Pixels { .. } => "images".into(),
    };
    let actions = match &task.actions {
        ActionSpace::Discrete { names } => format!("{} discrete ones", names.len()),
        ActionSpace::Continuous { low, high } => {
            let bounds = low.iter().zip(high).take(MAX_BOUNDS);
            let bounds: Vec<String> =
                bounds.map(|(low, high)| format!("[{low}, {high}]")).collect();
            let more = if low.len() > MAX_BOUNDS { ", …" } else { "" };
            format!("{} continuous numbers, in {}{more}", low.len(), bounds.join(", "))
        }
    };
    format!(
        "{} as its dataset defines it: observations are {observations}; actions are {actions}",
        task.id()
    )
}

/// Maximum number of bounds in a description.
const MAX_BOUNDS: usize = 8;
