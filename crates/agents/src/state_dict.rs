//! Weights of the published Decision Transformers in the format of `torch.save`: tensors by name.
//!
//! Names and shapes determine all of a model except its attention heads and, on vectors, its
//! context. Only tensors are read from the file's pickle; its code is not executed.

use std::path::Path;

use burn::tensor::{Bytes, TensorData};
use overtone_core::{ObservationSpace, Task};
use overtone_model::{
    DecisionTransformerConfig, ModelError,
    positions::PositionsConfig,
    published,
    weights::{self, NamedTensors},
};
use pytorch_reader::{DType, PytorchReader, Tensor};

use crate::{algorithm::AlgorithmConfig, sequence_model::DecisionTransformerOptions};

/// Maximum ratio of the tensors' size to the file's size. A tensor can be a view that repeats the
/// same numbers.
const MOST_REPEATED: u64 = 64;

/// The settings that a state dict does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSettings {
    /// Attention heads; `None`: as published, 1 on vectors and 8 on frames.
    pub n_heads: Option<usize>,
    /// Context length in timesteps of a model of vectors.
    pub context_length: usize,
}

/// The float tensors of a `.safetensors` file, or of a `.pt`, `.pth` or `.bin` file, as `f32`.
/// Other tensors, such as masks, are left out.
///
/// # Errors
/// When the file has another format.
pub fn read(path: &Path) -> Result<NamedTensors, ModelError> {
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        return weights::load_floats(path);
    }
    let unreadable = |reason: String| ModelError::StateDict { path: path.to_owned(), reason };
    let reader = PytorchReader::new(path).map_err(|error| unreadable(one_line(&error)))?;
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let written = std::fs::metadata(path).map_err(io)?.len();
    let shown = reader.tensors().values().fold(0, |sum: u64, tensor| {
        let numbers = tensor.shape().iter().fold(1, |n: u64, axis| n.saturating_mul(*axis as u64));
        sum.saturating_add(numbers.saturating_mul(tensor.dtype().size() as u64))
    });
    if shown / MOST_REPEATED > written {
        return Err(unreadable(format!("{shown} bytes of tensors from a file of {written} bytes")));
    }
    let mut tensors = NamedTensors::new();
    for (name, tensor) in reader.tensors() {
        if let Some(floats) = floats(tensor).map_err(unreadable)? {
            tensors.insert(name.clone(), floats);
        }
    }
    Ok(tensors)
}

/// The first line of the reader's error; the other lines explain Python.
fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A tensor in single precision; `None` if it does not contain floats, such as a mask.
fn floats(tensor: &Tensor) -> Result<Option<TensorData>, String> {
    let dtype = match tensor.dtype() {
        DType::F16 => burn::tensor::DType::F16,
        DType::BF16 => burn::tensor::DType::BF16,
        DType::F32 => burn::tensor::DType::F32,
        DType::F64 => burn::tensor::DType::F64,
        _ => return Ok(None),
    };
    let bytes = Bytes::from_bytes_vec(tensor.read().map_err(|error| one_line(&error))?);
    TensorData::try_from_bytes(bytes, tensor.shape().to_vec(), dtype)
        .and_then(|data| data.try_cast_as::<f32>())
        .map(Some)
        .map_err(|error| one_line(&error))
}

