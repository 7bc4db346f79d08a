//! [`StepPolicy`]: acts with a network that reads one observation.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{
    ActionSpace, Actions, BinOrder, Normalization, ObservationSpace, Observations, Played, Policy,
    PolicyError, Turn,
    protocol::ActionChoice,
    seed::{self, Generator},
};
use overtone_model::{
    acting::turns,
    contexts::{FRAME, Observed, STACK},
    head::{Decisions, LogitsDecisions, NumbersDecisions},
};
use rand::RngExt;

use super::{network::Mlp, steps::Rescaling};
use crate::acting::{Draw, PolicyParts};

/// The advice for an output that is not finite.
const CHECK: &str = "Check the observation, and the weights";

/// A network that decides by one observation.
pub trait Actor: Send {
    /// The decision for every observation.
    fn decide(&self, observed: &Observed) -> Decisions;
}

/// A batch of agents that act by a network. They have no memory of their episodes.
pub struct StepPolicy<N> {
    network: N,
    device: Device,
    observations: ObservationSpace,
    actions: ActionSpace,
    normalization: Option<Normalization>,
    rescaling: Rescaling,
    draw: Option<Draw>,
    choice: ActionChoice,
    /// By agent; `None` before its first episode.
    generators: Vec<Option<Generator>>,
    /// `[turns, n_actions]`: the probabilities that the last discrete actions were drawn from.
    probs: Vec<f64>,
    /// The allowed actions of the next turns.
    allowed: Option<Vec<bool>>,
    /// `0, 1, … n_actions - 1`; empty for continuous actions.
    indices: Vec<usize>,
}

impl<N> StepPolicy<N> {
    /// Acts with `network`, which has no gradients and lies on the device of `of`. If the protocol
    /// samples actions, it samples them by `draw`; `None`: the network has one action for each
    /// observation.
    pub fn new(
        network: N,
        parts: &PolicyParts<'_>,
        rescaling: Rescaling,
        draw: Option<Draw>,
    ) -> Self {
        let n_actions = match &parts.task.actions {
            ActionSpace::Discrete { names } => names.len(),
            ActionSpace::Continuous { .. } => 0,
        };
        Self {
            network,
            device: parts.device.clone(),
            observations: parts.task.observations.clone(),
            actions: parts.task.actions.clone(),
            normalization: parts.normalization.cloned(),
            rescaling,
            draw,
            choice: parts.play.action_choice,
            generators: Vec::new(),
            probs: Vec::new(),
            allowed: None,
            indices: (0..n_actions).collect(),
        }
    }

    /// Observations on the device; for vectors, these are `normalized`.
    fn observed(&self, n: usize, observations: Observations<'_>, normalized: Vec<f32>) -> Observed {
        match observations {
            Observations::Pixels(pixels) => {
                let pixels = TensorData::new(pixels.to_vec(), [n, STACK, FRAME, FRAME]);
                let pixels = Tensor::<4, Int>::from_data(pixels, (&self.device, DType::U8));
                Observed::Frames(pixels)
            }
            Observations::Vectors(_) => {
                let numbers = TensorData::new(normalized, [n, 1, self.observations.size()]);
                Observed::Vectors(Tensor::from_data(numbers, &self.device))
            }
        }
    }

