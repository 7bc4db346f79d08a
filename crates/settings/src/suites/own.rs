//! [`Own`]: the user's datasets without an environment: a plant, the log of a website.

use overtone_core::{Simulation, Task};
use overtone_env::{EnvError, Simulator, Suite, TaskError, VectorEnv};

/// Tasks that only their datasets define: `own/NAME`.
#[derive(Clone, Copy, Debug)]
pub struct Own;

/// The error of a task without an environment.
fn no_environment<T>(task: &Task) -> Result<T, EnvError> {
    let reason = format!(
        "{} is data without an environment, so its agents cannot be evaluated here. Use them from \
         Python: overtone.load(\"RUN\").policy()",
        task.id()
    );
    Err(EnvError::Backend(reason.into()))
}

impl Suite for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn nouns(&self) -> [&'static str; 2] {
        ["recording", "recordings"]
    }

    fn key(&self) -> &'static str {
        "own"
    }

    fn examples(&self) -> Vec<&str> {
        vec!["NAME with dataset=PATH"]
    }

    fn task(&'static self, name: &str) -> Result<&'static Task, TaskError> {
        Err(TaskError::Refused {
            noun: "task",
            name: format!("own/{name}"),
            reason: "only a dataset defines it. Set dataset=PATH".into(),
        })
    }

    fn has_environments(&self) -> bool {
        false
    }

    fn published_data(&self) -> &'static str {
        "an unknown recording"
    }

    fn check(&self, task: &Task) -> Result<(), EnvError> {
        no_environment(task)
    }

    fn open(&self, task: &Task, _: &Simulation, _: usize) -> Result<Box<dyn VectorEnv>, EnvError> {
        no_environment(task)
    }

    fn simulator(&self, task: &Task, _: &Simulation) -> Result<Simulator, EnvError> {
        no_environment(task)
    }

    fn seconds_per_action(&self, task: &Task, _: &Simulation) -> Result<f64, EnvError> {
        no_environment(task)
    }
}
