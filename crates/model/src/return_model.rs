//! [`ReturnModel`]: what may still be earned from what is seen, so that an agent asks for no more.
//!
//! A Decision Transformer that is asked for what nobody earned from where it stands is asked a
//! question that its data never answered. Here a perceptron says from an observation alone how
//! probable each return is, `p(ẑ | o)`, with `ẑ` the return as the transformer is told it, by any
//! head for a real-valued action. At play the agent is told
//!
//! ```text
//! min(ẑ of what is still to be earned of the target, F⁻¹(q | o))
//! ```
//!
//! at each timestep of its context, `F` being the distribution's cumulative function: a target
//! beyond what a state allows becomes the `q`-quantile of what was earned from states like it.
//! Asked for more than any episode earned, the agent follows that quantile alone, as Lee et al.
//! (2022, "Multi-Game Decision Transformers") have their agents ask for expert returns, and needs
//! no target.

use burn::{
    module::{Module, ParamId},
    tensor::{Tensor, TensorData},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::Form;
use serde::{Deserialize, Serialize};

use crate::{
    contexts::{Acted, Contexts, Observed},
    error::{ModelError, config_error},
    head::{ActedRows, HeadConfig, HeadLoss},
    init::Init,
    matrices::Matrices,
    perceptron::{Perceptron, PerceptronConfig},
};

/// What the loss of returns counts beside that of actions. The two share no weight, only the
/// bound on the norm of the gradient.
pub const WEIGHT: f64 = 0.1;

/// Options of a [`ReturnModel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnModelConfig {
    /// Hidden layers.
    pub n_layers: usize,
    /// Width of a hidden layer.
    pub width: usize,
    /// How the last of them becomes a distribution over [-1, 1].
    pub head: HeadConfig,
}

impl ReturnModelConfig {
    /// Two hidden layers of 256, 1 % of the cost of the transformers that it stands beside.
    pub fn new(head: HeadConfig) -> Self {
        Self { n_layers: 2, width: 256, head }
    }

    fn perceptron(&self) -> PerceptronConfig {
        PerceptronConfig {
            n_layers: self.n_layers,
            width: self.width,
            context_length: 1,
            dropout: 0.0,
            average_return: None,
            head: self.head.clone(),
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no distribution of returns.
    pub fn validate(&self, observations: &ObservationSpace) -> Result<(), ModelError> {
        if matches!(observations, ObservationSpace::Pixels { .. }) {
            let expected = "none: what may be earned is told from vectors, and not from pixels";
            return Err(config_error("return_model", "given", expected));
        }
        if matches!(self.head, HeadConfig::Tanh(_) | HeadConfig::Pointwise(_)) {
            let expected = "a head with a distribution, whose quantiles are asked for";
            return Err(config_error("return_model.head", self.head.name(), expected));
        }
        self.perceptron().validate(observations, &ActionSpace::unit(1))
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct ReturnModel {
    /// Its "action" is the return.
    pub perceptron: Perceptron,
}

impl Matrices for ReturnModel {
    fn matrices(&self) -> Vec<ParamId> {
        self.perceptron.matrices()
    }
}

impl ReturnModel {
    /// A new model, initialised as a [`Perceptron`].
    ///
    /// # Errors
    /// When `config` describes none for such observations.
    pub fn init(
        config: &ReturnModelConfig,
        observations: &ObservationSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        config.validate(observations)?;
        let config = config.perceptron();
        let perceptron = Perceptron::init(&config, observations, &ActionSpace::unit(1), init)?;
        Ok(Self { perceptron })
    }

    /// What each row costs, in nats.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, width]`
    /// - `told`: `[batch, time]`; beyond [-1, 1] as the nearer end
    /// - rows of the result: `batch · time`
    pub fn loss(&self, observations: Tensor<3>, told: Tensor<2>) -> HeadLoss {
        let [batch, time] = told.dims();
        let returns = told.clamp(-1.0, 1.0).reshape([batch * time, 1]);
        self.perceptron.head.loss(self.hidden(observations), ActedRows::Continuous(returns))
    }

    /// The `q`-quantile of the returns of each observation, computed on the host.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, width]`
    /// - result: `[batch, time]`, in [-1, 1]
    pub fn quantiles(&self, observations: Tensor<3>, q: f64) -> Tensor<2> {
        let [batch, time, _] = observations.dims();
        let (device, dtype) = (observations.device(), observations.dtype());
        let decisions = self.perceptron.head.decide(self.hidden(observations)).numbers();
        let quantiles: Vec<f32> = decisions
            .iter()
            .flat_map(|returns| (0..batch * time).flat_map(move |row| returns.quantile(row, q)))
            .map(|number| number as f32)
            .collect();
        Tensor::from_data(TensorData::new(quantiles, [batch, time]), (&device, dtype))
    }

    /// The same with its operations in this form.
    pub fn with_form(self, form: Form) -> Self {
        Self { perceptron: Perceptron { form, ..self.perceptron } }
    }

    /// What the head reads of each observation, `[batch · time, width]`.
    fn hidden(&self, observations: Tensor<3>) -> Tensor<2> {
        let [batch, time, width] = observations.dims();
        let (rows, device) = (batch * time, observations.device());
        let dtype = observations.dtype();
        let alone = Contexts {
            observations: Observed::Vectors(observations.reshape([rows, 1, width])),
            actions: Acted::Continuous(Tensor::zeros([rows, 1, 1], (&device, dtype))),
            returns_to_go: Tensor::zeros([rows, 1], (&device, dtype)),
            timesteps: vec![0; rows],
            n_padding: vec![0; rows],
        };
        self.perceptron.hidden(&alone, None)
    }
}
