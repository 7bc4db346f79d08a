//! The Decision Transformer on one context.

use overtone_core::{ActionSpace, ObservationSpace};
use overtone_model::{
    AttentionConfig, DecisionTransformerConfig, decision_transformer::Activation,
    positions::PositionsConfig,
};

use crate::{
    error::ExportError,
    graph::{Attribute, Graph, Name},
    networks,
    proto::data_type,
};

/// Scores of hidden keys: their weight is exactly 0.
const HIDDEN: f32 = -1e9;
/// The floor of sines in Fourier scores.
const SINE_FLOOR: f32 = 1e-6;

/// The inputs of a context of `K` timesteps.
pub struct Context {
    /// `[K, width]` or frames.
    pub observations: Name,
    /// `[K]` of indices, or `[K, width]` in [-1, 1].
    pub actions: Name,
    /// `[K, 1 + top percents]`; `None` in behaviour cloning.
    pub condition: Option<Name>,
    /// Whether the condition is a top percent.
    pub is_top_percent: bool,
    /// `[K]`
    pub timesteps: Name,
    /// `[K, 1]`: 1 for real timesteps.
    pub mask: Name,
}

/// The output of the newest observation token, `[1, d_model]`.
///
/// # Errors
/// When a weight is missing.
pub fn transformer(
    g: &mut Graph<'_>,
    config: &DecisionTransformerConfig,
    spaces: (&ObservationSpace, &ActionSpace),
    context: &Context,
) -> Result<Name, ExportError> {
    let (k, d) = (config.context_length, config.d_model);
    let squash =
        |g: &mut Graph<'_>, x: Name| if config.tanh_embeddings { g.op("Tanh", &[&x]) } else { x };
    let mut streams = Vec::new();
    if let Some(condition) = &context.condition {
        // With a top percent, the bias is left out.
        let embedded = if context.is_top_percent {
            let weight = g.weight("returns.weight")?;
            g.op("MatMul", &[condition, &weight])
        } else {
            g.affine(condition, "returns")?
        };
        streams.push(squash(g, embedded));
    }
    streams.push(match spaces.0 {
        ObservationSpace::Pixels { .. } => {
            networks::nature(g, &context.observations, "encoder", k)?
        }
        ObservationSpace::Vectors { .. } => {
            let embedded = g.affine(&context.observations, "encoder")?;
            squash(g, embedded)
        }
    });
    let actions = match spaces.1 {
        ActionSpace::Discrete { .. } => {
            let table = g.weight("action.table")?;
            g.op("Gather", &[&table, &context.actions])
        }
        ActionSpace::Continuous { .. } => g.affine(&context.actions, "action")?,
    };
    streams.push(squash(g, actions));

    if let PositionsConfig::Timestep { horizon, .. } = config.positions {
        let rows = nearest(g, &context.timesteps, horizon);
        let table = g.weight("positions.table")?;
        let rows = g.op("Gather", &[&table, &rows]);
        streams = streams.iter().map(|tokens| g.op("Add", &[tokens, &rows])).collect();
    }
    let per_step = streams.len();
    let n_tokens = per_step * k;
    let streams: Vec<Name> = streams.iter().map(|x| g.reshape(x, &[k, 1, d])).collect();
    let tokens = g.concat(&streams, 1);
    let tokens = g.reshape(&tokens, &[n_tokens, d]);
    let mut x = in_context(g, config, &tokens, context, [per_step, n_tokens])?;

    let hidden = hidden_keys(g, &context.mask, [per_step, n_tokens]);
    for layer in 0..config.n_layers {
        x = block(g, config, &x, layer, &hidden, n_tokens)?;
    }
    let newest = n_tokens - 2;
    let x = g.slice(&x, 0, newest, newest + 1);
    g.layer_norm(&x, "final_norm_weight", "final_norm_bias")
}

/// Rows of a table of `rows` entries; later ones are its last.
fn nearest(g: &mut Graph<'_>, timesteps: &str, rows: usize) -> Name {
    let last = g.ints(&[rows as i64 - 1]);
    g.op("Min", &[timesteps, &last])
}

