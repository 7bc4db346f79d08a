//! Playing with a Decision Transformer: a batch of agents, each with its own history.
//!
//! Each new observation is embedded once and its embedding kept, so a step costs one pass
//! of the encoder over the new frames and one of the transformer over the contexts.
//! Embeddings stay on the device: a step waits for it once, to read the logits.

use std::collections::VecDeque;

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{
    Actions, BinOrder, Observations, Play, Played, Policy, PolicyError, Turn, Window,
    policy::EpisodeStart,
    protocol::{FedBackActions, GlobalTimestep},
    seed::{self, Generator},
};
use rand::RngExt;

use crate::{
    categorical,
    decision_transformer::{DecisionTransformer, FRAME, Frames, Inputs, STACK},
    error::ModelError,
    head::{ActionOrder, Head},
    tokens::Steps,
};

/// What one agent remembers: the last `context_length` timesteps of its episode.
struct History {
    /// Of each embedded observation its row in the policy's memory.
    rows: VecDeque<i32>,
    returns_to_go: VecDeque<f32>,
    /// Ids fed back; one shorter than the rest while an action is due.
    actions: VecDeque<i32>,
    /// Timesteps seen so far, the current one included.
    n_seen: usize,
    generator: Generator,
}

impl History {
    fn new(start: EpisodeStart) -> Self {
        Self {
            rows: VecDeque::new(),
            returns_to_go: VecDeque::new(),
            actions: VecDeque::new(),
            n_seen: 0,
            generator: seed::generator(start.seed, "policy"),
        }
    }
}

/// A [`Policy`] that samples from a Decision Transformer.
pub struct TransformerPolicy {
    model: DecisionTransformer,
    protocol: Play,
    device: Device,
    histories: Vec<Option<History>>,
    /// Embedded observations that histories hold, `[rows, d_model]`; `None` before the first.
    memory: Option<Tensor<2>>,
    bin_of: Option<Vec<usize>>,
    /// What the last actions were drawn from, bin by bin.
    played: Vec<f64>,
    /// The order of the bins in `played`, and the action of each.
    played_order: (BinOrder, Vec<usize>),
}

impl TransformerPolicy {
    /// Plays `model` (dropout off) as `protocol` says.
    pub fn new(model: &DecisionTransformer, protocol: &Play) -> Self {
        let model = model.valid();
        let device = model.action_embedding.val().device();
        let bin_of = match protocol.fed_back_actions {
            FedBackActions::Environment => None,
            FedBackActions::HeadBins => {
                model.head.action_order().map(|order| order.bin_of().to_vec())
            }
        };
        let played_order = played_order(&model);
        let protocol = protocol.clone();
        let (histories, played) = (Vec::new(), Vec::new());
        let memory = None;
        Self { model, protocol, device, histories, memory, bin_of, played, played_order }
    }

    /// Updates each agent's history with its reward and its new observation, whose embedding
    /// is in the row `first_row` or, turn by turn, those after it.
    fn remember(&mut self, turns: &[Turn], first_row: usize) {
        let context_length = self.model.config.context_length;
        for (turn, row) in turns.iter().zip(first_row..) {
            if self.histories.len() <= turn.agent {
                self.histories.resize_with(turn.agent + 1, || None);
            }
            let slot = &mut self.histories[turn.agent];
            if let Some(start) = turn.start {
                *slot = Some(History::new(start));
            }
            let Some(history) = slot else { continue };
            let to_go = match (turn.start, history.returns_to_go.back()) {
                (Some(start), _) => start.target_return,
                (None, previous) => {
                    let to_go = previous.copied().unwrap_or_default() - turn.reward;
                    if self.protocol.integer_returns { to_go.trunc() } else { to_go }
                }
            };
            history.rows.push_back(row as i32);
            history.returns_to_go.push_back(to_go);
            history.n_seen += 1;
            if history.returns_to_go.len() > context_length {
                history.rows.pop_front();
                history.returns_to_go.pop_front();
                history.actions.pop_front();
            }
        }
    }

