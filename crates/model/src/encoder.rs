//! Encoders of observations and actions as tokens. A new encoder is one more file, and one variant.

mod actions;
mod nature;

use burn::{module::Module, tensor::Tensor};
use overtone_core::ObservationSpace;
use overtone_kernels::Form;

pub use actions::{ActionEmbedding, ActionTable};
pub use nature::NatureEncoder;

use crate::{
    contexts::{FRAME, Observed, STACK},
    error::{ModelError, check_size, config_error},
    parameters::{affine::Squashed, init::Init},
};

/// Embeds observations.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one encoder per model
pub enum Encoder {
    /// See [`NatureEncoder`].
    Nature(NatureEncoder),
    /// One affine layer on a vector.
    Linear(Squashed),
}

impl Encoder {
    /// The encoder for such observations. `tanh`: whether encoded vectors go through tanh.
    pub fn init(
        observations: &ObservationSpace,
        d_model: usize,
        tanh: bool,
        init: &mut Init<'_>,
    ) -> Self {
        match observations {
            ObservationSpace::Pixels { .. } => Self::Nature(NatureEncoder::init(d_model, init)),
            ObservationSpace::Vectors { width } => {
                Self::Linear(Squashed::init([*width, d_model], tanh, init))
            }
        }
    }

    /// Embeds raw observations.
    ///
    /// # Shapes
    /// - result: `[n, d_model]`, observation by observation
    ///
    /// # Panics
    /// When the observations have another kind than the encoder's: a caller's bug.
    pub fn forward(&self, observed: &Observed, form: Form) -> Tensor<2> {
        match (self, observed) {
            (Self::Nature(encoder), Observed::Frames(frames)) => {
                encoder.forward(frames.clone(), form)
            }
            (Self::Linear(encoder), Observed::Vectors(vectors)) => {
                let [batch, time, width] = vectors.dims();
                encoder.forward(vectors.clone().reshape([batch * time, width]))
            }
            _ => panic!("observations of another kind than the encoder's"),
        }
    }
}

/// # Errors
/// When there is no encoder for such observations.
pub fn validate(observations: &ObservationSpace) -> Result<(), ModelError> {
    match observations {
        ObservationSpace::Pixels { shape } if shape[..] != [STACK, FRAME, FRAME] => {
            let expected = "must be [4, 84, 84]: the encoder sees 4 frames of 84 × 84 pixels";
            Err(config_error("observations", format!("{shape:?}"), expected))
        }
        ObservationSpace::Pixels { .. } => Ok(()),
        ObservationSpace::Vectors { width } => check_size("observations", *width),
    }
}
