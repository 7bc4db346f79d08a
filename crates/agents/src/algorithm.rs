//! [`AlgorithmConfig`]: the list of algorithms. A new algorithm is a file that implements
//! [`AlgorithmOptions`] for its options, and a line here.

use overtone_core::Task;
use overtone_model::ModelConfig;
use overtone_train::{Job, TrainError, Training};
use serde::{Deserialize, Serialize};

use crate::{
    discrete_cql::DiscreteCqlConfig,
    iql::IqlOptions,
    options::AlgorithmOptions,
    rebrac::RebracConfig,
    rvs::RvsConfig,
    sequence_model::{BehaviorCloningConfig, DecisionTransformerOptions},
    td3_bc::Td3BcConfig,
};

/// Generates the enum of the algorithms' options from the list.
macro_rules! algorithms {
    ($($(#[doc = $doc:literal])* $name:literal $title:literal $variant:ident($options:ty),)*) => {
        /// An algorithm, without its options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AlgorithmKind { $($(#[doc = $doc])* $variant,)* }

        impl AlgorithmKind {
            /// All algorithms.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name after `algorithm=`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its name in papers.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// A sentence about the algorithm.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*),)* }
            }

            /// The algorithm with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }
        }

        /// An algorithm with its options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "algorithm")]
        pub enum AlgorithmConfig {
            $($(#[doc = $doc])* #[serde(rename = $name)] $variant($options),)*
        }

        impl AlgorithmConfig {
            /// The algorithm, without its options.
            pub fn kind(&self) -> AlgorithmKind {
                match self { $(Self::$variant(_) => AlgorithmKind::$variant,)* }
            }

            /// Training of an agent for `task` with this algorithm. Continuous actions are learned
            /// in [-1, 1], and [`Agent::policy`](crate::Agent::policy) scales the actions back.
            ///
            /// # Errors
            /// When the options are not valid for the task, or the checkpoint belongs to another run.
            pub fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
                let job = Job { data: job.data.with_actions_of(&task.actions), ..job };
                (**self).trainer(task, job)
            }
        }

        impl std::ops::Deref for AlgorithmConfig {
            type Target = dyn AlgorithmOptions;

            fn deref(&self) -> &Self::Target {
                match self { $(Self::$variant(options) => options,)* }
            }
        }
    };
}

algorithms! {
    /// predicts recorded actions from previous returns-to-go, observations and actions.
    "decision_transformer" "Decision Transformer" DecisionTransformer(DecisionTransformerOptions),
    /// the same without returns; the simplest algorithm with model.kind=perceptron.
    "behavior_cloning" "behaviour cloning" BehaviorCloning(BehaviorCloningConfig),
    /// RvS-R, a perceptron that predicts recorded actions from the observation and the average
    /// return-to-go, or imitates the top percent.
    "rvs" "RvS-R" Rvs(RvsConfig),
    /// conservative Q-learning, for discrete actions.
    "discrete_cql" "conservative Q-learning" DiscreteCql(DiscreteCqlConfig),
    /// TD3+BC, an actor of continuous actions that maximizes values and stays near the recorded
    /// ones.
    "td3_bc" "TD3+BC" Td3Bc(Td3BcConfig),
    /// implicit Q-learning, imitates the better of the recorded actions.
    "iql" "implicit Q-learning" Iql(IqlOptions),
    /// ReBRAC, an actor of continuous actions, with two penalties on distance from the recorded
    /// ones.
    "rebrac" "ReBRAC" Rebrac(RebracConfig),
}

impl AlgorithmConfig {
    /// The same algorithm for data with or without rare rewards and a run of so many updates: options that
    /// follow from them have their values. With weights of the agent `like`, its chunks of actions are
    /// kept.
    #[must_use]
    pub fn for_run(&self, are_rare: bool, n_updates: u64, like: Option<&Self>) -> Self {
        match (self, like) {
            (Self::Rebrac(config), _) => Self::Rebrac(config.for_rewards(are_rare)),
            (Self::Iql(options), like) => {
                let mut options = options.clone();
                if let (0, Some(Self::Iql(like))) = (options.config.chunk_size, like) {
                    options.config.chunk_size = like.config.chunk_size.max(1);
                }
                Self::Iql(options.for_run(are_rare, n_updates))
            }
            (other, _) => other.clone(),
        }
    }

    /// The algorithm that learns recorded actions with `model`. Behaviour cloning has any model.
    pub fn of_model(kind: AlgorithmKind, model: ModelConfig) -> Self {
        match (kind, model) {
            (AlgorithmKind::DecisionTransformer, ModelConfig::Transformer(model)) => {
                Self::DecisionTransformer(DecisionTransformerOptions(model))
            }
            (AlgorithmKind::Rvs, ModelConfig::Perceptron(model)) => Self::Rvs(RvsConfig(model)),
            (_, model) => Self::BehaviorCloning(BehaviorCloningConfig(model)),
        }
    }
}