    /// Logits of the current step of each agent in `turns`, row by row on the host. Afterwards
    /// the memory holds of `embeddings`, whose last row is zero, what histories hold.
    fn current_logits(&mut self, turns: &[Turn], embeddings: Tensor<2>) -> Vec<f32> {
        let config = &self.model.config;
        let (d_model, batch) = (config.d_model, turns.len());
        let longest = turns
            .iter()
            .filter_map(|turn| self.histories[turn.agent].as_ref())
            .map(|history| history.returns_to_go.len())
            .max()
            .unwrap_or(1);
        let zero = embeddings.dims()[0] as i32 - 1;
        let mut rows = vec![zero; batch * longest];
        let mut returns_to_go = vec![0.0f32; batch * longest];
        let mut actions = vec![0i32; batch * longest];
        let mut global_timesteps = vec![0i32; batch];
        let mut n_padding = vec![0; batch];
        for (row, turn) in turns.iter().enumerate() {
            let Some(history) = &mut self.histories[turn.agent] else { continue };
            let n_held = history.returns_to_go.len();
            let window = Window::ending_at(0, n_held - 1, longest);
            let places = row * longest..(row + 1) * longest;
            window.lay(history.rows.make_contiguous(), 1, zero, &mut rows[places.clone()]);
            history.rows = (places.end - n_held..places.end).map(|row| row as i32).collect();
            window.lay(
                history.returns_to_go.make_contiguous(),
                1,
                0.0,
                &mut returns_to_go[places.clone()],
            );
            // The current step has no action yet; no prediction reads that place.
            let mut known = history.actions.make_contiguous().to_vec();
            known.push(0);
            window.lay(&known, 1, 0, &mut actions[places]);
            let timestep = match self.protocol.global_timestep {
                GlobalTimestep::WindowFirst => history.n_seen - n_held,
                GlobalTimestep::Current => history.n_seen - 1,
            };
            global_timesteps[row] = timestep.min(config.max_timestep) as i32;
            n_padding[row] = window.n_padding();
        }
        // Agents whose turn it is not keep theirs.
        let mut waiting = vec![true; self.histories.len()];
        turns.iter().for_each(|turn| waiting[turn.agent] = false);
        for (history, _) in self.histories.iter_mut().zip(waiting).filter(|(_, waits)| *waits) {
            for row in history.iter_mut().flat_map(|history| &mut history.rows) {
                let moved = rows.len() as i32;
                rows.push(std::mem::replace(row, moved));
            }
        }
        let device = &self.device;
        let memory = embeddings.select(0, Tensor::<1, Int>::from_data(&rows[..], device));
        let observations = memory.clone().narrow(0, 0, batch * longest);
        let observations = observations.reshape([batch, longest, d_model]);
        self.memory = Some(memory);
        let inputs = Inputs {
            actions: Tensor::from_data(TensorData::new(actions, [batch, longest]), device),
            returns_to_go: Tensor::from_data(
                TensorData::new(returns_to_go, [batch, longest]),
                device,
            ),
            global_timesteps: Tensor::<1, Int>::from_data(
                TensorData::new(global_timesteps, [batch]),
                device,
            ),
            n_padding,
        };
        let hidden = self.model.hidden(observations, &inputs, Steps::Newest, None);
        let current = hidden.reshape([batch, d_model]);
        self.model.head.forward(current).logits.into_data().iter::<f32>().collect()
    }
}

impl Policy for TransformerPolicy {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let Observations::Pixels(pixels) = observations else {
            return Err(wrong_observations("vectors".into(), turns.len()).into());
        };
        let shape = [turns.len(), STACK, FRAME, FRAME];
        if pixels.len() != shape.iter().product::<usize>() {
            return Err(wrong_observations(format!("{} pixels", pixels.len()), turns.len()).into());
        }
        self.played.clear();
        if turns.is_empty() {
            return Ok(Actions::Discrete(Vec::new()));
        }
        check_started(turns, |agent| self.histories.get(agent).is_some_and(Option::is_some))?;
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(pixels.to_vec(), shape),
            (&self.device, DType::U8),
        );
        let new = self.model.embed_observations(Frames::Stacks(frames));
        let held = self.memory.take();
        self.remember(turns, held.as_ref().map_or(0, |held| held.dims()[0]));
        let zero = new.clone().narrow(0, 0, 1).zeros_like();
        let embeddings = Tensor::cat(held.into_iter().chain([new, zero]).collect(), 0);

        let logits = self.current_logits(turns, embeddings);
        let n_actions = self.model.config.n_actions;
        let mut chosen = Vec::with_capacity(turns.len());
        for (turn, logits) in turns.iter().zip(logits.chunks_exact(n_actions)) {
            let Some(history) = &mut self.histories[turn.agent] else { continue };
            let draw = history.generator.random::<f64>();
            let weights = categorical::weights(logits, self.protocol.temperature);
            let action = categorical::sample(&weights, draw);
            let total: f64 = weights.iter().sum();
            self.played.extend(self.played_order.1.iter().map(|&action| weights[action] / total));
            let fed_back = self.bin_of.as_ref().map_or(action, |bins| bins[action]);
            history.actions.push_back(fed_back as i32);
            chosen.push(action);
        }
        Ok(Actions::Discrete(chosen))
    }

    fn played(&self) -> Option<Played<'_>> {
        let (order, action_of) = &self.played_order;
        Some(Played { probs: &self.played, actions: action_of, order: *order })
    }
}

/// In which order a model's actions are bins, and the action of each bin.
///
/// The linear head has no order of its own. It is seen in the Fourier head's, so that the two
/// can be compared, as the paper does.
fn played_order(model: &DecisionTransformer) -> (BinOrder, Vec<usize>) {
    let (atari, n_actions) = (ActionOrder::atari(), model.config.n_actions);
    let order = match &model.head {
        Head::Linear(_) if atari.bin_of().len() == n_actions => Some(&atari),
        head => head.action_order(),
    };
    match order {
        None => (BinOrder::Environment, (0..n_actions).collect()),
        Some(order) if *order == atari => (BinOrder::Compass, order.action_of()),
        Some(order) => (BinOrder::Head, order.action_of()),
    }
}

fn wrong_observations(got: String, n: usize) -> ModelError {
    ModelError::Input {
        what: "observations",
        got,
        expected: format!("{n} stacks of {STACK} frames of {FRAME} × {FRAME} pixels"),
    }
}

/// # Errors
/// When an agent neither plays already nor begins an episode with its turn.
pub(crate) fn check_started(
    turns: &[Turn],
    plays: impl Fn(usize) -> bool,
) -> Result<(), ModelError> {
    match turns.iter().find(|turn| turn.start.is_none() && !plays(turn.agent)) {
        None => Ok(()),
        Some(turn) => Err(ModelError::Input {
            what: "turn",
            got: format!("agent {} in mid-episode", turn.agent),
            expected: "an episode start first".into(),
        }),
    }
}