/// Tokens with their positions in the context, and the norm of models without a local table.
fn in_context(
    g: &mut Graph<'_>,
    config: &DecisionTransformerConfig,
    tokens: &str,
    context: &Context,
    [per_step, n_tokens]: [usize; 2],
) -> Result<Name, ExportError> {
    let global = match config.positions {
        PositionsConfig::Timestep { .. } | PositionsConfig::Order => {
            return g.layer_norm(tokens, "positions.norm_weight", "positions.norm_bias");
        }
        PositionsConfig::Local => None,
        PositionsConfig::LocalAndGlobal { max_timestep } => Some(max_timestep),
    };
    let k = config.context_length;
    // Positions count from the first real token.
    let axes = g.ints(&[0, 1]);
    let n_real = g.with("ReduceSum", &[&context.mask, &axes], &[("keepdims", Attribute::Int(0))]);
    let n_real = g.cast(&n_real, data_type::INT64);
    let n_real = g.reshape(&n_real, &[1]);
    let length = g.ints(&[k as i64]);
    let n_padding = g.op("Sub", &[&length, &n_real]);
    let (factor, zero) = (g.ints(&[per_step as i64]), g.ints(&[0]));
    let first = g.op("Mul", &[&n_padding, &factor]);
    let places: Vec<i64> = (0..n_tokens as i64).collect();
    let places = g.ints(&places);
    let places = g.op("Sub", &[&places, &first]);
    let places = g.op("Max", &[&places, &zero]);
    let table = g.weight("positions.local")?;
    let local = g.op("Gather", &[&table, &places]);
    let x = g.op("Add", &[tokens, &local]);
    let Some(max_timestep) = global else { return Ok(x) };
    // The context has the position of its first real timestep.
    let first = g.op("Gather", &[&context.timesteps, &n_padding]);
    let row = nearest(g, &first, max_timestep + 1);
    let table = g.weight("positions.global")?;
    let row = g.op("Gather", &[&table, &row]);
    Ok(g.op("Add", &[&x, &row]))
}

/// The bias of the scores of a query (row) and a key (column), `[tokens, tokens]`: later keys
/// and padding are hidden.
fn hidden_keys(g: &mut Graph<'_>, mask: &str, [per_step, n_tokens]: [usize; 2]) -> Name {
    let later = |place: usize| place % n_tokens > place / n_tokens;
    let causal: Vec<f32> =
        (0..n_tokens * n_tokens).map(|place| if later(place) { HIDDEN } else { 0.0 }).collect();
    let causal = g.floats(&causal, &[n_tokens, n_tokens]);
    let k = n_tokens / per_step;
    let dims = g.ints(&[k as i64, per_step as i64]);
    let mask = g.op("Expand", &[mask, &dims]);
    let mask = g.reshape(&mask, &[1, n_tokens]);
    let (one, least) = (g.float(1.0), g.float(-HIDDEN));
    let padding = g.op("Sub", &[&mask, &one]);
    let padding = g.op("Mul", &[&padding, &least]);
    g.op("Add", &[&causal, &padding])
}

