//! The Fourier integral kernel (Nguyen et al. 2022): weights `Π_d sinc(R_d (q_d − k_d))^power`,
//! divided by their sum.

use burn::{module::Param, tensor::Tensor};
use overtone_kernels::Score;
use serde::{Deserialize, Serialize};

use super::AttentionVariant;
use crate::{
    error::{ModelError, check_not_negative, config_error},
    parameters::init::Init,
};

options! {
    /// Options of the Fourier integral kernel.
    #[derive(Copy)]
    pub struct FourierKernel {
        /// Power of each factor: 2, 4 or 6; the FourierFormer paper's main experiments use 4.
        pub power: u32 = 4,
        /// Number of learned R per layer: scalar (one, as in the paper), per_head, or per_dimension
        /// (the paper's vector R).
        pub r: RShape = RShape::Scalar,
        /// Initial value of every R; the paper uses 1 in reinforcement learning.
        pub initial: f64 = 1.0,
        /// Added to the sum of the weights before they are divided by it. 0: the paper's formula.
        /// 1e-6: the paper's code; attention then vanishes if all weights are small.
        pub epsilon: f64 = 0.0,
    }
}

/// Number of learned `R` per layer of Fourier attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RShape {
    /// One.
    Scalar,
    /// One for each head.
    PerHead,
    /// One for each dimension of a head, shared by the heads: the paper's vector `R`.
    PerDimension,
}

impl RShape {
    /// Shape for `[n_heads, d_head]`, with 1 for a shared axis.
    pub fn dims(self, n_heads: usize, d_head: usize) -> [usize; 2] {
        match self {
            Self::Scalar => [1, 1],
            Self::PerHead => [n_heads, 1],
            Self::PerDimension => [1, d_head],
        }
    }
}

impl AttentionVariant for FourierKernel {
    fn size(&self) -> Option<usize> {
        Some(self.power as usize)
    }

    fn validate(&self) -> Result<(), ModelError> {
        if ![2, 4, 6].contains(&self.power) {
            return Err(config_error("attention.power", self.power, "must be 2, 4 or 6"));
        }
        let initial = self.initial as f32;
        if !(initial > 0.0 && initial.is_finite()) {
            let expected = "must be positive and finite, also as f32";
            return Err(config_error("attention.initial", self.initial, expected));
        }
        check_not_negative("attention.epsilon", self.epsilon)
    }

    fn parameter(
        &self,
        n_heads: usize,
        d_head: usize,
        init: &mut Init<'_>,
    ) -> Option<Param<Tensor<2>>> {
        Some(init.constant(self.r.dims(n_heads, d_head), self.initial as f32))
    }

    fn score(&self) -> Score<'_> {
        Score::Fourier { power: self.power, epsilon: self.epsilon }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_kernels_are_refused() {
        let refused = |change: &dyn Fn(&mut FourierKernel)| {
            let mut kernel =
                FourierKernel { power: 6, r: RShape::PerHead, initial: 2.0, epsilon: 1e-6 };
            change(&mut kernel);
            kernel.validate().unwrap_err().to_string()
        };
        assert!(refused(&|kernel| kernel.power = 3).contains("attention.power"));
        // The last two are 0 and infinite as `f32`.
        for initial in [0.0, f64::NAN, 1e-46, 1e39] {
            let error = refused(&|kernel| kernel.initial = initial);
            assert!(error.contains("attention.initial"), "{initial}: {error}");
        }
        for epsilon in [f64::NAN, -1e-6, 1e39] {
            let error = refused(&|kernel| kernel.epsilon = epsilon);
            assert!(error.contains("attention.epsilon"), "{epsilon}: {error}");
        }
    }
}
