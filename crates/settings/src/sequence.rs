//! [`SequenceConfig`]: an algorithm that learns recorded actions, by the keys of its model. What the
//! keys leave open, the task and the recorded data decide ([`Recorded`]).

use documented::DocumentedFields;
use overtone_agents::AlgorithmKind;
use overtone_core::{ObservationSpace, Task};
use overtone_model::{
    AttentionConfig, AverageReturn, ConditionerConfig, DecisionTransformerConfig, ModelConfig,
    PerceptronConfig, ReturnModelConfig, head::HeadConfig, positions::PositionsConfig,
};
use serde::{Deserialize, Serialize};

use crate::{
    docs::{Docs, section},
    head::HeadKeys,
    positive::Percents,
};

/// An algorithm that learns recorded actions, by the sections `model`, `attention` and `head`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "a section each, documented by its type")]
pub enum SequenceConfig {
    /// A Decision Transformer.
    DecisionTransformer {
        model: DecisionTransformerModel,
        attention: AttentionConfig,
        head: HeadKeys,
    },
    /// Behaviour cloning, by a transformer or a perceptron.
    BehaviorCloning {
        model: ClonedModel,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attention: Option<AttentionConfig>,
        head: HeadKeys,
    },
    /// RvS-R.
    Rvs { model: RvsModel, head: HeadKeys },
}

/// Statistics of the dataset that size a model.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Steps of its longest episode; for vectors the step limit of the recording, if known.
    pub longest: usize,
    /// 5th and 95th percentiles of the returns-to-go of its steps, divided by the return scale.
    pub returns: [f32; 2],
    /// The same percentiles of the [average return-to-go](overtone_model::AverageReturn).
    pub rates: [f32; 2],
}

impl Recorded {
    /// Placeholder for validation.
    pub const ANY: Self = Self { longest: 1000, returns: [-1.0, 1.0], rates: [-1.0, 1.0] };
}

/// A transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct TransformerModel {
    /// Context length in timesteps. The reference uses 30 on frames and 20 on vectors. On vectors a
    /// short run does better with 5 (docs/results/short-runs.md).
    pub context_length: usize,
    /// Transformer blocks, or hidden layers; the reference uses 6 on frames and 3 on vectors.
    pub n_layers: usize,
    /// Attention heads (transformer only); the reference uses 8 on frames and 1 on vectors.
    pub n_heads: usize,
    /// Width of a token, or of a hidden layer; the reference uses 128. The default is 64 for
    /// discrete actions with observations of at most 8 numbers.
    pub d_model: usize,
    /// Timestep encoding of a token (transformer only). episode: learned embedding of the timestep
    /// in the episode (on frames the context's timestep), as in the reference. context: only the
    /// position in the context; the embedding overfits small datasets (docs/results/short-runs.md).
    pub time: Time,
    /// Initial standard deviation of the timestep embedding (vectors with time=episode only). The
    /// reference's 1 acts as noise on the observations until every timestep was trained often
    /// (docs/results/d4rl-like.md).
    pub timestep_std: f64,
    /// Dropout of embeddings, attention and residuals; the reference uses 0.1. A short run on
    /// vectors uses 0.
    pub dropout: f64,
}

/// A Decision Transformer: a transformer that is conditioned on returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
pub struct DecisionTransformerModel {
    /// The transformer.
    #[serde(flatten)]
    pub transformer: TransformerModel,
    /// Unit of the conditioning returns (decision_transformer only). scale: divided by
    /// data.return_scale, as in the reference. range: mapped from the 5th and 95th percentiles of
    /// the dataset to -1 and 1, where a layer norm can still distinguish high returns
    /// (docs/results/short-runs.md). rate: the average return-to-go per remaining step, as in RvS-R,
    /// mapped like range and clamped to the dataset's range; unlike a return-to-go, it does not
    /// reveal the timestep (docs/results/conditioning.md).
    pub return_unit: ReturnUnit,
    /// Model that predicts the return distribution from an observation (decision_transformer on
    /// vectors only). evaluation.return_quantile limits the target with it (docs/results/conditioning.md).
    /// none; hl_gauss: a softmax over 120 bins. Requires return_unit=range or rate.
    pub return_head: ReturnHead,
    /// Top percentages of the dataset by return to condition on (decision_transformer and rvs
    /// only). Half of the contexts are drawn from the episodes of highest return that make up 10,
    /// 50 or 100 % of the steps, each equally often. They are conditioned on that percentage
    /// instead of a return, so that the agent can imitate them (evaluation.top_percent,
    /// docs/results/conditioning.md). none: every context is conditioned on its return, as in the
    /// reference.
    pub top_percents: Percents,
}

/// The model of behaviour cloning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClonedModel {
    /// A transformer.
    Transformer(TransformerModel),
    /// A perceptron.
    Perceptron(PerceptronModel),
}

/// A perceptron on the last observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct PerceptronModel {
    /// Context length in timesteps.
    pub context_length: usize,
    /// Hidden layers.
    pub n_layers: usize,
    /// Width of a hidden layer.
    pub d_model: usize,
    /// Dropout of hidden layers.
    pub dropout: f64,
}

/// The model of RvS-R.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
pub struct RvsModel {
    /// The perceptron.
    #[serde(flatten)]
    pub perceptron: PerceptronModel,
    /// Top percentages, as of decision_transformer.
    pub top_percents: Percents,
}

/// Timestep encoding of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// The timestep in the episode; on frames the context's timestep.
    Episode,
    /// The position in the context.
    Context,
}

/// Unit of the returns that a Decision Transformer is conditioned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnUnit {
    /// Divided by the data's return scale.
    Scale,
    /// Mapped from the dataset's range to [-1, 1].
    Range,
    /// The average return-to-go per remaining step, mapped from the dataset's range to [-1, 1].
    Rate,
}

