//! Attention scores: the comparison of a transformer's queries with its keys.
//!
//! The transformer block projects queries, keys and values, applies the softmax to the scores over
//! the visible keys, and mixes the values. Variants of attention differ in the score. A variant is
//! one file that implements [`AttentionVariant`] for its options, and a line in the list below: its
//! word in configurations, and its options.

pub mod fourier;
mod fourier_attention;
pub mod softmax;

use burn::{module::Param, tensor::Tensor};
use overtone_kernels::Score;
use serde::{Deserialize, Serialize};

pub use fourier::{FourierKernel, RShape};
pub use fourier_attention::{FourierAttention, FourierAttentionConfig};
pub use softmax::ScaledDotProduct;

use crate::{
    error::ModelError,
    options::{self, Choice},
    parameters::init::Init,
};

/// Options of an attention variant.
pub trait AttentionVariant {
    /// The number in the variant's name as part of a run's name: the 4 of `fourier4`.
    fn size(&self) -> Option<usize> {
        None
    }

    /// # Errors
    /// When an option is not valid.
    fn validate(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// The learned parameter of the score in each layer. Checkpoints store it as the block's
    /// `fourier_r`, a name from the time when only one score had a parameter.
    fn parameter(
        &self,
        n_heads: usize,
        d_head: usize,
        init: &mut Init<'_>,
    ) -> Option<Param<Tensor<2>>> {
        let _ = (n_heads, d_head, init);
        None
    }

    /// The score. [`Score::Tensors`] is a score in plain tensors, with burn's automatic gradient.
    fn score(&self) -> Score<'_>;
}

/// Generates the enum that stores and runs the variants from the list.
macro_rules! variants {
    ($($(#[doc = $doc:literal])* $word:literal $name:ident($options:ty),)*) => {
        /// The attention score, with its own options.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum AttentionConfig { $($(#[doc = $doc])* #[serde(rename = $word)] $name($options),)* }

        impl AttentionConfig {
            pub(crate) fn variant(&self) -> &dyn AttentionVariant {
                match self { $(Self::$name(options) => options,)* }
            }

            fn word(&self) -> &'static str {
                match self { $(Self::$name(_) => $word,)* }
            }

            /// All variants, with their defaults.
            pub fn choices() -> Vec<Choice<Self>> {
                vec![$(Choice::new($word, concat!($($doc),*), Self::$name),)*]
            }
        }
    };
}

variants! {
    /// Softmax of scaled dot products.
    "softmax" Softmax(ScaledDotProduct),
    /// The Fourier integral kernel, a product over dimensions of (sin R(q - k) / R(q - k))^power
    /// (Nguyen et al. 2022).
    "fourier" Fourier(FourierKernel),
}

impl AttentionConfig {
    /// Softmax of scaled dot products, which has no options.
    pub const SOFTMAX: Self = Self::Softmax(ScaledDotProduct {});

    /// A short description: `fourier4 attention`.
    pub fn describe(&self) -> String {
        format!("{} attention", self.name())
    }

    /// A single word: `softmax`, `fourier4`.
    pub fn name(&self) -> String {
        options::name(self.word(), self.variant().size())
    }

    /// # Errors
    /// When an option is not valid.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.variant().validate()
    }
}

impl Default for AttentionConfig {
    /// The usual attention of transformers.
    fn default() -> Self {
        Self::SOFTMAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_stored(config: AttentionConfig, stored: &str) {
        assert_eq!(serde_json::to_string(&config).unwrap(), stored);
        assert_eq!(serde_json::from_str::<AttentionConfig>(stored).unwrap(), config);
        let unknown = stored.replace('}', r#","no_such_key":1}"#);
        let error = serde_json::from_str::<AttentionConfig>(&unknown).unwrap_err().to_string();
        assert!(error.contains("no_such_key"), "{error}");
    }

    #[test]
    fn configurations_round_trip() {
        check_stored(AttentionConfig::SOFTMAX, r#"{"kind":"softmax"}"#);
        check_stored(
            AttentionConfig::Fourier(FourierKernel {
                power: 6,
                r: RShape::PerHead,
                initial: 2.0,
                epsilon: 1e-6,
            }),
            r#"{"kind":"fourier","power":6,"r":"per_head","initial":2.0,"epsilon":1e-6}"#,
        );
    }
}
