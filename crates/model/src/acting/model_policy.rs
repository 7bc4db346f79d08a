//! [`ModelPolicy`]: a batch of agents that act with one model, each with its own history.
//!
//! An agent stores the last `context_length` timesteps of its episode: observations and
//! returns-to-go as in training, and its actions. A step is one pass over the contexts of all
//! agents with a turn; the transformer's last layer computes only their newest observations. Each
//! new frame is embedded once, and its embedding is kept on the device. A step waits for the device
//! once, to read the head's decisions. With `return_quantile` below 1, it waits once more before
//! that, to read predicted returns.
//!
//! Acting is a transaction: copies of the agents act, and replace them once every action is
//! checked. A failed step therefore changes nothing, random numbers included.
//!
//! As in the references, the return-to-go starts at the target and falls by each reward, or stays
//! the same if the data pays the whole return at the end. The newest action is zero, and no
//! prediction reads it.

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{
    ActingMode, ActionSpace, Actions, BinOrder, Normalization, ObservationSpace, Observations,
    Play, Played, Policy, PolicyError, Turn,
    policy::EpisodeStart,
    protocol::{ActionChoice, FedBackActions, GlobalTimestep},
    seed::{self, Generator},
};

use super::{
    frame_memory::FrameMemory,
    history::{ContextShape, History, PreviousActions},
    recent::Recent,
    turns::{self, wrong},
};
use crate::{
    conditioning::{Conditioner, ReturnModel},
    contexts::{Contexts, Observed},
    error::ModelError,
    head::{ActionOrder, Decisions, Head, LogitsDecisions, NumbersDecisions},
    model::Model,
};

/// One agent's memory of its episode.
struct Agent {
    /// Normalized vectors; frames are in the policy's [`FrameMemory`].
    observations: Recent<f32>,
    /// The actions as taken; one fewer than observations while an action is due.
    actions: ActionHistory,
    /// Divided by the return scale.
    returns_to_go: Recent<f32>,
    /// Return-to-go of the newest timestep, divided by [`unit`].
    return_to_go: f32,
    /// Number of timesteps so far, including the current one.
    n_seen: usize,
    generator: Generator,
}

/// Previous actions, or the ids that are fed back in place of them.
#[derive(Clone)]
enum ActionHistory {
    Ids(Recent<i32>),
    Numbers(Recent<f32>),
}

impl Agent {
    fn new(start: EpisodeStart, shape: ContextShape<'_>) -> Self {
        let n = shape.context_length;
        let width = match shape.observations {
            ObservationSpace::Vectors { width } => *width,
            ObservationSpace::Pixels { .. } => 0,
        };
        Self {
            observations: Recent::new(width, n),
            actions: match shape.actions {
                ActionSpace::Discrete { .. } => ActionHistory::Ids(Recent::new(1, n - 1)),
                ActionSpace::Continuous { .. } => {
                    ActionHistory::Numbers(Recent::new(shape.actions.size(), n - 1))
                }
            },
            returns_to_go: Recent::new(1, n),
            return_to_go: 0.0,
            n_seen: 0,
            generator: seed::generator(start.seed, "policy"),
        }
    }

    /// The same agent, which then remembers and draws on its own.
    fn copy(&self) -> Self {
        Self {
            observations: self.observations.clone(),
            actions: self.actions.clone(),
            returns_to_go: self.returns_to_go.clone(),
            return_to_go: self.return_to_go,
            n_seen: self.n_seen,
            generator: seed::copy(&self.generator),
        }
    }

    fn see(&mut self, observation: &[f32], return_to_go: f32, scaled: f32) {
        self.observations.push(observation);
        self.returns_to_go.push(&[scaled]);
        self.return_to_go = return_to_go;
        self.n_seen += 1;
    }

    /// After at least one observation.
    fn history(&self) -> History<'_> {
        History {
            observations: self.observations.rows(),
            actions: match &self.actions {
                ActionHistory::Ids(ids) => PreviousActions::Discrete(ids.rows()),
                ActionHistory::Numbers(numbers) => PreviousActions::Continuous(numbers.rows()),
            },
            returns_to_go: self.returns_to_go.rows(),
            timestep: self.n_seen - 1,
        }
    }
}

