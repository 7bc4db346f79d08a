//! [`Model`]: any of the models, as training and acting use it.

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::Form;
use serde::{Deserialize, Serialize};

use crate::{
    conditioning::{ConditionerConfig, ReturnModelConfig, top_percent::conditions},
    contexts::{Contexts, LossWeights, Observed, Places, of_all, real_mask},
    decision_transformer::{
        DecisionTransformer, DecisionTransformerConfig, Steps, positions::PositionsConfig,
    },
    dropout_seed::DropoutSeed,
    error::{ModelError, config_error},
    head::{Decisions, Head, HeadConfig},
    inputs::Sections,
    loss::Loss,
    parameters::{
        init::Init,
        weights::{self, NamedTensors},
    },
    perceptron::{Perceptron, PerceptronConfig},
};

/// A model configuration, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelConfig {
    /// See [`DecisionTransformer`].
    Transformer(DecisionTransformerConfig),
    /// See [`Perceptron`].
    Perceptron(PerceptronConfig),
}

impl ModelConfig {
    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with a value that is not valid for such observations and actions.
    pub fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        match self {
            Self::Transformer(config) => config.validate(observations, actions),
            Self::Perceptron(config) => config.validate(observations, actions),
        }
    }

    /// The same with the settings that follow from the data of `other`: the rows of timestep
    /// tables, and the range and horizon of returns.
    #[must_use]
    pub fn scaled_as(mut self, other: &Self) -> Self {
        if let (Self::Transformer(config), Self::Transformer(other)) = (&mut self, other) {
            config.positions = other.positions;
        }
        let conditioning = match &mut self {
            Self::Transformer(config) => &mut config.conditioning,
            Self::Perceptron(config) => &mut config.conditioning,
        };
        if let (Some(conditioning), Some(other)) = (conditioning, other.conditioning()) {
            conditioning.return_range = other.return_range;
            conditioning.average_return = other.average_return;
        }
        self
    }

    /// Number of timesteps that the model sees.
    pub fn context_length(&self) -> usize {
        match self {
            Self::Transformer(config) => config.context_length,
            Self::Perceptron(config) => config.context_length,
        }
    }

    /// Number of action labels in a full context: every timestep of the transformer, the newest
    /// timestep of the perceptron.
    pub fn labels_per_context(&self) -> usize {
        match self {
            Self::Transformer(config) => config.context_length,
            Self::Perceptron(_) => 1,
        }
    }

    /// The action head.
    pub fn head(&self) -> &HeadConfig {
        match self {
            Self::Transformer(config) => &config.head,
            Self::Perceptron(config) => &config.head,
        }
    }

    /// Conversion of returns to the inputs that condition the model.
    pub fn conditioning(&self) -> Option<&ConditionerConfig> {
        match self {
            Self::Transformer(config) => config.conditioning.as_ref(),
            Self::Perceptron(config) => config.conditioning.as_ref(),
        }
    }

    /// The [return model](crate::conditioning::return_model) of the conditioner.
    pub fn return_model(&self) -> Option<&ReturnModelConfig> {
        self.conditioning().and_then(|conditioning| conditioning.return_model.as_ref())
    }

    /// The [top percents](crate::conditioning::top_percent) in the model's training.
    pub fn top_percents(&self) -> &[f32] {
        self.conditioning().map_or(&[][..], |conditioning| &conditioning.top_percents[..])
    }

    /// Whether the model reads a context's position in its episode from a table
    /// ([`PositionsConfig::LocalAndGlobal`]).
    pub fn reads_global_timestep(&self) -> bool {
        match self {
            Self::Transformer(config) => {
                matches!(config.positions, PositionsConfig::LocalAndGlobal { .. })
            }
            Self::Perceptron(_) => false,
        }
    }

    /// Sends what the model makes of the places of contexts, for [`Contexts::stored`].
    pub fn send(&self, places: Places<'_>, to: &mut Sections) {
        let (batch, time) = (places.n_padding.len(), places.time());
        let weights = LossWeights::of_all(places.n_padding, places.step_weights, time);
        let weights: Vec<f32> = weights.on_host().collect();
        if self.return_model().is_some() {
            let of_all = of_all(places.top_percent_idx, time);
            let weights = weights.iter().enumerate();
            let of_all = weights.map(|(i, weight)| weight * of_all.get(i).unwrap_or(&1.0));
            to.floats("return_weights", &[batch * time], of_all);
        }
        to.floats("weights", &[batch * time], weights);
        match self {
            Self::Transformer(config) => {
                let per_step = config.tokens_per_timestep();
                let first_token = places.n_padding.iter().map(|n| n * per_step);
                let first_token: Vec<usize> = first_token.collect();
                to.ints("first_token", &[batch], first_token.iter().map(|&token| token as i32));
                config.positions.send(places, &first_token, per_step * time, to);
            }
            Self::Perceptron(_) => {
                let newest = LossWeights::of_newest(batch, places.step_weights);
                to.floats("newest_weights", &[batch], newest.on_host());
                if time > 1 {
                    let real = real_mask(places.n_padding, time);
                    to.floats("real", &[batch, time, 1], real);
                }
            }
        }
        if let Some(conditioning) = self.conditioning() {
            if let Some(average) = conditioning.average_return {
                let factors = places.timesteps.iter().map(|&timestep| average.factor(timestep));
                to.floats("return_factors", &[batch, time], factors);
            }
            let n = conditioning.width() - 1;
            if n > 0 {
                let which = conditions(places.top_percent_idx, batch, n);
                let has_return = which.chunks(n + 1).flat_map(|row| vec![row[0]; time]);
                to.floats("has_return", &[batch * time, 1], has_return);
                to.floats("conditions", &[batch, 1, n + 1], which);
            }
        }
    }

    fn n_layers(&self) -> usize {
        match self {
            Self::Transformer(config) => config.n_layers,
            Self::Perceptron(config) => config.n_layers,
        }
    }
}

