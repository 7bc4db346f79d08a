//! The Decision Transformer (Chen et al. 2021), to be read from top to bottom.
//!
//! A timestep is three tokens: return-to-go, observation, action. A causal transformer reads up to
//! `context_length` timesteps, and the head predicts each action from its *observation* token.
//! Without the return token the same model is behaviour cloning.
//!
//! ```text
//! R̂₁ o₁ a₁  R̂₂ o₂ a₂ …  ─► embeddings, positions ─► blocks ─► norm ─► head, at the o tokens
//! ```
//!
//! Encoder and action embedding follow from the spaces. The two references are two
//! configurations: [`DecisionTransformerConfig::atari`] and [`DecisionTransformerConfig::gym`].
//!
//! The model does not depend on any environment's units. Vectors are passed **normalized**,
//! `(o - mean) / (std + 1e-6)` with the mean and standard deviation over all timesteps of the
//! training data. A [`Conditioner`](crate::conditioning) converts raw returns to the inputs that
//! condition the model.
//!
//! Differs from the reference implementations:
//! - Contexts may be padded on the left. Tokens do not attend to padding, and local positions count
//!   from the first real token, so a padded context has the same result as the shorter one.
//! - Query, key and value are one matrix. Parts that the references never train or use are left out
//!   (a token embedding; on Gym heads for observations and returns).
//! - The Fourier head's regulariser is averaged over observation tokens and added to the
//!   loss (the reference averages over all tokens and never adds it).
//! - Any [`Head`] that fits the actions may read the tokens; the references' are
//!   [linear](crate::head::LinearHead) and [tanh](crate::head::TanhConfig).
//! - With [`top_percents`](crate::conditioning::top_percent) the layer of returns has more inputs.

pub mod config;
pub mod positions;
#[cfg(test)]
mod tests;

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_core::{ActionSpace, ObservationSpace};
pub use overtone_kernels::{Activation, Form, Half};
use overtone_kernels::{Queries, layer_norm};

