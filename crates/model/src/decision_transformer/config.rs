//! [`DecisionTransformerConfig`]: sizes and options of a [Decision
//! Transformer](crate::decision_transformer), and the published configurations.

use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::Activation;
use serde::{Deserialize, Serialize};

use super::positions::{PositionsConfig, REFERENCE_STD};
use crate::{
    attention::AttentionConfig,
    conditioning::ConditionerConfig,
    encoder,
    error::{ModelError, check_counts, config_error},
    head::{HeadConfig, LinearConfig, TanhConfig},
    transformer_block::TransformerConfig,
};

/// Sizes and options of a Decision Transformer, for any observations and actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionTransformerConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Number of timesteps that the model sees.
    pub context_length: usize,
    /// Probability of dropping an embedding, an attention weight or a residual during training.
    pub dropout: f64,
    /// Conversion of returns to the inputs that condition the model; tokens `R̂, o, a`. `None`:
    /// tokens `o, a`, behaviour cloning with the same transformer.
    pub conditioning: Option<ConditionerConfig>,
    /// Whether every embedding goes through tanh before its position is added (always for frames).
    pub tanh_embeddings: bool,
    /// Time in the context and in the episode.
    pub positions: PositionsConfig,
    /// Activation between the two layers of each block's perceptron.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// The attention score.
    pub attention: AttentionConfig,
    /// Conversion of a token to an action.
    pub head: HeadConfig,
}

/// Spelling of [`Activation`] in configurations.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Activation", rename_all = "snake_case")]
enum ActivationName {
    Gelu,
    Relu,
}

impl DecisionTransformerConfig {
    /// The reference on Atari, for episodes of up to `max_timestep + 1` steps.
    pub fn atari(max_timestep: usize) -> Self {
        Self {
            n_layers: 6,
            n_heads: 8,
            d_model: 128,
            context_length: 30,
            dropout: 0.1,
            conditioning: Some(ConditionerConfig::default()),
            tanh_embeddings: true,
            positions: PositionsConfig::LocalAndGlobal { max_timestep },
            activation: Activation::Gelu,
            attention: AttentionConfig::SOFTMAX,
            head: HeadConfig::Linear(LinearConfig {}),
        }
    }

