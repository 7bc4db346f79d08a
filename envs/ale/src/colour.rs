//! [`ColourScreens`]: the colour screens of one emulator, for videos.

use overtone_core::Actions;
use overtone_env::{Camera, EnvError, Picture, Step};
use pyo3::prelude::*;

use crate::python::{Rom, failed};
use crate::screen::RAW;
use crate::seed::ale_seed;
use crate::vector::{Lane, View, check};
use crate::{AleError, Emulation, Game};

/// An emulator with full-size colour screens. With the same seed and actions it plays the same
/// episode as an [`AleVectorEnv`](crate::AleVectorEnv).
///
/// A screen is the pixel-wise maximum of an action's last two raw screens, like the agent's
/// observation. Flickering objects are therefore visible.
pub struct ColourScreens {
    lane: Lane,
    screen: Vec<u8>,
    n_actions: usize,
}

impl ColourScreens {
    /// Rows and columns of a screen.
    pub const SIZE: [usize; 2] = RAW;

    /// Starts an emulator.
    ///
    /// # Errors
    /// The same as [`AleVectorEnv::new`](crate::AleVectorEnv::new).
    pub fn new(game: &'static Game, emulation: &Emulation) -> Result<Self, AleError> {
        check(emulation)?;
        let rom = Rom::find(game)?;
        let [height, width] = RAW;
        let view = View { frames: 1, height, width, grey: false };
        let lane = Lane::start(game, &rom.path, emulation, &view)?;
        let (screen, n_actions) = (vec![0; height * width * 3], game.action_ids.len());
        Ok(Self { lane, screen, n_actions })
    }

    /// Takes an action.
    ///
    /// # Errors
    /// When the emulator fails or the action does not exist.
    pub fn step(&mut self, action: usize) -> Result<Step, EnvError> {
        if action >= self.n_actions {
            // The emulator would wait for a valid action and never answer.
            return Err(EnvError::ActionOutOfRange { env: 0, action, n_actions: self.n_actions });
        }
        let stepped = Python::attach(|py| {
            self.lane.send(py, action).map_err(failed("sending an action"))?;
            self.lane.receive(py, &mut self.screen).map_err(failed("playing"))
        });
        Ok(stepped?)
    }
}

impl Camera for ColourScreens {
    fn reset(&mut self, seed: u64) -> Result<(), EnvError> {
        Ok(self.lane.reset(ale_seed(seed), &mut self.screen)?)
    }

    fn step(&mut self, actions: &Actions) -> Result<(), EnvError> {
        match actions {
            Actions::Discrete(actions) if actions.len() == 1 => {
                Self::step(self, actions[0])?;
                Ok(())
            }
            other => Err(EnvError::ActionKind {
                got: other.describe(),
                expected: "the index of one action".into(),
            }),
        }
    }

    fn picture(&self) -> Picture {
        let [height, width] = Self::SIZE;
        Picture::Screen { size: [width, height], rgb: self.screen.clone() }
    }
}
