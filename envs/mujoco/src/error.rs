//! What can be missing or wrong between us and MuJoCo.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::{MUJOCO_VERSION, SITE_PACKAGES};

/// Why a robot cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum MujocoError {
    /// Not one of the robots.
    #[error("there is no robot `{name}` in this program's table of robots")]
    NoRobot {
        /// What was asked for.
        name: String,
    },
    /// Settings that are not those of a robot's simulation.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// No folder with Python packages was found.
    #[error(
        "no `.venv` with packages here nor in a folder above, so MuJoCo is missing: run \
         `just setup` for `mujoco`, or set {SITE_PACKAGES} to the folder that `mujoco` is installed in"
    )]
    NoPackages,
    /// Packages without MuJoCo's library.
    #[error(
        "MuJoCo's library is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    NoLibrary {
        /// Where it should lie.
        path: PathBuf,
    },
    /// Another MuJoCo.
    #[error(
        "`{path}` is not MuJoCo {MUJOCO_VERSION}, which is needed: run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    OtherLibrary {
        /// The library found.
        path: PathBuf,
    },
    /// The library cannot be loaded, or lacks a function.
    #[error("`{path}` does not load: run `just setup`, or pip install 'overtone-rl[mujoco]'")]
    Unloadable {
        /// The library.
        path: PathBuf,
        /// What the system said.
        source: libloading::Error,
    },
    /// Packages without Gymnasium's model.
    #[error(
        "Gymnasium's model of the robot is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    NoModel {
        /// Where it should lie.
        path: PathBuf,
    },
    /// MuJoCo does not read the model.
    #[error("MuJoCo does not read `{path}`: {message}")]
    BadModel {
        /// The model.
        path: PathBuf,
        /// What MuJoCo said.
        message: String,
    },
    /// The model is of another robot.
    #[error(
        "the robot in `{path}` has {got}, {expected} were expected: run `just setup`, or pip install 'overtone-rl[mujoco]'"
    )]
    OtherModel {
        /// The model.
        path: PathBuf,
        /// What it has, in words.
        got: String,
        /// What the task has, in words.
        expected: String,
    },
    /// MuJoCo could not allocate a simulation.
    #[error("MuJoCo has no memory for another simulation")]
    NoMemory,
    /// An episode of no steps.
    #[error("an episode cannot be limited to 0 steps")]
    NoSteps,
    /// An action with a number that is not finite.
    #[error("the action for environment {env} has a number that is not finite")]
    NonFiniteAction {
        /// The environment's index.
        env: usize,
    },
    /// A state of another robot, or one that is not finite.
    #[error(
        "a start needs {n_positions} positions and {n_velocities} velocities, all finite; \
         environment {env} was given {got}"
    )]
    BadState {
        /// The environment's index.
        env: usize,
        /// Positions of the task.
        n_positions: usize,
        /// Velocities of the task.
        n_velocities: usize,
        /// What was given, in words.
        got: String,
    },
    /// The simulation is no longer physics.
    #[error("the simulation of environment {env} diverged: {message}")]
    Diverged {
        /// The environment's index.
        env: usize,
        /// What MuJoCo said, or what is not finite.
        message: String,
    },
}

impl From<MujocoError> for EnvError {
    fn from(error: MujocoError) -> Self {
        Self::Backend(Box::new(error))
    }
}
