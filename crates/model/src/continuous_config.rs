//! What a Decision Transformer on vectors and real-valued actions is made of.

use overtone_kernels::Activation;
use serde::{Deserialize, Serialize};

use crate::{
    config::{
        AttentionConfig, Conditioning, FourierAttentionConfig, RShape, check_counts, config_error,
    },
    continuous_history::ContextShape,
    error::ModelError,
    head::ContinuousHeadConfig,
    transformer::TransformerConfig,
};

/// A Decision Transformer on vectors of observations and real-valued actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousModelConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Timesteps the model sees.
    pub context_length: usize,
    /// Numbers in an observation.
    pub observation_width: usize,
    /// Numbers in an action.
    pub action_width: usize,
    /// Step limit of an episode: rows of the timestep table. Later timesteps use its last row.
    pub horizon: usize,
    /// Standard deviation of the timestep table before training.
    ///
    /// The reference's 1 is larger than what observations bring to a token, and is noise on
    /// them until every row was trained often.
    #[serde(default = "reference_timestep_std")]
    pub timestep_std: f64,
    /// Probability of dropping an embedding, an attention weight or a residual while training.
    pub dropout: f64,
    /// What the model is told before each observation.
    pub conditioning: Conditioning,
    /// How queries are compared with keys.
    pub attention: AttentionConfig,
    /// How a token becomes an action.
    pub head: ContinuousHeadConfig,
}

fn reference_timestep_std() -> f64 {
    1.0
}

impl ContinuousModelConfig {
    /// The Decision Transformer of Chen et al. (2021) on Gym's locomotion tasks, where
    /// `horizon` is 1000.
    pub fn gym(observation_width: usize, action_width: usize, horizon: usize) -> Self {
        Self {
            n_layers: 3,
            n_heads: 1,
            d_model: 128,
            context_length: 20,
            observation_width,
            action_width,
            horizon,
            timestep_std: reference_timestep_std(),
            dropout: 0.1,
            conditioning: Conditioning::Return,
            attention: AttentionConfig::Softmax,
            head: ContinuousHeadConfig::Tanh,
        }
    }

    /// The same with Fourier attention, as Nguyen et al. (2022, appendix A.4) run it on Gym's
    /// locomotion tasks: the sizes of Wu et al. (2022, "Flowformer"), the fourth power of the
    /// sinc, and one learned `R` a layer, at first 1.
    ///
    /// That paper gives no epsilon. Its formula has none, and nor has this.
    pub fn fourierformer(observation_width: usize, action_width: usize, horizon: usize) -> Self {
        Self {
            n_heads: 4,
            d_model: 256,
            attention: AttentionConfig::Fourier(FourierAttentionConfig {
                power: 4,
                r: RShape::Scalar,
                initial: 1.0,
                epsilon: 0.0,
            }),
            ..Self::gym(observation_width, action_width, horizon)
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.transformer().validate()?;
        check_counts(&[("context_length", self.context_length)])?;
        check_counts(&[
            ("observation_width", self.observation_width),
            ("action_width", self.action_width),
            ("horizon", self.horizon),
        ])?;
        if !(self.timestep_std >= 0.0 && self.timestep_std.is_finite()) {
            return Err(config_error("timestep_std", self.timestep_std, "must be 0 or positive"));
        }
        // Timesteps are 32-bit integers on the device.
        if i32::try_from(self.horizon).is_err() {
            return Err(config_error("horizon", self.horizon, "must be below 2147483648"));
        }
        self.head.validate(self.action_width)
    }

    /// What its contexts are like.
    pub fn context_shape(&self) -> ContextShape {
        ContextShape {
            context_length: self.context_length,
            observation_width: self.observation_width,
            action_width: self.action_width,
        }
    }

    /// The transformer's part; its perceptrons have the reference's ReLU.
    pub fn transformer(&self) -> TransformerConfig {
        TransformerConfig {
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            d_model: self.d_model,
            dropout: self.dropout,
            conditioning: self.conditioning,
            attention: self.attention,
            activation: Activation::Relu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::GmmLikelihoodConfig;

    #[test]
    fn presets_are_models() {
        let gym = ContinuousModelConfig::gym(17, 6, 1000);
        assert!(gym.validate().is_ok());
        assert_eq!(gym.transformer().d_head(), 128);
        let fourierformer = ContinuousModelConfig::fourierformer(17, 6, 1000);
        assert!(fourierformer.validate().is_ok());
        assert_eq!(fourierformer.transformer().d_head(), 64);
    }

    #[test]
    fn configurations_survive_being_stored() {
        let head = ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 3 });
        let config =
            ContinuousModelConfig { head, ..ContinuousModelConfig::fourierformer(11, 3, 1000) };
        let stored = serde_json::to_string(&config).unwrap();
        assert!(stored.contains(r#""horizon":1000"#), "{stored}");
        assert_eq!(serde_json::from_str::<ContinuousModelConfig>(&stored).unwrap(), config);
        let unknown = stored.replace("horizon", "max_ep_len");
        let error = serde_json::from_str::<ContinuousModelConfig>(&unknown).unwrap_err();
        assert!(error.to_string().contains("max_ep_len"), "{error}");
    }

    #[test]
    fn what_describes_no_model_is_named() {
        let refused = |change: fn(&mut ContinuousModelConfig)| {
            let mut config = ContinuousModelConfig::fourierformer(17, 6, 1000);
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        for (key, error) in [
            ("n_layers", refused(|config| config.n_layers = 0)),
            ("n_heads", refused(|config| config.n_heads = 3)),
            ("d_model", refused(|config| config.d_model = 0)),
            ("context_length", refused(|config| config.context_length = 0)),
            ("context_length", refused(|config| config.context_length = 1 << 40)),
            ("observation_width", refused(|config| config.observation_width = 0)),
            ("action_width", refused(|config| config.action_width = 0)),
            ("horizon", refused(|config| config.horizon = 0)),
            ("horizon", refused(|config| config.horizon = 1 << 31)),
            ("timestep_std", refused(|config| config.timestep_std = -1.0)),
            ("dropout", refused(|config| config.dropout = 1.0)),
            (
                "head.components",
                refused(|config| {
                    let none = GmmLikelihoodConfig { components: 0 };
                    config.head = ContinuousHeadConfig::Gmm(none);
                }),
            ),
        ] {
            assert!(error.starts_with(&format!("model.{key} = ")), "{key}: {error}");
        }
    }
}