/// A model. Its [`weights`] have the names of the concrete model.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one model per run
pub enum Model {
    /// See [`DecisionTransformer`].
    Transformer(DecisionTransformer),
    /// See [`Perceptron`].
    Perceptron(Perceptron),
}

impl Model {
    /// A new model.
    ///
    /// # Errors
    /// When `config` is not valid for such observations and actions.
    pub fn init(
        config: &ModelConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        Ok(match config {
            ModelConfig::Transformer(config) => {
                Self::Transformer(DecisionTransformer::init(config, observations, actions, init)?)
            }
            ModelConfig::Perceptron(config) => {
                Self::Perceptron(Perceptron::init(config, observations, actions, init)?)
            }
        })
    }

    /// A model on `device` with these weights, which must fit the configuration exactly. The
    /// configuration is not trusted before that, and does not allocate memory.
    ///
    /// # Errors
    /// When a tensor is missing, has another shape or another type than the others, or does not
    /// belong to any parameter.
    pub fn from_weights(
        config: &ModelConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        tensors: &NamedTensors,
        device: &Device,
    ) -> Result<Self, ModelError> {
        if config.n_layers() > tensors.len() {
            let expected = format!("the weights are {} tensors, too few", tensors.len());
            return Err(config_error("model.n_layers", config.n_layers(), expected));
        }
        let described = Self::init(config, observations, actions, &mut Init::shapes(device))?;
        weights::restore(described, tensors)
    }

    /// Mean loss of recorded actions, plus the head's regulariser: at every real timestep for the
    /// transformer, at the newest timestep of each context for the perceptron.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        match self {
            Self::Transformer(model) => model.loss(contexts, dropout),
            Self::Perceptron(model) => model.loss(contexts, dropout),
        }
    }

    /// The [head](Self::head)'s input for each context's newest action, without dropout.
    ///
    /// # Shapes
    /// - result: `[batch, width]`
    pub fn newest(&self, contexts: &Contexts) -> Tensor<2> {
        match self {
            Self::Transformer(model) => {
                let [batch, _] = contexts.dims();
                let hidden = model.hidden(contexts, Steps::Newest, None);
                hidden.reshape([batch, model.config.d_model])
            }
            Self::Perceptron(model) => model.hidden(contexts, None),
        }
    }

    /// The model's output for each context's newest action.
    pub fn decide(&self, contexts: &Contexts) -> Decisions {
        self.head().decide(self.newest(contexts))
    }

    /// Embedded frames, `[n, d_model]`, which a policy keeps instead of the frames.
    pub fn embedded(&self, observed: &Observed) -> Option<Tensor<2>> {
        match (self, observed) {
            (Self::Transformer(model), Observed::Frames(_)) => {
                Some(model.encoder.forward(observed, model.form))
            }
            _ => None,
        }
    }

    /// The action head.
    pub fn head(&self) -> &Head {
        match self {
            Self::Transformer(model) => &model.head,
            Self::Perceptron(model) => &model.head,
        }
    }

    /// The configuration of the model.
    pub fn config(&self) -> ModelConfig {
        match self {
            Self::Transformer(model) => ModelConfig::Transformer(model.config.clone()),
            Self::Perceptron(model) => ModelConfig::Perceptron(model.config.clone()),
        }
    }

    /// The forms of observations and actions.
    pub fn spaces(&self) -> (&ObservationSpace, &ActionSpace) {
        match self {
            Self::Transformer(model) => (&model.observations, &model.actions),
            Self::Perceptron(model) => (&model.observations, &model.actions),
        }
    }

    /// Number of timesteps that the model sees.
    pub fn context_length(&self) -> usize {
        match self {
            Self::Transformer(model) => model.config.context_length,
            Self::Perceptron(model) => model.config.context_length,
        }
    }

    /// The device of its weights, and their float type.
    pub fn device(&self) -> (Device, DType) {
        let weight = match self {
            Self::Transformer(model) => model.final_norm_weight.val(),
            Self::Perceptron(model) => model.layers[0].bias.val(),
        };
        (weight.device(), weight.dtype())
    }

    /// The same with this form of operations. The density of a
    /// [`FourierLikelihoodHead`](crate::head::FourierLikelihoodHead) is always in [`Form::Auto`].
    pub fn with_form(self, form: Form) -> Self {
        match self {
            Self::Transformer(model) => Self::Transformer(DecisionTransformer { form, ..model }),
            Self::Perceptron(model) => Self::Perceptron(Perceptron { form, ..model }),
        }
    }
}
