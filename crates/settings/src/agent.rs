//! [`AgentConfig`]: an algorithm with its own keys.

use documented::DocumentedFields;
use overtone_agents::{AlgorithmKind, DiscreteCqlConfig, IqlConfig, RebracConfig, Td3BcConfig};
use overtone_model::{AttentionConfig, head::HeadConfig};
use serde::{Deserialize, Serialize};

use crate::{head::HeadKeys, positive::Percents};

/// An algorithm with its own keys. Sequence models have the sections `model`, `attention` and
/// `head`; other algorithms have a section of their name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "a section each, documented by its type")]
pub enum AgentConfig {
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
    /// Conservative Q-learning for discrete actions.
    DiscreteCql { discrete_cql: DiscreteCqlConfig },
    /// TD3+BC.
    Td3Bc { td3_bc: Td3BcConfig },
    /// Implicit Q-learning, with a head on discrete actions.
    Iql {
        iql: IqlConfig,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<HeadKeys>,
    },
    /// ReBRAC.
    Rebrac { rebrac: RebracConfig },
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

/// Help by key.
pub type Docs = Vec<(String, &'static str)>;

/// The help of a section's keys, from the docs of its fields.
pub fn section<T: DocumentedFields>(name: &str) -> Docs {
    let dot = if name.is_empty() { "" } else { "." };
    let fields = T::FIELD_NAMES.iter().zip(T::FIELD_DOCS);
    fields.map(|(field, doc)| (format!("{name}{dot}{field}"), *doc)).collect()
}

impl AgentConfig {
    /// The algorithm.
    pub fn kind(&self) -> AlgorithmKind {
        match self {
            Self::DecisionTransformer { .. } => AlgorithmKind::DecisionTransformer,
            Self::BehaviorCloning { .. } => AlgorithmKind::BehaviorCloning,
            Self::Rvs { .. } => AlgorithmKind::Rvs,
            Self::DiscreteCql { .. } => AlgorithmKind::DiscreteCql,
            Self::Td3Bc { .. } => AlgorithmKind::Td3Bc,
            Self::Iql { .. } => AlgorithmKind::Iql,
            Self::Rebrac { .. } => AlgorithmKind::Rebrac,
        }
    }

    /// The action head, if it has one.
    pub fn head(&self) -> Option<&HeadConfig> {
        match self {
            Self::DecisionTransformer { head, .. }
            | Self::BehaviorCloning { head, .. }
            | Self::Rvs { head, .. } => Some(&head.0),
            Self::Iql { head, .. } => head.as_ref().map(|head| &head.0),
            _ => None,
        }
    }

    /// Whether it learns recorded actions from their contexts, and no values.
    pub fn is_sequence_model(&self) -> bool {
        match self {
            Self::DecisionTransformer { .. } | Self::BehaviorCloning { .. } | Self::Rvs { .. } => {
                true
            }
            Self::DiscreteCql { .. }
            | Self::Td3Bc { .. }
            | Self::Iql { .. }
            | Self::Rebrac { .. } => false,
        }
    }

    /// The attention, of a transformer.
    pub fn attention(&self) -> Option<AttentionConfig> {
        match self {
            Self::DecisionTransformer { attention, .. } => Some(*attention),
            Self::BehaviorCloning { attention, .. } => *attention,
            _ => None,
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
            _ => None,
        }
    }

    /// Whether it learns values of unscaled rewards. Implicit Q-learning scales them itself.
    pub fn learns_values_of_rewards(&self) -> bool {
        !self.is_sequence_model() && !matches!(self, Self::Iql { .. })
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
            Self::DiscreteCql { .. } => section::<DiscreteCqlConfig>("discrete_cql"),
            Self::Td3Bc { .. } => section::<Td3BcConfig>("td3_bc"),
            Self::Iql { .. } => section::<IqlConfig>("iql"),
            Self::Rebrac { .. } => section::<RebracConfig>("rebrac"),
        }
    }
}

const KIND: &str = "Model of behavior_cloning: transformer, or perceptron (a multilayer perceptron \
                    on the last observations).";
