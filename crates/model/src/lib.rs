//! The Decision Transformer and the perceptron it is compared with: configuration, models, action
//! heads, weights on disk, and the policy that plays them.
//!
//! Start with [`decision_transformer`]. A [`Model`] is any of the models, a [`Head`] any of the
//! heads, [`Contexts`] is what every model reads, and a [`ModelPolicy`] plays whichever.

#[macro_use]
pub mod options;

pub mod action_embedding;
pub mod affine;
pub mod attention;
pub mod average_return;
pub mod best_shares;
pub mod categorical;
pub mod contexts;
pub mod decision_transformer;
pub mod decision_transformer_config;
pub mod device;
pub mod encoder;
pub mod error;
pub mod fourier_attention;
mod frame_memory;
pub mod head;
pub mod history;
pub mod init;
pub mod loss;
pub mod matrices;
pub mod model;
pub mod perceptron;
pub mod policy;
pub mod positions;
pub mod published;
mod recent;
pub mod return_model;
pub mod tokens;
pub mod transformer;
pub mod transformer_block;
pub mod transformer_config;
pub mod turns;
pub mod weights;

pub use attention::{AttentionConfig, FourierKernel, RShape};
pub use average_return::AverageReturn;
pub use burn;
pub use contexts::{Acted, Contexts, Frames, Observed};
pub use decision_transformer::DecisionTransformer;
pub use decision_transformer_config::DecisionTransformerConfig;
pub use error::ModelError;
pub use fourier_attention::{FourierAttention, FourierAttentionConfig};
pub use head::{Head, HeadConfig};
pub use history::{ContextShape, History, Past};
pub use init::Init;
pub use loss::Loss;
pub use matrices::Matrices;
pub use model::{Model, ModelConfig};
pub use perceptron::{Perceptron, PerceptronConfig};
pub use policy::ModelPolicy;
pub use positions::PositionsConfig;
pub use return_model::{ReturnModel, ReturnModelConfig};
pub use tokens::Conditioning;

/// The README's example, compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
