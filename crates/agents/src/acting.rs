//! [`ActingNetwork`]: the form of the network that an agent acts with. Its policy and its exported
//! graph follow from it.

use burn::module::Module;
use overtone_core::{Play, Policy, Task};
use overtone_model::{ModelConfig, ModelError, head::HeadConfig, init::Init, weights};

use crate::{
    iql::CategoricalActor,
    options::PolicyParts,
    sequence_model,
    value::{
        Mlp, QNetwork, Rescaling, StepPolicy,
        network::Hidden,
        policy::{Actor, Draw},
    },
};

/// The network that an agent acts with.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one at a time
pub enum ActingNetwork<'a> {
    /// A model of recorded actions.
    Sequence(ModelConfig),
    /// The tanh of an [`Mlp`], for continuous actions on vectors.
    Tanh {
        /// Prefix of the names of its tensors, such as `mean.`; may be empty.
        prefix: &'static str,
        /// Its hidden layers.
        hidden: Hidden,
        /// Whether it reads normalized observations.
        is_normalized: bool,
    },
    /// A [`CategoricalActor`], for discrete actions.
    Categorical {
        /// The layers of its body.
        hidden: Hidden,
        /// Its head.
        head: &'a HeadConfig,
        /// Whether it reads normalized observations.
        is_normalized: bool,
    },
    /// The mean of the quantiles of each discrete action, by a [`QNetwork`] on observations that
    /// are normalized as the agent's are.
    Quantiles {
        /// The layers of its body.
        hidden: Hidden,
        /// Quantiles per action.
        n_quantiles: usize,
        /// Probability of a random action when actions are sampled.
        epsilon: f64,
    },
}

impl ActingNetwork<'_> {
    /// How `play` samples its discrete actions or bins; `None`: it has one action for each
    /// observation.
    pub fn draw(&self, play: &Play) -> Option<Draw> {
        match self {
            Self::Sequence(_) | Self::Categorical { .. } => {
                Some(Draw::Softmax { temperature: play.acting.temperature })
            }
            Self::Quantiles { epsilon, .. } => Some(Draw::Greedy { epsilon: *epsilon }),
            Self::Tanh { .. } => None,
        }
    }

    /// The policy of this network with the weights in `parts`. Its actions are within [-1, 1].
    ///
    /// # Errors
    /// When the weights do not fit the network.
    pub fn policy(&self, parts: &PolicyParts<'_>) -> Result<Box<dyn Policy>, ModelError> {
        let Task { observations, actions, .. } = parts.task;
        let init = &mut Init::shapes(parts.device);
        let rescaling = |is_normalized| Rescaling::new(parts.normalization, is_normalized);
        let draw = self.draw(parts.play);
        match self {
            Self::Sequence(model) => sequence_model::policy(model, parts),
            Self::Tanh { prefix, hidden, is_normalized } => {
                let actor = Mlp::init([observations.size(), actions.size()], *hidden, init);
                let named = parts.weights.iter().filter_map(|(name, data)| {
                    Some((name.strip_prefix(prefix)?.to_owned(), data.clone()))
                });
                let parts = PolicyParts { weights: &named.collect(), ..*parts };
                step_policy(actor, &parts, rescaling(*is_normalized), draw)
            }
            Self::Categorical { hidden, head, is_normalized } => {
                let actor = CategoricalActor::init((observations, actions), *hidden, head, init)?;
                step_policy(actor, parts, rescaling(*is_normalized), draw)
            }
            Self::Quantiles { hidden, n_quantiles, .. } => {
                let sizes = [actions.size(), *n_quantiles];
                let network = QNetwork::init(observations, *hidden, sizes, init)?;
                step_policy(network, parts, Rescaling::new(None, true), draw)
            }
        }
    }
}

/// The policy of a network on one observation, with the weights in `parts`.
fn step_policy<N: Module + Actor + 'static>(
    network: N,
    parts: &PolicyParts<'_>,
    rescaling: Rescaling,
    draw: Option<Draw>,
) -> Result<Box<dyn Policy>, ModelError> {
    let network = weights::restore(network, parts.weights)?.valid();
    Ok(Box::new(StepPolicy::new(network, parts, rescaling, draw)))
}
