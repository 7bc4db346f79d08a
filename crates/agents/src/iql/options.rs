//! The options of implicit Q-learning, and the algorithm that follows from them.

use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_model::{ModelError, error::config_error, head::HeadConfig};
use overtone_train::{Job, TrainError, Trainer, Training, TrainingData};
use serde::{Deserialize, Serialize};

use super::{Continuous, Discrete, InChunks, Iql, continuous};
use crate::{
    acting::ActingNetwork,
    options::{AlgorithmOptions, Docs, fields},
    value::{
        Rescaling,
        keys::{check_fractions, check_n_steps, check_positive, has_rare_rewards, steps_for},
        network::Hidden,
    },
};

/// The name after `algorithm=`, and the name of the options' section.
pub(super) const NAME: &str = "iql";
/// The most actions of a chunk.
const LARGEST_CHUNK: usize = 100;
/// The most chunks of a target if nothing else is given. With eight, IQL solved 2 % of `scene`.
const MOST_CHUNKS: usize = 4;
/// `u τ (1 − γⁿ)` from which on `u` updates leave little of an error that all values share: a part of
/// `e⁻⁷`, or 1 in 1,100.
const ENOUGH: f64 = 7.0;

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct IqlConfig {
    /// τ: expectile of the values of recorded actions, from 0.5 (their mean) towards 1 (their
    /// best); the paper's 0.7.
    pub expectile: f64,
    /// β: how much more weight better actions have; 0 clones all actions. The paper's 3 is for a
    /// million steps. After minutes of training, 3 had a lower return than 1 on seven datasets of
    /// twelve, and less than half on three (docs/results/d4rl-like.md).
    pub beta: f64,
    /// Discount of later rewards. 0: 0.998 with chunks of actions, else 0.99. On `pointmaze-medium`, whose
    /// goal is 200 to 300 steps away, 0.99 solves all or none of the episodes, by seed, and 0.998 all; on
    /// `scene`, where the way leads through lower rewards, 0.995 solves one of 20 and 0.998 30 %, with
    /// critics and targets of one chunk (docs/results/public.md).
    pub gamma: f64,
    /// Actions that the agent chooses at once, and plays one after the other (continuous actions only).
    /// With more than 1, values of observations alone are learned, without critics. 0: 5 if rewards rarely
    /// change (at most at one step in twenty, such as -1 until the task is solved), else 1. On two public
    /// tasks with such rewards, chunks of 5 solve most episodes, and 1 none (docs/results/public.md).
    pub chunk_size: usize,
    /// The most steps whose rewards a target has before the value that continues it, at least those of a
    /// chunk. With more, values arrive in fewer updates, and belong less to the agent's actions. 0: with
    /// chunks, as few chunks as the updates allow (10 steps after 18,000 updates, 5 after 36,000;
    /// docs/results/public.md), else 1. On `scene`, 10 solved 55 % and 5 solved 30 % after 3 minutes (four
    /// seeds, with critics), but 24 and 90 % after 20 (one).
    pub n_steps: usize,
    /// Rate of the target networks' running average. 0: 0.02 with chunks of actions, else 0.005. On
    /// `pointmaze-medium`, chunks solved 20 of 20 episodes with 0.02 after 16,000 updates, and 27 of 50
    /// with 0.005 after 21,700.
    pub target_rate: f64,
    /// Hidden layers of the actor, of each critic and of the value (vectors only; frames have one
    /// after the convolutions).
    pub n_layers: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
    /// Whether observations are normalized.
    pub normalize: bool,
    /// Whether rewards are multiplied by 1000 / (largest - smallest episode return of the data), as
    /// in the paper on locomotion tasks.
    pub scale_rewards: bool,
}

impl Default for IqlConfig {
    fn default() -> Self {
        Self {
            expectile: 0.7,
            beta: 1.0,
            gamma: 0.0,
            chunk_size: 0,
            n_steps: 0,
            target_rate: 0.0,
            n_layers: 2,
            hidden: 256,
            normalize: true,
            scale_rewards: true,
        }
    }
}

impl IqlConfig {
    /// The same options with the discount and the rate of the targets that follow from the chunks, and with
    /// targets of at least a chunk: no key is 0 that stands for another number.
    pub(super) fn resolved(&self) -> Self {
        let (chunk_size, in_chunks) = (self.chunk_size.max(1), self.chunk_size > 1);
        let or = |value: f64, with_chunks: f64, without: f64| match value {
            0.0 if in_chunks => with_chunks,
            0.0 => without,
            value => value,
        };
        Self {
            gamma: or(self.gamma, 0.998, 0.99),
            chunk_size,
            n_steps: self.n_steps.max(chunk_size),
            target_rate: or(self.target_rate, 0.02, 0.005),
            ..self.clone()
        }
    }

    /// Steps of a target for a run of so many updates: the fewest chunks of these [resolved](Self::resolved)
    /// options after which its updates leave little of an error that all values share.
    fn steps_of_target(&self, n_updates: u64) -> usize {
        let moves = n_updates as f64 * self.target_rate;
        let is_enough = |n: &usize| moves * (1.0 - self.gamma.powi(*n as i32)) >= ENOUGH;
        let most = MOST_CHUNKS * self.chunk_size;
        (self.chunk_size..most).step_by(self.chunk_size).find(is_enough).unwrap_or(most)
    }

    pub(super) fn rescaling(&self, data: &TrainingData) -> Rescaling {
        Rescaling::new(data.dataset().normalization(), self.normalize)
    }

    pub(super) fn layers(&self) -> Hidden {
        Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false }
    }
}

/// Options of the algorithm for one kind of actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IqlOptions {
    /// Its own keys.
    pub config: IqlConfig,
    /// The actor's head on discrete actions; `None` for continuous actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadConfig>,
}

