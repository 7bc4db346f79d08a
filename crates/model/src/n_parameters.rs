//! How many trainable numbers a configuration describes, known without making the model.
//!
//! A checkpoint's configuration is a claim until its weights are there: what it describes is
//! compared with what they hold before any memory is taken for it. Sums and products stop at
//! `u64::MAX`, which no file holds.

use crate::{
    config::{AttentionConfig, Conditioning, ModelConfig},
    continuous_agent::ContinuousAgentConfig,
    continuous_config::ContinuousModelConfig,
    head::{ContinuousHeadConfig, HeadConfig},
    mlp_bc::MlpConfig,
    transformer::TransformerConfig,
};

/// Weights and biases of the Nature CNN: 4 frames to 32, 64 and 64 channels by kernels of
/// 8 × 8, 4 × 4 and 3 × 3.
const CONVOLUTIONS: u64 = 32 * (4 * 64 + 1) + 64 * (32 * 16 + 1) + 64 * (64 * 9 + 1);
/// Features after them: 64 channels of 7 × 7.
const CONVOLVED: usize = 64 * 7 * 7;

impl ModelConfig {
    /// Trainable numbers of the model it describes.
    pub fn n_parameters(&self) -> u64 {
        let d = self.d_model;
        sum([
            CONVOLUTIONS,
            affine(CONVOLVED, d),
            returns(self.conditioning, d),
            product([self.n_actions, d]),
            product([sum([product([3, self.context_length]), 1]) as usize, d]),
            product([self.max_timestep.saturating_add(1), d]),
            self.transformer().n_parameters(),
            self.head.n_parameters(d, self.n_actions),
        ])
    }
}

impl ContinuousAgentConfig {
    /// Trainable numbers of the model it describes.
    pub fn n_parameters(&self) -> u64 {
        match self {
            Self::Transformer(config) => config.n_parameters(),
            Self::Mlp(config) => config.n_parameters(),
        }
    }
}

impl ContinuousModelConfig {
    /// Trainable numbers of the model it describes.
    pub fn n_parameters(&self) -> u64 {
        let d = self.d_model;
        sum([
            returns(self.conditioning, d),
            affine(self.observation_width, d),
            affine(self.action_width, d),
            product([self.horizon, d]),
            // The norm of the embeddings.
            product([2, d]),
            self.transformer().n_parameters(),
            self.head.n_parameters(d, self.action_width),
        ])
    }
}

impl MlpConfig {
    /// Trainable numbers of the model it describes.
    pub fn n_parameters(&self) -> u64 {
        let stacked = self.context_length.saturating_mul(self.observation_width);
        let further = product([self.n_layers.saturating_sub(1), 1]);
        sum([
            affine(stacked, self.width),
            affine(self.width, self.width).saturating_mul(further),
            self.head.n_parameters(self.width, self.action_width),
        ])
    }
}

impl TransformerConfig {
    /// Trainable numbers of the blocks and the final norm.
    pub fn n_parameters(&self) -> u64 {
        let d = self.d_model;
        let fourier = match self.attention {
            AttentionConfig::Softmax => 0,
            AttentionConfig::Fourier(fourier) => {
                product(fourier.r.dims(self.n_heads, self.d_head()))
            }
        };
        let wide = d.saturating_mul(4);
        let block = sum([
            // Two norms.
            product([4, d]),
            affine(d, d.saturating_mul(3)),
            affine(d, d),
            affine(d, wide),
            affine(wide, d),
            fourier,
        ]);
        sum([block.saturating_mul(self.n_layers as u64), product([2, d])])
    }
}

impl HeadConfig {
    /// Trainable numbers of a head on `n_actions` actions.
    pub fn n_parameters(&self, d_model: usize, n_actions: usize) -> u64 {
        match self {
            Self::Linear => product([d_model, n_actions]),
            Self::Fourier(config) => affine(d_model, coefficients(config.frequencies)),
            Self::Gmm(config) => {
                sum([affine(d_model, config.components), config.components as u64])
            }
        }
    }
}

impl ContinuousHeadConfig {
    /// Trainable numbers of a head for actions of `dimensions` numbers.
    pub fn n_parameters(&self, d_model: usize, dimensions: usize) -> u64 {
        match self {
            Self::Tanh | Self::Pointwise => affine(d_model, dimensions),
            Self::Gaussian => sum([affine(d_model, dimensions), dimensions as u64]),
            Self::Fourier(config) => {
                affine(d_model, dimensions.saturating_mul(coefficients(config.frequencies)))
            }
            Self::Gmm(config) => {
                let width = dimensions.saturating_mul(config.components);
                sum([affine(d_model, width), width as u64])
            }
            Self::Binned(config) => {
                let one = config.head.n_parameters(d_model, config.bins);
                one.saturating_mul(dimensions as u64)
            }
        }
    }
}

