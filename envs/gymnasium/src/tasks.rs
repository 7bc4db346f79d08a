//! What there is under a task's name: asked of Gymnasium, once for each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_env::{Camera, TaskError, UnknownTask, VectorEnv};

use crate::camera::Rendered;
use crate::python::{Described, Resolved, Shown, Taken, describe, gymnasium_version, resolve};
use crate::shape::task_of;
use crate::{GymnasiumError, GymnasiumSimulation, GymnasiumVectorEnv, TaskName};
use overtone_core::picture::{Picture, SIDE, STACK};

/// An environment that was asked for, and what Gymnasium said of it.
pub struct Known {
    name: TaskName,
    task: Task,
    image: Option<Picture>,
    described: Described,
}

/// Everything that was asked for in this process; a task is what a person names, so there
/// are few.
static KNOWN: Mutex<BTreeMap<String, &'static Known>> = Mutex::new(BTreeMap::new());

/// The task with this name, in any spelling.
pub fn named(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    let failed = |error| failed(noun, name, error);
    let asked = TaskName::parse(name).map_err(failed)?;
    if let Some(known) = known(&asked.to_string()) {
        return Ok(&known.task);
    }
    Ok(&ask(resolved(noun, name)?, false).map_err(failed)?.task)
}

/// The same task, of whose images the bytes are numbers.
pub fn as_numbers(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    let failed = |error| failed(noun, name, error);
    Ok(&ask(resolved(noun, name)?, true).map_err(failed)?.task)
}

fn failed(noun: &'static str, name: &str, error: GymnasiumError) -> TaskError {
    TaskError::Failed { noun, name: name.to_owned(), source: error.into() }
}

/// The name of an environment, as Gymnasium has it.
fn resolved(noun: &'static str, name: &str) -> Result<TaskName, TaskError> {
    let failed = |error| failed(noun, name, error);
    let mut asked = TaskName::parse(name).map_err(failed)?;
    match resolve(&asked).map_err(failed)? {
        Resolved::Name(id) => asked.id = id,
        Resolved::Known(ids) => {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            return Err(UnknownTask::among(noun, name, &ids).into());
        }
    }
    Ok(asked)
}

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Asks Gymnasium for an environment, once; `numbers`: the bytes of its images are numbers.
fn ask(name: TaskName, numbers: bool) -> Result<&'static Known, GymnasiumError> {
    let text = name.to_string();
    let as_numbers = format!("{text} as numbers");
    let found = known(&text).filter(|known| known.image.is_none() || !numbers);
    if let Some(known) = found.or_else(|| known(&as_numbers).filter(|_| numbers)) {
        return Ok(known);
    }
    let described = describe(&name)?;
    let is_image = matches!(described.observations, Shown::Shape(_));
    let text = if numbers && is_image { as_numbers } else { text };
    let made: &'static Known = Box::leak(Box::new(made_of(name, described, numbers)?));
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(text, made);
    Ok(made)
}

fn made_of(name: TaskName, described: Described, numbers: bool) -> Result<Known, GymnasiumError> {
    let unsuitable = |reason: String| GymnasiumError::Unsuitable { task: name.to_string(), reason };
    let (observations, image) = match &described.observations {
        Shown::Width(0) => return Err(unsuitable("its observations hold no number".into())),
        Shown::Width(width) => (ObservationSpace::Vectors { width: *width }, None),
        Shown::Shape(shape) if numbers => {
            (ObservationSpace::Vectors { width: shape.iter().product() }, None)
        }
        Shown::Shape(shape) => match Picture::of(shape) {
            Ok(picture) => {
                (ObservationSpace::Pixels { shape: vec![STACK, SIDE, SIDE] }, Some(picture))
            }
            Err(expected) => {
                return Err(unsuitable(format!(
                    "its images are of shape {shape:?}, expected {expected}"
                )));
            }
        },
    };
    let actions = match &described.actions {
        Taken::List { names } if names.is_empty() => {
            return Err(unsuitable("it has no action".into()));
        }
        Taken::List { names } => ActionSpace::Discrete { names: names.clone() },
        Taken::Numbers { low, high } => {
            let numbers = |texts: &[String]| -> Option<Vec<f32>> {
                texts.iter().map(|text| text.parse().ok()).collect()
            };
            let bounds = numbers(low).zip(numbers(high));
            let sound = bounds.filter(|(low, high)| {
                !low.is_empty() && low.iter().zip(high).all(|(low, high)| low <= high)
            });
            let Some((low, high)) = sound else {
                let bounds = format!("its actions have the bounds {low:?} and {high:?}");
                return Err(unsuitable(bounds));
            };
            ActionSpace::Continuous { low, high }
        }
    };
    let task = task_of(&name, observations, actions, described.max_steps);
    Ok(Known { name, task, image, described })
}

/// What Gymnasium has under a task's name.
fn of(task: &Task) -> Result<&'static Known, GymnasiumError> {
    let numbers = matches!(task.observations, ObservationSpace::Vectors { .. });
    ask(TaskName::parse(&task.name)?, numbers)
}

/// What Gymnasium has under the name of a task, which must show and take what the task says.
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

/// Whether an agent that learned the actions `learned` can take those that there are `here`.
///
/// A recording of ours numbers a list from 0, whatever the environment calls its actions.
fn same_actions(here: &ActionSpace, learned: &ActionSpace) -> bool {
    let is_list = matches!(here, ActionSpace::Discrete { .. });
    here == learned || (is_list && *learned == ActionSpace::numbered(here.size()))
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

/// The limit of an episode's actions, where it is not the environment's own.
fn limit(known: &Known, simulation: GymnasiumSimulation) -> Option<u32> {
    let own = known.described.max_steps.unwrap_or(0);
    (simulation.max_steps != own).then_some(simulation.max_steps)
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
