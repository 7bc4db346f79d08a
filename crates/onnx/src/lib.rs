//! Agents as ONNX graphs (operators of version 17): from one context of raw observations, earlier
//! actions and returns-to-go to one action in the environment's units. The acting mode is part of
//! the graph.
//!
//! | input | shape | |
//! | --- | --- | --- |
//! | `observations` | `[K, width]`, or `[K, 4, 84, 84]` of bytes | oldest first, the newest last |
//! | `actions` | `[K]` of indices, or `[K, width]` | the actions taken; the newest is not read |
//! | `returns_to_go` | `[K]` | in the units of the rewards |
//! | `timesteps` | `[K]` | in the episode, from 0 |
//! | `mask` | `[K]` | 1 for real timesteps, 0 for padding, which comes first |
//!
//! `K` is the agent's context length. A graph has only the inputs that its agent reads. Its output
//! is `action`, `[width]`, or `logits`, `[n]`, the scores of discrete actions. The caller
//! leaves out those that are not allowed.

mod density;
mod error;
mod graph;
mod head;
mod networks;
mod proto;
mod transformer;

use overtone_agents::{ActingNetwork, Agent};
use overtone_core::{ActionScale, ActionSpace, ObservationSpace, Play, protocol::GlobalTimestep};
use overtone_model::{
    ConditionerConfig, DecisionTransformerConfig, ModelConfig, PerceptronConfig,
    conditioning::{AverageReturn, top_percent},
    head::HeadConfig,
    weights::NamedTensors,
};

pub use self::error::ExportError;
use self::{
    graph::{Graph, Name},
    head::Output,
    proto::data_type,
    transformer::Context,
};

/// The graph of `agent` with these weights and the acting mode of `play`, as a file.
///
/// # Errors
/// When a part of the agent cannot be expressed, or a weight is missing.
pub fn export(
    agent: &Agent,
    weights: &NamedTensors,
    play: &Play,
    version: &str,
) -> Result<Vec<u8>, ExportError> {
    agent.algorithm.validate(&agent.task.observations, &agent.task.actions)?;
    let mut g = Graph::new(&agent.task.title, weights);
    let observations = &agent.task.observations;
    let mut actions = agent.task.actions.clone();
    let output = match agent.algorithm.network() {
        ActingNetwork::Sequence(model) => sequence(&mut g, agent, &model, play)?,
        ActingNetwork::Tanh { prefix, hidden, is_normalized, chunk_size } => {
            actions = actions.in_chunks(chunk_size);
            let observation = observation(&mut g, agent, Some(is_normalized));
            let layers = format!("{prefix}layers");
            let out = networks::layers(&mut g, &observation, &layers, hidden.n_layers + 1, true)?;
            Output::Numbers(g.op("Tanh", &[&out]))
        }
        ActingNetwork::Categorical { hidden, head, is_normalized } => {
            let observation = observation(&mut g, agent, Some(is_normalized));
            let features = networks::body(&mut g, &observation, observations, hidden.n_layers)?;
            head::head(&mut g, &features, head, &actions, "head")?
        }
        ActingNetwork::Quantiles { hidden, n_quantiles, .. } => {
            let observation = observation(&mut g, agent, None);
            let features = networks::body(&mut g, &observation, observations, hidden.n_layers)?;
            let quantiles = g.affine(&features, "out")?;
            let quantiles = g.reshape(&quantiles, &[actions.size(), n_quantiles]);
            let mean =
                [("axes", graph::Attribute::Ints(&[1])), ("keepdims", graph::Attribute::Int(0))];
            Output::Logits(g.with("ReduceMean", &[&quantiles], &mean))
        }
    };
    let n = actions.size();
    match output {
        Output::Logits(logits) => {
            let logits = g.reshape(&logits, &[n]);
            g.output("logits", &logits, data_type::FLOAT, &[n]);
        }
        Output::Numbers(numbers) => {
            let numbers = g.reshape(&numbers, &[n]);
            let action = in_units_of(&mut g, &numbers, &actions);
            g.output("action", &action, data_type::FLOAT, &[n]);
        }
    }
    Ok(g.finish(agent.algorithm.describe(), version))
}

/// The newest observation as the network reads it; `Some`: rescaled.
fn observation(g: &mut Graph<'_>, agent: &Agent, is_normalized: Option<bool>) -> Name {
    let normalization = agent.normalization.as_ref();
    let normalized = networks::observations(g, &agent.task.observations, normalization, 1);
    match is_normalized {
        None => normalized,
        Some(is) => networks::rescaled(g, &normalized, normalization, is),
    }
}

