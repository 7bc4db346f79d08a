//! The simulated robots HalfCheetah, Hopper and Walker2d as Gymnasium's `-v4` and `-v5`
//! environments have them, stepped natively: a suite of `overtone_env::VectorEnv` environments.
//!
//! The physics is MuJoCo's own C library, the one in the `mujoco` Python package, loaded when
//! [`open`] is called: without it everything else of the program works. The robots are
//! Gymnasium's own model files. Observations, rewards, ends of episodes and the drawn starts
//! follow Gymnasium 1.4.0, and equal it to the last bit (`tests/gymnasium.rs`).
//!
//! The packages are looked for in the folder that `OVERTONE_SITE_PACKAGES` names; where that is
//! not set, in `VIRTUAL_ENV`, then in `.venv` under the current folder and its parents.
//! `just setup` puts them there. No Python runs.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `robot.rs` | a robot: a row of `tasks.toml` |
//! | `simulation.rs` | how it is run: the revision, and the longest episode |
//! | `suite.rs` | all robots as a suite |
//! | `rules.rs` | observation, reward and health of a robot |
//! | `start.rs` | the drawn start of an episode |
//! | `packages.rs` | where library and models lie |
//! | `library.rs` | the C functions we use, and what happens when MuJoCo complains |
//! | `simulator.rs` | one model, and one simulation of it |
//! | `vector.rs` | many at once |
//! | `figure.rs` | where a robot's limbs are, to be drawn |
//!
//! # Where we differ from Gymnasium
//! - MuJoCo puts a robot whose numbers grow beyond all bounds back to its start and warns;
//!   Gymnasium goes on as if nothing had happened. Here each warning is
//!   [`MujocoError::Diverged`], and ends that environment's episode.
//! - An action that is not finite is refused, where MuJoCo would replace it by zeros.

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

/// Version of MuJoCo that is loaded; another is refused.
pub const MUJOCO_VERSION: &str = "3.17.0";

/// `n_envs` environments of `robot`, run as `simulation` says.
///
/// # Errors
/// When the library or the model is missing or another than expected, or `simulation` has a
/// limit of zero steps.
pub fn open(
    robot: &'static Robot,
    simulation: &RobotSimulation,
    n_envs: usize,
) -> Result<MujocoVectorEnv, MujocoError> {
    MujocoVectorEnv::new(robot, simulation, n_envs)
}

/// Checks that MuJoCo and the robot's model are there, without simulating anything.
///
/// # Errors
/// When one is missing, or another than expected.
pub fn check(robot: &'static Robot, revision: Revision) -> Result<(), MujocoError> {
    library::load()?;
    packages::model(robot, revision).map(drop)
}
