//! What can be wrong with a model's configuration or weights.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A configuration that describes no model.
    #[error("{key} = {got}: {expected}")]
    Config {
        /// The offending key as a person writes it, such as `model.n_layers` or `td3_bc.alpha`; the
        /// field's own name where no key sets it.
        key: String,
        /// Its value.
        got: String,
        /// What it must be.
        expected: String,
    },
    /// A tensor the model needs is not in the file.
    #[error(
        "tensor `{name}` is missing from the weights; the model's configuration and its weights do not belong together"
    )]
    MissingTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor that no parameter of the model has.
    #[error(
        "tensor `{name}` belongs to no part of the model; the model's configuration and its weights do not belong together"
    )]
    UnknownTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor has another shape than the model's.
    #[error("tensor `{name}` has shape {got:?}, the model expects {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Shape in the file.
        got: Vec<usize>,
        /// Shape in the model.
        expected: Vec<usize>,
    },
    /// Two of a model's tensors have different float types.
    #[error(
        "tensor `{name}` has type {got} and `{first}` has {expected}; the weights of a model must have one type"
    )]
    MixedTypes {
        /// Name of the tensor.
        name: String,
        /// Type of the tensor.
        got: String,
        /// Name of the first tensor.
        first: String,
        /// Type of the first tensor.
        expected: String,
    },
    /// A tensor has a type the model cannot take.
    #[error("tensor `{name}` has type {got}; f16, bf16, f32 or f64 is needed")]
    DType {
        /// Name of the tensor.
        name: String,
        /// Type in the file.
        got: String,
    },
    /// A safetensors file that cannot be read.
    #[error("{}: not a readable safetensors file ({reason}); delete it and use another checkpoint", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        reason: String,
    },
    /// A file that is no state dict, or a damaged one.
    #[error("{}: not readable as torch.save writes it ({reason})", path.display())]
    StateDict {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        reason: String,
    },
    /// The file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Inputs that do not fit each other or the model.
    #[error("{what}: got {got}, expected {expected}")]
    Input {
        /// Which input.
        what: &'static str,
        /// What was given.
        got: String,
        /// What is needed.
        expected: String,
    },
}

/// The most layers, timesteps of a context, bins of a number and the like that there may be:
/// far beyond any experiment, and small enough that a damaged configuration claims no memory.
/// No weight has their size, so nothing else bounds them.
const MOST: usize = 1 << 16;

/// # Errors
/// Names the first key whose value is 0 or beyond all measure.
pub(crate) fn check_counts(counts: &[(&'static str, usize)]) -> Result<(), ModelError> {
    match counts.iter().find(|(_, value)| !(1..=MOST).contains(value)) {
        Some(&(key, value)) => Err(config_error(key, value, "must lie in 1 to 65536")),
        None => Ok(()),
    }
}

/// # Errors
/// When a size that takes no memory of itself is 0, or no 32-bit integer, as timesteps are.
pub(crate) fn check_size(key: &'static str, size: usize) -> Result<(), ModelError> {
    match i32::try_from(size) {
        Ok(1..) => Ok(()),
        _ => Err(config_error(key, size, "must lie in 1 to 2147483647")),
    }
}

/// # Errors
/// When it is negative, or infinite in the single precision that models have.
pub(crate) fn check_not_negative(key: &'static str, value: f64) -> Result<(), ModelError> {
    match value >= 0.0 && (value as f32).is_finite() {
        true => Ok(()),
        false => Err(config_error(key, value, "must be 0 or positive, and a finite f32")),
    }
}

/// A value of the key `key` that describes nothing there is.
pub fn config_error(
    key: impl Into<String>,
    got: impl ToString,
    expected: impl Into<String>,
) -> ModelError {
    ModelError::Config { key: key.into(), got: got.to_string(), expected: expected.into() }
}
