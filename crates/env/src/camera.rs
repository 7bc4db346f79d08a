//! [`Camera`]: pictures of an episode for people, for videos.

use overtone_core::Actions;

use crate::error::EnvError;

/// A copy of the agent's environment that replays the episode and renders it.
pub trait Camera {
    /// Starts the episode with this seed.
    ///
    /// # Errors
    /// When the simulator fails.
    fn reset(&mut self, seed: u64) -> Result<(), EnvError>;

    /// Takes the agent's action.
    ///
    /// # Errors
    /// When the simulator fails, or the action is invalid.
    fn step(&mut self, actions: &Actions) -> Result<(), EnvError>;

    /// The current picture.
    fn picture(&self) -> Picture;

    /// Names of the dimensions of a continuous action; empty if they have none.
    fn action_names(&self) -> &[String] {
        &[]
    }
}

/// A picture of an environment.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// A screen.
    Screen {
        /// Columns and rows.
        size: [usize; 2],
        /// `[rows, columns, 3]`, red, green and blue.
        rgb: Vec<u8>,
    },
    /// Limbs seen from the side, to be drawn.
    Limbs {
        /// The centre of the picture, `[x, z]`, metres.
        centre: [f64; 2],
        /// Height of the picture in metres.
        height: f64,
        /// The limbs.
        capsules: Vec<Capsule>,
    },
}

/// A limb: all points within the radius of a line segment, seen from the side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capsule {
    /// `[x, z]` of the ends of its axis, metres; z is up.
    pub ends: [[f64; 2]; 2],
    /// Metres.
    pub radius: f64,
}
