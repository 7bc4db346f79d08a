//! How a transformer's queries are compared with its keys.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, config_error};

/// How queries are compared with keys, with its own options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AttentionConfig {
    /// Softmax of scaled dot products.
    #[default]
    Softmax,
    /// The Fourier integral kernel (Nguyen et al. 2022).
    Fourier(FourierAttentionConfig),
}

/// Options of Fourier attention: weights `Π_d sinc(R_d (q_d − k_d))^power`, divided by their
/// sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierAttentionConfig {
    /// 2, 4 or 6.
    pub power: u32,
    /// How many learned `R` each layer has.
    pub r: RShape,
    /// Every `R` before training.
    pub initial: f64,
    /// Added to the sum; 0 is the paper's formula, 1e-6 what its code does.
    pub epsilon: f64,
}

/// How many `R` a layer of Fourier attention learns.
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
    /// Of `[n_heads, d_head]`, with 1 where the `R` are shared.
    pub fn dims(self, n_heads: usize, d_head: usize) -> [usize; 2] {
        match self {
            Self::Scalar => [1, 1],
            Self::PerHead => [n_heads, 1],
            Self::PerDimension => [1, d_head],
        }
    }
}

impl AttentionConfig {
    /// # Errors
    /// When an option describes no kernel.
    pub fn validate(&self) -> Result<(), ModelError> {
        let Self::Fourier(fourier) = self else { return Ok(()) };
        if ![2, 4, 6].contains(&fourier.power) {
            return Err(config_error("attention.power", fourier.power, "must be 2, 4 or 6"));
        }
        if !(fourier.initial > 0.0 && fourier.initial.is_finite()) {
            return Err(config_error("attention.initial", fourier.initial, "must be positive"));
        }
        if !(fourier.epsilon >= 0.0 && fourier.epsilon.is_finite()) {
            let key = "attention.epsilon";
            return Err(config_error(key, fourier.epsilon, "must be 0 or positive"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOURIER: FourierAttentionConfig =
        FourierAttentionConfig { power: 6, r: RShape::PerHead, initial: 2.0, epsilon: 1e-6 };

    #[test]
    fn configurations_survive_being_stored() {
        let config = AttentionConfig::Fourier(FOURIER);
        let stored = serde_json::to_string(&config).unwrap();
        assert!(stored.contains(r#""kind":"fourier","power":6,"r":"per_head""#), "{stored}");
        assert_eq!(serde_json::from_str::<AttentionConfig>(&stored).unwrap(), config);
    }

    #[test]
    fn kernels_that_do_not_exist_are_refused() {
        let refused = |change: fn(&mut FourierAttentionConfig)| {
            let mut fourier = FOURIER;
            change(&mut fourier);
            AttentionConfig::Fourier(fourier).validate().unwrap_err().to_string()
        };
        assert!(refused(|fourier| fourier.power = 3).contains("attention.power"));
        assert!(refused(|fourier| fourier.initial = 0.0).contains("attention.initial"));
        assert!(refused(|fourier| fourier.epsilon = f64::NAN).contains("attention.epsilon"));
    }
}
