//! The settings of runs and commands: words `key=value`, the configuration of a run that they
//! describe, and the tasks, runs and checkpoints that they name.
//!
//! One typed tree is the configuration, [`RunConfig`]. [`defaults()`] returns the values for a
//! task, an algorithm and a profile; words are then set one by one. This crate knows no command.

#[macro_use]
extern crate overtone_console;

mod agent;
mod auto_or;
mod chosen;
mod defaults;
mod docs;
mod error;
mod head;
mod help;
mod meant;
pub mod options;
mod positive;
mod recording;
mod resolve;
mod run_config;
pub mod runs;
mod sequence;
mod source;
pub mod suites;
mod targets;
#[cfg(test)]
mod tests;
mod words;

pub use self::agent::AgentConfig;
pub use self::auto_or::AutoOr;
pub use self::chosen::Choosable;
pub use self::defaults::{Choices, defaults};
pub use self::error::ConfigError;
pub use self::head::HeadKeys;
pub use self::help::help;
pub use self::meant::nearest_key;
pub use self::positive::{Percents, Positive, Shares};
pub use self::recording::{datasets_of, is_path};
pub use self::resolve::{chosen_of, device_of, named_tasks};
pub use self::run_config::{
    DataConfig, EvaluationConfig, FORMAT, Profile, Resume, RunConfig, SelectionKind,
};
pub use self::sequence::{
    ClonedModel, DecisionTransformerModel, PerceptronModel, Recorded, ReturnHead, ReturnUnit,
    RvsModel, SequenceConfig, Time, TransformerModel,
};
pub use self::targets::targets;
pub use self::words::known_keys;