/// A model of recorded actions.
fn sequence(
    g: &mut Graph<'_>,
    agent: &Agent,
    model: &ModelConfig,
    play: &Play,
) -> Result<Output, ExportError> {
    if play.integer_returns || play.global_timestep != GlobalTimestep::WindowFirst {
        return Err(ExportError::Unsupported {
            what: format!("the protocol `{}`", play.name),
            instead: "use the agent's own protocol, `matched`".into(),
        });
    }
    let (k, space) = (model.context_length(), &agent.task.observations);
    let observations = networks::observations(g, space, agent.normalization.as_ref(), k);
    let mut inputs = Inputs { k, timesteps: None, mask: None };
    let condition = match model.conditioning() {
        None => None,
        Some(conditioning) => Some(condition(g, conditioning, &mut inputs, play, &observations)?),
    };
    let hidden = match model {
        ModelConfig::Transformer(config) => {
            let top = play.acting.top_percent != 0.0;
            transformer(g, agent, config, &mut inputs, observations, (condition, top))?
        }
        ModelConfig::Perceptron(config) => {
            perceptron(g, agent, config, &mut inputs, &observations, condition)?
        }
    };
    let output = head::head(g, &hidden, model.head(), &agent.task.actions, "head")?;
    Ok(match (output, model.head()) {
        // Predictions and means of other heads are within the bounds already.
        (Output::Numbers(numbers), HeadConfig::Pointwise(_)) => {
            let (low, high) = (g.float(-1.0), g.float(1.0));
            Output::Numbers(g.op("Clip", &[&numbers, &low, &high]))
        }
        (output, _) => output,
    })
}

/// Inputs that several parts of a graph may read; each is added when it is first read.
struct Inputs {
    k: usize,
    timesteps: Option<Name>,
    mask: Option<Name>,
}

impl Inputs {
    /// `[K]`
    fn timesteps(&mut self, g: &mut Graph<'_>) -> Name {
        let k = self.k;
        let add = || g.input("timesteps", data_type::INT64, &[k]);
        self.timesteps.get_or_insert_with(add).clone()
    }

    /// `[K, 1]`
    fn mask(&mut self, g: &mut Graph<'_>) -> Name {
        let k = self.k;
        let add = || {
            let mask = g.input("mask", data_type::FLOAT, &[k]);
            g.reshape(&mask, &[k, 1])
        };
        self.mask.get_or_insert_with(add).clone()
    }
}

/// The inputs that condition the model, `[K, 1 + top percents]`.
fn condition(
    g: &mut Graph<'_>,
    config: &ConditionerConfig,
    inputs: &mut Inputs,
    play: &Play,
    observations: &str,
) -> Result<Name, ExportError> {
    let (k, width) = (inputs.k, config.width());
    if play.acting.top_percent != 0.0 {
        let place = top_percent::index(play.acting.top_percent, &config.top_percents)?;
        let is_it = |column: usize| if column == 1 + usize::from(place) { 1.0 } else { 0.0 };
        let rows: Vec<f32> = (0..k * width).map(|at| is_it(at % width)).collect();
        return Ok(g.floats(&rows, &[k, width]));
    }
    let raw = g.input("returns_to_go", data_type::FLOAT, &[k]);
    let raw = g.reshape(&raw, &[k, 1]);
    let scale = g.float(play.return_scale);
    let mut x = g.op("Div", &[&raw, &scale]);
    if let Some(AverageReturn { horizon }) = config.average_return {
        let timesteps = inputs.timesteps(g);
        let timesteps = g.cast(&timesteps, data_type::FLOAT);
        let timesteps = g.reshape(&timesteps, &[k, 1]);
        let (horizon, one) = (g.float(horizon as f32), g.float(1.0));
        let left = g.op("Sub", &[&horizon, &timesteps]);
        let left = g.op("Max", &[&left, &one]);
        let factor = g.op("Div", &[&horizon, &left]);
        x = g.op("Mul", &[&x, &factor]);
    }
    if let Some([low, high]) = config.return_range.map(|range| range.map(f64::from)) {
        let (low, factor, one) =
            (g.float(low as f32), g.float((2.0 / (high - low)) as f32), g.float(1.0));
        x = g.op("Sub", &[&x, &low]);
        x = g.op("Mul", &[&x, &factor]);
        x = g.op("Sub", &[&x, &one]);
        if config.average_return.is_some() || config.return_model.is_some() {
            let least = g.float(-1.0);
            x = g.op("Clip", &[&x, &least, &one]);
        }
    }
    if play.acting.return_quantile != 1.0
        && let Some(returns) = &config.return_model
        && let HeadConfig::Binned(head) = &returns.head
    {
        let prefix = "return_model.perceptron.layers";
        let hidden = networks::layers(g, observations, prefix, returns.n_layers, false)?;
        let columns: Vec<usize> = (0..head.bins).collect();
        let prefix = "return_model.perceptron.head.heads.0";
        let logits = head::on_bins(g, &hidden, &head.head, &columns, prefix)?;
        let q = f64::from(play.acting.return_quantile);
        let most = head::bins_quantile(g, &logits, head.bins, q);
        x = g.op("Min", &[&most, &x]);
    }
    if width == 1 {
        return Ok(x);
    }
    let zeros = g.floats(&vec![0.0; k * (width - 1)], &[k, width - 1]);
    Ok(g.concat(&[x, zeros], 1))
}

