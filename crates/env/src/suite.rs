//! [`Suite`]: a family of simulators and the tasks in it.

use overtone_core::names::{find, nearest, suggestion};
use overtone_core::protocol::{Play, Setting};
use overtone_core::{Simulation, Task};

use crate::{Camera, EnvError, VectorEnv};

/// A family of simulators, such as the Arcade Learning Environment.
///
/// One implementation per folder of `envs/`; a list in the program names them all. Nothing else
/// knows which suites there are: whoever needs to know something of a task asks its suite.
pub trait Suite: Sync {
    /// Its part of a task's id: the `ale` of `ale/seaquest`.
    fn name(&self) -> &'static str;

    /// What its tasks are called, one and several: `game` and `games`.
    fn nouns(&self) -> [&'static str; 2];

    /// The key that is short for `task=` in this suite: `game=seaquest` is `task=ale/seaquest`.
    fn key(&self) -> &'static str;

    /// Its tasks.
    fn tasks(&self) -> &[Task];

    /// The settings of its simulator, and what follows from each.
    fn settings(&self) -> &'static [Setting];

    /// The published data that other data is taken to be recorded like, where nobody says how
    /// it was: `DQN-replay`.
    fn published_data(&self) -> &'static str;

    /// Checks that everything that plays `task` is there, without playing it.
    ///
    /// # Errors
    /// When something is missing, or another version than expected.
    fn check(&self, task: &Task) -> Result<(), EnvError>;

    /// `n_envs` environments of `task`, run as `simulation` says.
    ///
    /// # Errors
    /// When something is missing, or the suite does not run such a simulation.
    fn open(
        &self,
        task: &Task,
        simulation: &Simulation,
        n_envs: usize,
    ) -> Result<Box<dyn VectorEnv>, EnvError>;

    /// What runs `task` so, for reports.
    ///
    /// # Errors
    /// When the suite does not run such a simulation.
    fn simulator(&self, task: &Task, simulation: &Simulation) -> Result<Simulator, EnvError>;

    /// The protocols that an agent can be played by, beside `matched`.
    fn protocols(&self) -> &'static [&'static str];

    /// The protocol of this name, for an agent that was trained as `matched` says; `None` for a
    /// name that is not one of [`protocols`](Self::protocols).
    fn protocol(&self, name: &str, matched: &Play) -> Option<Play>;

    /// Of the protocols, the one that published scores were played by, where it has one.
    fn released(&self) -> Option<&'static str>;

    /// The protocol whose settings an ablation takes over one by one.
    fn contrast(&self, matched: &Play) -> Play;

    /// To look at an episode; `None` where only the agent's own observations can be shown.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn camera(
        &self,
        task: &Task,
        simulation: &Simulation,
    ) -> Result<Option<Box<dyn Camera>>, EnvError>;

    /// Seconds of the task's own time that an action lasts.
    ///
    /// # Errors
    /// When the suite does not run such a simulation.
    fn seconds_per_action(&self, task: &Task, simulation: &Simulation) -> Result<f64, EnvError>;

    /// Most actions of an episode that is simulated so, where there is a limit.
    fn horizon(&self, task: &Task, simulation: &Simulation) -> Option<usize>;

    /// Episodes played at once unless somebody says otherwise: more make a step no cheaper.
    fn episodes_at_once(&self) -> usize;

    /// Seconds that starting one environment takes.
    fn seconds_to_start(&self) -> f64;
}

/// What runs a task, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulator {
    /// Its name and version, such as `MuJoCo 3.17.0, Hopper-v4`.
    pub name: String,
    /// MD5 of a game's ROM.
    pub rom_md5: Option<String>,
}

/// A name that is none of a suite's tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} `{name}`{}", suggestion(nearest.as_deref(), known))]
pub struct UnknownTask {
    /// What the suite calls a task.
    pub noun: &'static str,
    /// What was asked for.
    pub name: String,
    /// The known name that was most likely meant, if any is like it.
    pub nearest: Option<String>,
    /// All known names.
    pub known: String,
}

/// The task of `suite` with this name, in any case, with or without `_` and `-`.
///
/// # Errors
/// When there is none: the nearest is named, if one is like it.
pub fn find_task<'a>(suite: &'a dyn Suite, name: &str) -> Result<&'a Task, UnknownTask> {
    let known: Vec<&str> = suite.tasks().iter().map(|task| task.name.as_str()).collect();
    let found = find(&known, name);
    found.and_then(|found| suite.tasks().iter().find(|task| task.name == found)).ok_or_else(|| {
        UnknownTask {
            noun: suite.nouns()[0],
            name: name.to_owned(),
            nearest: nearest(&known, name).map(str::to_owned),
            known: known.join(", "),
        }
    })
}
