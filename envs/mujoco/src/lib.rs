//! The simulated robots HalfCheetah, Hopper and Walker2d of Gymnasium's `-v4` and `-v5`
//! environments, stepped natively: a suite of `overtone_env::VectorEnv` environments.
//!
//! The physics is MuJoCo's C library from the `mujoco` Python package. [`open`] loads it, and the
//! rest of the program works without it. The robots are Gymnasium's model files. Observations,
//! rewards, ends of episodes and random starts equal Gymnasium 1.4.0 bit by bit
//! (`tests/gymnasium.rs`).
//!
//! The packages are found in the directory `OVERTONE_SITE_PACKAGES`. If it is not set, they are found
//! in `VIRTUAL_ENV`, then in `.venv` in the current directory or above. `just setup` installs them.
//! No Python runs.
//!
//! | file | contents |
//! | --- | --- |
//! | `robot.rs` | a robot: a row of `tasks.toml` |
//! | `simulation.rs` | settings: the revision and the step limit |
//! | `suite.rs` | the suite of robots |
//! | `rules.rs` | observation, reward and health of a robot |
//! | `start.rs` | the random start of an episode |
//! | `packages.rs` | locations of library and models |
//! | `library.rs` | the C functions, and MuJoCo's warnings and errors |
//! | `simulator.rs` | a model and a simulation of it |
//! | `vector.rs` | many environments in parallel |
//! | `figure.rs` | positions of a robot's limbs, for drawing |
//!
//! # Differences from Gymnasium
//! - If a simulation diverges, MuJoCo resets the robot and warns, and Gymnasium ignores the warning.
//!   Here each warning is [`MujocoError::Diverged`] and ends that environment's episode.
//! - A non-finite action is an error. MuJoCo replaces it by zeros.

mod error;
mod figure;
mod library;
mod packages;
mod robot;
mod rules;
mod simulation;
mod simulator;
mod start;
mod suite;
mod vector;

pub use error::MujocoError;
pub use figure::Figure;
pub use packages::{SITE_PACKAGES, packages};
pub use robot::Robot;
pub use simulation::{Revision, RobotSimulation, SETTINGS};
pub use suite::Mujoco;
pub use vector::MujocoVectorEnv;

/// The suite's name.
pub const SUITE: &str = "mujoco";

/// The required version of MuJoCo. Other versions are rejected.
pub const MUJOCO_VERSION: &str = "3.17.0";

/// `n_envs` environments of `robot` with the settings `simulation`.
///
/// # Errors
/// When the library or the model is missing or has another version, or the step limit is 0.
pub fn open(
    robot: &'static Robot,
    simulation: &RobotSimulation,
    n_envs: usize,
) -> Result<MujocoVectorEnv, MujocoError> {
    MujocoVectorEnv::new(robot, simulation, n_envs)
}

/// Checks that MuJoCo and the robot's model are installed, without a simulation.
///
/// # Errors
/// When one of them is missing or has another version.
pub fn check(robot: &'static Robot, revision: Revision) -> Result<(), MujocoError> {
    library::load()?;
    packages::model(robot, revision).map(drop)
}