/// Of a return's embedding, where there is one.
fn returns(conditioning: Conditioning, d_model: usize) -> u64 {
    match conditioning {
        Conditioning::Return => affine(1, d_model),
        Conditioning::None => 0,
    }
}

/// `2(N+1)`: real and imaginary parts of a density of N frequencies.
fn coefficients(frequencies: usize) -> usize {
    frequencies.saturating_add(1).saturating_mul(2)
}

/// Weights and biases of an affine layer.
fn affine(inputs: usize, outputs: usize) -> u64 {
    sum([product([inputs, outputs]), outputs as u64])
}

fn product<const N: usize>(factors: [usize; N]) -> u64 {
    factors.into_iter().fold(1, |product, factor| product.saturating_mul(factor as u64))
}

fn sum<const N: usize>(terms: [u64; N]) -> u64 {
    terms.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use overtone_core::seed;

    use super::*;
    use crate::{
        ContinuousAgent, DecisionTransformer,
        config::{FourierAttentionConfig, RShape},
        head::{
            BinnedConfig, FourierHeadConfig, FourierLikelihoodConfig, GmmHeadConfig,
            GmmLikelihoodConfig,
        },
        weights,
    };

    fn atari(head: HeadConfig, conditioning: Conditioning) -> ModelConfig {
        ModelConfig {
            n_layers: 2,
            n_heads: 2,
            d_model: 6,
            context_length: 5,
            n_actions: 7,
            max_timestep: 11,
            dropout: 0.0,
            conditioning,
            attention: AttentionConfig::Softmax,
            head,
        }
    }

    #[track_caller]
    fn check(config: &ContinuousAgentConfig) {
        let mut generator = seed::generator(1, "init");
        let model = ContinuousAgent::init(config, &Device::flex(), &mut generator).unwrap();
        assert_eq!(config.n_parameters(), weights::n_parameters(&model) as u64, "{config:?}");
    }

    #[test]
    fn models_of_games_have_as_many() {
        let gmm = GmmHeadConfig { components: 3, action_order: None };
        for head in [
            HeadConfig::Linear,
            HeadConfig::Fourier(FourierHeadConfig::new(4)),
            HeadConfig::Gmm(gmm),
        ] {
            for conditioning in [Conditioning::Return, Conditioning::None] {
                let config = atari(head.clone(), conditioning);
                let mut generator = seed::generator(1, "init");
                let model =
                    DecisionTransformer::init(&config, &Device::flex(), &mut generator).unwrap();
                let held = weights::n_parameters(&model) as u64;
                assert_eq!(config.n_parameters(), held, "{config:?}");
            }
        }
    }

    #[test]
    fn models_of_robots_have_as_many() {
        let binned = |head| ContinuousHeadConfig::Binned(BinnedConfig { bins: 5, head });
        for head in [
            ContinuousHeadConfig::Tanh,
            ContinuousHeadConfig::Pointwise,
            ContinuousHeadConfig::Gaussian,
            ContinuousHeadConfig::Fourier(FourierLikelihoodConfig::new(4)),
            ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 3 }),
            binned(HeadConfig::Linear),
            binned(HeadConfig::Fourier(FourierHeadConfig::new(4))),
        ] {
            let gym = ContinuousModelConfig { d_model: 8, ..ContinuousModelConfig::gym(3, 2, 9) };
            let config = ContinuousModelConfig { head: head.clone(), ..gym };
            check(&ContinuousAgentConfig::Transformer(config));
            let mlp = MlpConfig { width: 8, head, ..MlpConfig::gym(3, 2) };
            check(&ContinuousAgentConfig::Mlp(mlp));
        }
        for r in [RShape::Scalar, RShape::PerHead, RShape::PerDimension] {
            let fourier = FourierAttentionConfig { power: 4, r, initial: 1.0, epsilon: 0.0 };
            check(&ContinuousAgentConfig::Transformer(ContinuousModelConfig {
                d_model: 12,
                n_heads: 3,
                conditioning: Conditioning::None,
                attention: AttentionConfig::Fourier(fourier),
                ..ContinuousModelConfig::gym(3, 2, 9)
            }));
        }
    }

    #[test]
    fn what_no_memory_holds_is_counted_too() {
        let mut config = atari(HeadConfig::Linear, Conditioning::Return);
        (config.d_model, config.max_timestep) = (usize::MAX, usize::MAX);
        assert_eq!(config.n_parameters(), u64::MAX);
    }
}
