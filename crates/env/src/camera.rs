//! [`Camera`]: what a person sees of an episode, for videos.

use overtone_core::Actions;

use crate::EnvError;

/// Goes through an episode beside the agent, in an environment of its own, and shows it.
pub trait Camera {
    /// Begins the episode with this seed.
    ///
    /// # Errors
    /// When the simulator fails.
    fn reset(&mut self, seed: u64) -> Result<(), EnvError>;

    /// Takes the agent's action.
    ///
    /// # Errors
    /// When the simulator fails, or there is no such action.
    fn step(&mut self, actions: &Actions) -> Result<(), EnvError>;

    /// What is seen now.
    fn picture(&self) -> Picture;

    /// Names of a real-valued action's numbers; empty where they have none.
    fn action_names(&self) -> &[String] {
        &[]
    }
}

/// What is seen of an environment.
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
        /// What is in the middle of the picture, `[x, z]`, metres.
        centre: [f64; 2],
        /// Metres from the picture's bottom to its top.
        height: f64,
        /// The limbs.
        capsules: Vec<Capsule>,
    },
}

/// A limb: all that is nearer than the radius to a line, seen from the side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capsule {
    /// `[x, z]` of the ends of its axis, metres; z is up.
    pub ends: [[f64; 2]; 2],
    /// Metres.
    pub radius: f64,
}
