//! Agents and the algorithms that make them: one file, and one line of [`AlgorithmConfig`], an
//! algorithm.
//!
//! An algorithm implements [`overtone_train::Algorithm`]; what it learned is played by a
//! [`Policy`](overtone_core::Policy). [`Agent`] is what a checkpoint says beside the weights.

pub mod agent;
pub mod algorithm;
pub mod discrete_cql;
pub mod exchange;
pub mod hugging_face;
pub mod iql;
pub mod options;
pub mod rebrac;
pub mod rvs;
mod scaled_actions;
pub mod sequence_model;
pub mod state_dict;
pub mod td3_bc;
pub mod value;

pub use agent::{Agent, policy};
pub use algorithm::{AlgorithmConfig, AlgorithmKind};
pub use discrete_cql::{DiscreteCql, DiscreteCqlConfig};
pub use iql::{Iql, IqlConfig};
pub use options::{AlgorithmOptions, Restored};
pub use rebrac::{Rebrac, RebracConfig};
pub use rvs::RvsConfig;
pub use sequence_model::{
    BehaviorCloningConfig, DecisionTransformerOptions, SequenceLearner, SequenceModel,
};
pub use td3_bc::{Td3Bc, Td3BcConfig};
