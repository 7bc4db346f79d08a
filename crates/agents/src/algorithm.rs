//! [`AlgorithmConfig`]: the list of algorithms. A new one is a file that implements
//! [`AlgorithmOptions`] for its options, and a line here.

use overtone_core::Task;
use overtone_train::{Checkpoint, Job, TrainError, Training};
use serde::{Deserialize, Serialize};

use crate::{
    discrete_cql::DiscreteCqlConfig,
    iql::IqlConfig,
    options::AlgorithmOptions,
    rebrac::RebracConfig,
    rvs::RvsConfig,
    sequence_model::{BehaviorCloningConfig, DecisionTransformerOptions},
    td3_bc::Td3BcConfig,
};

/// Makes of the list the enum that stores whichever was chosen.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:literal $variant:ident($options:ty) $presets:expr,)*) => {
        /// Which algorithm, with its own options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "algorithm")]
        pub enum AlgorithmConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant($options),)*
        }

        impl AlgorithmConfig {
            /// Every algorithm's name, and what its preset changes of the defaults, as TOML. An
            /// algorithm with options of its own has their keys there, each with its reason, in
            /// a section of its name.
            pub const ALL: &'static [(&'static str, &'static str)] = &[$(($name, $presets)),*];

            /// Training of an agent for `task`, of whatever algorithm: it learns real-valued
            /// actions in [-1, 1], and [`Agent::policy`](crate::Agent::policy) scales what it does back.
            ///
            /// # Errors
            /// When the options describe no agent, or `resume` belongs to another run.
            pub fn trainer(
                &self,
                task: &Task,
                job: Job,
                resume: Option<&Checkpoint>,
            ) -> Result<Box<dyn Training>, TrainError> {
                let job = Job { data: job.data.with_actions_of(&task.actions), ..job };
                (**self).trainer(task, job, resume)
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
    /// Logged actions, from returns-to-go, observations and actions before.
    "decision_transformer" DecisionTransformer(DecisionTransformerOptions) "",
    /// Logged actions, from observations and actions before.
    "behavior_cloning" BehaviorCloning(BehaviorCloningConfig) "",
    /// Logged actions, from the observation and the average return to go.
    "rvs" Rvs(RvsConfig) include_str!("rvs.toml"),
    /// Values of a list of actions.
    "discrete_cql" DiscreteCql(DiscreteCqlConfig) include_str!("discrete_cql.toml"),
    /// An actor of real-valued actions, by values and near the recorded ones.
    "td3_bc" Td3Bc(Td3BcConfig) include_str!("td3_bc.toml"),
    /// The better of the recorded real-valued actions.
    "iql" Iql(IqlConfig) include_str!("iql.toml"),
    /// An actor of real-valued actions, held near the recorded ones twice.
    "rebrac" Rebrac(RebracConfig) include_str!("rebrac.toml"),
}
