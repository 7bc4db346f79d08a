//! Shared code of the tests: the importable module of test environments.

#![allow(dead_code, reason = "each test file uses some of it")]

use overtone_core::{Actions, Observations, Task};
use overtone_env::{Suite, VectorEnv};
use overtone_gymnasium::Gymnasium;
use pyo3::prelude::*;

/// Adds `modules/overtone_own.py` to Python's path.
pub fn own_module() {
    Python::attach(|py| {
        let path = py.import("sys").unwrap().getattr("path").unwrap();
        let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/modules");
        if !path.contains(modules).unwrap() {
            path.call_method1("append", (modules,)).unwrap();
        }
    });
}

/// The task of one of the module's environments.
pub fn own(name: &str) -> &'static Task {
    own_module();
    let (name, options) = name.split_once(',').unwrap_or((name, ""));
    let options = if options.is_empty() { String::new() } else { format!(",{options}") };
    let task = Gymnasium.task(&format!("overtone_own:Overtone{name}-v0{options}"));
    task.unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

/// Opens `n` environments of a task with its default settings.
pub fn open(task: &Task, n: usize) -> Box<dyn VectorEnv> {
    Gymnasium.open(task, &task.simulation, n).unwrap()
}

/// The observation of the environment with this index.
pub fn shown(env: &dyn VectorEnv, index: usize) -> Vec<f32> {
    let Observations::Vectors(rows) = env.observations() else { panic!("pictures") };
    let width = rows.len() / env.n_envs();
    rows[index * width..(index + 1) * width].to_vec()
}

pub fn discrete(actions: &[usize]) -> Actions {
    Actions::Discrete(actions.to_vec())
}