impl IqlOptions {
    /// The same options for data with or without rare rewards and a run of so many updates: each key has
    /// the number that it stands for, so a checkpoint says what its agent learned with.
    #[must_use]
    pub fn for_run(&self, are_rare: bool, n_updates: u64) -> Self {
        let chunk_size = match self.head {
            None => steps_for(self.config.chunk_size, are_rare),
            Some(_) => self.config.chunk_size,
        };
        let mut config = IqlConfig { chunk_size, ..self.config.clone() }.resolved();
        if self.config.n_steps == 0 && config.chunk_size > 1 {
            config.n_steps = config.steps_of_target(n_updates);
        }
        Self { config, head: self.head.clone() }
    }
}

impl AlgorithmOptions for IqlOptions {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        let Self { config, head } = self;
        check_positive(NAME, &[("beta", config.beta)])?;
        config.layers().check(NAME)?;
        let keys = [
            ("expectile", config.expectile),
            ("gamma", config.gamma),
            ("target_rate", config.target_rate),
        ];
        check_fractions(NAME, &keys)?;
        check_n_steps(NAME, config.n_steps.max(1))?;
        if config.chunk_size > LARGEST_CHUNK {
            let expected = format!("must lie in 0 to {LARGEST_CHUNK}");
            return Err(config_error("iql.chunk_size", config.chunk_size, expected));
        }
        match (head, actions) {
            (Some(_), ActionSpace::Discrete { .. }) if config.chunk_size > 1 => {
                let expected = "must be 0 or 1, because the task's actions are discrete";
                Err(config_error("iql.chunk_size", config.chunk_size, expected))
            }
            (Some(head), ActionSpace::Discrete { .. }) => head.validate(actions),
            (None, ActionSpace::Continuous { .. }) => {
                continuous::widths(observations, actions).map(drop)
            }
            (Some(head), ActionSpace::Continuous { .. }) => {
                let expected = "must not be set, because the task's actions are continuous";
                Err(config_error("head", head.name(), expected))
            }
            (None, ActionSpace::Discrete { .. }) => {
                let expected = "must be set, because the task's actions are discrete";
                Err(config_error("head", "none", expected))
            }
        }
    }

    fn describe(&self) -> String {
        let IqlConfig { expectile, beta, hidden, chunk_size, n_steps, .. } = self.config;
        let head = self.head.as_ref().map(|head| format!("{}, ", head.describe()));
        let head = head.unwrap_or_default();
        let chunks = match chunk_size {
            ..=1 => String::new(),
            n => format!("chunks of {n} actions, "),
        };
        let targets = match n_steps {
            ..=1 => String::new(),
            n => format!("targets of {n} steps, "),
        };
        format!(
            "implicit Q-learning, {head}{chunks}{targets}expectile {expectile}, beta {beta}, layers of {hidden}"
        )
    }

    fn short_name(&self) -> String {
        let head = self.head.as_ref().map(|head| format!("-{}", head.name()));
        format!("iql{}", head.unwrap_or_default())
    }

    fn scales_rewards(&self) -> bool {
        true
    }

    fn docs(&self) -> Docs {
        fields::<IqlConfig>()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["chunk_size", "n_layers", "hidden", "normalize"]
    }

    /// A continuous action is the mean, without the deviation.
    fn network(&self) -> ActingNetwork<'_> {
        let (hidden, is_normalized) = (self.config.layers(), self.config.normalize);
        match &self.head {
            None => {
                let chunk_size = self.config.chunk_size.max(1);
                ActingNetwork::Tanh { prefix: "mean.", hidden, is_normalized, chunk_size }
            }
            Some(head) => ActingNetwork::Categorical { hidden, head, is_normalized },
        }
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        let Task { observations, actions, .. } = task;
        let data = job.data.dataset();
        let n_updates = job.config.n_updates(data.n_transitions());
        let Self { config, head } = self.for_run(has_rare_rewards(data), n_updates);
        Ok(match head {
            None if config.chunk_size > 1 => {
                let chunks = actions.in_chunks(config.chunk_size);
                let networks = InChunks::new(observations, &chunks);
                Box::new(Trainer::new(Iql::new(config, networks), job)?)
            }
            None => {
                let networks = Continuous::new(observations, actions);
                Box::new(Trainer::new(Iql::new(config, networks), job)?)
            }
            Some(head) => {
                let networks = Discrete::new(observations, actions, head);
                Box::new(Trainer::new(Iql::new(config, networks), job)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_zero_follow_from_chunks_and_updates() {
        let of = |chunk_size, gamma, n_steps, n_updates| {
            let config = IqlConfig { chunk_size, gamma, n_steps, ..IqlConfig::default() };
            let config = IqlOptions { config, head: None }.for_run(true, n_updates).config;
            (config.gamma, config.n_steps, config.target_rate)
        };
        assert_eq!(of(1, 0.0, 0, 18_000), (0.99, 1, 0.005));
        assert_eq!(of(1, 0.0, 3, 18_000), (0.99, 3, 0.005));
        // 18,000 · 0.02 · (1 − 0.998¹⁰) = 7.1, and 3.6 with five steps.
        assert_eq!(of(0, 0.0, 0, 18_000), (0.998, 10, 0.02));
        assert_eq!(of(0, 0.0, 0, 36_000), (0.998, 5, 0.02));
        assert_eq!(of(0, 0.0, 0, 100), (0.998, 20, 0.02));
        assert_eq!(of(5, 0.9, 0, 18_000), (0.9, 5, 0.02));
        // No less than a chunk.
        assert_eq!(of(5, 0.0, 2, 18_000), (0.998, 5, 0.02));
    }
}