fn block(
    g: &mut Graph<'_>,
    config: &DecisionTransformerConfig,
    x: &str,
    layer: usize,
    hidden: &str,
    n_tokens: usize,
) -> Result<Name, ExportError> {
    let (d, heads) = (config.d_model, config.n_heads);
    let d_head = d / heads;
    let in_block = |name: &str| format!("blocks.{layer}.{name}");
    let affine = |g: &mut Graph<'_>, x: &str, name: &str| {
        let weight = g.weight(&in_block(&format!("{name}_weight")))?;
        let bias = g.weight(&in_block(&format!("{name}_bias")))?;
        let product = g.op("MatMul", &[x, &weight]);
        Ok::<_, ExportError>(g.op("Add", &[&product, &bias]))
    };
    let normal = g.layer_norm(x, &in_block("norm_1_weight"), &in_block("norm_1_bias"))?;
    let qkv = affine(g, &normal, "qkv")?;
    let part = |g: &mut Graph<'_>, at: usize| {
        let part = g.slice(&qkv, 1, at * d, (at + 1) * d);
        let part = g.reshape(&part, &[n_tokens, heads, d_head]);
        g.transpose(&part, &[1, 0, 2])
    };
    let (q, k, v) = (part(g, 0), part(g, 1), part(g, 2));
    let (scores, epsilon) = match config.attention {
        AttentionConfig::Softmax(_) => {
            let turned = g.transpose(&k, &[0, 2, 1]);
            let scores = g.op("MatMul", &[&q, &turned]);
            let factor = g.float((d_head as f64).sqrt().recip() as f32);
            (g.op("Mul", &[&scores, &factor]), 0.0)
        }
        AttentionConfig::Fourier(kernel) => {
            let r = g.weight(&in_block("fourier_r"))?;
            let shape = g.shape(&r);
            let r = g.reshape(&r, &[shape[0], 1, 1, shape[1]]);
            let q = g.reshape(&q, &[heads, n_tokens, 1, d_head]);
            let k = g.reshape(&k, &[heads, 1, n_tokens, d_head]);
            let apart = g.op("Sub", &[&q, &k]);
            let apart = g.op("Mul", &[&apart, &r]);
            (log_sinc_power(g, &apart, kernel.power, [heads, n_tokens, n_tokens]), kernel.epsilon)
        }
    };
    let scores = g.op("Add", &[&scores, hidden]);
    let probs = if epsilon == 0.0 {
        g.with("Softmax", &[&scores], &[("axis", Attribute::Int(-1))])
    } else {
        // One more key with the weight epsilon and no value.
        let other = vec![epsilon.ln() as f32; heads * n_tokens];
        let other = g.floats(&other, &[heads, n_tokens, 1]);
        let all = g.concat(&[scores, other], 2);
        let all = g.with("Softmax", &[&all], &[("axis", Attribute::Int(-1))]);
        g.slice(&all, 2, 0, n_tokens)
    };
    let mixed = g.op("MatMul", &[&probs, &v]);
    let mixed = g.transpose(&mixed, &[1, 0, 2]);
    let mixed = g.reshape(&mixed, &[n_tokens, d]);
    let out = affine(g, &mixed, "projection")?;
    let x = g.op("Add", &[x, &out]);

    let normal = g.layer_norm(&x, &in_block("norm_2_weight"), &in_block("norm_2_bias"))?;
    let up = affine(g, &normal, "mlp_1")?;
    let up = activation(g, &up, config);
    let down = affine(g, &up, "mlp_2")?;
    Ok(g.op("Add", &[&x, &down]))
}

/// `max(x, 0)`, or `x Φ(x) = ½ x (1 + erf(x / √2))`.
fn activation(g: &mut Graph<'_>, x: &str, config: &DecisionTransformerConfig) -> Name {
    if config.activation == Activation::Relu {
        return g.op("Relu", &[x]);
    }
    let (root, one, half) = (g.float(std::f32::consts::FRAC_1_SQRT_2), g.float(1.0), g.float(0.5));
    let scaled = g.op("Mul", &[x, &root]);
    let erf = g.op("Erf", &[&scaled]);
    let sum = g.op("Add", &[&erf, &one]);
    let product = g.op("Mul", &[x, &sum]);
    g.op("Mul", &[&product, &half])
}

/// `power · Σ ln |sin x / x|` over the last axis; a series near 0, where the quotient cancels.
fn log_sinc_power(g: &mut Graph<'_>, x: &str, power: u32, dims: [usize; 3]) -> Name {
    // In double precision: logarithms of factors near 1 add up.
    let x = g.cast(x, data_type::DOUBLE);
    let square = g.op("Mul", &[&x, &x]);
    let least = g.doubles(&[1e-4], &[]);
    let is_small = g.op("Less", &[&square, &least]);
    let one = g.doubles(&[1.0], &[]);
    let safe = g.op("Where", &[&is_small, &one, &x]);
    let sine = g.op("Sin", &[&safe]);
    let sine = g.op("Mul", &[&sine, &sine]);
    let floor = g.doubles(&[f64::from(SINE_FLOOR).powi(2)], &[]);
    let sine = g.op("Add", &[&sine, &floor]);
    let squared = g.op("Mul", &[&safe, &safe]);
    let quotient = g.op("Div", &[&sine, &squared]);
    let log = g.op("Log", &[&quotient]);
    let half = g.doubles(&[0.5], &[]);
    let large = g.op("Mul", &[&log, &half]);
    // ln(sin x / x) = −x²/6 − x⁴/180 − …
    let (first, second) = (g.doubles(&[-1.0 / 6.0], &[]), g.doubles(&[-1.0 / 180.0], &[]));
    let inner = g.op("Mul", &[&square, &second]);
    let inner = g.op("Add", &[&inner, &first]);
    let small = g.op("Mul", &[&inner, &square]);
    let all = g.op("Where", &[&is_small, &small, &large]);
    let sum = g.sum_last(&all);
    let factor = g.doubles(&[f64::from(power)], &[]);
    let scores = g.op("Mul", &[&sum, &factor]);
    let scores = g.cast(&scores, data_type::FLOAT);
    g.reshape(&scores, &dims)
}
