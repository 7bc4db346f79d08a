//! [`Ale`]: the suite of Atari games.

use std::sync::LazyLock;

use overtone_core::names::find;
use overtone_core::protocol::{FedBackActions, GlobalTimestep, Play, ReturnUnits, Setting};
use overtone_core::{ActingMode, Simulation, Task};
use overtone_env::{Camera, EnvError, Simulator, Suite, TaskError, VectorEnv, find_in_table};

use crate::{ALE_PY_VERSION, AleError, Emulation, Game, SETTINGS, SUITE, UNPLAYABLE};

/// The Arcade Learning Environment.
#[derive(Clone, Copy, Debug)]
pub struct Ale;

/// The protocol of published scores.
const RELEASED: &str = "released";

impl Suite for Ale {
    fn name(&self) -> &'static str {
        SUITE
    }

    fn nouns(&self) -> [&'static str; 2] {
        ["game", "games"]
    }

    fn key(&self) -> &'static str {
        "game"
    }

    fn tasks(&self) -> &[Task] {
        static TASKS: LazyLock<Vec<Task>> =
            LazyLock::new(|| Game::all().iter().map(|game| game.task.clone()).collect());
        &TASKS
    }

    fn task(&'static self, name: &str) -> Result<&'static Task, TaskError> {
        let noun = self.nouns()[0];
        match find(&UNPLAYABLE, name) {
            None => Ok(find_in_table(self, name)?),
            Some(name) => Err(TaskError::Refused {
                noun,
                name: name.to_owned(),
                reason: format!(
                    "ale-py {ALE_PY_VERSION} has no rules for this game, and loading its ROM \
                     would end this program; choose another game"
                ),
            }),
        }
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn published_data(&self) -> &'static str {
        "DQN-replay"
    }

    fn check(&self, task: &Task) -> Result<(), EnvError> {
        Ok(crate::check(Game::named(&task.name)?)?)
    }

    fn open(
        &self,
        task: &Task,
        simulation: &Simulation,
        n_envs: usize,
    ) -> Result<Box<dyn VectorEnv>, EnvError> {
        let emulation = emulation(simulation)?;
        Ok(crate::open(Game::named(&task.name)?, &emulation, n_envs)?)
    }

    fn simulator(&self, task: &Task, simulation: &Simulation) -> Result<Simulator, EnvError> {
        emulation(simulation)?;
        Ok(Simulator {
            name: format!("Arcade Learning Environment {ALE_PY_VERSION}"),
            rom_md5: Some(Game::named(&task.name)?.rom_md5.clone()),
        })
    }

    fn protocols(&self) -> &'static [&'static str] {
        &[RELEASED]
    }

    fn protocol(&self, name: &str, matched: &Play) -> Option<Play> {
        (name == RELEASED).then(|| self.contrast(matched))
    }

    fn released(&self) -> Option<&'static str> {
        Some(RELEASED)
    }

    /// The released Decision Transformer and Fourier-head evaluation, bugs included, for
    /// comparison with published scores.
    fn contrast(&self, matched: &Play) -> Play {
        Play {
            name: RELEASED.into(),
            simulation: Simulation::of(&Emulation::released()),
            return_units: ReturnUnits::Raw,
            integer_returns: true,
            fed_back_actions: FedBackActions::HeadBins,
            global_timestep: GlobalTimestep::Current,
            acting: ActingMode { temperature: 1.0, ..matched.acting },
            ..matched.clone()
        }
    }

    fn camera(
        &self,
        task: &Task,
        simulation: &Simulation,
    ) -> Result<Option<Box<dyn Camera>>, EnvError> {
        Ok(crate::camera(Game::named(&task.name)?, &emulation(simulation)?)?)
    }

    fn seconds_per_action(&self, _: &Task, simulation: &Simulation) -> Result<f64, EnvError> {
        Ok(f64::from(emulation(simulation)?.frame_skip) / 60.0)
    }

    fn horizon(&self, _: &Task, simulation: &Simulation) -> Option<usize> {
        let emulation = emulation(simulation).ok()?;
        // An action that is cut short by the limit also counts.
        Some(emulation.max_frames.div_ceil(emulation.frame_skip.max(1)) as usize)
    }

    fn limited(&self, simulation: &Simulation, steps: u32) -> Option<Simulation> {
        let emulation = emulation(simulation).ok()?;
        let max_frames = steps.checked_mul(emulation.frame_skip)?;
        Some(Simulation::of(&Emulation { max_frames, ..emulation }))
    }

    /// Mostly the time to load the ROM.
    fn seconds_to_start(&self) -> f64 {
        0.1
    }
}

fn emulation(simulation: &Simulation) -> Result<Emulation, AleError> {
    Ok(simulation.read()?)
}