/// A Decision Transformer's model of the return distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnHead {
    /// No model.
    None,
    /// A softmax over bins, trained on Gaussians around the achieved return.
    HlGauss,
}

impl SequenceConfig {
    /// The algorithm.
    pub fn kind(&self) -> AlgorithmKind {
        match self {
            Self::DecisionTransformer { .. } => AlgorithmKind::DecisionTransformer,
            Self::BehaviorCloning { .. } => AlgorithmKind::BehaviorCloning,
            Self::Rvs { .. } => AlgorithmKind::Rvs,
        }
    }

    /// The action head.
    pub fn head(&self) -> &HeadConfig {
        match self {
            Self::DecisionTransformer { head, .. }
            | Self::BehaviorCloning { head, .. }
            | Self::Rvs { head, .. } => &head.0,
        }
    }

    /// The attention, of a transformer.
    pub fn attention(&self) -> Option<AttentionConfig> {
        match self {
            Self::DecisionTransformer { attention, .. } => Some(*attention),
            Self::BehaviorCloning { attention, .. } => *attention,
            Self::Rvs { .. } => None,
        }
    }

    /// The transformer.
    pub fn transformer(&self) -> Option<&TransformerModel> {
        match self {
            Self::DecisionTransformer { model, .. } => Some(&model.transformer),
            Self::BehaviorCloning { model: ClonedModel::Transformer(model), .. } => Some(model),
            _ => None,
        }
    }

    /// The top percentages that it can be conditioned on, if the algorithm has them.
    pub fn top_percents(&self) -> Option<&Percents> {
        match self {
            Self::DecisionTransformer { model, .. } => Some(&model.top_percents),
            Self::Rvs { model, .. } => Some(&model.top_percents),
            Self::BehaviorCloning { .. } => None,
        }
    }

    /// Part of a run's name: `linear`, `bc-tanh`, `rvs-tanh`, `linear-attention-fourier4`.
    pub fn short_name(&self) -> String {
        let head = self.head().name();
        let model = match self {
            Self::DecisionTransformer { .. } => head,
            Self::BehaviorCloning { model: ClonedModel::Perceptron(_), .. } => {
                format!("bc-perceptron-{head}")
            }
            Self::BehaviorCloning { .. } => format!("bc-{head}"),
            Self::Rvs { .. } => format!("rvs-{head}"),
        };
        match self.attention() {
            None | Some(AttentionConfig::SOFTMAX) => model,
            Some(attention) => format!("{model}-attention-{}", attention.name()),
        }
    }

    /// The model for `task` and data with the statistics `recorded`.
    pub fn model(&self, task: &Task, recorded: Recorded) -> ModelConfig {
        let (head, conditioning) = (self.head().clone(), self.conditioner(recorded));
        match self {
            Self::DecisionTransformer {
                model: DecisionTransformerModel { transformer, .. },
                ..
            }
            | Self::BehaviorCloning { model: ClonedModel::Transformer(transformer), .. } => {
                let attention = self.attention().unwrap_or_default();
                let config = transformer.config(task, recorded.longest);
                let config = DecisionTransformerConfig { attention, head, conditioning, ..config };
                ModelConfig::Transformer(config)
            }
            Self::BehaviorCloning { model: ClonedModel::Perceptron(perceptron), .. }
            | Self::Rvs { model: RvsModel { perceptron, .. }, .. } => {
                let PerceptronModel { context_length, n_layers, d_model, dropout } = *perceptron;
                ModelConfig::Perceptron(PerceptronConfig {
                    n_layers,
                    width: d_model,
                    context_length,
                    dropout,
                    head,
                    conditioning,
                })
            }
        }
    }

    /// The inputs from returns; `None` for behaviour cloning.
    fn conditioner(&self, recorded: Recorded) -> Option<ConditionerConfig> {
        let average = AverageReturn { horizon: recorded.longest };
        let top_percents = self.top_percents()?.0.clone();
        let Self::DecisionTransformer { model, .. } = self else {
            return Some(ConditionerConfig {
                average_return: Some(average),
                top_percents,
                ..ConditionerConfig::default()
            });
        };
        let (return_range, average_return) = match model.return_unit {
            ReturnUnit::Scale => (None, None),
            ReturnUnit::Range => (Some(recorded.returns), None),
            ReturnUnit::Rate => (Some(recorded.rates), Some(average)),
        };
        // In a unit without bounds there is no model of the returns.
        let has_model = return_range.is_some() && model.return_head == ReturnHead::HlGauss;
        Some(ConditionerConfig {
            return_range,
            average_return,
            return_model: has_model.then(ReturnModelConfig::hl_gauss),
            top_percents,
        })
    }

    /// The help of its keys, without heads and attentions.
    pub fn docs(&self) -> Docs {
        match self {
            Self::DecisionTransformer { .. } => {
                [section::<TransformerModel>("model"), section::<DecisionTransformerModel>("model")]
                    .concat()
            }
            Self::BehaviorCloning { .. } => [
                vec![("model.kind".to_owned(), KIND)],
                section::<TransformerModel>("model"),
                section::<PerceptronModel>("model"),
            ]
            .concat(),
            Self::Rvs { .. } => {
                [section::<PerceptronModel>("model"), section::<RvsModel>("model")].concat()
            }
        }
    }
}

const KIND: &str = "Model of behavior_cloning: transformer, or perceptron (a multilayer perceptron \
                    on the last observations).";

impl TransformerModel {
    /// The transformer for `task` and episodes of up to `longest` steps; the reference's in all that
    /// these keys leave open.
    fn config(&self, task: &Task, longest: usize) -> DecisionTransformerConfig {
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
            positions,
            ..reference
        }
    }
}
