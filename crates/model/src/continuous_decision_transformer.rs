//! The Decision Transformer on vectors of observations and real-valued actions (Chen et al.
//! 2021, on Gym), to be read top to bottom.
//!
//! A timestep is three tokens: the return still to come, the observation, the action. Each is
//! one affine layer plus the embedding of its timestep, and one layer norm goes over every
//! token. A causal transformer reads up to `context_length` timesteps, and the next action is
//! predicted from each *observation* token.
//!
//! The model knows no environment's units. Observations come **normalized**,
//! `(o - mean) / (std + 1e-6)` with the mean and standard deviation over all timesteps of the
//! training data, and returns-to-go divided by the task's scale (1000 for Gym's locomotion
//! tasks). Whoever makes [`ContinuousInputs`] or a [`ContinuousHistory`] does both, once, where a
//! number enters the program; the constants are kept beside the weights.
//!
//! Differs from the reference implementation:
//! - Padding is never attended to, so what stands in padded places does not matter. (There a
//!   padded query sees padding; its output is not used.)
//! - The action may be read by any [`ContinuousHead`]; the reference's is
//!   [`Tanh`](crate::head::ContinuousHeadConfig::Tanh).
//! - The reference's heads for observations and returns, which it never trains, and its unused
//!   token embedding are left out.

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor},
};
use overtone_core::seed::Generator;
pub use overtone_kernels::Form;
use overtone_kernels::layer_norm;

pub use crate::transformer::DropoutSeed;
use crate::{
    config::Conditioning,
    continuous_config::ContinuousModelConfig,
    continuous_history::ContinuousHistory,
    error::ModelError,
    head::{ContinuousHead, HeadLoss},
    init, tokens,
    tokens::Steps,
    transformer::Transformer,
    transformer_block::TransformerBlock,
};

