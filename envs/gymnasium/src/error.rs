//! Errors of Gymnasium environments.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::GYMNASIUM_VERSION;

/// Errors of Gymnasium environments.
#[derive(Debug, thiserror::Error)]
pub enum GymnasiumError {
    /// The name of an environment is invalid.
    #[error(
        "`{name}`: {reason}; use a form such as CartPole-v1, my_module:MyEnv-v0 or Pendulum-v1,g=9.8"
    )]
    Name {
        /// The given name.
        name: String,
        /// The problem.
        reason: String,
    },
    /// The simulation has invalid settings.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The program was built without Python.
    #[error("cannot run {task}: this program was built without the feature `python`")]
    NoPython {
        /// The task's name.
        task: String,
    },
    /// The packages cannot be reached.
    #[cfg(feature = "python")]
    #[error(transparent)]
    Packages(#[from] overtone_interpreter::PackagesError),
    /// No directory with Python packages was found.
    #[error(
        "no `.venv` in this directory or above, so Gymnasium is missing: run `just setup`, or pip install gymnasium"
    )]
    NoPackages,
    /// Gymnasium is not installed in the virtual environment.
    #[error("Gymnasium is not installed in `{venv}`: run `just setup`, or pip install gymnasium")]
    NoGymnasium {
        /// The virtual environment.
        venv: PathBuf,
    },
    /// Gymnasium has another version.
    #[error(
        "Gymnasium {got} is installed, version {GYMNASIUM_VERSION} is needed: run `just setup`, or pip install gymnasium"
    )]
    Version {
        /// The installed version.
        got: String,
    },
    /// Gymnasium or the environment's module cannot create the environment.
    #[error("cannot create {task}: {message}")]
    Make {
        /// The task's name.
        task: String,
        /// Python's error.
        message: String,
    },
    /// A package that the environment needs is missing.
    #[error("{task} needs a package that is not installed: {message}; install it into `{venv}`")]
    Package {
        /// The task's name.
        task: String,
        /// Gymnasium's error, which names the package.
        message: String,
        /// The virtual environment.
        venv: PathBuf,
    },
    /// A space of the environment is not supported.
    #[error("{task} is not supported: {reason}")]
    Unsuitable {
        /// The task's name.
        task: String,
        /// The space and possible fixes.
        reason: String,
    },
    /// The environment's spaces differ from those in training.
    #[error(
        "the {what} of {task} differ from those in training: use the same version of its package \
         and the same keyword arguments as in training"
    )]
    Changed {
        /// The task's name.
        task: String,
        /// `observations` or `actions`.
        what: &'static str,
    },
    /// An environment raised an exception or returned an invalid observation.
    #[error("{0}")]
    Environment(String),
    /// The Python interface failed.
    #[error("Gymnasium failed while {doing}: {message}")]
    Failed {
        /// The failed operation.
        doing: &'static str,
        /// Python's error.
        message: String,
    },
}

impl From<GymnasiumError> for EnvError {
    fn from(error: GymnasiumError) -> Self {
        Self::Backend(Box::new(error))
    }
}
