//! [`Suite`]: a family of simulators and the tasks in it.

use overtone_core::names::{find, nearest, suggestion};
use overtone_core::protocol::{ActionChoice, Play, Setting};
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Task};

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

    /// Its tasks, as far as they can be listed.
    fn tasks(&self) -> &[Task] {
        &[]
    }

    /// Names of a few tasks, to show how one is asked for.
    fn examples(&self) -> Vec<&str> {
        self.tasks().iter().take(5).map(|task| task.name.as_str()).collect()
    }

    /// Names of its tasks that may be meant by whoever asks another suite for them.
    fn names(&self) -> Vec<&str> {
        self.tasks().iter().map(|task| task.name.as_str()).collect()
    }

    /// The task with this name, in any case, with or without `_` and `-`. A suite whose tasks
    /// cannot be listed finds out here what there is under the name.
    ///
    /// # Errors
    /// When there is none: the nearest is named, if one is like it.
    fn task(&'static self, name: &str) -> Result<&'static Task, TaskError> {
        Ok(find_in_table(self, name)?)
    }

    /// As [`task`](Self::task), where bytes with rows and columns are numbers and not a picture;
    /// `None` of a suite whose pictures are pictures.
    fn as_numbers(&'static self, _name: &str) -> Option<Result<&'static Task, TaskError>> {
        None
    }

    /// The task of this name as a recording of it shows it, for training where nothing can be
    /// asked for it; `None` of a suite that knows its tasks without. `max_steps` is the limit of
    /// an episode's actions, where the recording says one.
    fn recorded(
        &self,
        _name: &str,
        _observations: &ObservationSpace,
        _actions: &ActionSpace,
        _max_steps: Option<u32>,
    ) -> Option<Task> {
        None
    }

    /// Whether its tasks can be played, here or elsewhere; else they are recordings alone.
    fn has_environments(&self) -> bool {
        true
    }

    /// The settings of its simulator, and what follows from each.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

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
    fn protocols(&self) -> &'static [&'static str] {
        &[]
    }

    /// The protocol of this name, for an agent that was trained as `matched` says; `None` for a
    /// name that is not one of [`protocols`](Self::protocols).
    fn protocol(&self, _name: &str, _matched: &Play) -> Option<Play> {
        None
    }

    /// Of the protocols, the one that published scores were played by, where it has one.
    fn released(&self) -> Option<&'static str> {
        None
    }

    /// The protocol whose settings an ablation takes over one by one: the other way of choosing
    /// actions, where the suite has nothing else to vary.
    fn contrast(&self, matched: &Play) -> Play {
        let (name, action_choice) = match matched.action_choice {
            ActionChoice::Mode => ("drawn", ActionChoice::Sample),
            ActionChoice::Sample => ("mode", ActionChoice::Mode),
        };
        Play { name: name.into(), action_choice, ..matched.clone() }
    }

    /// To look at an episode; `None` where only the agent's own observations can be shown.
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

    /// Seconds of the task's own time that an action lasts.
    ///
    /// # Errors
    /// When the suite does not run such a simulation.
    fn seconds_per_action(&self, task: &Task, simulation: &Simulation) -> Result<f64, EnvError>;

    /// Most actions of an episode that is simulated so, where there is a limit.
    fn horizon(&self, _task: &Task, _simulation: &Simulation) -> Option<usize> {
        None
    }

    /// The same simulation with at most `steps` actions an episode; `None` where it has no limit
    /// to set.
    fn limited(&self, _simulation: &Simulation, _steps: u32) -> Option<Simulation> {
        None
    }

    /// How Gymnasium's environment `env`, its id with its keyword arguments, simulates `task` with
    /// at most `max_steps` actions an episode; `None` where the suite cannot tell. The revision of
    /// the task (`revision = "v5"`) is the id's version, where the simulator has revisions.
    fn simulation_in(&self, task: &Task, env: &str, max_steps: Option<u32>) -> Option<Simulation> {
        task.simulation.get("revision")?;
        let id = env.split(',').next()?;
        let revision = task.simulation.with("revision", &id[id.rfind("-v")? + 1..]);
        match max_steps {
            Some(steps) => self.limited(&revision, steps),
            None => Some(revision),
        }
    }

    /// Gymnasium's `EnvSpec` of `task` as JSON, where it has one: what a recording says of its
    /// environment, for Python.
    fn env_spec(&self, _task: &Task) -> Option<String> {
        None
    }

    /// Episodes played at once unless somebody says otherwise: more make a step no cheaper.
    fn episodes_at_once(&self) -> usize {
        100
    }

    /// Seconds that starting one environment takes: next to nothing, unless the suite says more.
    fn seconds_to_start(&self) -> f64 {
        0.0
    }
}

/// What runs a task, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulator {
    /// Its name and version, such as `MuJoCo 3.17.0, Hopper-v4`.
    pub name: String,
    /// MD5 of a game's ROM.
    pub rom_md5: Option<String>,
}

/// Why a suite has no task of some name.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The name is none of the suite's tasks.
    #[error(transparent)]
    Unknown(#[from] UnknownTask),
    /// The suite knows the task and does not have it, for a reason.
    #[error("{noun} `{name}`: {reason}")]
    Refused {
        /// What the suite calls a task.
        noun: &'static str,
        /// The task's name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// What could say more of the task is missing, or failed.
    #[error("{noun} `{name}`")]
    Failed {
        /// What the suite calls a task.
        noun: &'static str,
        /// The task's name.
        name: String,
        /// Why.
        source: EnvError,
    },
}

/// A name that is none of a suite's tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} `{name}`{}", self.hint())]
pub struct UnknownTask {
    /// What the suite calls a task.
    pub noun: &'static str,
    /// What was asked for.
    pub name: String,
    /// The known name that was most likely meant, if any is like it.
    pub nearest: Option<String>,
    /// Known names; perhaps not all.
    pub known: Vec<String>,
}

/// So many names are listed beside the one that was most likely meant.
const FEW: usize = 12;

impl UnknownTask {
    /// `name` is none of `known`.
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

/// The task of `suite`'s table with this name, in any spelling; nobody is asked for more tasks.
///
/// # Errors
/// When there is none: the nearest is named, if one is like it.
pub fn find_in_table<'a, S: Suite + ?Sized>(
    suite: &'a S,
    name: &str,
) -> Result<&'a Task, UnknownTask> {
    let known: Vec<&str> = suite.tasks().iter().map(|task| task.name.as_str()).collect();
    let found = find(&known, name);
    found
        .and_then(|found| suite.tasks().iter().find(|task| task.name == found))
        .ok_or_else(|| UnknownTask::among(suite.nouns()[0], name, &known))
}
