//! Common parts of the algorithms that learn an actor of continuous actions with critics.

pub mod actor_critic;
pub mod keys;
pub mod network;
pub mod parts;
pub mod policy;
pub mod steps;
pub mod td3;
pub mod twin;

pub use actor_critic::ActorCritic;
pub use network::Mlp;
pub use policy::ActorPolicy;
pub use steps::{Rescaling, Steps};
pub use td3::Td3;
pub use twin::Twin;
