//! A model, whichever: what training and playing ask of one.

use burn::{
    module::{Module, ParamId},
    tensor::{DType, Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::Form;
use serde::{Deserialize, Serialize};

use crate::{
    contexts::{Contexts, Observed},
    decision_transformer::DecisionTransformer,
    decision_transformer_config::DecisionTransformerConfig,
    error::{ModelError, config_error},
    head::{Decisions, Head, HeadConfig},
    init::Init,
    loss::Loss,
    matrices::Matrices,
    perceptron::{Perceptron, PerceptronConfig},
    positions::Positions,
    tokens::Steps,
    transformer::DropoutSeed,
    weights::{self, NamedTensors},
};

/// Which model, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelConfig {
    /// See [`DecisionTransformer`].
    Transformer(DecisionTransformerConfig),
    /// See [`Perceptron`].
    Perceptron(PerceptronConfig),
}

impl ModelConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model of such observations and actions.
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

    /// The same, for episodes as long as those that `other` knows, whose tables of timesteps have
    /// as many rows, and for the returns that it knows.
    #[must_use]
    pub fn scaled_as(mut self, other: &Self) -> Self {
        match (&mut self, other) {
            (Self::Transformer(own), Self::Transformer(other)) => {
                own.positions = other.positions;
                own.return_range = other.return_range;
                own.average_return = other.average_return;
            }
            (Self::Perceptron(own), Self::Perceptron(other)) => {
                own.average_return = other.average_return;
            }
            (Self::Transformer(_), Self::Perceptron(_))
            | (Self::Perceptron(_), Self::Transformer(_)) => {}
        }
        self
    }

    /// Timesteps the model sees.
    pub fn context_length(&self) -> usize {
        match self {
            Self::Transformer(config) => config.context_length,
            Self::Perceptron(config) => config.context_length,
        }
    }

    /// Actions learned from a full context: the transformer's at every timestep, the
    /// perceptron's at the newest.
    pub fn labels_per_context(&self) -> usize {
        match self {
            Self::Transformer(config) => config.context_length,
            Self::Perceptron(_) => 1,
        }
    }

    /// How actions are read.
    pub fn head(&self) -> &HeadConfig {
        match self {
            Self::Transformer(config) => &config.head,
            Self::Perceptron(config) => &config.head,
        }
    }

    /// Shares of the best episodes, in percent, of which it is told that a context is
    /// [from them](crate::best_shares).
    pub fn best_percents(&self) -> &[f32] {
        match self {
            Self::Transformer(config) => &config.best_percents,
            Self::Perceptron(config) => &config.best_percents,
        }
    }

    fn n_layers(&self) -> usize {
        match self {
            Self::Transformer(config) => config.n_layers,
            Self::Perceptron(config) => config.n_layers,
        }
    }
}

/// A model. Its [`weights`] have the names that they have in the model itself.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one model per run
pub enum Model {
    /// See [`DecisionTransformer`].
    Transformer(DecisionTransformer),
    /// See [`Perceptron`].
    Perceptron(Perceptron),
}

impl Matrices for Model {
    fn matrices(&self) -> Vec<ParamId> {
        match self {
            Self::Transformer(model) => model.matrices(),
            Self::Perceptron(model) => model.matrices(),
        }
    }
}

impl Model {
    /// A new model.
    ///
    /// # Errors
    /// When `config` describes no model of such observations and actions.
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

    /// A model on `device` with these weights, which hold exactly what the configuration
    /// describes. What it describes is only a claim until then, and takes no memory.
    ///
    /// # Errors
    /// When a tensor is missing, has another shape or another type than the others, or belongs to no
    /// parameter.
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

