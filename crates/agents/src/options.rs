//! [`AlgorithmOptions`]: the interface of every algorithm's options.

use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_model::{ModelConfig, ModelError, head::HeadConfig};
use overtone_train::{Job, TrainError, Training};

use crate::acting::ActingNetwork;

/// Options of an algorithm, with everything that training, acting and export need from it.
pub trait AlgorithmOptions {
    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key whose value is not valid for these spaces.
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError>;

    /// A short description: `Decision Transformer, linear head, softmax attention`.
    fn describe(&self) -> String;

    /// Part of a run's name, such as `cql4`. An algorithm with a model of recorded actions uses the
    /// model's name.
    fn short_name(&self) -> String {
        String::new()
    }

    /// Its own keys that determine its weights. An agent that is initialised from another one must
    /// have the same values. For a model of recorded actions, these are all keys of the model.
    fn keys_of_weights(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its own keys with their documentation. A model of recorded actions is configured by others.
    fn docs(&self) -> Docs {
        Vec::new()
    }

    /// The network that an agent with [valid](Self::validate) options acts with.
    fn network(&self) -> ActingNetwork<'_>;

    /// Training of an agent for `task`.
    ///
    /// # Errors
    /// When the options are not valid for the task, or the checkpoint belongs to another run.
    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError>;

    /// The head of its actor, if the actor is no model of recorded actions and has one.
    fn head(&self) -> Option<&HeadConfig> {
        match self.network() {
            ActingNetwork::Categorical { head, .. } => Some(head),
            _ => None,
        }
    }

    /// The model of recorded actions, if the algorithm learns one.
    fn model(&self) -> Option<ModelConfig> {
        match self.network() {
            ActingNetwork::Sequence(model) => Some(model),
            _ => None,
        }
    }

    /// Whether it learns no values of rewards, or scales the rewards itself.
    fn scales_rewards(&self) -> bool {
        false
    }

    /// Whether a step uses one gradient, so that a batch can be cut into parts
    /// ([`Algorithm::parts`](overtone_train::Algorithm::parts)).
    fn steps_in_parts(&self) -> bool {
        self.model().is_some()
    }

    /// Whether the target return has an effect on the actions.
    fn reads_returns(&self) -> bool {
        self.model().is_some_and(|model| model.conditioning().is_some())
    }

    /// Whether actions are drawn from a distribution, instead of one action per observation.
    fn has_distribution(&self) -> bool {
        match self.network() {
            ActingNetwork::Sequence(model) => {
                !matches!(model.head(), HeadConfig::Tanh(_) | HeadConfig::Pointwise(_))
            }
            ActingNetwork::Categorical { .. } => true,
            ActingNetwork::Tanh { .. } | ActingNetwork::Quantiles { .. } => false,
        }
    }
}

/// Keys with their documentation.
pub type Docs = Vec<(&'static str, &'static str)>;

/// The fields of a struct of options.
pub(crate) fn fields<T: DocumentedFields>() -> Docs {
    T::FIELD_NAMES.iter().copied().zip(T::FIELD_DOCS.iter().copied()).collect()
}
