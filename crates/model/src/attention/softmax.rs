//! Scaled dot products (Vaswani et al. 2017): `q · k / √d_head`.

use overtone_kernels::Score;
use serde::{Deserialize, Serialize};

use super::AttentionVariant;

/// It has no options.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledDotProduct {}

impl AttentionVariant for ScaledDotProduct {
    fn describe(&self) -> String {
        "softmax attention".into()
    }

    fn score(&self) -> Score<'_> {
        Score::DotProduct
    }
}
