//! Plays agents that `overtone export format=onnx` wrote, with the standard library alone.
//!
//! ```no_run
//! let mut agent = overtone_serve::Agent::open("hopper-onnx".as_ref())?;
//! agent.begin(1, None)?;
//! let observation = [0.0; 11];
//! let action = agent.act(&observation, 0.0)?; // 0: no reward yet
//! # Ok::<(), overtone_serve::Error>(())
//! ```
//!
//! An [`Agent`] keeps the window of its episode: observations, actions, returns-to-go and
//! timesteps.
//! It computes with the operations in `agent.onnx`. Every algorithm, head and attention works.
//! Actions in [-1, 1] differ from Overtone's by at most 1e-5; drawn discrete actions are the same for
//! the same seed. The C interface is in `c.rs` and `include/overtone_serve.h`.

mod agent;
mod attributes;
mod c;
mod error;
mod graph;
mod json;
mod math;
mod matrix;
mod ops;
mod random;
mod tensor;
mod wire;

pub use agent::{Action, Agent};
pub use error::Error;
