//! The policy of each [`ActingNetwork`].

use burn::module::Module;
use overtone_core::{Policy, Task};
use overtone_model::{ModelError, init::Init, weights};

use crate::{
    acting::{ActingNetwork, Draw, PolicyParts},
    action_chunks::OneByOne,
    iql::CategoricalActor,
    sequence_model,
    value::{Mlp, QNetwork, Rescaling, StepPolicy, policy::Actor},
};

impl ActingNetwork<'_> {
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
            Self::Tanh { prefix, hidden, is_normalized, chunk_size } => {
                let chunks = Task { actions: actions.in_chunks(*chunk_size), ..parts.task.clone() };
                let widths = [observations.size(), chunks.actions.size()];
                let actor = Mlp::init(widths, *hidden, init);
                let named = parts.weights.iter().filter_map(|(name, data)| {
                    Some((name.strip_prefix(prefix)?.to_owned(), data.clone()))
                });
                let task = parts.task;
                let parts = PolicyParts { task: &chunks, weights: &named.collect(), ..*parts };
                let policy = step_policy(actor, &parts, rescaling(*is_normalized), draw)?;
                Ok(match chunk_size {
                    1 => policy,
                    _ => Box::new(OneByOne::new(task, policy)),
                })
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