    /// Mean loss of logged actions, plus the head's regulariser: the transformer's at every
    /// real timestep, the perceptron's at the newest of each context.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        match self {
            Self::Transformer(model) => model.loss(contexts, dropout),
            Self::Perceptron(model) => model.loss(contexts, dropout),
        }
    }

    /// What the [head](Self::head) reads to choose each context's newest action, without
    /// dropout.
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

    /// What the model says about each context's newest action.
    pub fn decide(&self, contexts: &Contexts) -> Decisions {
        self.head().decide(self.newest(contexts))
    }

    /// What a policy keeps of new observations instead of them, `[n, d_model]`: frames,
    /// embedded.
    pub fn embedded(&self, observed: &Observed) -> Option<Tensor<2>> {
        match (self, observed) {
            (Self::Transformer(model), Observed::Frames(_)) => {
                Some(model.embed_observations(observed))
            }
            _ => None,
        }
    }

    /// From what the model has read to actions.
    pub fn head(&self) -> &Head {
        match self {
            Self::Transformer(model) => &model.head,
            Self::Perceptron(model) => &model.head,
        }
    }

    /// What the model was built from.
    pub fn config(&self) -> ModelConfig {
        match self {
            Self::Transformer(model) => ModelConfig::Transformer(model.config.clone()),
            Self::Perceptron(model) => ModelConfig::Perceptron(model.config.clone()),
        }
    }

    /// What it sees and does.
    pub fn spaces(&self) -> (&ObservationSpace, &ActionSpace) {
        match self {
            Self::Transformer(model) => (&model.observations, &model.actions),
            Self::Perceptron(model) => (&model.observations, &model.actions),
        }
    }

    /// Timesteps the model sees.
    pub fn context_length(&self) -> usize {
        match self {
            Self::Transformer(model) => model.config.context_length,
            Self::Perceptron(model) => model.config.context_length,
        }
    }

    /// Where its weights are, and their float type.
    pub fn device(&self) -> (Device, DType) {
        let weight = match self {
            Self::Transformer(model) => model.transformer.blocks[0].norm_1_weight.val(),
            Self::Perceptron(model) => model.layers[0].bias.val(),
        };
        (weight.device(), weight.dtype())
    }

    /// The same, which is told no more at play than this quantile of what may be earned.
    ///
    /// # Errors
    /// When it has no [model of returns](crate::return_model), or `quantile` is no share between
    /// 0 and 1.
    pub fn asking_at_most(self, quantile: f64) -> Result<Self, ModelError> {
        if !(quantile > 0.0 && quantile < 1.0) {
            let expected = "between 0 and 1, both apart";
            return Err(config_error("return_quantile", quantile, expected));
        }
        match self {
            Self::Transformer(model) if model.return_model.is_some() => {
                let return_quantile = Some(quantile);
                Ok(Self::Transformer(DecisionTransformer { return_quantile, ..model }))
            }
            _ => {
                let expected = "none: the agent has no model of returns (model.return_head)";
                Err(config_error("return_quantile", quantile, expected))
            }
        }
    }

    /// The same, which is told at play that it is in the best `percent` % of episodes.
    ///
    /// # Errors
    /// When it was not [told](crate::best_shares) of that share in training.
    pub fn acting_as_best(self, percent: f32) -> Result<Self, ModelError> {
        let config = self.config();
        let known = config.best_percents();
        match (self, known.iter().position(|known| *known == percent)) {
            (Self::Transformer(model), Some(place)) => {
                let told_share = u8::try_from(place).ok();
                Ok(Self::Transformer(DecisionTransformer { told_share, ..model }))
            }
            (Self::Perceptron(model), Some(place)) => {
                let told_share = u8::try_from(place).ok();
                Ok(Self::Perceptron(Perceptron { told_share, ..model }))
            }
            _ if known.is_empty() => {
                let expected = "0: the agent was told of no share (model.best_percents)";
                Err(config_error("best_percent", percent, expected))
            }
            _ => {
                let expected = format!("0, or one that the agent was told of: {known:?}");
                Err(config_error("best_percent", percent, expected))
            }
        }
    }

    /// The same, with the global position of a context, where it has one, that of its newest
    /// timestep: what the released evaluation on Atari tells.
    #[must_use]
    pub fn placed_by_newest(mut self) -> Self {
        if let Self::Transformer(model) = &mut self
            && let Positions::LocalAndGlobal(positions) = &mut model.positions
        {
            positions.is_of_newest = true;
        }
        self
    }

    /// The same with its operations in this form. The density of a
    /// [`FourierLikelihoodHead`](crate::head::FourierLikelihoodHead) is in [`Form::Auto`] always.
    pub fn with_form(self, form: Form) -> Self {
        match self {
            Self::Transformer(model) => Self::Transformer(model.with_form(form)),
            Self::Perceptron(model) => Self::Perceptron(Perceptron { form, ..model }),
        }
    }
}
