//! The Decision Transformer (Chen et al. 2021), to be read top to bottom.
//!
//! A timestep is three tokens: the return still to come, the observation, the action; without
//! the first it is behaviour cloning. A causal transformer reads up to `context_length` timesteps,
//! and the next action is predicted from each *observation* token.
//!
//! The model is made of closed parts: an [`Encoder`] of observations, an embedding of
//! [actions](ActionEmbedding) and of [returns](Affine), [`Positions`], the
//! [`Transformer`], and a [`Head`]. Encoder and action embedding follow from the spaces. The two
//! references are two configurations: [`DecisionTransformerConfig::atari`] and
//! [`DecisionTransformerConfig::gym`].
//!
//! The model knows no environment's units. Vectors come **normalized**,
//! `(o - mean) / (std + 1e-6)` with the mean and standard deviation over all timesteps of the
//! training data, and returns-to-go divided by the task's scale. Whoever makes [`Contexts`] does
//! both, once, where a number enters the program; the constants are kept beside the weights.
//!
//! Differs from the reference implementations:
//! - Contexts may be padded on the left. Padding is never attended to, and local positions count
//!   from the first real token, so a padded context gives what the shorter one gives.
//! - Query, key and value are one matrix. What the references never train or use (a token
//!   embedding; on Gym heads for observations and returns) is left out.
//! - The Fourier head's regulariser is averaged over observation tokens and added to the
//!   loss (the reference averages over all tokens and never adds it).
//! - Any [`Head`] that fits the actions may read them; the references' are
//!   [linear](crate::head::LinearHead) and [tanh](crate::head::TanhConfig).

use burn::{
    module::{Module, ParamId},
    tensor::Tensor,
};
use overtone_core::{ActionSpace, ObservationSpace};
pub use overtone_kernels::{Form, Half};

use crate::{
    action_embedding::ActionEmbedding,
    affine::Affine,
    best_shares::BestShares,
    decision_transformer_config::DecisionTransformerConfig,
    encoder::Encoder,
    error::ModelError,
    head::Head,
    init::Init,
    loss::Loss,
    matrices::Matrices,
    positions::{Embedded, Positions, PositionsConfig},
    return_model::{self, ReturnModel},
    tokens::{Conditioning, Steps},
    transformer::Transformer,
};
pub use crate::{
    contexts::{Acted, Contexts, FRAME, Frames, Observed, STACK},
    transformer::DropoutSeed,
};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct DecisionTransformer {
    /// From an observation to a token.
    pub encoder: Encoder,
    /// From a return-to-go to a token; absent where it is none.
    pub returns: Option<Affine>,
    /// From an action to a token.
    pub action: ActionEmbedding,
    /// What tells a token where it stands.
    pub positions: Positions,
    /// From tokens to tokens.
    pub transformer: Transformer,
    /// From a token to actions.
    pub head: Head,
    /// From an observation to what may be earned.
    pub return_model: Option<ReturnModel>,
    /// From a share of the best episodes to a return's token.
    pub best_shares: Option<BestShares>,
    /// The place of the share that is told at play in place of returns.
    #[module(skip)]
    pub told_share: Option<u8>,
    /// Which quantile of what may be earned is the most that is told at play; `None`: the return
    /// to go is told whatever it is, as in training.
    #[module(skip)]
    pub return_quantile: Option<f64>,
    /// What the model was built from.
    #[module(skip)]
    pub config: DecisionTransformerConfig,
    /// What it sees.
    #[module(skip)]
    pub observations: ObservationSpace,
    /// What it does.
    #[module(skip)]
    pub actions: ActionSpace,
    /// Fused operations where there are any, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl Matrices for DecisionTransformer {
    fn matrices(&self) -> Vec<ParamId> {
        let Self { encoder, returns, action, transformer, .. } = self;
        let embeddings = [encoder.matrices(), returns.matrices(), action.matrices()].concat();
        let Self { head, return_model, .. } = self;
        let outputs = [head.matrices(), return_model.matrices()].concat();
        [embeddings, transformer.matrices(), outputs].concat()
    }
}

