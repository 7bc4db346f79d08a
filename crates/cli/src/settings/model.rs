//! The model that settings describe, and its name.

use anyhow::Result;
use overtone_agents::AlgorithmConfig;
use overtone_core::{ObservationSpace, Task};
use overtone_model::{
    AttentionConfig, AverageReturn, ConditionerConfig, DecisionTransformerConfig, ModelConfig,
    PerceptronConfig, ReturnModelConfig,
    head::{Domain, FourierLikelihoodConfig, GaussianConfig, GmmLikelihoodConfig, HeadConfig},
    positions::PositionsConfig,
};

use super::{
    BEHAVIOR_CLONING, DECISION_TRANSFORMER, ModelKind, RVS, Recorded, ReturnHead, ReturnUnit,
    Settings, Time,
};

impl Settings {
    /// The model for `task`, learned from what was `recorded`.
    ///
    /// # Errors
    /// When the keys describe no model.
    pub(super) fn model_config(&self, task: &Task, recorded: Recorded) -> Result<ModelConfig> {
        let longest = recorded.longest;
        let average = AverageReturn { horizon: longest };
        let (model, head) = (&self.model, self.head.clone());
        if model.kind == ModelKind::Perceptron {
            return Ok(ModelConfig::Perceptron(PerceptronConfig {
                n_layers: model.n_layers,
                width: model.d_model,
                context_length: model.context_length,
                dropout: model.dropout,
                head,
                conditioning: (self.algorithm == RVS).then(|| ConditionerConfig {
                    average_return: Some(average),
                    best_percents: model.best_percents.0.clone(),
                    ..ConditionerConfig::default()
                }),
            }));
        }
        let (reference, positions) = match task.observations {
            ObservationSpace::Pixels { .. } => {
                let max_timestep = longest.saturating_sub(1);
                let positions = match model.time {
                    Time::Episode => PositionsConfig::LocalAndGlobal { max_timestep },
                    Time::Context => PositionsConfig::Local,
                };
                (DecisionTransformerConfig::atari(max_timestep), positions)
            }
            ObservationSpace::Vectors { .. } => {
                let positions = match model.time {
                    Time::Episode => {
                        PositionsConfig::Timestep { horizon: longest, std: model.timestep_std }
                    }
                    Time::Context => PositionsConfig::Order,
                };
                (DecisionTransformerConfig::gym(longest), positions)
            }
        };
        let (return_range, average_return) = match model.return_unit {
            ReturnUnit::Scale => (None, None),
            ReturnUnit::Range => (Some(recorded.returns), None),
            ReturnUnit::Rate => (Some(recorded.rates), Some(average)),
        };
        let conditioning = (self.algorithm != BEHAVIOR_CLONING).then(|| ConditionerConfig {
            return_range,
            average_return,
            return_model: self.return_model(),
            best_percents: match self.algorithm == DECISION_TRANSFORMER {
                true => model.best_percents.0.clone(),
                false => Vec::new(),
            },
        });
        Ok(ModelConfig::Transformer(DecisionTransformerConfig {
            n_layers: model.n_layers,
            n_heads: model.n_heads,
            d_model: model.d_model,
            context_length: model.context_length,
            dropout: model.dropout,
            conditioning,
            positions,
            attention: self.attention,
            head,
            ..reference
        }))
    }

    /// The return model; none where returns have a unit without ends.
    fn return_model(&self) -> Option<ReturnModelConfig> {
        let head = match self.model.return_head {
            _ if self.model.return_unit == ReturnUnit::Scale => return None,
            ReturnHead::None => return None,
            ReturnHead::HlGauss => return Some(ReturnModelConfig::hl_gauss()),
            // The highest and the lowest return are no neighbours.
            ReturnHead::Fourier => HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
                domain: Domain::HalfRange,
                ..FourierLikelihoodConfig::new(12)
            }),
            ReturnHead::Gmm => HeadConfig::GmmLikelihood(GmmLikelihoodConfig {
                components: 5,
                ..Default::default()
            }),
            ReturnHead::Gaussian => HeadConfig::Gaussian(GaussianConfig::default()),
        };
        Some(ReturnModelConfig::new(head))
    }

    /// Algorithm, model, head and attention as a part of a run's name: `linear`, `bc-tanh`,
    /// `best10-bc-perceptron-tanh`, `rvs-tanh`, `linear-attention-fourier4`, `cql4`.
    pub fn model_name(&self, algorithm: &AlgorithmConfig) -> String {
        let best = match self.data.best_percent {
            100.0 => String::new(),
            percent => format!("best{percent}-"),
        };
        let (algorithm, head) = match (&*self.algorithm, algorithm.model()) {
            (_, None) => return format!("{best}{}", algorithm.short_name()),
            (BEHAVIOR_CLONING, _) => ("bc-", self.head.name()),
            (RVS, _) => return format!("{best}rvs-{}", self.head.name()),
            _ => ("", self.head.name()),
        };
        let (kind, attention) = match self.model.kind {
            ModelKind::Perceptron => ("perceptron-", String::new()),
            ModelKind::Transformer if self.attention == AttentionConfig::SOFTMAX => {
                ("", String::new())
            }
            ModelKind::Transformer => ("", format!("-attention-{}", self.attention.name())),
        };
        format!("{best}{algorithm}{kind}{head}{attention}")
    }

    /// The agent in a few words, after its number of parameters.
    pub fn describe_model(&self, algorithm: &AlgorithmConfig) -> String {
        match algorithm.model() {
            None => algorithm.describe(),
            Some(_) => format!("{}, context {}", algorithm.describe(), self.model.context_length),
        }
    }
}
