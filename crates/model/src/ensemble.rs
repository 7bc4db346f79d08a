//! Several perceptrons that act as one: a deep ensemble (Lakshminarayanan et al. 2017).
//!
//! The members begin with different weights and learn the same batches, each by its own loss. Where
//! the data decides what to do, they agree; where it does not, their mean strays less far than one of
//! them does. Their [`Decisions`] are those of the equal mixture of what the members say
//! ([`Decisions::mixed`]).
//!
//! What is made small is the mean of the members' losses. A member's gradient is that of its own
//! loss divided by their number, which AdamW does not notice, but for its ε; gradients are clipped
//! by the norm of all members together.

use burn::module::{Module, ParamId};
use overtone_core::{ActionSpace, ObservationSpace, seed};

use crate::{
    contexts::Contexts,
    error::ModelError,
    head::Decisions,
    init::Init,
    loss::Loss,
    matrices::Matrices,
    perceptron::{Perceptron, PerceptronConfig},
    transformer::DropoutSeed,
};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct Ensemble {
    /// At least one.
    pub members: Vec<Perceptron>,
}

impl Matrices for Ensemble {
    fn matrices(&self) -> Vec<ParamId> {
        self.members.matrices()
    }
}

impl Ensemble {
    /// As many new perceptrons as [`members`](PerceptronConfig::members) says, one after the other
    /// from one stream of numbers.
    ///
    /// # Errors
    /// When `config` describes no model of such observations and actions.
    pub fn init(
        config: &PerceptronConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        let member = |_| Perceptron::init(config, observations, actions, init);
        Ok(Self { members: (0..config.members).map(member).collect::<Result<_, _>>()? })
    }

    /// The mean of the members' losses of the newest logged actions. Each member has its own
    /// dropout.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        let losses = (0u64..).zip(&self.members).map(|(member_idx, member)| {
            let own = |DropoutSeed(step)| DropoutSeed(seed::derive_nth(step, member_idx));
            member.loss(contexts, dropout.map(own))
        });
        Loss::mean(losses.collect())
    }

    /// What the members together say about each context's newest action.
    pub fn decide(&self, contexts: &Contexts) -> Decisions {
        Decisions::mixed(self.members.iter().map(|member| member.decide(contexts)).collect())
    }

    /// The same with every member changed.
    #[must_use]
    pub fn map(self, change: impl FnMut(Perceptron) -> Perceptron) -> Self {
        Self { members: self.members.into_iter().map(change).collect() }
    }

    /// One for all in what members have in common: spaces, configuration, the order of actions.
    pub fn first(&self) -> &Perceptron {
        &self.members[0]
    }
}