/// A published model in our format, for `task`.
///
/// # Errors
/// When the tensors are not a published model, belong to other observations or actions than the
/// task's, or are incomplete.
pub fn import(
    theirs: &NamedTensors,
    task: &Task,
    missing_settings: MissingSettings,
) -> Result<(AlgorithmConfig, NamedTensors), ModelError> {
    let (mark, of) = match task.observations {
        ObservationSpace::Vectors { .. } => ("embed_state.weight", "vectors"),
        ObservationSpace::Pixels { .. } => ("state_encoder.0.weight", "frames"),
    };
    // The weights can be under a key of the file, or under the key of a parallel module.
    let Some(prefix) = theirs.keys().find_map(|name| name.strip_suffix(mark)) else {
        return Err(ModelError::Input {
            what: "state dict",
            got: match theirs.keys().next() {
                Some(name) => format!("{} tensors such as `{name}`", theirs.len()),
                None => "no tensors of floats".into(),
            },
            expected: format!(
                "the published Decision Transformer of {of} with `{mark}`, for observations of {}",
                task.title
            ),
        });
    };
    let theirs: NamedTensors = theirs
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone())))
        .collect();
    let (model, ours) = match task.observations {
        ObservationSpace::Vectors { .. } => {
            let model = gym(&theirs, task, missing_settings)?;
            let ours = published::gym(&model, &theirs)?;
            (model, ours)
        }
        ObservationSpace::Pixels { .. } => {
            let model = atari(&theirs, task, missing_settings)?;
            let ours = published::atari(&model, &theirs)?;
            (model, ours)
        }
    };
    model.validate(&task.observations, &task.actions)?;
    Ok((AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model)), ours))
}

fn gym(
    theirs: &NamedTensors,
    task: &Task,
    missing_settings: MissingSettings,
) -> Result<DecisionTransformerConfig, ModelError> {
    let [d_model, width] = shape(theirs, "embed_state.weight")?;
    same("width of observations", width, task.observations.size())?;
    let [actions, _] = shape(theirs, "predict_action.0.weight")?;
    same("numbers in an action", actions, task.actions.size())?;
    let [horizon, _] = shape(theirs, "embed_timestep.weight")?;
    Ok(DecisionTransformerConfig {
        n_layers: blocks(theirs, "transformer.h."),
        n_heads: missing_settings.n_heads.unwrap_or(1),
        d_model,
        context_length: missing_settings.context_length,
        ..DecisionTransformerConfig::gym(horizon)
    })
}

fn atari(
    theirs: &NamedTensors,
    task: &Task,
    missing_settings: MissingSettings,
) -> Result<DecisionTransformerConfig, ModelError> {
    let [actions, d_model] = shape(theirs, "head.weight")?;
    same("actions", actions, task.actions.size())?;
    // One row for each of three tokens per timestep, and one more.
    let [_, rows, _] = shape(theirs, "pos_emb")?;
    let [_, timesteps, _] = shape(theirs, "global_pos_emb")?;
    let max_timestep = timesteps.saturating_sub(1);
    Ok(DecisionTransformerConfig {
        n_layers: blocks(theirs, "blocks."),
        n_heads: missing_settings.n_heads.unwrap_or(8),
        d_model,
        context_length: rows.saturating_sub(1) / 3,
        positions: PositionsConfig::LocalAndGlobal { max_timestep },
        ..DecisionTransformerConfig::atari(max_timestep)
    })
}

fn same(what: &'static str, got: usize, expected: usize) -> Result<(), ModelError> {
    if got == expected {
        return Ok(());
    }
    let expected = format!("{expected}, as in the task");
    Err(ModelError::Input { what, got: format!("{got} in the state dict"), expected })
}

fn shape<const D: usize>(theirs: &NamedTensors, name: &str) -> Result<[usize; D], ModelError> {
    let tensor =
        theirs.get(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })?;
    let shape = tensor.shape().to_vec();
    shape.as_slice().try_into().map_err(|_| ModelError::Input {
        what: "a tensor of the state dict",
        got: format!("`{name}` of shape {shape:?}"),
        expected: format!("{D} axes"),
    })
}

/// Number of different numbers after `before` in the names.
fn blocks(theirs: &NamedTensors, before: &str) -> usize {
    let number = |name: &String| name.strip_prefix(before)?.split('.').next()?.parse().ok();
    let last: Option<usize> = theirs.keys().filter_map(number).max();
    // A missing block in between is found later, by its missing tensors.
    last.map_or(0, |last| last.saturating_add(1)).min(theirs.len())
}
