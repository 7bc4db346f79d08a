//! How a transformer's queries are compared with its keys.
//!
//! The transformer's block projects queries, keys and values, takes the softmax of the scores over
//! the keys that a query may see, and mixes the values. A variant of attention is the score. It is
//! one file that implements [`AttentionVariant`] for its options, and its line in the list below:
//! the word that chooses it, and the options.

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
    init::Init,
    options::{self, Choice},
};

/// The options of a variant, as a configuration has them.
pub trait AttentionVariant {
    /// The number that tells variants of one word apart, as a part of a run's name: the 4 of
    /// `fourier4`.
    fn size(&self) -> Option<usize> {
        None
    }

    /// # Errors
    /// When an option describes no score.
    fn validate(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// What the score learns in each layer. Checkpoints store it as the block's `fourier_r`,
    /// whose name is from when there was one such score.
    fn parameter(
        &self,
        n_heads: usize,
        d_head: usize,
        init: &mut Init<'_>,
    ) -> Option<Param<Tensor<2>>> {
        let _ = (n_heads, d_head, init);
        None
    }

    /// The score. [`Score::Tensors`] is one in plain tensors, whose gradient burn finds.
    fn score(&self) -> Score<'_>;
}

/// Makes of the list the enum that stores and runs whichever variant was chosen.
macro_rules! variants {
    ($($(#[doc = $doc:literal])* $word:literal $name:ident($options:ty),)*) => {
        /// How queries are compared with keys, with its own options.
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

            /// All that can be asked for, at their defaults.
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

    /// In a few words: `fourier4 attention`.
    pub fn describe(&self) -> String {
        format!("{} attention", self.name())
    }

    /// In a word: `softmax`, `fourier4`.
    pub fn name(&self) -> String {
        options::name(self.word(), self.variant().size())
    }

    /// # Errors
    /// When an option describes no score.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.variant().validate()
    }
}

impl Default for AttentionConfig {
    /// What transformers have.
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
    fn configurations_survive_being_stored() {
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
