//! Weights in the format of `DecisionTransformerModel` in Hugging Face's transformers.
//!
//! It is Chen et al.'s model for Gym with three additions, none of which changes an action:
//! predictions of states and returns, a table of words, and a table of positions. The first row of
//! the positions is added to every token after the embeddings' layer norm. On import, this row is
//! added to the norm's bias. On export, all three are zero.
//!
//! torch's `Linear` stores its matrix as `[out, in]`. Ours is `[in, out]`, as in transformers'
//! `Conv1D`.

use burn::tensor::TensorData;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_kernels::Activation;
use overtone_model::{
    AttentionConfig, DecisionTransformerConfig, ModelConfig, ModelError, conditioning::top_percent,
    error::config_error, head::HeadConfig, positions::PositionsConfig, published,
    weights::NamedTensors,
};
use serde::{Deserialize, Serialize};

use crate::{agent::Agent, algorithm::AlgorithmConfig, sequence_model::DecisionTransformerOptions};

/// `config.json`, as far as it affects the computation. transformers leaves out keys that have their
/// default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    model_type: String,
    architectures: Vec<String>,
    state_dim: usize,
    act_dim: usize,
    hidden_size: usize,
    max_ep_len: usize,
    action_tanh: bool,
    vocab_size: usize,
    n_positions: usize,
    n_layer: usize,
    n_head: usize,
    n_inner: Option<usize>,
    activation_function: String,
    resid_pdrop: f64,
    embd_pdrop: f64,
    attn_pdrop: f64,
    layer_norm_epsilon: f64,
    scale_attn_weights: bool,
    scale_attn_by_inverse_layer_idx: bool,
    /// The model has no words; transformers warns about its own default.
    bos_token_id: Option<u32>,
    eos_token_id: Option<u32>,
}

impl Default for Config {
    /// transformers' own, without words.
    fn default() -> Self {
        Self {
            model_type: "decision_transformer".into(),
            architectures: vec!["DecisionTransformerModel".into()],
            state_dim: 17,
            act_dim: 4,
            hidden_size: 128,
            max_ep_len: 4096,
            action_tanh: true,
            vocab_size: 1,
            // The forward pass reads only the first row, but accepts at most as many tokens as
            // there are rows.
            n_positions: 1024,
            n_layer: 3,
            n_head: 1,
            n_inner: None,
            activation_function: "relu".into(),
            resid_pdrop: 0.1,
            embd_pdrop: 0.1,
            attn_pdrop: 0.1,
            layer_norm_epsilon: 1e-5,
            scale_attn_weights: true,
            scale_attn_by_inverse_layer_idx: false,
            bos_token_id: None,
            eos_token_id: None,
        }
    }
}

/// The table of timesteps: all zeros there for a model without one.
const TIMESTEPS: &str = "embed_timestep.weight";
const POSITIONS: &str = "encoder.wpe.weight";