pub use self::config::DecisionTransformerConfig;
use self::positions::Positions;
pub use crate::contexts::{Acted, Contexts, FRAME, Observed, STACK, Steps};
use crate::{
    dropout_seed::DropoutSeed,
    encoder::{ActionEmbedding, Encoder},
    error::ModelError,
    head::Head,
    loss::Loss,
    parameters::{affine::Affine, init::Init},
    transformer_block::{BlockOptions, TransformerBlock},
};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct DecisionTransformer {
    /// Encoder from an observation to a token.
    pub encoder: Encoder,
    /// Layer from a return-to-go to a token, `[1, d_model]`; `None` in behaviour cloning.
    pub returns: Option<Affine>,
    /// Embedding from an action to a token.
    pub action: ActionEmbedding,
    /// Time in the context and in the episode, added to tokens.
    pub positions: Positions,
    /// Causal attention and a perceptron each, in the order of execution.
    pub blocks: Vec<TransformerBlock>,
    /// `[d_model]`, weight of the norm after the last block.
    pub final_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub final_norm_bias: Param<Tensor<1>>,
    /// Head from an observation's token to the action.
    pub head: Head,
    /// The configuration of the model.
    #[module(skip)]
    pub config: DecisionTransformerConfig,
    /// The form of the observations.
    #[module(skip)]
    pub observations: ObservationSpace,
    /// The form of the actions.
    #[module(skip)]
    pub actions: ActionSpace,
    /// Fused operations if available, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl DecisionTransformer {
    /// A new model with the references' initial distributions of weights, drawn in the order of
    /// the fields.
    ///
    /// # Errors
    /// When `config` is not valid for such observations and actions.
    pub fn init(
        config: &DecisionTransformerConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        config.validate(observations, actions)?;
        let d = config.d_model;
        let transformer = config.transformer();
        Ok(Self {
            encoder: Encoder::init(observations, d, config.tanh_embeddings, init),
            // PyTorch's default for one input. With several inputs, all but one are zero.
            returns: config.conditioning.as_ref().map(|conditioning| Affine {
                weight: init.uniform([conditioning.width(), d], 1.0),
                bias: init.uniform([d], 1.0),
            }),
            action: ActionEmbedding::init(actions, d, init),
            positions: Positions::init(&config.positions, config.context_length, d, init),
            blocks: (0..config.n_layers)
                .map(|_| TransformerBlock::init(&transformer, init))
                .collect(),
            final_norm_weight: init.constant([d], 1.0),
            final_norm_bias: init.constant([d], 0.0),
            head: config.head.init(d, actions, init),
            config: config.clone(),
            observations: observations.clone(),
            actions: actions.clone(),
            form: Form::Auto,
        })
    }

    /// The transformer's output at the observation tokens of some timesteps: the head's input.
    ///
    /// # Shapes
    /// - result: `[batch, steps, d_model]`; rows of padded steps are finite but undefined
    pub fn hidden(
        &self,
        contexts: &Contexts,
        steps: Steps,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<3> {
        let tokens = self.tokens(contexts);
        let hidden = self.transform(tokens, steps, contexts, dropout);
        layer_norm(hidden, self.final_norm_weight.val(), self.final_norm_bias.val(), self.form)
    }

    /// Every timestep's tokens with their positions, `R̂, o, a`, or `o, a` without returns.
    ///
    /// # Shapes
    /// - result: `[batch, tokens_per_timestep · time, d_model]`
    fn tokens(&self, contexts: &Contexts) -> Tensor<3> {
        let [batch, time] = contexts.dims();
        let shape = [batch, time, self.config.d_model];
        let squash = |embedded: Tensor<2>| {
            if self.config.tanh_embeddings { embedded.tanh() } else { embedded }
        };
        let returns = self.returns.as_ref().map(|layer| {
            let [width, _] = layer.weight.dims();
            let condition = contexts.condition(width - 1).reshape([batch * time, width]);
            squash(embedded(layer, condition, contexts)).reshape(shape)
        });
        let observations = match &contexts.observations {
            Observed::Embedded(observations) => observations.clone(),
            observed => self.encoder.forward(observed, self.form).reshape(shape),
        };
        let actions = squash(self.action.forward(&contexts.actions)).reshape(shape);
        let streams = returns.into_iter().chain([observations, actions]).collect();
        let streams = self.positions.in_episode(streams, contexts);
        self.positions.in_context(interleave(streams), contexts, self.form)
    }

    /// Dropout and the blocks, at the observation tokens of some steps. The last block computes
    /// only these.
    ///
    /// A token attends to itself and to earlier tokens of its context, never to padding.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, tokens_per_timestep · time, d_model]`
    /// - result: `[batch, steps, d_model]`
    fn transform(
        &self,
        tokens: Tensor<3>,
        steps: Steps,
        contexts: &Contexts,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<3> {
        let config = &self.config;
        let per_step = config.tokens_per_timestep();
        let [_, n_tokens, _] = tokens.dims();
        let observations = observation_tokens(steps, per_step, n_tokens);
        let is_padded = contexts.n_padding.iter().any(|&pad| pad > 0);
        let stored = contexts.stored.as_ref().and_then(|stored| stored.first_token.clone());
        let first_token = stored.or_else(|| {
            let first_token = contexts.n_padding.iter().map(|&pad| (per_step * pad) as i32);
            let first_token: Vec<i32> = first_token.collect();
            is_padded.then(|| Tensor::from_data(&first_token[..], &tokens.device()))
        });
        let nth_dropout = |nth| dropout.as_ref()?.nth(nth, config.dropout);
        let mut x = match nth_dropout(0) {
            Some(dropout) => overtone_kernels::dropout(tokens, dropout, self.form),
            None => tokens,
        };
        for (layer, block) in (0..).zip(&self.blocks) {
            let is_last = layer + 1 == self.blocks.len() as u32;
            let options = BlockOptions {
                n_heads: config.n_heads,
                attention: config.attention,
                activation: config.activation,
                queries: if is_last { observations } else { Queries::ALL },
                first_token: first_token.clone(),
                dropout: nth_dropout(1 + 2 * layer)
                    .zip(nth_dropout(2 + 2 * layer))
                    .map(<[_; 2]>::from),
                form: self.form,
            };
            x = block.forward(x, &options);
        }
        x
    }

    /// Logits at every observation token, by environment action id (discrete actions only).
    ///
    /// # Shapes
    /// - result: `[batch, time, n_actions]`
    pub fn logits(&self, contexts: &Contexts) -> Option<Tensor<3>> {
        let [batch, time] = contexts.dims();
        let hidden = self.hidden(contexts, Steps::All, None);
        let logits = self.head.logits(hidden.reshape([batch * time, self.config.d_model]))?;
        let [_, n_actions] = logits.dims();
        Some(logits.reshape([batch, time, n_actions]))
    }

    /// Mean loss of the recorded actions over real timesteps, plus the head's regulariser.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        let [batch, time] = contexts.dims();
        let hidden = self.hidden(contexts, Steps::All, dropout);
        let rows = hidden.reshape([batch * time, self.config.d_model]);
        let penalties = contexts.penalties_of(Steps::All);
        let loss = self.head.loss(rows, contexts.actions.rows(), penalties);
        let weights = contexts.timestep_weights(&loss.rows.device(), loss.rows.dtype());
        Loss::of(loss, weights)
    }
}

/// The token of a timestep's conditioning: `R̂ W₀ + b` with a return, and only the row `W_k` with a
/// [top percent](crate::conditioning::top_percent).
///
/// # Shapes
/// - `condition`: `[batch · time, 1 + top percents]`
/// - result: `[batch · time, d_model]`
fn embedded(layer: &Affine, condition: Tensor<2>, contexts: &Contexts) -> Tensor<2> {
    let [_, width] = condition.dims();
    if width == 1 {
        return layer.forward(condition);
    }
    let has_return = contexts.has_return(condition.clone(), width - 1);
    condition.matmul(layer.weight.val()) + has_return * layer.bias.val().unsqueeze()
}

/// The tokens of each timestep next to each other: `R̂₁ o₁ a₁ R̂₂ o₂ a₂ …`.
///
/// # Shapes
/// - each of `streams`: `[batch, time, d_model]`
/// - result: `[batch, streams · time, d_model]`
fn interleave(streams: Vec<Tensor<3>>) -> Tensor<3> {
    let [batch, time, d_model] = streams[0].dims();
    let n_streams = streams.len();
    let of_a_step = streams.into_iter().map(|tokens| tokens.reshape([batch, time, 1, d_model]));
    Tensor::cat(of_a_step.collect(), 2).reshape([batch, n_streams * time, d_model])
}

/// The observation tokens of some timesteps among `n_tokens` [interleaved](interleave) ones.
///
/// The action is predicted from the *observation* token: it has seen the return-to-go and the
/// observation at `t`, and not yet the action it must predict. It is the second of three tokens, or
/// the first of two.
fn observation_tokens(steps: Steps, per_step: usize, n_tokens: usize) -> Queries {
    let first = per_step - 2;
    match steps {
        Steps::All => Queries { first, step: per_step },
        Steps::Newest => Queries::one(n_tokens - per_step + first, n_tokens),
    }
}
