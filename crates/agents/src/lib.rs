//! Agents and their algorithms: each algorithm is one file, and one line of [`AlgorithmConfig`].
//!
//! An algorithm implements [`overtone_train::Algorithm`], and a [`Policy`](overtone_core::Policy)
//! acts with the result. [`Agent`] is the description that a checkpoint stores next to the weights.

pub mod acting;
mod action_chunks;
pub mod agent;
pub mod algorithm;
pub mod discrete_cql;
pub mod exchange;
pub mod hugging_face;
pub mod iql;
mod masked_actions;
mod network_policy;
pub mod options;
pub mod rebrac;
pub mod rvs;
mod scaled_actions;
pub mod sequence_model;
pub mod state_dict;
pub mod td3_bc;
pub mod value;

pub use acting::{ActingNetwork, PolicyParts};
pub use agent::{Agent, policy};
pub use algorithm::{AlgorithmConfig, AlgorithmKind};
pub use discrete_cql::{DiscreteCql, DiscreteCqlConfig};
pub use iql::{Iql, IqlConfig, IqlOptions};
pub use options::AlgorithmOptions;
pub use rebrac::{Rebrac, RebracConfig};
pub use rvs::RvsConfig;
pub use sequence_model::{
    BehaviorCloningConfig, DecisionTransformerOptions, SequenceLearner, SequenceModel,
};
pub use td3_bc::{Td3Bc, Td3BcConfig};
pub use value::keys::has_rare_rewards;