/// A [`Policy`] that acts with a model.
pub struct ModelPolicy {
    model: Model,
    /// `None`: the model is not conditioned on returns.
    conditioner: Option<Conditioner>,
    /// Whether the global position of a context is the position of its newest timestep, as in the
    /// released evaluation on Atari.
    is_placed_by_newest: bool,
    play: Play,
    /// For vector observations.
    normalization: Option<Normalization>,
    /// The model's device and float type.
    place: (Device, DType),
    /// For each agent; `None` before its first episode.
    agents: Vec<Option<Agent>>,
    frames: FrameMemory,
    /// The bin of each action, fed back in place of the action.
    bin_of: Option<Vec<usize>>,
    /// The distributions of the last actions, bin by bin.
    played: Vec<f64>,
    /// The allowed actions of the next turns.
    allowed: Option<Vec<bool>>,
    /// The order of the bins in `played`, and the action of each; `None` for continuous actions.
    played_order: Option<(BinOrder, Vec<usize>)>,
}

impl ModelPolicy {
    /// Acts with `model` (dropout off) under the protocol `play`. `normalization`: statistics of
    /// its training data; `None` if observations are not normalized, such as pixels.
    /// `return_model`: the agent's, which a return quantile needs.
    ///
    /// # Errors
    /// When the normalization does not fit the model's observations, the return scale or the
    /// temperature is not positive, or the model was not trained for the [condition](Conditioner)
    /// of `play`.
    pub fn new(
        model: &Model,
        return_model: Option<&ReturnModel>,
        normalization: Option<&Normalization>,
        play: &Play,
    ) -> Result<Self, ModelError> {
        let (observations, _) = model.spaces();
        if let Some(normalization) = normalization {
            let expected = match observations {
                ObservationSpace::Vectors { width } => *width,
                ObservationSpace::Pixels { .. } => {
                    return Err(wrong("normalization", "one for pixels", "none".into()));
                }
            };
            for (what, numbers) in [
                ("means of observations", &normalization.mean),
                ("standard deviations of observations", &normalization.std),
            ] {
                if numbers.len() != expected {
                    let expected = format!("{expected}, as in the model");
                    return Err(wrong(what, numbers.len(), expected));
                }
            }
        }
        for (what, number) in
            [("return scale", play.return_scale), ("temperature", play.acting.temperature)]
        {
            if !(number > 0.0 && number.is_finite()) {
                return Err(wrong(what, number, "a positive number".into()));
            }
        }
        let (model, config) = (model.valid(), model.config());
        let conditioner = Conditioner::new(config.conditioning(), return_model, play)?;
        let bin_of = match play.fed_back_actions {
            FedBackActions::Environment => None,
            FedBackActions::HeadBins => {
                model.head().action_order().map(|order| order.bin_of().to_vec())
            }
        };
        Ok(Self {
            play: play.clone(),
            normalization: normalization.cloned(),
            place: model.device(),
            agents: Vec::new(),
            frames: FrameMemory::new(model.context_length()),
            conditioner,
            is_placed_by_newest: play.global_timestep == GlobalTimestep::Current
                && config.reads_global_timestep(),
            bin_of,
            played: Vec::new(),
            allowed: None,
            played_order: played_order(&model),
            model,
        })
    }

