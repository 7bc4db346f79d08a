//! What tells a token where it stands. A new kind is one file beside this one's, and one variant
//! of each enum.

mod local_and_global;
mod timestep;

use burn::{
    module::Module,
    tensor::{Int, Tensor, TensorData},
};
use overtone_kernels::Form;
use serde::{Deserialize, Serialize};

pub use local_and_global::LocalAndGlobal;
pub use timestep::Timestep;

use crate::{
    contexts::Contexts,
    error::{ModelError, check_not_negative, check_size},
    init::Init,
};

/// Which positions, with their own options.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PositionsConfig {
    /// One for each token in the context, one for the context in its episode: the reference on
    /// Atari.
    LocalAndGlobal {
        /// Largest timestep the global table knows; later ones use its last row.
        max_timestep: usize,
    },
    /// One for each token in the context: the reference on Atari, but that a context does not know
    /// its place in its episode.
    Local,
    /// One for each timestep in its episode, and a layer norm over every token: the reference
    /// on Gym.
    Timestep {
        /// Step limit of an episode: rows of the table. Later timesteps use its last row.
        horizon: usize,
        /// Standard deviation of the table before training.
        ///
        /// The reference's 1 is larger than what observations bring to a token, and is noise on
        /// them until every row was trained often.
        #[serde(default = "reference_std")]
        std: f64,
    },
    /// None but the order in which tokens see those before them, and the reference's layer norm over
    /// every token.
    Order,
}

/// What the reference on Gym draws its timestep table from.
pub(crate) fn reference_std() -> f64 {
    1.0
}

impl PositionsConfig {
    /// # Errors
    /// Names the first key whose value describes no positions.
    pub fn validate(&self) -> Result<(), ModelError> {
        match *self {
            Self::Local | Self::Order => Ok(()),
            Self::LocalAndGlobal { max_timestep } => {
                check_size("positions.max_timestep", max_timestep.saturating_add(1))
            }
            Self::Timestep { horizon, std } => {
                check_size("positions.horizon", horizon)?;
                check_not_negative("model.timestep_std", std)
            }
        }
    }
}

/// Embedded steps, each `[batch, time, d_model]`.
pub struct Embedded {
    /// Absent in behaviour cloning.
    pub returns_to_go: Option<Tensor<3>>,
    /// What was seen.
    pub observations: Tensor<3>,
    /// What was done.
    pub actions: Tensor<3>,
}

/// Makes embedded steps the transformer's tokens.
#[derive(Module, Debug)]
pub enum Positions {
    /// See [`LocalAndGlobal`].
    LocalAndGlobal(LocalAndGlobal),
    /// See [`Timestep`].
    Timestep(Timestep),
}

impl Positions {
    /// New tables for contexts of up to `context_length` timesteps.
    pub fn init(
        config: &PositionsConfig,
        context_length: usize,
        d_model: usize,
        init: &mut Init<'_>,
    ) -> Self {
        match *config {
            PositionsConfig::LocalAndGlobal { max_timestep } => Self::LocalAndGlobal(
                LocalAndGlobal::init(context_length, Some(max_timestep), d_model, init),
            ),
            PositionsConfig::Local => {
                Self::LocalAndGlobal(LocalAndGlobal::init(context_length, None, d_model, init))
            }
            PositionsConfig::Timestep { horizon, std } => {
                Self::Timestep(Timestep::init(Some((horizon, std)), d_model, init))
            }
            PositionsConfig::Order => Self::Timestep(Timestep::init(None, d_model, init)),
        }
    }

    /// The tokens of each step side by side, with their positions: `[batch, tokens, d_model]`.
    pub fn tokens(&self, steps: Embedded, contexts: &Contexts, form: Form) -> Tensor<3> {
        match self {
            Self::LocalAndGlobal(positions) => positions.tokens(steps, contexts),
            Self::Timestep(positions) => positions.tokens(steps, contexts, form),
        }
    }
}

/// The rows of a table of these timesteps; before the first and beyond the last the nearest.
fn rows_of(table: Tensor<2>, mut timesteps: Vec<i32>) -> Tensor<2> {
    let last = table.dims()[0] as i32 - 1;
    timesteps.iter_mut().for_each(|timestep| *timestep = (*timestep).clamp(0, last));
    let rows = Tensor::<1, Int>::from_data(TensorData::from(&timesteps[..]), &table.device());
    table.select(0, rows)
}
