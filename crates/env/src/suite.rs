//! [`Suite`]: a family of simulators and the tasks in it.

use overtone_core::names::{find, nearest, suggestion};
use overtone_core::protocol::{ActionChoice, Play, Setting};
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Task};

use crate::{camera::Camera, error::EnvError, vector_env::VectorEnv};

/// A family of simulators, such as the Arcade Learning Environment.
///
/// One implementation per directory of `envs/`; a list in the program names them all. No other code
/// depends on a particular suite: code that needs a property of a task calls its suite.
pub trait Suite: Sync {
    /// Its part of a task's id: `ale` in `ale/seaquest`.
    fn name(&self) -> &'static str;

    /// The suite's word for a task, singular and plural: `game` and `games`.
    fn nouns(&self) -> [&'static str; 2];

    /// The short form of `task=` in this suite: `game=seaquest` is `task=ale/seaquest`.
    fn key(&self) -> &'static str;

    /// Its tasks, as far as it can list them.
    fn tasks(&self) -> &[Task] {
        &[]
    }

    /// Names of a few tasks, as examples.
    fn examples(&self) -> Vec<&str> {
        self.tasks().iter().take(5).map(|task| task.name.as_str()).collect()
    }

    /// Names of its tasks, for suggestions when a user names one of them in another suite.
    fn names(&self) -> Vec<&str> {
        self.tasks().iter().map(|task| task.name.as_str()).collect()
    }

    /// The task with this name, in any case, with or without `_` and `-`. A suite that cannot list
    /// its tasks looks the name up.
    ///
    /// # Errors
    /// When the task does not exist. The error names the most similar task, if there is one.
    fn task(&'static self, name: &str) -> Result<&'static Task, TaskError> {
        Ok(find_in_table(self, name)?)
    }

    /// As [`task`](Self::task), with byte observations of rows and columns read as numbers, not as
    /// a picture. `None` for a suite that never reads them as numbers.
    fn as_numbers(&'static self, _name: &str) -> Option<Result<&'static Task, TaskError>> {
        None
    }

    /// The task with this name as a dataset describes it, for training without the simulator.
    /// `None` for a suite that knows its tasks without a dataset. `max_steps` is the step limit of
    /// an episode, if the dataset has one.
    fn recorded(
        &self,
        _name: &str,
        _observations: &ObservationSpace,
        _actions: &ActionSpace,
        _max_steps: Option<u32>,
    ) -> Option<Task> {
        None
    }

    /// Whether agents can act in its tasks. If not, the tasks are datasets only.
    fn has_environments(&self) -> bool {
        true
    }

    /// The settings of its simulator, with the effect of each.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// The published dataset whose recording settings are the default for data without metadata:
    /// `DQN-replay`.
    fn published_data(&self) -> &'static str;

    /// Checks that everything needed to run `task` is installed, without running it.
    ///
    /// # Errors
    /// When something is missing or has an unexpected version.
    fn check(&self, task: &Task) -> Result<(), EnvError>;

    /// `n_envs` environments of `task` with the settings `simulation`.
    ///
    /// # Errors
    /// When something is missing, or the suite does not support this simulation.
    fn open(
        &self,
        task: &Task,
        simulation: &Simulation,
        n_envs: usize,
    ) -> Result<Box<dyn VectorEnv>, EnvError>;

    /// The simulator of `task` with these settings, for reports.
    ///
    /// # Errors
    /// When the suite does not support this simulation.
    fn simulator(&self, task: &Task, simulation: &Simulation) -> Result<Simulator, EnvError>;

    /// The protocols that it supports in addition to `matched`.
    fn protocols(&self) -> &'static [&'static str] {
        &[]
    }

    /// The protocol with this name, for an agent trained under `matched`; `None` if the name is not
    /// in [`protocols`](Self::protocols).
    fn protocol(&self, _name: &str, _matched: &Play) -> Option<Play> {
        None
    }

    /// The protocol of the published scores, if there is one.
    fn released(&self) -> Option<&'static str> {
        None
    }

    /// The protocol whose settings are protocols of their own, one by one. By default, `matched` with the
    /// other action selection, for suites without other settings to vary.
    fn contrast(&self, matched: &Play) -> Play {
        let (name, action_choice) = match matched.action_choice {
            ActionChoice::Mode => ("drawn", ActionChoice::Sample),
            ActionChoice::Sample => ("mode", ActionChoice::Mode),
        };
        Play { name: name.into(), action_choice, ..matched.clone() }
    }

    /// A camera for an episode; `None` if only the agent's own observations can be shown.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn camera(
        &self,
        _task: &Task,
        _simulation: &Simulation,
    ) -> Result<Option<Box<dyn Camera>>, EnvError> {
        Ok(None)
    }

