//! The model that settings describe, and its name.

use anyhow::Result;
use overtone_agents::AlgorithmConfig;
use overtone_core::{ObservationSpace, Task};
use overtone_model::{
    AttentionConfig, Conditioning, DecisionTransformerConfig, FourierKernel, ModelConfig,
    PerceptronConfig, positions::PositionsConfig,
};

use super::{AttentionKind, AttentionSettings, BEHAVIOR_CLONING, ModelKind, Settings};

impl Settings {
    /// The model for `task`, whose recorded episodes have up to `longest` steps.
    ///
    /// # Errors
    /// When the keys describe no model.
    pub(super) fn model_config(&self, task: &Task, longest: usize) -> Result<ModelConfig> {
        let head = self.head.config(&task.actions)?;
        let model = &self.model;
        if model.kind == ModelKind::Perceptron {
            return Ok(ModelConfig::Perceptron(PerceptronConfig {
                n_layers: model.n_layers,
                width: model.d_model,
                context_length: model.context_length,
                dropout: model.dropout,
                head,
            }));
        }
        let reference = match task.observations {
            ObservationSpace::Pixels { .. } => {
                DecisionTransformerConfig::atari(longest.saturating_sub(1))
            }
            ObservationSpace::Vectors { .. } => {
                let horizon = task.horizon.unwrap_or(longest);
                let positions = PositionsConfig::Timestep { horizon, std: model.timestep_std };
                DecisionTransformerConfig { positions, ..DecisionTransformerConfig::gym(horizon) }
            }
        };
        let conditioning = match &*self.algorithm {
            BEHAVIOR_CLONING => Conditioning::None,
            _ => Conditioning::Return,
        };
        Ok(ModelConfig::Transformer(DecisionTransformerConfig {
            n_layers: model.n_layers,
            n_heads: model.n_heads,
            d_model: model.d_model,
            context_length: model.context_length,
            dropout: model.dropout,
            conditioning,
            attention: self.attention.config(),
            head,
            ..reference
        }))
    }

    /// Algorithm, model, head and attention as a part of a run's name: `linear`, `bc-tanh`,
    /// `best10-bc-perceptron-tanh`, `linear-attention-fourier4`, `cql4`.
    pub fn model_name(&self, algorithm: &AlgorithmConfig) -> String {
        let best = match self.data.best_percent {
            100.0 => String::new(),
            percent => format!("best{percent}-"),
        };
        let (algorithm, head) = match (&*self.algorithm, algorithm.model()) {
            (_, None) => return format!("{best}{}", algorithm.short_name()),
            (BEHAVIOR_CLONING, _) => ("bc-", self.head.name()),
            _ => ("", self.head.name()),
        };
        let (kind, attention) = match self.model.kind {
            ModelKind::Perceptron => ("perceptron-", String::new()),
            ModelKind::Transformer => ("", self.attention.suffix()),
        };
        format!("{best}{algorithm}{kind}{head}{attention}")
    }

    /// The agent in a few words, after its number of parameters.
    pub fn describe_model(&self, algorithm: &AlgorithmConfig) -> String {
        if algorithm.model().is_none() {
            return algorithm.describe();
        }
        let (head, context) = (self.head.name(), self.model.context_length);
        let model = match self.model.kind {
            ModelKind::Perceptron => format!("a perceptron, {head} head, context {context}"),
            ModelKind::Transformer => {
                format!("{head} head, {} attention, context {context}", self.attention.name())
            }
        };
        match &*self.algorithm {
            BEHAVIOR_CLONING => format!("cloning behaviour, {model}"),
            _ => model,
        }
    }
}

impl AttentionSettings {
    /// The attention of a model.
    pub fn config(&self) -> AttentionConfig {
        match self.kind {
            AttentionKind::Softmax => AttentionConfig::SOFTMAX,
            AttentionKind::Fourier => AttentionConfig::Fourier(FourierKernel {
                power: self.power,
                r: self.r,
                initial: self.initial,
                epsilon: self.epsilon,
            }),
        }
    }

    /// In a word: `softmax`, `fourier4`.
    pub fn name(&self) -> String {
        match self.kind {
            AttentionKind::Softmax => "softmax".into(),
            AttentionKind::Fourier => format!("fourier{}", self.power),
        }
    }

    /// As a part of a run's name, after a head's: nothing for the usual one.
    fn suffix(&self) -> String {
        match self.kind {
            AttentionKind::Softmax => String::new(),
            AttentionKind::Fourier => format!("-attention-{}", self.name()),
        }
    }
}
