//! The Decision Transformer: configuration, model, action heads, weights on disk, and the
//! policy that plays with it.
//!
//! Start with [`decision_transformer`].

pub mod config;
pub mod decision_transformer;
pub mod device;
pub mod error;
pub mod head;
pub mod init;
pub mod policy;
pub mod published;

pub mod transformer_block;
pub mod weights;

pub use burn;
pub use config::{AttentionConfig, Conditioning, FourierAttentionConfig, ModelConfig, RShape};
pub use decision_transformer::{DecisionTransformer, Inputs};
pub use error::ModelError;
pub use head::{Head, HeadConfig};
pub use policy::TransformerPolicy;