/// An agent's model in transformers' format. With `top_percent` above 0 it is conditioned on this
/// top percent and ignores its returns; otherwise it is conditioned on returns.
///
/// # Errors
/// [`ModelError::Config`] if transformers has no such model, with the key that does not fit.
pub fn export(
    agent: &Agent,
    weights: &NamedTensors,
    top_percent: f32,
) -> Result<(Config, NamedTensors), ModelError> {
    let wrong = |key, got: String| Err(config_error(key, got, REASON));
    let model = match agent.algorithm.model() {
        Some(ModelConfig::Transformer(model)) => model,
        Some(ModelConfig::Perceptron(_)) => return wrong("model.kind", "perceptron".into()),
        None => return wrong("algorithm", agent.algorithm.describe()),
    };
    let usual = Config::default();
    let horizon = match model.positions {
        PositionsConfig::Timestep { horizon, .. } => horizon,
        PositionsConfig::Order => agent.task.horizon.unwrap_or(usual.max_ep_len),
        PositionsConfig::Local | PositionsConfig::LocalAndGlobal { .. } => {
            return wrong("positions", "local".into());
        }
    };
    let ObservationSpace::Vectors { width } = agent.task.observations else {
        return wrong("encoder", "pixels".into());
    };
    let Some(conditioning) = &model.conditioning else {
        return wrong("model.conditioning", "none".into());
    };
    let reads_returns = top_percent == 0.0;
    if reads_returns && conditioning.average_return.is_some() {
        return wrong("model.return_unit", "rate".into());
    }
    if let Some(returns) = conditioning.return_model.as_ref().filter(|_| reads_returns) {
        return wrong("model.return_head", returns.head.describe());
    }
    if model.attention != AttentionConfig::SOFTMAX {
        return wrong("attention", model.attention.describe());
    }
    let is_tanh = matches!(model.head, HeadConfig::Tanh(_));
    if !is_tanh || !matches!(agent.task.actions, ActionSpace::Continuous { .. }) {
        return wrong("head", model.head.describe());
    }
    if model.activation != Activation::Relu || model.tanh_embeddings {
        return wrong("activation", "gelu, or tanh embeddings".into());
    }
    let act_dim = agent.task.actions.size();
    let mut theirs = published::to_hugging_face(&model, weights)?;
    let place = if reads_returns {
        None
    } else {
        Some(top_percent::index(top_percent, &conditioning.top_percents)?)
    };
    condition(place, conditioning.return_range, &mut theirs)?;
    let d = model.d_model;
    // A timestep is three tokens.
    let n_positions = usual.n_positions.max(3 * model.context_length);
    for (name, shape) in [
        (TIMESTEPS, vec![horizon, d]),
        (POSITIONS, vec![n_positions, d]),
        ("encoder.wte.weight", vec![1, d]),
        ("predict_state.weight", vec![width, d]),
        ("predict_state.bias", vec![width]),
        ("predict_return.weight", vec![1, d]),
        ("predict_return.bias", vec![1]),
    ] {
        let zeros = vec![0.0f32; shape.iter().product()];
        theirs.entry(name.into()).or_insert(TensorData::new(zeros, shape));
    }
    let config = Config {
        state_dim: width,
        act_dim,
        hidden_size: d,
        max_ep_len: horizon,
        n_positions,
        n_layer: model.n_layers,
        n_head: model.n_heads,
        resid_pdrop: model.dropout,
        embd_pdrop: model.dropout,
        attn_pdrop: model.dropout,
        ..usual
    };
    Ok((config, theirs))
}

/// Merges the conditioning of our model into the layer of returns, which has one input there.
///
/// - For a top percent at `place`, the weight is 0, and the bias is `W_{1 + place}` instead of
///   `R̂ W₀ + b`.
/// - With a range, `R' = k (R̂ − low) − 1`, `k = 2 / (high − low)`, is
///   `R' W₀ + b = R̂ (k W₀) + (b − (k low + 1) W₀)`.
fn condition(
    place: Option<u8>,
    range: Option<[f32; 2]>,
    theirs: &mut NamedTensors,
) -> Result<(), ModelError> {
    let [weight, bias] = ["embed_return.weight", "embed_return.bias"];
    // `[d, 1 + top percents]`, because it was transposed.
    let layer = tensor(theirs, weight)?;
    let [d, width] = [0, 1].map(|axis| layer.shape()[axis]);
    let numbers: Vec<f64> = layer.iter().collect();
    let column = |nth: usize| numbers.iter().skip(nth).step_by(width);
    let b: Vec<f64> = tensor(theirs, bias)?.iter().collect();
    let [k, moved] = match range {
        _ if place.is_some() => [0.0, 0.0],
        None => [1.0, 0.0],
        Some([low, high]) => {
            let (low, high) = (f64::from(low), f64::from(high));
            let k = 2.0 / (high - low);
            [k, -(k * low + 1.0)]
        }
    };
    let scaled: Vec<f32> = column(0).map(|w| (k * w) as f32).collect();
    let moved: Vec<f32> = match place {
        Some(place) => column(1 + usize::from(place)).map(|w| *w as f32).collect(),
        None => b.iter().zip(column(0)).map(|(b, w)| (b + moved * w) as f32).collect(),
    };
    theirs.insert(weight.into(), TensorData::new(scaled, [d, 1]));
    theirs.insert(bias.into(), TensorData::new(moved, [d]));
    Ok(())
}

const REASON: &str = "transformers' DecisionTransformerModel has no such part: it is a transformer \
                      of vectors, conditioned on returns, with softmax attention and the tanh head";

