//! [`Gymnasium`]: the suite of Gymnasium environments. Its list of tasks is only known to Gymnasium.

use overtone_core::names::plain;
use overtone_core::protocol::Setting;
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Task};
use overtone_env::{Camera, EnvError, Simulator, Suite, TaskError, VectorEnv};

use crate::shape::task_of;
use crate::{GymnasiumError, GymnasiumSimulation, SETTINGS, SUITE, TaskName, names, tasks};

/// Gymnasium's environments.
#[derive(Clone, Copy, Debug)]
pub struct Gymnasium;

impl Suite for Gymnasium {
    fn name(&self) -> &'static str {
        SUITE
    }

    fn nouns(&self) -> [&'static str; 2] {
        ["environment", "environments"]
    }

    fn key(&self) -> &'static str {
        "gymnasium"
    }

    fn examples(&self) -> Vec<&str> {
        vec!["CartPole-v1", "my_module:MyEnv-v0"]
    }

    fn names(&self) -> Vec<&str> {
        names::OWN.to_vec()
    }

    fn task(&'static self, name: &str) -> Result<&'static Task, TaskError> {
        tasks::named(self.nouns()[0], name)
    }

    fn as_numbers(&'static self, name: &str) -> Option<Result<&'static Task, TaskError>> {
        Some(tasks::as_numbers(self.nouns()[0], name))
    }

    fn recorded(
        &self,
        name: &str,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        max_steps: Option<u32>,
    ) -> Option<Task> {
        let name = TaskName::parse(name).ok()?;
        Some(task_of(&name, observations.clone(), actions.clone(), max_steps))
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn published_data(&self) -> &'static str {
        "Minari's data of this version of the environment"
    }

    fn check(&self, task: &Task) -> Result<(), EnvError> {
        Ok(tasks::check(task)?)
    }

    fn open(
        &self,
        task: &Task,
        simulation: &Simulation,
        n_envs: usize,
    ) -> Result<Box<dyn VectorEnv>, EnvError> {
        Ok(tasks::open(task, read(simulation)?, n_envs)?)
    }

    fn simulator(&self, task: &Task, simulation: &Simulation) -> Result<Simulator, EnvError> {
        read(simulation)?;
        let name = format!("Gymnasium {}, {}", tasks::version(task)?, task.name);
        Ok(Simulator { name, rom_md5: None })
    }

    fn camera(
        &self,
        task: &Task,
        simulation: &Simulation,
    ) -> Result<Option<Box<dyn Camera>>, EnvError> {
        Ok(tasks::camera(task, read(simulation)?)?)
    }

    fn seconds_per_action(&self, task: &Task, _: &Simulation) -> Result<f64, EnvError> {
        Ok(tasks::seconds_per_action(task)?)
    }

    fn horizon(&self, _: &Task, simulation: &Simulation) -> Option<usize> {
        read(simulation).ok()?.horizon()
    }

    fn limited(&self, _: &Simulation, steps: u32) -> Option<Simulation> {
        Some(Simulation::of(&GymnasiumSimulation { max_steps: steps }))
    }

    /// Only for this suite's tasks, with a limit up to the task's limit. A recorder sets a larger
    /// limit to continue after the end of an episode, so larger limits are ignored.
    fn simulation_in(&self, task: &Task, env: &str, max_steps: Option<u32>) -> Option<Simulation> {
        let steps = max_steps.filter(|_| plain(env) == plain(&task.name))?;
        let is_within = steps as usize <= task.horizon.unwrap_or(usize::MAX);
        is_within.then(|| self.limited(&task.simulation, steps))?
    }

    fn env_spec(&self, task: &Task) -> Option<String> {
        tasks::env_spec(task)
    }

    /// Time of a MuJoCo robot.
    fn seconds_to_start(&self) -> f64 {
        0.02
    }
}

fn read(simulation: &Simulation) -> Result<GymnasiumSimulation, GymnasiumError> {
    Ok(simulation.read()?)
}
