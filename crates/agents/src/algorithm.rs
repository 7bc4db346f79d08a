//! [`AlgorithmConfig`]: the list of algorithms.

use burn::tensor::Device;
use overtone_core::{Normalization, Play, Policy, Task};
use overtone_model::{
    Conditioning, DecisionTransformerConfig, ModelConfig, ModelError, error::config_error,
    head::HeadConfig, weights::NamedTensors,
};
use overtone_train::{Checkpoint, Job, TrainError, Trainer, Training};
use serde::{Deserialize, Serialize};

use crate::{
    discrete_cql::{DiscreteCql, DiscreteCqlConfig},
    sequence_model::{self, SequenceModel},
};

/// Which algorithm, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
pub enum AlgorithmConfig {
    /// Logged actions, from returns-to-go, observations and actions before.
    DecisionTransformer(DecisionTransformerConfig),
    /// Logged actions, from observations and actions before.
    BehaviorCloning(ModelConfig),
    /// Values of a list of actions.
    DiscreteCql(DiscreteCqlConfig),
}

impl AlgorithmConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// When this describes no agent for `task`.
    pub fn validate(&self, task: &Task) -> Result<(), ModelError> {
        match self {
            Self::DecisionTransformer(_) | Self::BehaviorCloning(_) => {
                let reads_returns = matches!(self, Self::DecisionTransformer(_));
                if self.reads_returns() != reads_returns {
                    let expected = match reads_returns {
                        true => "a Decision Transformer is told returns",
                        false => "behaviour cloning is told none",
                    };
                    return Err(config_error("conditioning", !reads_returns, expected));
                }
                self.model()
                    .map_or(Ok(()), |model| model.validate(&task.observations, &task.actions))
            }
            Self::DiscreteCql(config) => config.validate(&task.actions),
        }
    }

    /// The model of logged actions, where the algorithm learns one.
    pub fn model(&self) -> Option<ModelConfig> {
        match self {
            Self::DecisionTransformer(model) => Some(ModelConfig::Transformer(model.clone())),
            Self::BehaviorCloning(model) => Some(model.clone()),
            Self::DiscreteCql(_) => None,
        }
    }

    /// Whether what is asked for changes what the agent does.
    pub fn reads_returns(&self) -> bool {
        match self.model() {
            Some(ModelConfig::Transformer(model)) => model.conditioning == Conditioning::Return,
            Some(ModelConfig::Perceptron(_)) | None => false,
        }
    }

    /// In a few words: `decision transformer, linear head, softmax attention`.
    pub fn describe(&self) -> String {
        match self {
            Self::DecisionTransformer(model) => {
                sequence_model::describe_transformer("Decision Transformer", model)
            }
            Self::BehaviorCloning(ModelConfig::Transformer(model)) => {
                sequence_model::describe_transformer("transformer cloning behaviour", model)
            }
            Self::BehaviorCloning(ModelConfig::Perceptron(model)) => {
                format!("perceptron cloning behaviour, {}", model.head.describe())
            }
            Self::DiscreteCql(config) => format!(
                "conservative Q-learning, alpha {}, {} quantiles",
                config.alpha, config.quantiles
            ),
        }
    }

    /// Training by this algorithm of an agent for `task`.
    ///
    /// # Errors
    /// When the options describe none, or `resume` belongs to another run.
    pub fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        let (observations, actions) = (task.observations.clone(), task.actions.clone());
        if let Some(model) = self.model() {
            let algorithm = SequenceModel { model, observations, actions };
            return Ok(Box::new(Trainer::new(algorithm, job, resume)?));
        }
        match self {
            Self::DecisionTransformer(_) | Self::BehaviorCloning(_) => unreachable!("have a model"),
            Self::DiscreteCql(config) => {
                let algorithm = DiscreteCql { config: config.clone(), observations, actions };
                Ok(Box::new(Trainer::new(algorithm, job, resume)?))
            }
        }
    }

    /// The policy of an agent with these weights, played so.
    ///
    /// # Errors
    /// When the weights do not fit the options.
    pub(crate) fn policy(
        &self,
        task: &Task,
        weights: &NamedTensors,
        normalization: Option<&Normalization>,
        play: &Play,
        device: &Device,
    ) -> Result<Box<dyn Policy>, ModelError> {
        let (observations, actions) = (&task.observations, &task.actions);
        if let Some(model) = self.model() {
            return sequence_model::policy(
                &model,
                (observations, actions),
                weights,
                normalization,
                play,
                device,
            );
        }
        match self {
            Self::DecisionTransformer(_) | Self::BehaviorCloning(_) => unreachable!("have a model"),
            Self::DiscreteCql(config) => {
                config.policy((observations, actions), weights, normalization, device)
            }
        }
    }

    /// Whether actions are drawn from a distribution, and not one for each observation.
    pub fn has_distribution(&self) -> bool {
        self.model().is_some_and(|model| {
            !matches!(model.head(), HeadConfig::Tanh(_) | HeadConfig::Pointwise(_))
        })
    }
}