    fn shape(&self) -> ContextShape<'_> {
        let (observations, actions) = self.model.spaces();
        ContextShape { context_length: self.model.context_length(), observations, actions }
    }

    /// The agents of `turns` after their new observation and return-to-go.
    ///
    /// # Errors
    /// When a return-to-go is not finite.
    fn after(&self, turns: &[Turn], normalized: &[f32]) -> Result<Vec<Agent>, ModelError> {
        let (width, unit) = (normalized.len() / turns.len(), unit(&self.play));
        let mut agents = Vec::with_capacity(turns.len());
        for (row, turn) in turns.iter().enumerate() {
            let before = self.agents.get(turn.agent).and_then(Option::as_ref);
            let (mut agent, return_to_go) = match (turn.start, before) {
                (Some(start), _) => (Agent::new(start, self.shape()), start.target_return / unit),
                (None, Some(agent)) if self.play.delayed_reward => {
                    (agent.copy(), agent.return_to_go)
                }
                (None, Some(agent)) => {
                    let left = agent.return_to_go - turn.reward / unit;
                    (agent.copy(), if self.play.integer_returns { left.trunc() } else { left })
                }
                (None, None) => unreachable!("turns were checked"),
            };
            let scaled = return_to_go / (self.play.return_scale / unit);
            if !scaled.is_finite() {
                let got = format!("{scaled} for agent {}", turn.agent);
                return Err(wrong("return-to-go", got, "a finite number".into()));
            }
            let observation = &normalized[row * width..(row + 1) * width];
            agent.see(observation, return_to_go, scaled);
            agents.push(agent);
        }
        Ok(agents)
    }

    /// The model's decisions for these agents' contexts.
    fn decide(&self, agents: &[Agent], embedded: Option<Tensor<3>>) -> Decisions {
        let histories: Vec<History<'_>> = agents.iter().map(Agent::history).collect();
        let place = (&self.place.0, self.place.1);
        let mut contexts = Contexts::of_histories(&histories, self.shape(), embedded, place);
        if let Some(conditioner) = &self.conditioner {
            contexts = conditioner.condition(contexts);
        }
        if self.is_placed_by_newest {
            let [_, time] = contexts.dims();
            for context in contexts.timesteps.chunks_exact_mut(time) {
                context.fill(context[time - 1]);
            }
        }
        self.model.decide(&contexts)
    }

    /// The new frames in embedded form, `[turns, d_model]`; `None` for vectors.
    fn embedded(&self, n_turns: usize, observations: Observations<'_>) -> Option<Tensor<2>> {
        let Observations::Pixels(pixels) = observations else { return None };
        let ObservationSpace::Pixels { shape } = self.model.spaces().0 else { return None };
        let shape = [n_turns, shape[0], shape[1], shape[2]];
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(pixels.to_vec(), shape),
            (&self.place.0, DType::U8),
        );
        self.model.embedded(&Observed::Frames(frames))
    }

    /// A discrete action for each agent, among the allowed ones, and the distributions that they were
    /// chosen from.
    fn choose_actions(
        &self,
        agents: &mut [Agent],
        mut decisions: LogitsDecisions,
        allowed: Option<&[bool]>,
    ) -> Result<(Actions, Vec<f64>), ModelError> {
        (0..agents.len()).try_for_each(|row| check_finite(decisions.logits(row)))?;
        if let Some(allowed) = allowed {
            decisions.allow(allowed);
        }
        let Play { action_choice, acting: ActingMode { temperature, .. }, .. } = self.play;
        let (mut chosen, mut played) = (Vec::with_capacity(agents.len()), Vec::new());
        for (row, agent) in agents.iter_mut().enumerate() {
            let action = match action_choice {
                ActionChoice::Mode => decisions.mode(row),
                ActionChoice::Sample => decisions.draw(row, temperature, &mut agent.generator),
            };
            let probs = decisions.probs(row, temperature);
            let actions = self.played_order.iter().flat_map(|(_, actions)| actions);
            played.extend(actions.map(|&action| probs[action]));
            let fed_back = self.bin_of.as_ref().map_or(action, |bins| bins[action]);
            if let ActionHistory::Ids(ids) = &mut agent.actions {
                ids.push(&[fed_back as i32]);
            }
            chosen.push(action);
        }
        Ok((Actions::Discrete(chosen), played))
    }

    /// A continuous action for each agent.
    fn choose_numbers(
        &self,
        agents: &mut [Agent],
        decisions: &NumbersDecisions,
    ) -> Result<Actions, ModelError> {
        let width = self.shape().actions.size();
        let Play { action_choice, acting: ActingMode { temperature, .. }, .. } = self.play;
        let mut values = Vec::with_capacity(agents.len() * width);
        for (row, agent) in agents.iter_mut().enumerate() {
            let action = match action_choice {
                ActionChoice::Mode => decisions.mode(row),
                ActionChoice::Sample => decisions.draw(row, temperature, &mut agent.generator),
            };
            let action: Vec<f32> = action.into_iter().map(|number| number as f32).collect();
            check_finite(&action)?;
            if let ActionHistory::Numbers(numbers) = &mut agent.actions {
                numbers.push(&action);
            }
            values.extend(action);
        }
        Ok(Actions::Continuous { width, values })
    }
}

