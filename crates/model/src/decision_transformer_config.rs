//! [`DecisionTransformerConfig`]: what a [Decision Transformer](crate::decision_transformer) is made
//! of, and the published ones.

use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::Activation;
use serde::{Deserialize, Serialize};

use crate::{
    attention::{AttentionConfig, FourierKernel},
    average_return::AverageReturn,
    best_shares, encoder,
    error::{ModelError, check_counts, check_size, config_error},
    head::{HeadConfig, LinearConfig, TanhConfig},
    positions::{PositionsConfig, reference_std},
    return_model::ReturnModelConfig,
    tokens::Conditioning,
    transformer_config::TransformerConfig,
};

/// What a Decision Transformer is made of, whatever it sees and does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionTransformerConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Timesteps the model sees.
    pub context_length: usize,
    /// Probability of dropping an embedding, an attention weight or a residual while training.
    pub dropout: f64,
    /// What the model is told before each observation.
    pub conditioning: Conditioning,
    /// Which returns-to-go it is told as −1 and as 1, the others between and beyond them in
    /// proportion; `None`: they are told as they come, as in the references. With a
    /// [`return_model`](Self::return_model) those beyond are told as the nearer end.
    ///
    /// What is told is `R̂ W + b`, and a layer norm follows, which leaves its direction alone. For
    /// `R̂` well above `|b|/|W|` that is the direction of `W`: at the references' initial weights
    /// 4000 and 5400, told as 4 and 5.4, are 4° apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_range: Option<[f32; 2]>,
    /// Tells, in place of returns-to-go, what the steps still to come must earn on average, by its
    /// place in [`return_range`](Self::return_range) and never beyond it.
    ///
    /// An agent that falls behind what it was asked for would be told ever higher averages, which
    /// no recorded step had; so what lies outside of the range is told as its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_return: Option<AverageReturn>,
    /// Learns what may be earned from each observation as well, so that an agent
    /// [asks for no more](crate::return_model). Returns are told by their place in
    /// [`return_range`](Self::return_range) then, and never beyond it, where no quantile lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_model: Option<ReturnModelConfig>,
    /// Shares of the best episodes, in percent, of which it is told in place of returns that a
    /// context is [from them](crate::best_shares); empty: it is always told a return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_percents: Vec<f32>,
    /// Whether every embedding goes through tanh before its position is added. Frames always do.
    pub tanh_embeddings: bool,
    /// What tells a token where it stands.
    pub positions: PositionsConfig,
    /// Between the two layers of each block's perceptron.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// How queries are compared with keys.
    #[serde(default)]
    pub attention: AttentionConfig,
    /// How a token becomes an action.
    pub head: HeadConfig,
}

