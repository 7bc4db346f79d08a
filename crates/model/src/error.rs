//! Errors in a model's configuration or weights.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// An invalid configuration.
    #[error("{key} = {got}: {expected}")]
    Config {
        /// The invalid key as a user writes it, such as `model.n_layers` or `td3_bc.alpha`; the
        /// field's own name if no key sets it.
        key: String,
        /// Its value.
        got: String,
        /// The valid values.
        expected: String,
    },
    /// A tensor that the model needs is missing from the file.
    #[error(
        "tensor `{name}` is missing from the weights: the configuration and the weights belong to different models"
    )]
    MissingTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor that does not belong to any parameter of the model.
    #[error(
        "tensor `{name}` does not belong to the model: the configuration and the weights belong to different models"
    )]
    UnknownTensor {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor with another shape than the model's.
    #[error("tensor `{name}` has shape {got:?}, the model expects {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Shape in the file.
        got: Vec<usize>,
        /// Shape in the model.
        expected: Vec<usize>,
    },
    /// Two tensors of a model with different float types.
    #[error(
        "tensor `{name}` has type {got}, but `{first}` has {expected}: the weights of a model must have one type"
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
    /// A tensor with a type that the model does not support.
    #[error("tensor `{name}` has type {got}, expected f16, bf16, f32 or f64")]
    DType {
        /// Name of the tensor.
        name: String,
        /// Type in the file.
        got: String,
    },
    /// A safetensors file that cannot be read.
    #[error("{}: not a valid safetensors file ({reason}). Delete it and use another checkpoint", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reader's error.
        reason: String,
    },
    /// A file that is not a state dict, or a damaged one.
    #[error("{}: not a file of torch.save ({reason})", path.display())]
    StateDict {
        /// The file.
        path: PathBuf,
        /// The reader's error.
        reason: String,
    },
    /// A file that could not be opened, read or written.
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
        /// The input.
        what: &'static str,
        /// The passed value.
        got: String,
        /// The valid values.
        expected: String,
    },
}

/// Maximum number of layers, timesteps of a context, bins and similar counts: far beyond any
/// experiment, and small enough that a damaged configuration does not allocate excessive memory.
/// Weights have no axis of these sizes, so nothing else bounds them.
const MOST: usize = 1 << 16;

/// # Errors
/// Names the first key with a value of 0 or above the maximum.
pub(crate) fn check_counts(counts: &[(&'static str, usize)]) -> Result<(), ModelError> {
    match counts.iter().find(|(_, value)| !(1..=MOST).contains(value)) {
        Some(&(key, value)) => Err(config_error(key, value, "must lie in 1 to 65536")),
        None => Ok(()),
    }
}

/// # Errors
/// When the size is 0, or not a 32-bit integer, the type of timesteps. Such a size does not
/// allocate memory.
pub(crate) fn check_size(key: &'static str, size: usize) -> Result<(), ModelError> {
    match i32::try_from(size) {
        Ok(1..) => Ok(()),
        _ => Err(config_error(key, size, "must lie in 1 to 2147483647")),
    }
}

/// # Errors
/// When it is negative, or infinite in single precision, the type of models.
pub(crate) fn check_not_negative(key: &'static str, value: f64) -> Result<(), ModelError> {
    if value >= 0.0 && (value as f32).is_finite() {
        Ok(())
    } else {
        Err(config_error(key, value, "must be 0 or positive, and a finite f32"))
    }
}

/// An error for the invalid value of a key.
pub fn config_error(
    key: impl Into<String>,
    got: impl ToString,
    expected: impl Into<String>,
) -> ModelError {
    ModelError::Config { key: key.into(), got: got.to_string(), expected: expected.into() }
}
