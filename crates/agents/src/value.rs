//! Common parts of the algorithms that learn values.

pub mod actor_critic;
pub mod discrete_steps;
pub mod keys;
pub mod network;
pub mod parts;
pub mod policy;
pub mod q_network;
pub mod steps;
pub mod td3;
pub mod twin;

pub use actor_critic::ActorCritic;
pub use discrete_steps::DiscreteSteps;
pub use network::Mlp;
pub use policy::StepPolicy;
pub use q_network::{Body, QNetwork};
pub use steps::{Rescaling, Steps};
pub use td3::Td3;
pub use twin::Twin;