    /// Duration of an action in seconds of simulated time.
    ///
    /// # Errors
    /// When the suite does not support this simulation.
    fn seconds_per_action(&self, task: &Task, simulation: &Simulation) -> Result<f64, EnvError>;

    /// Maximum number of actions of an episode under this simulation, if there is a limit.
    fn horizon(&self, _task: &Task, _simulation: &Simulation) -> Option<usize> {
        None
    }

    /// The same simulation with at most `steps` actions per episode; `None` if it has no such
    /// limit.
    fn limited(&self, _simulation: &Simulation, _steps: u32) -> Option<Simulation> {
        None
    }

    /// The simulation of `task` that matches Gymnasium's environment `env` (its id with its keyword
    /// arguments) and at most `max_steps` actions per episode. `None` if the suite cannot determine
    /// it. The revision of the task (`revision = "v5"`) is the id's version, for simulators with
    /// revisions.
    fn simulation_in(&self, task: &Task, env: &str, max_steps: Option<u32>) -> Option<Simulation> {
        task.simulation.get("revision")?;
        let id = env.split(',').next()?;
        let revision = task.simulation.with("revision", &id[id.rfind("-v")? + 1..]);
        match max_steps {
            Some(steps) => self.limited(&revision, steps),
            None => Some(revision),
        }
    }

    /// Gymnasium's `EnvSpec` of `task` as JSON, if there is one: a dataset's description of its
    /// environment, for Python.
    fn env_spec(&self, _task: &Task) -> Option<String> {
        None
    }

    /// Default number of parallel episodes: more do not make a step cheaper.
    fn episodes_at_once(&self) -> usize {
        100
    }

    /// Seconds to start one environment: about 0, unless the suite overrides it.
    fn seconds_to_start(&self) -> f64 {
        0.0
    }
}

/// The simulator of a task, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulator {
    /// Its name and version, such as `MuJoCo 3.17.0, Hopper-v4`.
    pub name: String,
    /// MD5 of a game's ROM.
    pub rom_md5: Option<String>,
}

/// The reason why a suite does not have a task with this name.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The suite does not have a task with this name.
    #[error(transparent)]
    Unknown(#[from] UnknownTask),
    /// The suite knows the task but does not provide it.
    #[error("{noun} `{name}`: {reason}")]
    Refused {
        /// The suite's word for a task.
        noun: &'static str,
        /// The task's name.
        name: String,
        /// The reason, and the remedy.
        reason: String,
    },
    /// A source of information about the task is missing, or failed.
    #[error("{noun} `{name}`")]
    Failed {
        /// The suite's word for a task.
        noun: &'static str,
        /// The task's name.
        name: String,
        /// The error.
        source: EnvError,
    },
}

/// A name that does not belong to any task of a suite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} `{name}`{}", self.hint())]
pub struct UnknownTask {
    /// The suite's word for a task.
    pub noun: &'static str,
    /// The requested name.
    pub name: String,
    /// The most similar known name, if one is similar enough.
    pub nearest: Option<String>,
    /// Known names; possibly not all.
    pub known: Vec<String>,
}

/// Maximum number of names to list next to the suggestion.
const FEW: usize = 12;

impl UnknownTask {
    /// An error for `name`, which is not in `known`.
    pub fn among(noun: &'static str, name: &str, known: &[&str]) -> Self {
        Self {
            noun,
            name: name.to_owned(),
            nearest: nearest(known, name).map(str::to_owned),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn hint(&self) -> String {
        match &self.nearest {
            Some(nearest) if self.known.len() > FEW => format!(": did you mean `{nearest}`?"),
            nearest => suggestion(nearest.as_deref(), &self.known.join(", ")),
        }
    }
}

/// The task with this name (in any spelling) in `suite`'s table, without looking for tasks
/// elsewhere.
///
/// # Errors
/// When the task does not exist. The error names the most similar task, if there is one.
pub fn find_in_table<'a, S: Suite + ?Sized>(
    suite: &'a S,
    name: &str,
) -> Result<&'a Task, UnknownTask> {
    let known: Vec<&str> = suite.tasks().iter().map(|task| task.name.as_str()).collect();
    find(&known, name)
        .and_then(|exact| suite.tasks().iter().find(|task| task.name == exact))
        .ok_or_else(|| UnknownTask::among(suite.nouns()[0], name, &known))
}
