//! Playing with a model of vectors: a batch of agents, each with its own history.
//!
//! An agent remembers the last `context_length` timesteps of its episode, with observations
//! normalized and returns-to-go scaled as in training, and the actions that it played. A step
//! is one pass over the contexts of all whose turn it is, the transformer's last layer at their
//! newest observations alone.
//!
//! As in the reference, the return-to-go begins at the target and falls by each reward, or
//! stays where data pays the whole return at the end. The action that is yet to come is zero,
//! and no prediction reads it.

use std::collections::BTreeSet;

use burn::module::Module;
use overtone_core::{
    Actions, Normalization, Observations, Play, Policy, PolicyError, Turn,
    policy::EpisodeStart,
    protocol::ActionChoice,
    seed::{self, Generator},
};

use crate::{
    continuous_agent::ContinuousAgent,
    continuous_history::{ContextShape, ContinuousHistory},
    error::ModelError,
    policy::check_started,
    recent::Recent,
};

/// What one agent remembers of its episode.
struct Memory {
    /// Normalized.
    observations: Recent,
    /// As played; one shorter than the rest while an action is due.
    actions: Recent,
    /// In units of the protocol's return scale.
    returns_to_go: Recent,
    /// Return-to-go of the newest timestep.
    return_to_go: f32,
    /// Timesteps seen so far, the current one included.
    n_seen: usize,
    generator: Generator,
}

impl Memory {
    fn new(start: EpisodeStart, shape: ContextShape) -> Self {
        let n = shape.context_length;
        Self {
            observations: Recent::new(shape.observation_width, n),
            actions: Recent::new(shape.action_width, n - 1),
            returns_to_go: Recent::new(1, n),
            return_to_go: 0.0,
            n_seen: 0,
            generator: seed::generator(start.seed, "policy"),
        }
    }

    fn see(&mut self, observation: &[f32], return_to_go: f32) {
        self.observations.push(observation);
        self.returns_to_go.push(&[return_to_go]);
        self.return_to_go = return_to_go;
        self.n_seen += 1;
    }

    /// After at least one observation.
    fn history(&self) -> ContinuousHistory<'_> {
        ContinuousHistory {
            observations: self.observations.rows(),
            actions: self.actions.rows(),
            returns_to_go: self.returns_to_go.rows(),
            timestep: self.n_seen - 1,
        }
    }
}

/// A [`Policy`] that asks a model of vectors for real-valued actions.
pub struct ContinuousPolicy {
    model: ContinuousAgent,
    normalization: Normalization,
    protocol: Play,
    /// By agent; `None` before its first episode.
    memories: Vec<Option<Memory>>,
}

