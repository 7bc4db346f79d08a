//! Errors of MuJoCo environments.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::{MUJOCO_VERSION, SITE_PACKAGES};

/// Errors of simulated robots.
#[derive(Debug, thiserror::Error)]
pub enum MujocoError {
    /// The robot is not in the table.
    #[error("unknown robot `{name}`: it is not in this program's table of robots")]
    NoRobot {
        /// The given name.
        name: String,
    },
    /// The simulation has invalid settings.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// No directory with Python packages was found.
    #[error(
        "no `.venv` with packages in this directory or above, so MuJoCo is missing: run \
         `just setup` for `mujoco`, or set {SITE_PACKAGES} to the directory where `mujoco` is installed"
    )]
    NoPackages,
    /// MuJoCo's library is missing.
    #[error(
        "MuJoCo's library is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    NoLibrary {
        /// Expected path of the library.
        path: PathBuf,
    },
    /// MuJoCo has another version.
    #[error(
        "`{path}` is not MuJoCo {MUJOCO_VERSION}, which is needed: run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    OtherLibrary {
        /// The installed library.
        path: PathBuf,
    },
    /// The library cannot be loaded or has missing functions.
    #[error("`{path}` does not load: run `just setup`, or pip install 'overtone-rl[mujoco]'")]
    Unloadable {
        /// The library.
        path: PathBuf,
        /// The operating system's error.
        source: libloading::Error,
    },
    /// Gymnasium's model is missing.
    #[error(
        "Gymnasium's model of the robot is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    NoModel {
        /// Expected path of the model.
        path: PathBuf,
    },
    /// MuJoCo cannot read the model.
    #[error("MuJoCo cannot read `{path}`: {message}")]
    BadModel {
        /// The model.
        path: PathBuf,
        /// MuJoCo's error.
        message: String,
    },
    /// The model belongs to another robot.
    #[error(
        "the robot in `{path}` has {got}, expected {expected}: run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    OtherModel {
        /// The model.
        path: PathBuf,
        /// Property of the model.
        got: String,
        /// Expected value.
        expected: String,
    },
    /// MuJoCo could not allocate a simulation.
    #[error("MuJoCo cannot allocate memory for another simulation")]
    NoMemory,
    /// The step limit is 0.
    #[error("invalid step limit 0: expected at least 1")]
    NoSteps,
    /// An action contains a non-finite number.
    #[error("the action for environment {env} has a number that is not finite")]
    NonFiniteAction {
        /// The environment's index.
        env: usize,
    },
    /// An initial state has the wrong size or is not finite.
    #[error(
        "invalid initial state for environment {env}: expected {n_positions} finite positions and \
         {n_velocities} finite velocities, got {got}"
    )]
    BadState {
        /// The environment's index.
        env: usize,
        /// Number of positions of the task.
        n_positions: usize,
        /// Number of velocities of the task.
        n_velocities: usize,
        /// Description of the given state.
        got: String,
    },
    /// The simulation has diverged.
    #[error("the simulation of environment {env} diverged: {message}")]
    Diverged {
        /// The environment's index.
        env: usize,
        /// MuJoCo's warning, or the value that is not finite.
        message: String,
    },
}

impl From<MujocoError> for EnvError {
    fn from(error: MujocoError) -> Self {
        Self::Backend(Box::new(error))
    }
}