    /// The reference on Gym's locomotion tasks, where `horizon` is 1000.
    pub fn gym(horizon: usize) -> Self {
        Self {
            n_layers: 3,
            n_heads: 1,
            d_model: 128,
            context_length: 20,
            dropout: 0.1,
            conditioning: Some(ConditionerConfig::default()),
            tanh_embeddings: false,
            positions: PositionsConfig::Timestep { horizon, std: REFERENCE_STD },
            activation: Activation::Relu,
            attention: AttentionConfig::SOFTMAX,
            head: HeadConfig::Tanh(TanhConfig {}),
        }
    }

    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with a value that is not valid for such observations and actions.
    pub fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        self.transformer().validate()?;
        check_counts(&[("model.context_length", self.context_length)])?;
        if let Some(conditioning) = &self.conditioning {
            conditioning.validate(observations)?;
            if conditioning.average_return.is_some() && conditioning.return_range.is_none() {
                let expected = "must be set: the model is conditioned on an average's place in it";
                return Err(config_error("return_range", "none", expected));
            }
        }
        self.positions.validate()?;
        encoder::validate(observations)?;
        self.head.validate(actions)
    }

    /// Number of tokens per timestep: `R̂, o, a`, or `o, a`.
    pub fn tokens_per_timestep(&self) -> usize {
        if self.conditioning.is_some() { 3 } else { 2 }
    }

    /// The options of the transformer.
    pub fn transformer(&self) -> TransformerConfig {
        TransformerConfig {
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            d_model: self.d_model,
            dropout: self.dropout,
            attention: self.attention,
            activation: self.activation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::FourierKernel;
    use crate::{
        conditioning::{AverageReturn, ReturnModelConfig},
        head::GmmLikelihoodConfig,
    };

    fn spaces() -> (ObservationSpace, ActionSpace) {
        (ObservationSpace::Vectors { width: 17 }, ActionSpace::unit(6))
    }

    #[test]
    fn presets_are_models() {
        let (observations, actions) = spaces();
        let gym = DecisionTransformerConfig::gym(1000);
        assert!(gym.validate(&observations, &actions).is_ok());
        assert_eq!(gym.transformer().d_head(), 128);
        let frames = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
        let atari = DecisionTransformerConfig::atari(99);
        assert!(atari.validate(&frames, &ActionSpace::numbered(18)).is_ok());
        // Neither long episodes nor wide observations allocate memory in themselves.
        let long = DecisionTransformerConfig {
            conditioning: Some(ConditionerConfig {
                return_range: Some([0.0, 1.0]),
                average_return: Some(AverageReturn { horizon: 70_000 }),
                ..ConditionerConfig::default()
            }),
            ..DecisionTransformerConfig::gym(70_000)
        };
        assert!(long.validate(&ObservationSpace::Vectors { width: 70_000 }, &actions).is_ok());
    }

    #[test]
    fn configurations_round_trip() {
        let head =
            HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 3, ..Default::default() });
        let attention = AttentionConfig::Fourier(FourierKernel::default());
        let gym = DecisionTransformerConfig::gym(1000);
        let config = DecisionTransformerConfig { head, attention, ..gym };
        let stored = serde_json::to_string(&config).unwrap();
        assert!(stored.contains(r#""horizon":1000"#), "{stored}");
        assert!(stored.contains(r#""activation":"relu""#), "{stored}");
        assert_eq!(serde_json::from_str::<DecisionTransformerConfig>(&stored).unwrap(), config);
        let unknown = stored.replace("horizon", "max_ep_len");
        let error = serde_json::from_str::<DecisionTransformerConfig>(&unknown).unwrap_err();
        assert!(error.to_string().contains("max_ep_len"), "{error}");
    }

    #[test]
    fn errors_name_the_invalid_key() {
        let refused = |change: fn(&mut DecisionTransformerConfig)| {
            let mut config = DecisionTransformerConfig::gym(1000);
            change(&mut config);
            let (observations, actions) = spaces();
            config.validate(&observations, &actions).unwrap_err().to_string()
        };
        let conditioned = |conditioning| {
            let conditioning = Some(conditioning);
            let gym = DecisionTransformerConfig::gym(1000);
            let config = DecisionTransformerConfig { conditioning, ..gym };
            let (observations, actions) = spaces();
            config.validate(&observations, &actions).unwrap_err().to_string()
        };
        let average = |horizon| Some(AverageReturn { horizon });
        let returns = ReturnModelConfig::hl_gauss();
        let tanh = Some(ReturnModelConfig {
            head: HeadConfig::Tanh(TanhConfig {}),
            ..ReturnModelConfig::hl_gauss()
        });
        let plain = ConditionerConfig::default();
        let range = |range| ConditionerConfig { return_range: Some(range), ..plain.clone() };
        for (key, conditioning) in [
            ("return_range", range([1.0, 1.0])),
            ("return_range", range([0.0, f32::NAN])),
            ("return_range", ConditionerConfig { average_return: average(10), ..plain.clone() }),
            ("return_range", ConditionerConfig { return_model: Some(returns), ..plain.clone() }),
            ("model.return_head", ConditionerConfig { return_model: tanh, ..range([0.0, 8.0]) }),
            (
                "average_return.horizon",
                ConditionerConfig { average_return: average(0), ..plain.clone() },
            ),
            ("model.top_percents", ConditionerConfig { top_percents: vec![0.0], ..plain.clone() }),
            (
                "model.top_percents",
                ConditionerConfig { top_percents: vec![101.0], ..plain.clone() },
            ),
            (
                "model.top_percents",
                ConditionerConfig { top_percents: vec![10.0, 10.0], ..plain.clone() },
            ),
        ] {
            let error = conditioned(conditioning);
            assert!(error.starts_with(&format!("{key} = ")), "{key}: {error}");
        }
        let timestep = |horizon, std| PositionsConfig::Timestep { horizon, std };
        for (key, error) in [
            ("model.n_layers", refused(|config| config.n_layers = 0)),
            ("model.n_heads", refused(|config| config.n_heads = 3)),
            ("model.d_model", refused(|config| config.d_model = 0)),
            ("model.context_length", refused(|config| config.context_length = 0)),
            ("model.context_length", refused(|config| config.context_length = 1 << 40)),
            ("model.dropout", refused(|config| config.dropout = 1.0)),
            (
                "head.components",
                refused(|config| {
                    let none = GmmLikelihoodConfig { components: 0, ..Default::default() };
                    config.head = HeadConfig::GmmLikelihood(none);
                }),
            ),
        ] {
            assert!(error.starts_with(&format!("{key} = ")), "{key}: {error}");
        }
        for (key, positions) in [
            ("positions.horizon", timestep(0, 1.0)),
            ("positions.horizon", timestep(1 << 31, 1.0)),
            ("model.timestep_std", timestep(9, -1.0)),
            ("model.timestep_std", timestep(9, 1e300)),
            ("positions.max_timestep", PositionsConfig::LocalAndGlobal { max_timestep: 1 << 40 }),
        ] {
            let error = positions.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{key} = ")), "{key}: {error}");
        }
        let config = DecisionTransformerConfig::gym(1000);
        for (observations, actions, expected) in [
            (ObservationSpace::Vectors { width: 0 }, ActionSpace::unit(6), "observations = 0: "),
            (ObservationSpace::Vectors { width: 3 }, ActionSpace::unit(0), "actions = 0: "),
            (
                ObservationSpace::Pixels { shape: vec![4, 96, 96] },
                ActionSpace::unit(6),
                "observations = [4, 96, 96]: must be [4, 84, 84]",
            ),
        ] {
            let error = config.validate(&observations, &actions).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
