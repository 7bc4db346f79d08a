//! Scaled dot products (Vaswani et al. 2017): `q · k / √d_head`.

use overtone_kernels::Score;

use super::AttentionVariant;

options! {
    /// This score has no options.
    #[derive(Copy)]
    pub struct ScaledDotProduct {}
}

impl AttentionVariant for ScaledDotProduct {
    fn score(&self) -> Score<'_> {
        Score::DotProduct
    }
}
