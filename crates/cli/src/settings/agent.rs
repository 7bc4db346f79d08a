//! [`AgentConfig`]: an algorithm with its own keys.

use documented::DocumentedFields;
use overtone_agents::{AlgorithmKind, DiscreteCqlConfig, IqlConfig, RebracConfig, Td3BcConfig};
use overtone_model::{AttentionConfig, head::HeadConfig};
use serde::{Deserialize, Serialize};

use super::{HeadKeys, Percents};

/// Which algorithm, with its own keys: those of a sequence model in the sections `model`,
/// `attention` and `head`, those of other algorithms in a section of their name.
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
    /// Implicit Q-learning.
    Iql { iql: IqlConfig },
    /// ReBRAC.
    Rebrac { rebrac: RebracConfig },
}

/// A transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct TransformerModel {
    /// Timesteps that the model sees; the reference's 30 on frames, 20 on vectors, where a short
    /// run does better with 5 (docs/results/context.md).
    pub context_length: usize,
    /// Transformer blocks, or hidden layers; the reference's 6 on frames, 3 on vectors.
    pub n_layers: usize,
    /// Transformer: attention heads; the reference's 8 on frames, 1 on vectors.
    pub n_heads: usize,
    /// Width of a token, or of a hidden layer; the reference's 128; 64 for observations of at most
    /// 8 numbers with discrete actions.
    pub d_model: usize,
    /// Transformer: the position that a token carries. episode: its timestep in the episode (on
    /// frames its context's) by a learned table, the reference's. context: only its place in the
    /// context; a table overfits short recordings (docs/results/tokens.md).
    pub time: Time,
    /// Vectors, time=episode: standard deviation of the transformer's table of timesteps before
    /// training. The reference's 1 is noise on the observations until every timestep was trained
    /// often (docs/results/d4rl-like.md).
    pub timestep_std: f64,
    /// Dropout of embeddings, attention and residuals; the reference's 0.1, 0 for a short run on
    /// vectors.
    pub dropout: f64,
}

/// A Decision Transformer: a transformer that is conditioned on returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
pub struct DecisionTransformerModel {
    /// The transformer.
    #[serde(flatten)]
    pub transformer: TransformerModel,
    /// decision_transformer: unit of the returns that the model is conditioned on. scale: divided
    /// by data.return_scale, the reference's. range: by their place between those that 5 % and
    /// 95 % of the recorded steps do not exceed, -1 and 1, where a layer norm can still tell high
    /// returns apart (docs/results/tokens.md). rate: the average return-to-go per remaining step,
    /// as in RvS-R, by its place among the recorded ones and never beyond them; a return-to-go
    /// falls with each reward, which tells the time (docs/results/rate.md).
    pub return_unit: ReturnUnit,
    /// Vectors, decision_transformer: learns the distribution of the return from an observation
    /// alone, which bounds the target (evaluation.return_quantile; docs/results/rate.md). none;
    /// hl_gauss: a softmax over 120 bins; fourier, gmm or gaussian: a density by that head for a
    /// continuous value. Needs return_unit=range or rate.
    pub return_head: ReturnHead,
    /// decision_transformer, rvs: half of the contexts are drawn from the best episodes, each as
    /// often from those that make up 10, 50 or 100 % of the recorded steps, and conditioned on that
    /// percentage instead of a return, so that the agent can imitate them
    /// (evaluation.top_percent; docs/results/best-shares.md). none: every context is conditioned
    /// on its return, as in the reference.
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

/// Hidden layers on the last observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct PerceptronModel {
    /// Timesteps that the model sees.
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
    /// As of decision_transformer.
    pub top_percents: Percents,
}

/// The position that a token carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// Its timestep in the episode; on frames its context's.
    Episode,
    /// Its place in the context.
    Context,
}

/// Unit of the returns that a Decision Transformer is conditioned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnUnit {
    /// Divided by the data's return scale.
    Scale,
    /// By their place among the recorded ones.
    Range,
    /// The average return-to-go per remaining step, by its place among the recorded ones.
    Rate,
}

/// How a Decision Transformer learns the distribution of the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnHead {
    /// Not at all.
    None,
    /// As a softmax over bins, of Gaussians around the achieved return.
    HlGauss,
    /// As a density by a Fourier series.
    Fourier,
    /// As a mixture of Gaussians.
    Gmm,
    /// As a Gaussian.
    Gaussian,
}

/// Help by key.
pub type Docs = Vec<(String, &'static str)>;

/// The help of a section's keys: what the docs of its fields say.
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

    /// The head, of a sequence model.
    pub fn head(&self) -> Option<&HeadConfig> {
        match self {
            Self::DecisionTransformer { head, .. }
            | Self::BehaviorCloning { head, .. }
            | Self::Rvs { head, .. } => Some(&head.0),
            _ => None,
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

    /// The percentages of the best episodes that it may imitate, where it can.
    pub fn top_percents(&self) -> Option<&Percents> {
        match self {
            Self::DecisionTransformer { model, .. } => Some(&model.top_percents),
            Self::Rvs { model, .. } => Some(&model.top_percents),
            _ => None,
        }
    }

    /// Whether it learns values, of rewards as the data has them: implicit Q-learning scales them
    /// itself.
    pub fn learns_values_of_rewards(&self) -> bool {
        match self {
            Self::DecisionTransformer { .. }
            | Self::BehaviorCloning { .. }
            | Self::Rvs { .. }
            | Self::Iql { .. } => false,
            Self::DiscreteCql { .. } | Self::Td3Bc { .. } | Self::Rebrac { .. } => true,
        }
    }

    /// The help of its keys, but for those of heads and attentions.
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

const KIND: &str = "behavior_cloning: transformer; or perceptron: hidden layers on the last \
                    observations.";
