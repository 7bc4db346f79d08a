//! What can be missing or wrong between us and Gymnasium.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::GYMNASIUM_VERSION;

/// Why an environment cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum GymnasiumError {
    /// A name that `gymnasium.make` cannot be told.
    #[error(
        "`{name}`: {reason}; say it as in CartPole-v1, my_module:MyEnv-v0 or Pendulum-v1,g=9.8"
    )]
    Name {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Settings that are not those of an environment.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The program has no Python in it.
    #[error("this program was built without the feature `python`: it cannot play {task}")]
    NoPython {
        /// The task's name.
        task: String,
    },
    /// The packages cannot be reached.
    #[cfg(feature = "python")]
    #[error(transparent)]
    Packages(#[from] overtone_interpreter::PackagesError),
    /// No folder with Python packages was found.
    #[error(
        "no `.venv` here nor in a folder above, so Gymnasium is missing: run `just setup`, or pip install gymnasium"
    )]
    NoPackages,
    /// A virtual environment without Gymnasium.
    #[error("Gymnasium is not installed in `{venv}`: run `just setup`, or pip install gymnasium")]
    NoGymnasium {
        /// The virtual environment.
        venv: PathBuf,
    },
    /// Another Gymnasium.
    #[error(
        "Gymnasium {got} is installed, version {GYMNASIUM_VERSION} is needed: run `just setup`, or pip install gymnasium"
    )]
    Version {
        /// The version found.
        got: String,
    },
    /// Gymnasium, or the module of an environment, cannot make it.
    #[error("{task} cannot be made: {message}")]
    Make {
        /// The task's name.
        task: String,
        /// What Python said.
        message: String,
    },
    /// A package that the environment needs.
    #[error("{task} needs a package that is not there: {message}; install it into `{venv}`")]
    Package {
        /// The task's name.
        task: String,
        /// What Gymnasium said, which names the package.
        message: String,
        /// The virtual environment.
        venv: PathBuf,
    },
    /// A space that has no counterpart here.
    #[error("{task} cannot be played: {reason}")]
    Unsuitable {
        /// The task's name.
        task: String,
        /// Which space, and what to do.
        reason: String,
    },
    /// The environment shows or takes something else than the agent learned.
    #[error(
        "{task} has other {what} here than the agent learned: another version of its package, or \
         other keyword arguments"
    )]
    Changed {
        /// The task's name.
        task: String,
        /// `observations` or `actions`.
        what: &'static str,
    },
    /// An environment raised something, or showed what is no observation.
    #[error("{0}")]
    Environment(String),
    /// Python between us and the environments failed.
    #[error("Gymnasium failed while {doing}: {message}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What Python said.
        message: String,
    },
}

impl From<GymnasiumError> for EnvError {
    fn from(error: GymnasiumError) -> Self {
        Self::Backend(Box::new(error))
    }
}
