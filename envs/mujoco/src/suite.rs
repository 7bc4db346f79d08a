//! [`Mujoco`]: the suite of robots.

use std::sync::LazyLock;

use overtone_core::protocol::{ActionChoice, Play, Setting};
use overtone_core::{Actions, Simulation, Task};
use overtone_env::{Camera, EnvError, Picture, Simulator, Suite, VectorEnv};

use crate::{
    Figure, MUJOCO_VERSION, MujocoError, MujocoVectorEnv, Revision, Robot, RobotSimulation,
    SETTINGS, SUITE,
};

/// Gymnasium's robots in MuJoCo.
#[derive(Clone, Copy, Debug)]
pub struct Mujoco;

impl Suite for Mujoco {
    fn name(&self) -> &'static str {
        SUITE
    }

    fn nouns(&self) -> [&'static str; 2] {
        ["robot", "robots"]
    }

    fn key(&self) -> &'static str {
        "env"
    }

    fn tasks(&self) -> &[Task] {
        static TASKS: LazyLock<Vec<Task>> =
            LazyLock::new(|| Robot::all().iter().map(|robot| robot.task.clone()).collect());
        &TASKS
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn published_data(&self) -> &'static str {
        "D4RL"
    }

    /// Checks one revision, because both need the same packages.
    fn check(&self, task: &Task) -> Result<(), EnvError> {
        Ok(crate::check(Robot::named(&task.name)?, Revision::V4)?)
    }

    fn open(
        &self,
        task: &Task,
        simulation: &Simulation,
        n_envs: usize,
    ) -> Result<Box<dyn VectorEnv>, EnvError> {
        let (robot, simulation) = (Robot::named(&task.name)?, read(simulation)?);
        Ok(Box::new(crate::open(robot, &simulation, n_envs)?))
    }

    fn simulator(&self, task: &Task, simulation: &Simulation) -> Result<Simulator, EnvError> {
        let id = Robot::named(&task.name)?.gymnasium_id(read(simulation)?.revision);
        Ok(Simulator { name: format!("MuJoCo {MUJOCO_VERSION}, {id}"), rom_md5: None })
    }

    fn protocols(&self) -> &'static [&'static str] {
        &["v4", "v5"]
    }

    /// The training protocol with the named revision of the environment.
    fn protocol(&self, name: &str, matched: &Play) -> Option<Play> {
        self.protocols().contains(&name).then(|| {
            let mut play = matched.clone();
            if play.simulation.get("revision") != Some(&name.into()) {
                play.name = name.to_owned();
                play.simulation = play.simulation.with("revision", name);
            }
            play
        })
    }

    /// The other revision, with sampled actions.
    fn contrast(&self, matched: &Play) -> Play {
        let revision = read(&matched.simulation).map_or(Revision::V4, |robots| robots.revision);
        let other = revision.other().name();
        Play {
            name: other.to_owned(),
            simulation: matched.simulation.with("revision", other),
            action_choice: ActionChoice::Sample,
            ..matched.clone()
        }
    }

    fn camera(
        &self,
        task: &Task,
        simulation: &Simulation,
    ) -> Result<Option<Box<dyn Camera>>, EnvError> {
        let (robot, simulation) = (Robot::named(&task.name)?, read(simulation)?);
        let figure = Figure::load(robot, simulation.revision)?;
        Ok(Some(Box::new(Side { env: crate::open(robot, &simulation, 1)?, figure })))
    }

    fn seconds_per_action(&self, task: &Task, _: &Simulation) -> Result<f64, EnvError> {
        Ok(Robot::named(&task.name)?.seconds_per_action())
    }

    fn horizon(&self, _: &Task, simulation: &Simulation) -> Option<usize> {
        Some(read(simulation).ok()?.max_steps as usize)
    }

    fn limited(&self, simulation: &Simulation, steps: u32) -> Option<Simulation> {
        let limited = RobotSimulation { max_steps: steps, ..read(simulation).ok()? };
        Some(Simulation::of(&limited))
    }

    fn episodes_at_once(&self) -> usize {
        200
    }
}

fn read(simulation: &Simulation) -> Result<RobotSimulation, MujocoError> {
    Ok(simulation.read()?)
}

/// A robot, seen from the side.
struct Side {
    env: MujocoVectorEnv,
    figure: Figure,
}

impl Camera for Side {
    fn reset(&mut self, seed: u64) -> Result<(), EnvError> {
        self.env.reset(&[0], &[seed])
    }

    fn step(&mut self, actions: &Actions) -> Result<(), EnvError> {
        self.env.step(&[0], actions).map(drop)
    }

    fn picture(&self) -> Picture {
        let (positions, _) = self.env.state(0);
        Picture::Limbs {
            // The camera follows the robot.
            centre: [positions[0], 0.75],
            height: 2.6,
            capsules: self.figure.capsules(positions),
        }
    }

    fn action_names(&self) -> &[String] {
        self.figure.motors()
    }
}