impl Policy for ModelPolicy {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let allowed = self.allowed.take();
        let plays = |agent: usize| self.agents.get(agent).is_some_and(Option::is_some);
        turns::check(turns, observations, self.shape().observations, plays)?;
        if let Some(allowed) = &allowed {
            turns::check_allowed(allowed, turns.len(), self.shape().actions)?;
        }
        let normalized = turns::normalized(turns, observations, self.normalization.as_ref())?;
        if turns.is_empty() {
            self.played.clear();
            return Ok(turns::no_actions(self.shape().actions));
        }
        let mut agents = self.after(turns, &normalized)?;
        let mut frames = self.frames.clone();
        let new = self.embedded(turns.len(), observations);
        let embedded = new.map(|new| frames.contexts(turns, new));
        let (actions, played) = match self.decide(&agents, embedded) {
            Decisions::Actions(decisions) => {
                self.choose_actions(&mut agents, decisions, allowed.as_deref())?
            }
            Decisions::Numbers(decisions) => {
                (self.choose_numbers(&mut agents, &decisions)?, Vec::new())
            }
        };
        (self.frames, self.played) = (frames, played);
        turns::replace(&mut self.agents, turns, agents);
        Ok(actions)
    }

    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.allowed = Some(allowed);
        Ok(())
    }

    fn took(&mut self, turns: &[Turn], actions: &Actions) -> Result<(), PolicyError> {
        let has_acted = |turn: &&Turn| self.agents.get(turn.agent).is_some_and(Option::is_some);
        if let Some(turn) = turns.iter().find(|turn| !has_acted(turn)) {
            let got = format!("one of agent {}, which has not acted", turn.agent);
            return Err(wrong("action taken", got, "an action after `act`".into()).into());
        }
        let space = self.model.spaces().1;
        let fits = match (space, actions) {
            (ActionSpace::Discrete { names }, Actions::Discrete(taken)) => {
                taken.len() == turns.len() && taken.iter().all(|action| *action < names.len())
            }
            (ActionSpace::Continuous { low, .. }, Actions::Continuous { width, values }) => {
                if let Some(number) = values.iter().find(|number| !is_near(**number)) {
                    let expected = format!(
                        "finite numbers, at most {FARTHEST:.0} times as far from zero as the bounds"
                    );
                    return Err(wrong("action taken", number, expected).into());
                }
                *width == low.len() && values.len() == turns.len() * width
            }
            _ => false,
        };
        if !fits {
            let expected = format!("one of {space:?} for each of {} turns", turns.len());
            return Err(wrong("actions taken", format!("{actions:?}"), expected).into());
        }
        for (row, turn) in turns.iter().enumerate() {
            let Some(agent) = &mut self.agents[turn.agent] else { continue };
            match (&mut agent.actions, actions) {
                (ActionHistory::Ids(ids), Actions::Discrete(taken)) => {
                    let action = taken[row];
                    let fed_back = self.bin_of.as_ref().map_or(action, |bins| bins[action]);
                    ids.replace_newest(&[fed_back as i32]);
                }
                (ActionHistory::Numbers(numbers), Actions::Continuous { width, values }) => {
                    numbers.replace_newest(&values[row * width..(row + 1) * width]);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.play.action_choice = choice;
        Ok(())
    }

    fn played(&self) -> Option<Played<'_>> {
        let (order, actions) = self.played_order.as_ref()?;
        Some(Played { probs: &self.played, actions, order: *order })
    }
}

/// Size of the largest action that may be taken in place of the agent's, in the model's units: the
/// bounds are -1 and 1. Recorded actions may lie outside of their bounds, and the model sees them
/// so. A far larger number overflows in the model, at every step until it leaves the window.
const FARTHEST: f32 = 1e6;

/// False for NaN, too.
fn is_near(number: f32) -> bool {
    number.abs() <= FARTHEST
}

/// Divisor of the rewards before they are subtracted from a return-to-go. It is the return scale,
/// or 1 if the return-to-go is truncated to integers in the environment's units.
fn unit(play: &Play) -> f32 {
    if play.integer_returns { 1.0 } else { play.return_scale }
}

/// The order of discrete actions as bins, and the action of each bin.
///
/// The linear head has no own order. Its distributions are reported in the Fourier head's order, so
/// that both can be compared, as in the paper.
fn played_order(model: &Model) -> Option<(BinOrder, Vec<usize>)> {
    let ActionSpace::Discrete { names } = model.spaces().1 else { return None };
    let compass = ActionOrder::compass(names);
    let order = match model.head() {
        Head::Linear(_) => compass.as_ref(),
        head => head.action_order(),
    };
    Some(match order {
        None => (BinOrder::Environment, (0..names.len()).collect()),
        Some(order) if Some(order) == compass.as_ref() => (BinOrder::Compass, order.action_of()),
        Some(order) => (BinOrder::Head, order.action_of()),
    })
}

/// # Errors
/// When an output of the model is not finite.
fn check_finite(outputs: &[f32]) -> Result<(), ModelError> {
    match outputs.iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => {
            let expected = "finite numbers. Check the observations, and the model's weights";
            Err(wrong("actions of the model", number, expected.into()))
        }
    }
}