impl DecisionTransformer {
    /// A new model with the references' initial distributions of weights.
    ///
    /// # Errors
    /// When `config` describes no model of such observations and actions.
    pub fn init(
        config: &DecisionTransformerConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        config.validate(observations, actions)?;
        let (d, tanh) = (config.d_model, config.tanh_embeddings);
        let with_returns = config.conditioning == Conditioning::Return;
        let encoder = |init: &mut Init<'_>| Encoder::init(observations, d, tanh, init);
        let returns = |init: &mut Init<'_>| with_returns.then(|| Affine::init([1, d], init));
        let action = |init: &mut Init<'_>| ActionEmbedding::init(actions, d, init);
        let positions = |init: &mut Init<'_>| {
            Positions::init(&config.positions, config.context_length, d, init)
        };
        let transformer = |init: &mut Init<'_>| Transformer::init(&config.transformer(), init);
        // Each reference's parts are drawn in an order of their own, which seeds rely on.
        let (encoder, returns, action, positions, transformer) = match config.positions {
            PositionsConfig::LocalAndGlobal { .. } | PositionsConfig::Local => {
                let transformer = transformer(init);
                (encoder(init), returns(init), action(init), positions(init), transformer)
            }
            PositionsConfig::Timestep { .. } | PositionsConfig::Order => {
                let returns = returns(init);
                (encoder(init), returns, action(init), positions(init), transformer(init))
            }
        };
        let head = config.head.init(d, actions, init);
        let return_model = |config| ReturnModel::init(config, observations, init);
        let return_model = config.return_model.as_ref().map(return_model).transpose()?;
        let percents = Some(&config.best_percents).filter(|percents| !percents.is_empty());
        let best_shares = percents.map(|percents| BestShares::init(percents, d, init));
        Ok(Self {
            encoder,
            returns,
            action,
            positions,
            transformer,
            head,
            return_model,
            best_shares,
            told_share: None,
            return_quantile: None,
            config: config.clone(),
            observations: observations.clone(),
            actions: actions.clone(),
            form: Form::Auto,
        })
    }

    /// The same with its operations in this form, as [`Model::with_form`](crate::Model::with_form).
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        let return_model = self.return_model.map(|returns| returns.with_form(form));
        Self { form, return_model, ..self }
    }

    /// Embeds observations, for [`Observed::Embedded`].
    ///
    /// # Shapes
    /// - result: `[n, d_model]`, with `n = batch · time` for contexts
    pub(crate) fn embed_observations(&self, observed: &Observed) -> Tensor<2> {
        self.encoder.forward(observed, self.form)
    }

    /// What the head reads: the transformer's output at the observation tokens of some steps.
    ///
    /// # Shapes
    /// - result: `[batch, steps, d_model]`; rows of padded steps are finite and mean nothing
    pub fn hidden(
        &self,
        contexts: &Contexts,
        steps: Steps,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<3> {
        let [batch, time] = contexts.dims();
        let shape = [batch, time, self.config.d_model];
        let returns_to_go = self.allowed(contexts, self.told(contexts));
        let squash = |embedded: Tensor<2>| match self.config.tanh_embeddings {
            true => embedded.tanh(),
            false => embedded,
        };
        let observations = match &contexts.observations {
            Observed::Embedded(observations) => observations.clone(),
            observed => self.embed_observations(observed).reshape(shape),
        };
        let embedded = Embedded {
            observations,
            returns_to_go: self.returns.as_ref().map(|returns| {
                let returns = returns.forward(returns_to_go.reshape([batch * time, 1]));
                squash(self.with_shares(returns, contexts)).reshape(shape)
            }),
            actions: squash(self.action.forward(&contexts.actions)).reshape(shape),
        };
        let tokens = self.positions.tokens(embedded, contexts, self.form);
        let n_padding = &contexts.n_padding;
        let hidden = self.transformer.at_observations(tokens, steps, n_padding, dropout, self.form);
        self.transformer.normed(hidden, self.form)
    }

    /// Embedded `returns`, and embedded shares in contexts that are told one.
    fn with_shares(&self, returns: Tensor<2>, contexts: &Contexts) -> Tensor<2> {
        let [batch, _] = contexts.dims();
        match (&self.best_shares, self.told_share) {
            (Some(shares), told @ Some(_)) => shares.forward(returns, &vec![told; batch]),
            (Some(shares), None) if !contexts.best.is_empty() => {
                shares.forward(returns, &contexts.best)
            }
            _ => returns,
        }
    }

    /// Returns as they are told: see [`return_range`](DecisionTransformerConfig::return_range) and
    /// [`average_return`](DecisionTransformerConfig::average_return).
    fn told(&self, contexts: &Contexts) -> Tensor<2> {
        let returns_to_go = contexts.returns_to_go.clone();
        let Some([low, high]) = self.config.return_range.map(|range| range.map(f64::from)) else {
            return returns_to_go;
        };
        let returns = match self.config.average_return {
            Some(average) => average.of(returns_to_go, &contexts.timesteps),
            None => returns_to_go,
        };
        let place = (returns - low) * (2.0 / (high - low)) - 1.0;
        // A quantile of what may be earned is at most 1, so that training tells no more either.
        let has_ends = self.config.average_return.is_some() || self.return_model.is_some();
        if has_ends { place.clamp(-1.0, 1.0) } else { place }
    }

    /// `told`, but no more than the [quantile](Self::return_quantile) that is set of what may be
    /// earned from each observation.
    fn allowed(&self, contexts: &Contexts, told: Tensor<2>) -> Tensor<2> {
        match (&self.return_model, self.return_quantile, &contexts.observations) {
            (Some(returns), Some(q), Observed::Vectors(observations)) => {
                // In this order a quantile that is NaN stays, and so do broken weights.
                returns.quantiles(observations.clone(), q).min_pair(told)
            }
            _ => told,
        }
    }

    /// Logits at every observation token, by environment action id; `None` for real-valued
    /// actions.
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

    /// Mean loss of the logged actions over real timesteps, plus the head's regulariser.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        self.loss_of(contexts, self.rows(contexts, dropout))
    }

    /// The same, and the action that the [head](Head::point) says at every timestep.
    ///
    /// # Shapes
    /// - second result: `[batch · time, width]`; rows of padded steps mean nothing
    pub fn loss_and_points(
        &self,
        contexts: &Contexts,
        dropout: Option<DropoutSeed>,
    ) -> (Loss, Option<Tensor<2>>) {
        let hidden = self.rows(contexts, dropout);
        (self.loss_of(contexts, hidden.clone()), self.head.point(hidden))
    }

    /// What the head reads, `[batch · time, d_model]`.
    fn rows(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Tensor<2> {
        let [batch, time] = contexts.dims();
        let hidden = self.hidden(contexts, Steps::All, dropout);
        hidden.reshape([batch * time, self.config.d_model])
    }

    fn loss_of(&self, contexts: &Contexts, hidden: Tensor<2>) -> Loss {
        let loss = self.head.loss(hidden, contexts.actions.rows());
        let shares = contexts.shares(&loss.rows.device(), loss.rows.dtype());
        let loss = Loss::of(loss, shares.clone());
        match (&self.return_model, &contexts.observations) {
            (Some(returns), Observed::Vectors(observations)) => {
                let rows = returns.loss(observations.clone(), self.told(contexts));
                let shares = contexts.only_of_all(shares);
                loss.and((rows * shares).sum() * return_model::WEIGHT)
            }
            _ => loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{average_return::AverageReturn, return_model::ReturnModelConfig};
    use burn::tensor::Device;

    fn spaces() -> (ObservationSpace, ActionSpace) {
        (ObservationSpace::Vectors { width: 17 }, ActionSpace::unit(6))
    }

    /// Of an episode of 10 steps, 3 asked for at step 0 are a pace of 3 an episode, and 3 still to
    /// come at step 5 one of 6; 9 and -1 are beyond what was recorded.
    #[test]
    fn averages_and_what_a_return_model_knows_are_never_told_beyond_the_range() {
        let (observations, actions) = spaces();
        let device = Device::flex();
        let told = |average_return, return_model| -> Vec<f32> {
            let config = DecisionTransformerConfig {
                return_range: Some([0.0, 8.0]),
                average_return,
                return_model,
                ..DecisionTransformerConfig::gym(10)
            };
            let init = &mut Init::shapes(&device);
            let model = DecisionTransformer::init(&config, &observations, &actions, init).unwrap();
            let contexts = Contexts {
                observations: Observed::Vectors(Tensor::zeros([2, 2, 17], &device)),
                returns_to_go: Tensor::from_data([[3.0f32, 3.0], [9.0, -1.0]], &device),
                actions: Acted::Continuous(Tensor::zeros([2, 2, 6], &device)),
                timesteps: vec![0, 5, 9, 5],
                n_padding: vec![0, 0],
                best: Vec::new(),
            };
            model.told(&contexts).into_data().iter().collect()
        };
        assert_eq!(told(None, None), [-0.25, -0.25, 1.25, -1.25]);
        assert_eq!(told(Some(AverageReturn { horizon: 10 }), None), [-0.25, 0.5, 1.0, -1.0]);
        // A model of returns knows none beyond.
        let returns = Some(ReturnModelConfig::hl_gauss());
        assert_eq!(told(None, returns), [-0.25, -0.25, 1.0, -1.0]);
    }
}
