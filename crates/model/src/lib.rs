//! The Decision Transformer and its perceptron baseline: configuration, models, action heads,
//! weights on disk, and the acting policy.
//!
//! Start with [`decision_transformer`]. A [`Model`] is any of the models, a [`Head`] any of the
//! heads. Every model reads [`Contexts`] with returns prepared by a [`Conditioner`], and a
//! [`ModelPolicy`] acts with any model.

#[macro_use]
pub mod options;

pub mod acting;
pub mod attention;
pub mod conditioning;
pub mod contexts;
pub mod decision_transformer;
pub mod device;
mod dropout_seed;
pub mod encoder;
pub mod error;
pub mod head;
pub mod inputs;
mod loss;
pub mod model;
mod parameters;
pub mod perceptron;
pub mod published;
pub mod transformer_block;

pub use acting::{ContextShape, History, ModelPolicy, PreviousActions};
pub use attention::{
    AttentionConfig, FourierAttention, FourierAttentionConfig, FourierKernel, RShape,
};
pub use burn;
pub use conditioning::{
    AverageReturn, Conditioner, ConditionerConfig, ReturnModel, ReturnModelConfig,
};
pub use contexts::{Acted, Contexts, Observed, Places, Stored};
pub use decision_transformer::{
    DecisionTransformer, DecisionTransformerConfig, Steps, positions, positions::PositionsConfig,
};
pub use dropout_seed::DropoutSeed;
pub use error::ModelError;
pub use head::{Head, HeadConfig};
pub use init::Init;
pub use inputs::{Inputs, Layout, Sections};
pub use loss::Loss;
pub use model::{Model, ModelConfig};
pub use parameters::{affine, init, matrices, weights};
pub use perceptron::{Perceptron, PerceptronConfig};

/// The README's example, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