/// How configurations spell [`Activation`].
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
            conditioning: Conditioning::Return,
            return_range: None,
            average_return: None,
            return_model: None,
            best_percents: Vec::new(),
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
            conditioning: Conditioning::Return,
            return_range: None,
            average_return: None,
            return_model: None,
            best_percents: Vec::new(),
            tanh_embeddings: false,
            positions: PositionsConfig::Timestep { horizon, std: reference_std() },
            activation: Activation::Relu,
            attention: AttentionConfig::SOFTMAX,
            head: HeadConfig::Tanh(TanhConfig {}),
        }
    }

    /// The same with Fourier attention, as Nguyen et al. (2022, appendix A.4) run it on Gym's
    /// locomotion tasks: the sizes of Wu et al. (2022, "Flowformer"), the fourth power of the
    /// sinc, and one learned `R` a layer, at first 1.
    ///
    /// That paper gives no epsilon. Its formula has none, and nor has this.
    pub fn fourierformer(horizon: usize) -> Self {
        Self {
            n_heads: 4,
            d_model: 256,
            attention: AttentionConfig::Fourier(FourierKernel::default()),
            ..Self::gym(horizon)
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model of such observations and actions.
    pub fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        self.transformer().validate()?;
        check_counts(&[("model.context_length", self.context_length)])?;
        if let Some([low, high]) = self.return_range
            && !(low < high && (high - low).is_finite())
        {
            let got = format!("[{low}, {high}]");
            return Err(config_error("return_range", got, "two numbers, the smaller first"));
        }
        if let Some(AverageReturn { horizon }) = self.average_return {
            check_size("average_return.horizon", horizon)?;
            if self.return_range.is_none() {
                let expected = "given, since an average is told by its place in it";
                return Err(config_error("return_range", "none", expected));
            }
        }
        if let Some(returns) = &self.return_model {
            if self.return_range.is_none() {
                let expected = "given, since a model of returns has them in [-1, 1]";
                return Err(config_error("return_range", "none", expected));
            }
            returns.validate(observations)?;
        }
        best_shares::validate(&self.best_percents)?;
        if !self.best_percents.is_empty() && self.conditioning != Conditioning::Return {
            let expected = "none: a share is told by the token of a return";
            return Err(config_error("model.best_percents", "given", expected));
        }
        self.positions.validate()?;
        encoder::validate(observations)?;
        self.head.validate(actions)
    }

    /// The transformer's part.
    pub fn transformer(&self) -> TransformerConfig {
        TransformerConfig {
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            d_model: self.d_model,
            dropout: self.dropout,
            conditioning: self.conditioning,
            attention: self.attention,
            activation: self.activation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::GmmLikelihoodConfig;

    fn spaces() -> (ObservationSpace, ActionSpace) {
        (ObservationSpace::Vectors { width: 17 }, ActionSpace::unit(6))
    }

    #[test]
    fn presets_are_models() {
        let (observations, actions) = spaces();
        let gym = DecisionTransformerConfig::gym(1000);
        assert!(gym.validate(&observations, &actions).is_ok());
        assert_eq!(gym.transformer().d_head(), 128);
        let fourierformer = DecisionTransformerConfig::fourierformer(1000);
        assert!(fourierformer.validate(&observations, &actions).is_ok());
        assert_eq!(fourierformer.transformer().d_head(), 64);
        let frames = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
        let atari = DecisionTransformerConfig::atari(99);
        assert!(atari.validate(&frames, &ActionSpace::numbered(18)).is_ok());
        // Neither long episodes nor wide observations take memory of themselves.
        let long = DecisionTransformerConfig {
            return_range: Some([0.0, 1.0]),
            average_return: Some(AverageReturn { horizon: 70_000 }),
            ..DecisionTransformerConfig::gym(70_000)
        };
        assert!(long.validate(&ObservationSpace::Vectors { width: 70_000 }, &actions).is_ok());
    }

    #[test]
    fn configurations_survive_being_stored() {
        let head =
            HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 3, ..Default::default() });
        let config =
            DecisionTransformerConfig { head, ..DecisionTransformerConfig::fourierformer(1000) };
        let stored = serde_json::to_string(&config).unwrap();
        assert!(stored.contains(r#""horizon":1000"#), "{stored}");
        assert!(stored.contains(r#""activation":"relu""#), "{stored}");
        assert_eq!(serde_json::from_str::<DecisionTransformerConfig>(&stored).unwrap(), config);
        let unknown = stored.replace("horizon", "max_ep_len");
        let error = serde_json::from_str::<DecisionTransformerConfig>(&unknown).unwrap_err();
        assert!(error.to_string().contains("max_ep_len"), "{error}");
    }

    #[test]
    fn what_describes_no_model_is_named() {
        let refused = |change: fn(&mut DecisionTransformerConfig)| {
            let mut config = DecisionTransformerConfig::fourierformer(1000);
            change(&mut config);
            let (observations, actions) = spaces();
            config.validate(&observations, &actions).unwrap_err().to_string()
        };
        let timestep = |horizon, std| PositionsConfig::Timestep { horizon, std };
        for (key, error) in [
            ("model.n_layers", refused(|config| config.n_layers = 0)),
            ("model.n_heads", refused(|config| config.n_heads = 3)),
            ("model.d_model", refused(|config| config.d_model = 0)),
            ("model.context_length", refused(|config| config.context_length = 0)),
            ("model.context_length", refused(|config| config.context_length = 1 << 40)),
            ("model.dropout", refused(|config| config.dropout = 1.0)),
            ("return_range", refused(|config| config.return_range = Some([1.0, 1.0]))),
            ("return_range", refused(|config| config.return_range = Some([0.0, f32::NAN]))),
            (
                "return_range",
                refused(|config| config.average_return = Some(AverageReturn { horizon: 10 })),
            ),
            (
                "return_range",
                refused(|config| {
                    let head = HeadConfig::GmmLikelihood(GmmLikelihoodConfig {
                        components: 3,
                        ..Default::default()
                    });
                    config.return_model = Some(ReturnModelConfig::new(head));
                }),
            ),
            (
                "model.return_head",
                refused(|config| {
                    config.return_range = Some([0.0, 8.0]);
                    let tanh = HeadConfig::Tanh(TanhConfig {});
                    config.return_model = Some(ReturnModelConfig::new(tanh));
                }),
            ),
            (
                "average_return.horizon",
                refused(|config| config.average_return = Some(AverageReturn { horizon: 0 })),
            ),
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