/// A transformer's output for the newest observation.
fn transformer(
    g: &mut Graph<'_>,
    agent: &Agent,
    config: &DecisionTransformerConfig,
    inputs: &mut Inputs,
    observations: Name,
    (condition, is_top_percent): (Option<Name>, bool),
) -> Result<Name, ExportError> {
    let (k, space) = (inputs.k, &agent.task.actions);
    let actions = match space {
        ActionSpace::Discrete { .. } => g.input("actions", data_type::INT64, &[k]),
        ActionSpace::Continuous { .. } => {
            let raw = g.input("actions", data_type::FLOAT, &[k, space.size()]);
            to_unit(g, &raw, space)
        }
    };
    let (timesteps, mask) = (inputs.timesteps(g), inputs.mask(g));
    let context = Context { observations, actions, condition, is_top_percent, timesteps, mask };
    transformer::transformer(g, config, (&agent.task.observations, space), &context)
}

/// A perceptron's last hidden layer.
fn perceptron(
    g: &mut Graph<'_>,
    agent: &Agent,
    config: &PerceptronConfig,
    inputs: &mut Inputs,
    observations: &str,
    condition: Option<Name>,
) -> Result<Name, ExportError> {
    let k = inputs.k;
    let width = match &agent.task.observations {
        ObservationSpace::Vectors { width } => *width,
        ObservationSpace::Pixels { .. } => {
            return Err(ExportError::Unsupported {
                what: "a perceptron on frames".into(),
                instead: "such agents cannot be trained".into(),
            });
        }
    };
    let mut real = observations.to_owned();
    if k > 1 {
        let mask = inputs.mask(g);
        real = g.op("Mul", &[&real, &mask]);
    }
    let mut x = g.reshape(&real, &[1, k * width]);
    if let Some(condition) = condition {
        let newest = g.slice(&condition, 0, k - 1, k);
        x = g.concat(&[x, newest], 1);
    }
    networks::layers(g, &x, "layers", config.n_layers, false)
}

/// Scale, shift, low and high of each dimension between [-1, 1] and the environment's units, and
/// the divisor of the way back; `None` if nothing changes.
fn bounds(actions: &ActionSpace) -> Option<Vec<[f32; 5]>> {
    let scale = ActionScale::of(actions)?;
    let factors = |bounds: &Option<[f64; 2]>| match *bounds {
        None => [1.0, 0.0, f32::NEG_INFINITY, f32::INFINITY, 1.0],
        Some([low, high]) if (high - low).is_infinite() => [1.0, 0.0, low as f32, high as f32, 1.0],
        Some([low, high]) => {
            let half = 0.5 * (high - low);
            // Between two equal bounds every action is 0.
            let divisor = if half > 0.0 { half } else { f64::INFINITY };
            [half, low + half, low, high.max(low), divisor].map(|x| x as f32)
        }
    };
    Some(scale.bounds().iter().map(factors).collect())
}

/// Actions in [-1, 1] in the environment's units.
fn in_units_of(g: &mut Graph<'_>, numbers: &str, actions: &ActionSpace) -> Name {
    let Some(bounds) = bounds(actions) else { return numbers.into() };
    let mut x = numbers.to_owned();
    for (at, kind) in ["Mul", "Add", "Max", "Min"].into_iter().enumerate() {
        let column = column(g, &bounds, at);
        x = g.op(kind, &[&x, &column]);
    }
    x
}

/// Actions of the environment in [-1, 1].
fn to_unit(g: &mut Graph<'_>, raw: &str, actions: &ActionSpace) -> Name {
    let Some(bounds) = bounds(actions) else { return raw.into() };
    let (shift, divisor) = (column(g, &bounds, 1), column(g, &bounds, 4));
    let centred = g.op("Sub", &[raw, &shift]);
    g.op("Div", &[&centred, &divisor])
}

fn column(g: &mut Graph<'_>, bounds: &[[f32; 5]], at: usize) -> Name {
    let column: Vec<f32> = bounds.iter().map(|bounds| bounds[at]).collect();
    g.floats(&column, &[bounds.len()])
}