    /// A discrete action for each turn, among the allowed ones, and the probabilities that it was
    /// drawn from.
    fn choose_actions(
        &self,
        turns: &[Turn],
        generators: &mut [Generator],
        mut decisions: LogitsDecisions,
        allowed: Option<&[bool]>,
    ) -> Result<(Actions, Vec<f64>), PolicyError> {
        for (row, Turn { agent, .. }) in turns.iter().enumerate() {
            if decisions.logits(row).iter().any(|score| !score.is_finite()) {
                return Err(format!("the scores for agent {agent} are not finite. {CHECK}").into());
            }
        }
        if let Some(allowed) = allowed {
            decisions.allow(allowed);
        }
        let (mut chosen, mut probs) = (Vec::with_capacity(turns.len()), Vec::new());
        for (row, generator) in generators.iter_mut().enumerate() {
            let scores = decisions.logits(row);
            let choices: Vec<usize> =
                (0..scores.len()).filter(|&action| scores[action].is_finite()).collect();
            match self.draw {
                Some(Draw::Softmax { temperature }) => {
                    probs.extend(decisions.probs(row, temperature));
                }
                Some(Draw::Greedy { epsilon }) => {
                    let from = probs.len();
                    probs.resize(from + scores.len(), 0.0);
                    for &action in &choices {
                        probs[from + action] = epsilon / choices.len() as f64;
                    }
                    probs[from + decisions.mode(row)] += 1.0 - epsilon;
                }
                None => {}
            }
            chosen.push(match (self.choice, self.draw) {
                (ActionChoice::Mode, _) | (_, None) => decisions.mode(row),
                (ActionChoice::Sample, Some(Draw::Softmax { temperature })) => {
                    decisions.draw(row, temperature, generator)
                }
                (ActionChoice::Sample, Some(Draw::Greedy { epsilon })) => {
                    // Both numbers are drawn at every step, so that epsilon does not change later
                    // draws.
                    let explores = generator.random::<f64>() < epsilon;
                    let random = choices[generator.random_range(0..choices.len())];
                    if explores { random } else { decisions.mode(row) }
                }
            });
        }
        Ok((Actions::Discrete(chosen), probs))
    }

    /// A continuous action for each turn.
    fn choose_numbers(
        &self,
        turns: &[Turn],
        decisions: &NumbersDecisions,
    ) -> Result<Actions, PolicyError> {
        let rows = (0..turns.len()).flat_map(|row| decisions.mode(row));
        let values: Vec<f32> = rows.map(|number| number as f32).collect();
        let width = self.actions.size();
        for (turn, action) in turns.iter().zip(values.chunks_exact(width)) {
            if action.iter().any(|number| !number.is_finite()) {
                let agent = turn.agent;
                return Err(format!("the action of agent {agent} is not finite. {CHECK}").into());
            }
        }
        Ok(Actions::Continuous { width, values })
    }
}

impl Actor for Mlp {
    fn decide(&self, observed: &Observed) -> Decisions {
        let Observed::Vectors(vectors) = observed else { panic!("an actor reads vectors") };
        Decisions::Numbers(NumbersDecisions::of(self.act(vectors.clone().flatten(0, 1))))
    }
}

impl<N: Actor> Policy for StepPolicy<N> {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let allowed = self.allowed.take();
        if let Some(allowed) = &allowed {
            turns::check_allowed(allowed, turns.len(), &self.actions)?;
        }
        let plays = |agent: usize| self.generators.get(agent).is_some_and(Option::is_some);
        turns::check(turns, observations, &self.observations, plays)?;
        let mut normalized = turns::normalized(turns, observations, self.normalization.as_ref())?;
        if turns.is_empty() {
            return Ok(turns::no_actions(&self.actions));
        }
        // A failed step changes nothing: copies of the generators draw, and replace them at the end.
        let after = |turn: &Turn| match turn.start {
            Some(start) => seed::generator(start.seed, "policy"),
            None => seed::copy(self.generators[turn.agent].as_ref().expect("turns were checked")),
        };
        let mut generators: Vec<Generator> = turns.iter().map(after).collect();
        self.rescaling.apply(&mut normalized);
        let observed = self.observed(turns.len(), observations, normalized);
        let (actions, probs) = match self.network.decide(&observed) {
            Decisions::Actions(decisions) => {
                self.choose_actions(turns, &mut generators, decisions, allowed.as_deref())?
            }
            Decisions::Numbers(decisions) => (self.choose_numbers(turns, &decisions)?, Vec::new()),
        };
        self.probs = probs;
        turns::replace(&mut self.generators, turns, generators);
        Ok(actions)
    }

    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.allowed = Some(allowed);
        Ok(())
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        if choice == ActionChoice::Sample && self.draw.is_none() {
            return Err("this agent has one action for each observation and cannot sample. Set \
                        deterministic to True"
                .into());
        }
        self.choice = choice;
        Ok(())
    }

    fn played(&self) -> Option<Played<'_>> {
        let Self { probs, indices, draw, .. } = self;
        let order = BinOrder::Environment;
        draw.is_some().then_some(Played { probs, actions: indices, order })
    }
}
