//! Replacement of `tasks.rs` for a program without Python: every function returns an error.

use overtone_core::Task;
use overtone_env::{Camera, TaskError, VectorEnv};

use crate::{GymnasiumError, GymnasiumSimulation};

fn no_python<T>(task: &str) -> Result<T, GymnasiumError> {
    Err(GymnasiumError::NoPython { task: task.to_owned() })
}

pub fn named(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    no_python(name).map_err(|error: GymnasiumError| TaskError::Failed {
        noun,
        name: name.to_owned(),
        source: error.into(),
    })
}

pub fn as_numbers(noun: &'static str, name: &str) -> Result<&'static Task, TaskError> {
    named(noun, name)
}

pub fn check(task: &Task) -> Result<(), GymnasiumError> {
    no_python(&task.name)
}

pub fn open(
    task: &Task,
    _: GymnasiumSimulation,
    _: usize,
) -> Result<Box<dyn VectorEnv>, GymnasiumError> {
    no_python(&task.name)
}

pub fn version(task: &Task) -> Result<String, GymnasiumError> {
    no_python(&task.name)
}

pub fn camera(
    task: &Task,
    _: GymnasiumSimulation,
) -> Result<Option<Box<dyn Camera>>, GymnasiumError> {
    no_python(&task.name)
}

pub fn env_spec(_: &Task) -> Option<String> {
    None
}

pub fn seconds_per_action(task: &Task) -> Result<f64, GymnasiumError> {
    no_python(&task.name)
}