/// Transformers' model in our format, for `task`; their configuration lacks `context_length`.
///
/// # Errors
/// When its computation differs from our model, its sizes differ from the task, or it lacks a
/// tensor.
pub fn import(
    config: &Config,
    theirs: &NamedTensors,
    task: &Task,
    context_length: usize,
) -> Result<(AlgorithmConfig, NamedTensors), ModelError> {
    let check = |key, got: String, expected: String| {
        if got == expected { Ok(()) } else { Err(config_error(key, got, expected)) }
    };
    check("activation_function", config.activation_function.clone(), "relu".into())?;
    check("action_tanh", config.action_tanh.to_string(), "true".into())?;
    check("layer_norm_epsilon", config.layer_norm_epsilon.to_string(), 1e-5.to_string())?;
    check("scale_attn_weights", config.scale_attn_weights.to_string(), "true".into())?;
    check(
        "scale_attn_by_inverse_layer_idx",
        config.scale_attn_by_inverse_layer_idx.to_string(),
        "false".into(),
    )?;
    let inner = config.n_inner.unwrap_or(4 * config.hidden_size);
    check("n_inner", inner.to_string(), (4 * config.hidden_size).to_string())?;
    check("state_dim", config.state_dim.to_string(), task.observations.size().to_string())?;
    check("act_dim", config.act_dim.to_string(), task.actions.size().to_string())?;
    let table = tensor(theirs, TIMESTEPS)?;
    let reference = DecisionTransformerConfig::gym(config.max_ep_len);
    let model = DecisionTransformerConfig {
        n_layers: config.n_layer,
        n_heads: config.n_head,
        d_model: config.hidden_size,
        context_length,
        dropout: config.resid_pdrop,
        positions: if table.iter::<f32>().all(|number| number == 0.0) {
            PositionsConfig::Order
        } else {
            reference.positions
        },
        ..reference
    };
    model.validate(&task.observations, &task.actions)?;
    // Otherwise the imported model would differ from the written one.
    let next = format!("encoder.h.{}.", config.n_layer);
    if theirs.keys().any(|name| name.starts_with(&next)) {
        let expected = "must equal the number of blocks in the weights, which is larger";
        return Err(config_error("n_layer", config.n_layer, expected));
    }
    let mut ours = published::hugging_face(&model, theirs)?;
    // Added to every token after the norm, like the norm's bias.
    if let Some(positions) = theirs.get(POSITIONS) {
        let bias = tensor(theirs, "embed_ln.bias")?;
        let sum: Vec<f32> =
            bias.iter().zip(positions.iter::<f32>()).map(|(b, p): (f32, f32)| b + p).collect();
        let shape = [sum.len()];
        ours.insert("positions.norm_bias".into(), TensorData::new(sum, shape));
    }
    Ok((AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model)), ours))
}

