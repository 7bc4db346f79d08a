//! The model that a configuration describes, and its name.

use overtone_agents::AlgorithmConfig;
use overtone_core::{ObservationSpace, Task};
use overtone_model::{
    AttentionConfig, AverageReturn, ConditionerConfig, DecisionTransformerConfig, ModelConfig,
    PerceptronConfig, ReturnModelConfig, head::HeadConfig, positions::PositionsConfig,
};

use crate::{
    agent::{
        AgentConfig, ClonedModel, DecisionTransformerModel, PerceptronModel, ReturnHead,
        ReturnUnit, RvsModel, Time, TransformerModel,
    },
    run_config::{Recorded, RunConfig},
};

impl TransformerModel {
    /// The transformer for `task`, without returns.
    fn config(
        &self,
        task: &Task,
        recorded: Recorded,
        attention: AttentionConfig,
        head: HeadConfig,
    ) -> DecisionTransformerConfig {
        let longest = recorded.longest;
        let (reference, positions) = match task.observations {
            ObservationSpace::Pixels { .. } => {
                let max_timestep = longest.saturating_sub(1);
                let positions = match self.time {
                    Time::Episode => PositionsConfig::LocalAndGlobal { max_timestep },
                    Time::Context => PositionsConfig::Local,
                };
                (DecisionTransformerConfig::atari(max_timestep), positions)
            }
            ObservationSpace::Vectors { .. } => {
                let positions = match self.time {
                    Time::Episode => {
                        PositionsConfig::Timestep { horizon: longest, std: self.timestep_std }
                    }
                    Time::Context => PositionsConfig::Order,
                };
                (DecisionTransformerConfig::gym(longest), positions)
            }
        };
        DecisionTransformerConfig {
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            d_model: self.d_model,
            context_length: self.context_length,
            dropout: self.dropout,
            conditioning: None,
            positions,
            attention,
            head,
            ..reference
        }
    }
}

impl DecisionTransformerModel {
    /// The Decision Transformer for `task` and the returns in `recorded`.
    pub(crate) fn config(
        &self,
        task: &Task,
        recorded: Recorded,
        attention: AttentionConfig,
        head: HeadConfig,
    ) -> DecisionTransformerConfig {
        let average = AverageReturn { horizon: recorded.longest };
        let (return_range, average_return) = match self.return_unit {
            ReturnUnit::Scale => (None, None),
            ReturnUnit::Range => (Some(recorded.returns), None),
            ReturnUnit::Rate => (Some(recorded.rates), Some(average)),
        };
        DecisionTransformerConfig {
            conditioning: Some(ConditionerConfig {
                return_range,
                average_return,
                return_model: self.return_model(),
                top_percents: self.top_percents.0.clone(),
            }),
            ..self.transformer.config(task, recorded, attention, head)
        }
    }

    /// The model of the return distribution; `None` in a unit without bounds.
    fn return_model(&self) -> Option<ReturnModelConfig> {
        let has_bounds = self.return_unit != ReturnUnit::Scale;
        (has_bounds && self.return_head == ReturnHead::HlGauss).then(ReturnModelConfig::hl_gauss)
    }
}

impl PerceptronModel {
    /// The perceptron, without returns.
    fn config(&self, head: HeadConfig) -> PerceptronConfig {
        PerceptronConfig {
            n_layers: self.n_layers,
            width: self.d_model,
            context_length: self.context_length,
            dropout: self.dropout,
            head,
            conditioning: None,
        }
    }
}

impl ClonedModel {
    /// The model for `task`.
    pub(crate) fn config(
        &self,
        task: &Task,
        recorded: Recorded,
        attention: Option<AttentionConfig>,
        head: HeadConfig,
    ) -> ModelConfig {
        match self {
            Self::Transformer(model) => {
                let attention = attention.unwrap_or_default();
                ModelConfig::Transformer(model.config(task, recorded, attention, head))
            }
            Self::Perceptron(model) => ModelConfig::Perceptron(model.config(head)),
        }
    }
}

impl RvsModel {
    /// The perceptron for episodes as long as those in `recorded`.
    pub(crate) fn config(&self, recorded: Recorded, head: HeadConfig) -> PerceptronConfig {
        PerceptronConfig {
            conditioning: Some(ConditionerConfig {
                average_return: Some(AverageReturn { horizon: recorded.longest }),
                top_percents: self.top_percents.0.clone(),
                ..ConditionerConfig::default()
            }),
            ..self.perceptron.config(head)
        }
    }
}

impl RunConfig {
    /// Algorithm, model, head and attention as a part of a run's name: `linear`, `bc-tanh`,
    /// `top10-bc-perceptron-tanh`, `rvs-tanh`, `linear-attention-fourier4`, `cql4`.
    pub fn model_name(&self, algorithm: &AlgorithmConfig) -> String {
        let best = match self.data.top_percent {
            100.0 => String::new(),
            percent => format!("top{percent}-"),
        };
        let head = self.agent.head().map(HeadConfig::name).unwrap_or_default();
        let model = match &self.agent {
            AgentConfig::DecisionTransformer { .. } => head,
            AgentConfig::BehaviorCloning { model: ClonedModel::Perceptron(_), .. } => {
                format!("bc-perceptron-{head}")
            }
            AgentConfig::BehaviorCloning { .. } => format!("bc-{head}"),
            AgentConfig::Rvs { .. } => format!("rvs-{head}"),
            _ => algorithm.short_name(),
        };
        let attention = match self.agent.attention() {
            None | Some(AttentionConfig::SOFTMAX) => String::new(),
            Some(attention) => format!("-attention-{}", attention.name()),
        };
        format!("{best}{model}{attention}")
    }

    /// A short description of the agent, without its number of parameters.
    pub fn describe_model(&self, algorithm: &AlgorithmConfig) -> String {
        match algorithm.model() {
            None => algorithm.describe(),
            Some(model) => {
                format!("{}, context {}", algorithm.describe(), model.context_length())
            }
        }
    }
}
