//! Tasks by name. Each is queried from Gymnasium once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_env::{Camera, TaskError, UnknownTask, VectorEnv};

use crate::camera::Rendered;
use crate::python::{Described, Resolved, describe, gymnasium_version, resolve};
use crate::shape::task_of;
use crate::{GymnasiumError, GymnasiumSimulation, GymnasiumVectorEnv, TaskName};
use overtone_core::picture::Picture;

/// A queried environment and its description by Gymnasium.
pub struct Known {
    name: TaskName,
    task: Task,
    image: Option<Picture>,
    described: Described,
}

/// All queried environments of this process. Users name tasks, so there are few.
static KNOWN: Mutex<BTreeMap<String, &'static Known>> = Mutex::new(BTreeMap::new());

/// The task with this name, in any spelling.
pub fn named(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    let failed = |error| failed(noun, name, error);
    let parsed = TaskName::parse(name).map_err(failed)?;
    if let Some(known) = known(&parsed.to_string()) {
        return Ok(&known.task);
    }
    Ok(&query(resolved(noun, name)?, false).map_err(failed)?.task)
}

/// The same task with the bytes of images as numbers.
pub fn as_numbers(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    let failed = |error| failed(noun, name, error);
    Ok(&query(resolved(noun, name)?, true).map_err(failed)?.task)
}

fn failed(noun: &'static str, name: &str, error: GymnasiumError) -> TaskError {
    TaskError::Failed { noun, name: name.to_owned(), source: error.into() }
}

/// The name of an environment with its id in Gymnasium.
fn resolved(noun: &'static str, name: &str) -> Result<TaskName, TaskError> {
    let failed = |error| failed(noun, name, error);
    let mut parsed = TaskName::parse(name).map_err(failed)?;
    match resolve(&parsed).map_err(failed)? {
        Resolved::Name(id) => parsed.id = id,
        Resolved::Known(ids) => {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            return Err(UnknownTask::among(noun, name, &ids).into());
        }
    }
    Ok(parsed)
}

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Queries an environment from Gymnasium once. With `numbers` the bytes of its images are numbers.
fn query(name: TaskName, numbers: bool) -> Result<&'static Known, GymnasiumError> {
    let text = name.to_string();
    let as_numbers = format!("{text} as numbers");
    let usable = known(&text).filter(|known| known.image.is_none() || !numbers);
    if let Some(known) = usable.or_else(|| known(&as_numbers).filter(|_| numbers)) {
        return Ok(known);
    }
    let described = describe(&name)?;
    let is_image = matches!(described.observations, ObservationSpace::Pixels { .. });
    let text = if numbers && is_image { as_numbers } else { text };
    let known: &'static Known = Box::leak(Box::new(known_of(name, described, numbers)?));
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(text, known);
    Ok(known)
}

fn known_of(name: TaskName, described: Described, numbers: bool) -> Result<Known, GymnasiumError> {
    let unsuitable = |reason: String| GymnasiumError::Unsuitable { task: name.to_string(), reason };
    let (observations, image) = match &described.observations {
        ObservationSpace::Pixels { shape } if !numbers => match Picture::of(shape) {
            Ok(picture) => (ObservationSpace::frames(), Some(picture)),
            Err(expected) => {
                return Err(unsuitable(format!(
                    "its images have shape {shape:?}, expected {expected}"
                )));
            }
        },
        space => match space.size() {
            0 => return Err(unsuitable("its observations are empty".into())),
            width => (ObservationSpace::Vectors { width }, None),
        },
    };
    match &described.actions {
        ActionSpace::Discrete { names } if names.is_empty() => {
            return Err(unsuitable("it has no actions".into()));
        }
        ActionSpace::Continuous { low, high }
            if low.is_empty() || low.iter().zip(high).any(|(low, high)| low > high) =>
        {
            let bounds = format!("its actions have invalid bounds {low:?} and {high:?}");
            return Err(unsuitable(bounds));
        }
        _ => {}
    }
    let task = task_of(&name, observations, described.actions.clone(), described.max_steps);
    Ok(Known { name, task, image, described })
}

/// The environment of a task.
fn of(task: &Task) -> Result<&'static Known, GymnasiumError> {
    let numbers = matches!(task.observations, ObservationSpace::Vectors { .. });
    query(TaskName::parse(&task.name)?, numbers)
}

/// The environment of a task, checked for the same spaces as the task.
fn same(task: &Task) -> Result<&'static Known, GymnasiumError> {
    let known = of(task)?;
    let parts = [
        ("observations", known.task.observations == task.observations),
        ("actions", same_actions(&known.task.actions, &task.actions)),
    ];
    match parts.into_iter().find(|(_, same)| !same) {
        None => Ok(known),
        Some((what, _)) => Err(GymnasiumError::Changed { task: task.name.clone(), what }),
    }
}

/// Whether an agent trained on the actions `learned` can use the actions `here`.
///
/// Our recordings number discrete actions from 0, whatever their names in the environment.
fn same_actions(here: &ActionSpace, learned: &ActionSpace) -> bool {
    let is_list = matches!(here, ActionSpace::Discrete { .. });
    here.allows(learned) || (is_list && *learned == ActionSpace::numbered(here.size()))
}

pub fn check(task: &Task) -> Result<(), GymnasiumError> {
    same(task).map(drop)
}

pub fn open(
    task: &Task,
    simulation: GymnasiumSimulation,
    n_envs: usize,
) -> Result<Box<dyn VectorEnv>, GymnasiumError> {
    let known = same(task)?;
    let limit = limit(known, simulation);
    let image = known.image.clone();
    Ok(Box::new(GymnasiumVectorEnv::new(task, &known.name, image, limit, n_envs)?))
}

/// The limit of an episode's actions; `None` if it equals the environment's limit.
fn limit(known: &Known, simulation: GymnasiumSimulation) -> Option<u32> {
    let env_limit = known.described.max_steps.unwrap_or(0);
    (simulation.max_steps != env_limit).then_some(simulation.max_steps)
}

pub fn version(_: &Task) -> Result<String, GymnasiumError> {
    gymnasium_version()
}

pub fn camera(
    task: &Task,
    simulation: GymnasiumSimulation,
) -> Result<Option<Box<dyn Camera>>, GymnasiumError> {
    let known = same(task)?;
    if !known.described.render_modes.iter().any(|mode| mode == "rgb_array") {
        return Ok(None);
    }
    Ok(Some(Box::new(Rendered::open(&known.name, limit(known, simulation))?)))
}

pub fn env_spec(task: &Task) -> Option<String> {
    of(task).ok()?.described.spec.clone()
}

pub fn seconds_per_action(task: &Task) -> Result<f64, GymnasiumError> {
    Ok(1.0 / of(task)?.described.fps.max(1e-3))
}