fn tensor<'a>(tensors: &'a NamedTensors, name: &str) -> Result<&'a TensorData, ModelError> {
    tensors.get(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_core::seed;
    use overtone_model::{Init, Model, weights};

    const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 3 };

    fn task() -> Task {
        Task::own("three", OBSERVATIONS, ActionSpace::unit(2))
    }

    /// A model and its weights.
    fn model(context_length: usize) -> (DecisionTransformerConfig, NamedTensors) {
        let config = DecisionTransformerConfig {
            n_layers: 1,
            d_model: 4,
            context_length,
            ..DecisionTransformerConfig::gym(5)
        };
        let generator = &mut seed::generator(1, "init");
        let init = &mut Init::drawn(&Device::flex(), generator);
        let options = ModelConfig::Transformer(config.clone());
        let model = Model::init(&options, &OBSERVATIONS, &task().actions, init).unwrap();
        (config, weights::export(&model))
    }

    /// 1024 positions hold 341 timesteps.
    #[test]
    fn every_token_of_a_context_has_a_position() {
        for (context_length, expected) in [(341, 1024), (342, 1026)] {
            let (config, weights) = model(context_length);
            let agent = Agent {
                task: task(),
                dataset: String::new(),
                algorithm: AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(config)),
                normalization: None,
                return_scale: 1.0,
                delayed_reward: false,
                recording: None,
                needs_action_mask: false,
            };
            let (config, theirs) = export(&agent, &weights, 0.0).unwrap();
            assert_eq!(config.n_positions, expected);
            assert_eq!(theirs[POSITIONS].shape()[..], [expected, 4]);
        }
    }

    /// transformers writes only the keys that differ from its defaults.
    #[test]
    fn a_config_without_default_values_is_read() {
        let config: Config = serde_json::from_str(r#"{"state_dim": 3, "act_dim": 2}"#).unwrap();
        assert_eq!(config, Config { state_dim: 3, act_dim: 2, ..Config::default() });
        let gym =
            DecisionTransformerConfig { context_length: 7, ..DecisionTransformerConfig::gym(4096) };
        let generator = &mut seed::generator(1, "init");
        let init = &mut Init::drawn(&Device::flex(), generator);
        let options = ModelConfig::Transformer(gym.clone());
        let model = Model::init(&options, &OBSERVATIONS, &task().actions, init).unwrap();
        let weights = weights::export(&model);
        let theirs = published::to_hugging_face(&gym, &weights).unwrap();
        let (imported, ours) = import(&config, &theirs, &task(), 7).unwrap();
        let expected = AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(gym));
        assert_eq!((imported, ours), (expected, weights));
    }

    /// transformers adds the first row of its positions after the norm, so it is merged into the
    /// bias.
    #[test]
    fn the_first_position_is_merged_into_the_norms_bias() {
        let text = r#"{"state_dim": 3, "act_dim": 2, "hidden_size": 4, "max_ep_len": 5,
                       "n_layer": 1, "n_head": 1}"#;
        let config: Config = serde_json::from_str(text).unwrap();
        let (task, (model, weights)) = (task(), model(7));
        let mut theirs = published::to_hugging_face(&model, &weights).unwrap();
        assert_eq!(published::hugging_face(&model, &theirs).unwrap(), weights);
        let bias = vec![1.0f32, 2.0, 3.0, 4.0];
        theirs.insert("embed_ln.bias".into(), TensorData::new(bias, [4]));
        let positions = vec![0.5f32, 0.0, -1.0, 0.25, 9.0, 9.0, 9.0, 9.0];
        theirs.insert(POSITIONS.into(), TensorData::new(positions, [2, 4]));
        let (_, ours) = import(&config, &theirs, &task, 7).unwrap();
        let bias: Vec<f32> = ours["positions.norm_bias"].iter().collect();
        assert_eq!(bias, [1.5, 2.0, 2.0, 4.25]);
        theirs.remove("encoder.ln_f.bias");
        let lost = import(&config, &theirs, &task, 7).unwrap_err().to_string();
        assert!(lost.contains("encoder.ln_f.bias"), "{lost}");
        theirs.insert("encoder.h.1.ln_1.bias".into(), TensorData::new(vec![0.0f32; 4], [4]));
        let more = import(&config, &theirs, &task, 7).unwrap_err().to_string();
        assert!(more.starts_with("n_layer = 1: must equal the number of blocks"), "{more}");
        let leaky = Config { activation_function: "gelu_new".into(), ..config };
        let error = import(&leaky, &theirs, &task, 7).unwrap_err().to_string();
        assert_eq!(error, "activation_function = gelu_new: relu");
    }

    #[test]
    fn a_range_of_returns_is_merged_into_the_weights() {
        let (w, b) = ([0.5f32, -2.0, 1.0], [0.25f32, 0.0, -1.0]);
        let mut theirs = NamedTensors::from([
            ("embed_return.weight".into(), TensorData::new(w.to_vec(), [3, 1])),
            ("embed_return.bias".into(), TensorData::new(b.to_vec(), [3])),
        ]);
        condition(None, Some([-1.5, 6.5]), &mut theirs).unwrap();
        let [weight, bias] = ["embed_return.weight", "embed_return.bias"]
            .map(|name| theirs[name].iter::<f64>().collect::<Vec<_>>());
        for returns in [-3.0, 0.0, 5.4] {
            // -1 at -1.5, 1 at 6.5.
            let input = (returns + 1.5) / 4.0 - 1.0;
            for i in 0..3 {
                let expected = input * f64::from(w[i]) + f64::from(b[i]);
                let got = returns * weight[i] + bias[i];
                assert!((got - expected).abs() < 1e-6, "{returns}: {got}, {expected}");
            }
        }
    }

    #[test]
    fn a_top_percent_becomes_the_bias() {
        // Inputs are the return and two top percents.
        let w = vec![0.5f32, 10.0, 20.0, -2.0, 30.0, 40.0];
        let mut theirs = NamedTensors::from([
            ("embed_return.weight".into(), TensorData::new(w, [2, 3])),
            ("embed_return.bias".into(), TensorData::new(vec![0.25f32, -1.0], [2])),
        ]);
        condition(Some(1), Some([-1.5, 6.5]), &mut theirs).unwrap();
        let weight = &theirs["embed_return.weight"];
        assert_eq!(weight.iter::<f64>().collect::<Vec<_>>(), [0.0; 2]);
        assert_eq!(theirs["embed_return.bias"], TensorData::new(vec![20.0f32, 40.0], [2]));
    }
}
