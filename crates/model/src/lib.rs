//! The Decision Transformer: configuration, model, action heads, weights on disk, and the
//! policies that play with it.
//!
//! Start with [`decision_transformer`]. Its sibling for vectors and real-valued actions is
//! [`continuous_decision_transformer`]; both are read by one [`transformer`]. [`mlp_bc`] is the
//! baseline without one, and a [`ContinuousAgent`] is either model of vectors.
//!
//! [`TransformerPolicy`] plays on frames, [`ContinuousPolicy`] on vectors.

mod categorical;
pub mod config;
pub mod continuous_agent;
pub mod continuous_config;
pub mod continuous_decision_transformer;
pub mod continuous_history;
pub mod continuous_policy;
pub mod decision_transformer;
pub mod device;
pub mod error;
pub mod head;
pub mod init;
pub mod mlp_bc;
mod n_parameters;
pub mod policy;
pub mod published;
mod recent;
pub mod tokens;
pub mod transformer;
pub mod transformer_block;
pub mod weights;

pub use burn;
pub use config::{AttentionConfig, Conditioning, FourierAttentionConfig, ModelConfig, RShape};
pub use continuous_agent::{ContinuousAgent, ContinuousAgentConfig};
pub use continuous_config::ContinuousModelConfig;
pub use continuous_decision_transformer::{
    ContinuousDecisionTransformer, ContinuousInputs, ContinuousLoss,
};
pub use continuous_history::{ContextShape, ContinuousHistory};
pub use continuous_policy::ContinuousPolicy;
pub use decision_transformer::{DecisionTransformer, Inputs};
pub use error::ModelError;
pub use head::{Head, HeadConfig};
pub use mlp_bc::{MlpBc, MlpConfig};
pub use policy::TransformerPolicy;