impl ContinuousPolicy {
    /// Plays `model` (dropout off) as `protocol` says; `normalization` is that of its training
    /// data.
    ///
    /// # Errors
    /// When the normalization is not one of the model's observations, or the protocol's return
    /// scale is not positive.
    pub fn new(
        model: &ContinuousAgent,
        normalization: &Normalization,
        protocol: &Play,
    ) -> Result<Self, ModelError> {
        let expected = model.context_shape().observation_width;
        for (what, numbers) in [
            ("means of observations", &normalization.mean),
            ("standard deviations of observations", &normalization.std),
        ] {
            if numbers.len() != expected {
                return Err(wrong(what, numbers.len(), format!("{expected}, as the model has")));
            }
        }
        let scale = protocol.return_scale;
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(wrong("return scale", scale, "a positive number".into()));
        }
        Ok(Self {
            model: model.valid(),
            normalization: normalization.clone(),
            protocol: protocol.clone(),
            memories: Vec::new(),
        })
    }

    /// The observations of these turns, normalized, after everything has been checked.
    fn normalized(
        &self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Vec<f32>, ModelError> {
        let width = self.normalization.width();
        let expected = || format!("{} vectors of {width} numbers", turns.len());
        let Observations::Vectors(numbers) = observations else {
            return Err(wrong("observations", "pixels", expected()));
        };
        if numbers.len() != turns.len() * width {
            let got = format!("{} numbers", numbers.len());
            return Err(wrong("observations", got, expected()));
        }
        let agents: BTreeSet<usize> = turns.iter().map(|turn| turn.agent).collect();
        if agents.len() != turns.len() {
            let got = format!("{} turns of {} agents", turns.len(), agents.len());
            return Err(wrong("turns", got, "one of each".into()));
        }
        check_started(turns, |agent| self.memories.get(agent).is_some_and(Option::is_some))?;
        let mut normalized = numbers.to_vec();
        self.normalization.apply(&mut normalized);
        for (turn, row) in turns.iter().zip(normalized.chunks_exact(width)) {
            let told = turn.start.map_or(turn.reward, |start| start.target_return);
            let numbers = row.iter().copied().chain([told]);
            if let Some(number) = numbers.into_iter().find(|number| !number.is_finite()) {
                let got = format!("{number} for agent {}", turn.agent);
                let what = "normalized observation, reward or target return";
                return Err(wrong(what, got, "finite numbers".into()));
            }
        }
        Ok(normalized)
    }

    /// Each agent sees its new observation and what is left of its return.
    fn remember(&mut self, turns: &[Turn], normalized: &[f32]) {
        let scale = self.protocol.return_scale;
        let shape = self.model.context_shape();
        for (turn, observation) in
            turns.iter().zip(normalized.chunks_exact(shape.observation_width))
        {
            if self.memories.len() <= turn.agent {
                self.memories.resize_with(turn.agent + 1, || None);
            }
            let slot = &mut self.memories[turn.agent];
            if let Some(start) = turn.start {
                *slot = Some(Memory::new(start, shape));
            }
            let Some(memory) = slot else { continue };
            let return_to_go = match turn.start {
                Some(start) => start.target_return / scale,
                None if self.protocol.delayed_reward => memory.return_to_go,
                None => memory.return_to_go - turn.reward / scale,
            };
            memory.see(observation, return_to_go);
        }
    }

    /// The actions of these turns, `[turns, action_width]`.
    fn choose(&mut self, turns: &[Turn]) -> Result<Vec<f32>, ModelError> {
        let memories = turns.iter().filter_map(|turn| self.memories[turn.agent].as_ref());
        let histories: Vec<ContinuousHistory<'_>> = memories.map(Memory::history).collect();
        let hidden = self.model.current(&histories)?;
        let head = self.model.head();
        let chosen = match self.protocol.action_choice {
            ActionChoice::Mode => head.mode(hidden),
            ActionChoice::Sample => {
                let mut memories: Vec<_> = self.memories.iter_mut().map(Option::as_mut).collect();
                let in_turn = turns.iter().filter_map(|turn| memories[turn.agent].take());
                head.sample(hidden, in_turn.map(|memory| &mut memory.generator))
            }
        };
        match chosen.iter().find(|number| !number.is_finite()) {
            None => Ok(chosen.into_iter().map(|number| number as f32).collect()),
            Some(number) => {
                let expected = "finite numbers: are the model's weights finite?";
                Err(wrong("actions of the model", number, expected.into()))
            }
        }
    }
}

impl Policy for ContinuousPolicy {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let normalized = self.normalized(turns, observations)?;
        let width = self.model.context_shape().action_width;
        if turns.is_empty() {
            return Ok(Actions::Continuous { width, values: Vec::new() });
        }
        self.remember(turns, &normalized);
        let values = self.choose(turns)?;
        for (turn, action) in turns.iter().zip(values.chunks_exact(width)) {
            if let Some(memory) = &mut self.memories[turn.agent] {
                memory.actions.push(action);
            }
        }
        Ok(Actions::Continuous { width, values })
    }
}

fn wrong(what: &'static str, got: impl ToString, expected: String) -> ModelError {
    ModelError::Input { what, got: got.to_string(), expected }
}
