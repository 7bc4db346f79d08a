//! [`Robot`]: a row of `tasks.toml`.

use std::fmt;
use std::sync::LazyLock;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Targets, Task};
use overtone_env::{Scores, TaskTable};
use serde::Deserialize;

use crate::{MujocoError, Revision, RobotSimulation};

/// A robot with the task to move forward.
#[derive(Debug)]
pub struct Robot {
    /// The task.
    pub task: Task,
    facts: Facts,
}

/// A robot's row of the table. `tasks.toml` describes each key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    name: String,
    title: String,
    model: ModelFacts,
    action_steps: usize,
    step_seconds: f64,
    pub(crate) shown_velocity: Option<f64>,
    pub(crate) start_noise: f64,
    pub(crate) velocity_noise: VelocityNoise,
    pub(crate) healthy: Option<Healthy>,
    pub(crate) cost_weight: f32,
    reference: Scores,
    targets: Vec<f32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFacts {
    v4: String,
    v5: String,
    positions: usize,
    motors: usize,
}

/// Distribution of the velocities' noise at the start of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VelocityNoise {
    Uniform,
    Normal,
}

/// Open bounds outside which a robot has fallen.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Healthy {
    pub(crate) height: [f64; 2],
    pub(crate) angle: [f64; 2],
    pub(crate) others: Option<[f64; 2]>,
}

impl Robot {
    /// All robots, in the table's order.
    pub fn all() -> &'static [Self] {
        static ROBOTS: LazyLock<Vec<Robot>> = LazyLock::new(|| {
            let table = TaskTable::<Facts>::of(include_str!("../tasks.toml"));
            table.tasks.iter().map(|facts| robot(&table, facts)).collect()
        });
        &ROBOTS
    }

    /// The robot with this name in the table.
    ///
    /// # Errors
    /// When the robot is not in the table.
    pub fn named(name: &str) -> Result<&'static Self, MujocoError> {
        let robot = Self::all().iter().find(|robot| robot.task.name == name);
        robot.ok_or_else(|| MujocoError::NoRobot { name: name.to_owned() })
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Gymnasium's id of the environment, such as `HalfCheetah-v4`.
    pub fn gymnasium_id(&self, revision: Revision) -> String {
        format!("{}-{}", self.facts.title, revision.name())
    }

    /// Whether `-v4` and `-v5` differ in observations, rewards, ends of episodes or physics. They are
    /// equal for a robot that cannot fall and has one model.
    pub fn revisions_differ(&self) -> bool {
        self.facts.healthy.is_some() || self.facts.model.v4 != self.facts.model.v5
    }

    /// Numbers in an observation: all positions except the first, then velocities.
    pub fn observation_width(&self) -> usize {
        self.n_positions() - 1 + self.n_velocities()
    }

    /// Numbers in an action, one for each motor. Each is a torque as a fraction of the motor's
    /// maximum.
    pub fn action_width(&self) -> usize {
        self.facts.model.motors
    }

    /// Positions in the state: metres for the first two, then radians.
    pub fn n_positions(&self) -> usize {
        self.facts.model.positions
    }

    /// Velocities in the state, one for each position.
    pub fn n_velocities(&self) -> usize {
        self.n_positions()
    }

    /// Simulator steps per action.
    pub(crate) fn action_steps(&self) -> usize {
        self.facts.action_steps
    }

    /// Seconds per simulator step, as set in the model file.
    pub(crate) fn step_seconds(&self) -> f64 {
        self.facts.step_seconds
    }

    /// Seconds per action.
    pub fn seconds_per_action(&self) -> f64 {
        self.action_steps() as f64 * self.step_seconds()
    }

    /// Name of Gymnasium's model file.
    pub(crate) fn model_file(&self, revision: Revision) -> &str {
        match revision {
            Revision::V4 => &self.facts.model.v4,
            Revision::V5 => &self.facts.model.v5,
        }
    }
}

impl fmt::Display for Robot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.facts.title)
    }
}

fn robot(table: &TaskTable<Facts>, facts: &Facts) -> Robot {
    let ModelFacts { positions, motors, .. } = facts.model;
    let simulation = RobotSimulation::d4rl();
    Robot {
        facts: facts.clone(),
        task: Task {
            suite: crate::SUITE.into(),
            name: facts.name.clone(),
            title: facts.title.clone(),
            observations: ObservationSpace::Vectors { width: 2 * positions - 1 },
            actions: ActionSpace::unit(motors),
            horizon: Some(simulation.max_steps as usize),
            return_units: ReturnUnits::Raw,
            reference: Some(table.reference(&facts.reference)),
            targets: Targets { usual: facts.targets.clone(), released: None },
            simulation: Simulation::of(&simulation),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_are_rows_of_the_table() {
        let ids: Vec<String> = Robot::all().iter().map(|robot| robot.task.id()).collect();
        assert_eq!(ids, ["mujoco/halfcheetah", "mujoco/hopper", "mujoco/walker2d"]);
        let [cheetah, hopper, walker] = Robot::all() else { panic!("three robots") };
        assert_eq!(walker.gymnasium_id(Revision::V5), "Walker2d-v5");
        let sizes = |robot: &Robot| (robot.observation_width(), robot.action_width());
        assert_eq!([cheetah, hopper, walker].map(sizes), [(17, 6), (11, 3), (17, 6)]);
        let differ = [cheetah, hopper, walker].map(Robot::revisions_differ);
        assert_eq!(differ, [false, true, true]);
        assert_eq!(hopper.task.targets.usual, [3600.0, 1800.0]);
        assert!(Robot::named("Hopper").is_err(), "names are the table's");
    }

    /// Precision (32 or 64 bits) equals Gymnasium's code.
    #[test]
    fn numbers_of_the_table_equal_gymnasiums_code() {
        let [cheetah, hopper, walker] = Robot::all() else { panic!("three robots") };
        assert_eq!(cheetah.facts.cost_weight, 0.1f32);
        assert_eq!((hopper.facts.cost_weight, walker.facts.cost_weight), (1e-3, 1e-3));
        assert_eq!(hopper.facts.healthy.unwrap().height, [0.7, f64::INFINITY]);
        assert_eq!(hopper.seconds_per_action(), 0.008);
    }
}
