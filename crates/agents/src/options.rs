//! [`AlgorithmOptions`]: what every algorithm says of itself.

use burn::tensor::Device;
use overtone_core::{ActionSpace, Normalization, ObservationSpace, Play, Policy, Task};
use overtone_model::{ModelConfig, ModelError, weights::NamedTensors};
use overtone_train::{Checkpoint, Job, TrainError, Training};

/// What an algorithm's options say of it: all that training and playing ask.
pub trait AlgorithmOptions {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no agent that sees and does such.
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError>;

    /// In a few words: `Decision Transformer, linear head, softmax attention`.
    fn describe(&self) -> String;

    /// As a part of a run's name, such as `cql4`. An algorithm with a model of logged actions is
    /// called by that.
    fn short_name(&self) -> String {
        String::new()
    }

    /// Which of its own keys say what its weights are: an agent that begins with those of another
    /// has to have the same. Of a model of logged actions all that the model is made of.
    fn keys_of_weights(&self) -> &'static [&'static str] {
        &[]
    }

    /// The model of logged actions, where the algorithm learns one.
    fn model(&self) -> Option<ModelConfig> {
        None
    }

    /// Whether what is asked for changes what the agent does.
    fn reads_returns(&self) -> bool {
        false
    }

    /// Whether actions are drawn from a distribution, and not one for each observation.
    fn has_distribution(&self) -> bool {
        false
    }

    /// Training of an agent for `task`.
    ///
    /// # Errors
    /// When the options describe none, or `resume` belongs to another run.
    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError>;

    /// The policy of an agent of options that are [valid](Self::validate), whose actions are
    /// within [-1, 1]: what [`Agent::policy`](crate::Agent::policy) asks for.
    ///
    /// # Errors
    /// When the weights do not fit the options.
    fn policy(&self, of: &Restored<'_>) -> Result<Box<dyn Policy>, ModelError>;
}

/// What a policy is made of beside the options.
#[derive(Clone, Copy, Debug)]
pub struct Restored<'a> {
    /// What is played.
    pub task: &'a Task,
    /// What was learned.
    pub weights: &'a NamedTensors,
    /// What is done to observations of vectors before the policy sees them.
    pub normalization: Option<&'a Normalization>,
    /// How it is played.
    pub play: &'a Play,
    /// Where it computes.
    pub device: &'a Device,
}