/// A batch of contexts. Padded places may hold any finite number.
#[derive(Clone, Debug)]
pub struct ContinuousInputs {
    /// `[batch, time, observation_width]`, normalized.
    pub observations: Tensor<3>,
    /// `[batch, time, action_width]`: the action taken at each step, in [-1, 1]. The last one
    /// is not read by any prediction.
    pub actions: Tensor<3>,
    /// `[batch, time]`: the return from each step on, that step's reward included, divided by
    /// the task's scale.
    pub returns_to_go: Tensor<2>,
    /// `[batch, time]`: each step's place in its episode, from 0.
    pub timesteps: Tensor<2, Int>,
    /// Padded timesteps at the start of each context.
    pub n_padding: Vec<usize>,
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct ContinuousDecisionTransformer {
    /// `[1, d_model]`; absent in behaviour cloning.
    pub return_weight: Option<Param<Tensor<2>>>,
    /// `[d_model]`
    pub return_bias: Option<Param<Tensor<1>>>,
    /// `[observation_width, d_model]`
    pub observation_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub observation_bias: Param<Tensor<1>>,
    /// `[action_width, d_model]`
    pub action_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub action_bias: Param<Tensor<1>>,
    /// `[horizon, d_model]`: place of a timestep in its episode.
    pub timestep_embedding: Param<Tensor<2>>,
    /// `[d_model]`
    pub embedding_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub embedding_norm_bias: Param<Tensor<1>>,
    /// The transformer.
    pub blocks: Vec<TransformerBlock>,
    /// `[d_model]`
    pub final_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub final_norm_bias: Param<Tensor<1>>,
    /// From a token to actions.
    pub head: ContinuousHead,
    /// What the model was built from.
    #[module(skip)]
    pub config: ContinuousModelConfig,
    /// Fused operations where there are any, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl ContinuousDecisionTransformer {
    /// A new model with the reference's initial distribution of weights.
    ///
    /// # Errors
    /// When `config` describes no model.
    pub fn init(
        config: &ContinuousModelConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self, ModelError> {
        config.validate()?;
        let d = config.d_model;
        let with_returns = config.conditioning == Conditioning::Return;
        // Outside the transformer PyTorch's defaults: `init::linear`, and for tables N(0, 1)
        // unless another deviation is asked for.
        let returns = with_returns.then(|| init::linear([1, d], device, generator));
        let (return_weight, return_bias) = returns.unzip();
        let (observation_weight, observation_bias) =
            init::linear([config.observation_width, d], device, generator);
        let (action_weight, action_bias) =
            init::linear([config.action_width, d], device, generator);
        Ok(Self {
            return_weight,
            return_bias,
            observation_weight,
            observation_bias,
            action_weight,
            action_bias,
            timestep_embedding: init::normal(
                [config.horizon, d],
                config.timestep_std,
                device,
                generator,
            ),
            embedding_norm_weight: init::constant([d], 1.0, device),
            embedding_norm_bias: init::constant([d], 0.0, device),
            blocks: (0..config.n_layers)
                .map(|_| TransformerBlock::init(&config.transformer(), device, generator))
                .collect(),
            final_norm_weight: init::constant([d], 1.0, device),
            final_norm_bias: init::constant([d], 0.0, device),
            head: config.head.init(d, config.action_width, device, generator),
            config: config.clone(),
            form: Form::Auto,
        })
    }

    /// The transformer's output at the observation tokens of some steps.
    ///
    /// # Shapes
    /// - result: `[batch, steps, d_model]`; rows of padded steps are finite and mean nothing
    pub fn hidden(
        &self,
        inputs: &ContinuousInputs,
        steps: Steps,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<3> {
        let [batch, time, observation_width] = inputs.observations.dims();
        let (d_model, rows) = (self.config.d_model, batch * time);

        let last_row = self.config.horizon as i64 - 1;
        let timesteps = inputs.timesteps.clone().clamp(0, last_row).reshape([rows]);
        let timesteps = self.timestep_embedding.val().select(0, timesteps);
        let embed = |numbers: Tensor<2>, weight: &Param<Tensor<2>>, bias: &Param<Tensor<1>>| {
            let embedded = numbers.matmul(weight.val()) + bias.val().unsqueeze();
            (embedded + timesteps.clone()).reshape([batch, time, d_model])
        };
        let returns_to_go = self.return_weight.as_ref().zip(self.return_bias.as_ref());
        let returns_to_go = returns_to_go.map(|(weight, bias)| {
            embed(inputs.returns_to_go.clone().reshape([rows, 1]), weight, bias)
        });
        let observations = inputs.observations.clone().reshape([rows, observation_width]);
        let observations = embed(observations, &self.observation_weight, &self.observation_bias);
        let actions = inputs.actions.clone().reshape([rows, self.config.action_width]);
        let actions = embed(actions, &self.action_weight, &self.action_bias);

        let tokens = layer_norm(
            tokens::interleave(returns_to_go, observations, actions),
            self.embedding_norm_weight.val(),
            self.embedding_norm_bias.val(),
            self.form,
        );

        let transformer = Transformer {
            config: self.config.transformer(),
            blocks: &self.blocks,
            final_norm_weight: self.final_norm_weight.val(),
            final_norm_bias: self.final_norm_bias.val(),
            form: self.form,
        };
        transformer.at_observations(tokens, steps, &inputs.n_padding, dropout)
    }

    /// Mean loss of the logged actions over real timesteps, plus the head's regulariser.
    pub fn loss(&self, inputs: &ContinuousInputs, dropout: Option<DropoutSeed>) -> ContinuousLoss {
        let [batch, time, action_width] = inputs.actions.dims();
        let hidden = self.hidden(inputs, Steps::All, dropout);
        let hidden = hidden.reshape([batch * time, self.config.d_model]);
        let targets = inputs.actions.clone().reshape([batch * time, action_width]);
        let loss = self.head.loss(hidden, targets);

        let (device, dtype) = (loss.rows.device(), loss.rows.dtype());
        let shares = tokens::shares(&inputs.n_padding, time, &device, dtype);
        ContinuousLoss::of(loss, shares)
    }

    /// What the head reads to choose each agent's next action: the output at its newest
    /// observation, without dropout. [`ContinuousHead::mode`] or [`ContinuousHead::sample`]
    /// makes actions of it.
    ///
    /// # Shapes
    /// - result: `[agents, d_model]`
    ///
    /// # Errors
    /// When a history does not fit the model.
    pub fn current(&self, histories: &[ContinuousHistory<'_>]) -> Result<Tensor<2>, ModelError> {
        let table = self.timestep_embedding.val();
        let inputs = ContinuousInputs::of_histories(
            histories,
            self.config.context_shape(),
            (&table.device(), table.dtype()),
        )?;
        let [batch, _, _] = inputs.observations.dims();
        let newest = self.hidden(&inputs, Steps::Newest, None);
        Ok(newest.reshape([batch, self.config.d_model]))
    }
}

/// One batch's loss; each `[1]`.
pub struct ContinuousLoss {
    /// What is differentiated: the head's loss plus regulariser.
    pub total: Tensor<1>,
    /// Mean loss of the logged actions in the head's own unit: squared error, averaged over an
    /// action's numbers, or nats, added up over them.
    pub action: Tensor<1>,
}

impl ContinuousLoss {
    /// Of rows that have these shares in the mean, `[rows]`.
    pub(crate) fn of(loss: HeadLoss, shares: Tensor<1>) -> Self {
        let action = (loss.rows * shares.clone()).sum();
        let total = match loss.regularization {
            Some(rows) => action.clone() + (rows * shares).sum(),
            None => action.clone(),
        };
        Self { total, action: action.detach() }
    }
}
