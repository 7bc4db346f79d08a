//! Positions of tokens, and their tables.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor},
};
use overtone_kernels::{Form, embedding, layer_norm};
use serde::{Deserialize, Serialize};

use crate::{
    contexts::{Contexts, Places, Stored},
    error::{ModelError, check_not_negative, check_size},
    inputs::Sections,
    parameters::init::Init,
};

/// A kind of positions, with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PositionsConfig {
    /// One position for each token in the context, and one for the context in its episode: the
    /// reference on Atari.
    LocalAndGlobal {
        /// Largest timestep in the global table; later ones use its last row.
        max_timestep: usize,
    },
    /// One position for each token in the context: the reference on Atari without the context's
    /// position in its episode.
    Local,
    /// One position for each timestep in its episode, and a layer norm over every token: the
    /// reference on Gym.
    Timestep {
        /// Step limit of an episode: rows of the table. Later timesteps use its last row.
        horizon: usize,
        /// Standard deviation of the table before training.
        ///
        /// The reference's 1 is larger than the observations' part of a token. It is noise until
        /// every row was trained many times.
        std: f64,
    },
    /// No positions: only causal attention orders the tokens. The reference's layer norm over every
    /// token stays.
    Order,
}

/// The standard deviation of the timestep table in the reference on Gym.
pub(crate) const REFERENCE_STD: f64 = 1.0;

impl PositionsConfig {
    /// # Errors
    /// Names the first key with an invalid value.
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

/// Adds positions to tokens.
#[derive(Module, Debug)]
pub enum Positions {
    /// See [`LocalAndGlobal`].
    LocalAndGlobal(LocalAndGlobal),
    /// See [`Timestep`].
    Timestep(Timestep),
}

/// Local positions count from each context's first real token. The global position is the position
/// of the context's first real timestep.
#[derive(Module, Debug)]
pub struct LocalAndGlobal {
    /// `[3·context_length + 1, d_model]`: position of a token in the context.
    pub local: Param<Tensor<2>>,
    /// `[max_timestep + 1, d_model]`: position of the context in its episode.
    pub global: Option<Param<Tensor<2>>>,
}

/// The same row for each token of a timestep (none without a table), and a layer norm.
#[derive(Module, Debug)]
pub struct Timestep {
    /// `[horizon, d_model]`: position of a timestep in its episode.
    pub table: Option<Param<Tensor<2>>>,
    /// `[d_model]`
    pub norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub norm_bias: Param<Tensor<1>>,
}

impl PositionsConfig {
    /// Sends the rows of contexts with these places in the tables, for contexts of `n_tokens`
    /// tokens, the first of which without padding are `first_token`.
    pub(crate) fn send(
        &self,
        places: Places<'_>,
        first_token: &[usize],
        n_tokens: usize,
        to: &mut Sections,
    ) {
        let [batch, rows] = [first_token.len(), places.timesteps.len()];
        match *self {
            Self::Timestep { horizon, .. } => {
                to.ints("timestep_rows", &[rows], nearest(places.timesteps.to_vec(), horizon));
                return;
            }
            Self::LocalAndGlobal { max_timestep } => {
                let rows = nearest(places.first_timesteps(), max_timestep + 1);
                to.ints("context_rows", &[batch], rows);
            }
            Self::Local => {}
            Self::Order => return,
        }
        // Without padding, tokens have the first rows of the table, and a gradient that is much
        // faster.
        if first_token.iter().any(|&token| token > 0) {
            let rows = token_rows(first_token, n_tokens);
            to.ints("token_rows", &[batch * n_tokens], rows);
        }
    }
}

impl Positions {
    /// New tables for contexts of up to `context_length` timesteps: zeros for contexts,
    /// N(0, std²) for timesteps.
    pub fn init(
        config: &PositionsConfig,
        context_length: usize,
        d_model: usize,
        init: &mut Init<'_>,
    ) -> Self {
        let mut zeros = |rows: usize| init.constant([rows, d_model], 0.0);
        match *config {
            PositionsConfig::LocalAndGlobal { max_timestep } => {
                Self::LocalAndGlobal(LocalAndGlobal {
                    local: zeros(3 * context_length + 1),
                    global: Some(zeros(max_timestep + 1)),
                })
            }
            PositionsConfig::Local => Self::LocalAndGlobal(LocalAndGlobal {
                local: zeros(3 * context_length + 1),
                global: None,
            }),
            PositionsConfig::Timestep { .. } | PositionsConfig::Order => {
                let table = match *config {
                    PositionsConfig::Timestep { horizon, std } => {
                        Some(init.normal([horizon, d_model], std))
                    }
                    _ => None,
                };
                Self::Timestep(Timestep {
                    table,
                    norm_weight: init.constant([d_model], 1.0),
                    norm_bias: init.constant([d_model], 0.0),
                })
            }
        }
    }

    /// The tokens of each kind with their timesteps' positions.
    ///
    /// # Shapes
    /// - each of `streams`, and of the result: `[batch, time, d_model]`
    pub fn in_episode(&self, streams: Vec<Tensor<3>>, contexts: &Contexts) -> Vec<Tensor<3>> {
        let Self::Timestep(Timestep { table: Some(table), .. }) = self else { return streams };
        let stored = contexts.stored.as_ref().and_then(|stored| stored.timestep_rows.clone());
        let rows = match stored {
            Some(rows) => embedding(table.val(), rows),
            None => rows_of(table.val(), contexts.timesteps.clone()),
        };
        let rows = rows.reshape(streams[0].dims());
        streams.into_iter().map(|tokens| tokens + rows.clone()).collect()
    }

    /// All tokens with their positions in the context.
    ///
    /// # Shapes
    /// - `tokens`, result: `[batch, tokens, d_model]`
    pub fn in_context(&self, tokens: Tensor<3>, contexts: &Contexts, form: Form) -> Tensor<3> {
        let positions = match self {
            Self::LocalAndGlobal(positions) => positions,
            Self::Timestep(Timestep { norm_weight, norm_bias, .. }) => {
                return layer_norm(tokens, norm_weight.val(), norm_bias.val(), form);
            }
        };
        let ([_, time], [_, n_tokens, _]) = (contexts.dims(), tokens.dims());
        let local = positions.local(contexts, n_tokens, n_tokens / time);
        match &positions.global {
            Some(table) => {
                let stored =
                    contexts.stored.as_ref().and_then(|stored| stored.context_rows.clone());
                let rows = match stored {
                    Some(rows) => embedding(table.val(), rows),
                    None => rows_of(table.val(), contexts.first_timesteps()),
                };
                tokens + local + rows.unsqueeze_dim::<3>(1)
            }
            None => tokens + local,
        }
    }
}

impl LocalAndGlobal {
    /// `[batch or 1, tokens, d_model]`.
    fn local(&self, contexts: &Contexts, n_tokens: usize, per_step: usize) -> Tensor<3> {
        let table = self.local.val();
        let ([batch, _], [_, d_model]) = (contexts.dims(), table.dims());
        let rows = match &contexts.stored {
            Some(Stored { token_rows: Some(rows), .. }) => embedding(table, rows.clone()),
            _ if contexts.n_padding.iter().all(|&pad| pad == 0) => {
                return table.narrow(0, 0, n_tokens).unsqueeze_dim::<3>(0);
            }
            _ => {
                let first_token: Vec<_> = contexts.n_padding.iter().map(|n| n * per_step).collect();
                rows_of(table, token_rows(&first_token, n_tokens))
            }
        };
        rows.reshape([batch, n_tokens, d_model])
    }
}

/// The position of each token in its context, `[batch · tokens]`; 0 in padding.
fn token_rows(first_token: &[usize], n_tokens: usize) -> Vec<i32> {
    let rows = first_token
        .iter()
        .flat_map(|&first| (0..n_tokens).map(move |token| token.saturating_sub(first) as i32));
    rows.collect()
}

/// The rows of a table for these timesteps; the nearest row for timesteps outside of it.
fn rows_of(table: Tensor<2>, timesteps: Vec<i32>) -> Tensor<2> {
    let rows: Vec<i32> = nearest(timesteps, table.dims()[0]).collect();
    let rows = Tensor::<1, Int>::from_data(&rows[..], &table.device());
    embedding(table, rows)
}

/// The row of each timestep in a table of `n_rows`.
fn nearest(timesteps: Vec<i32>, n_rows: usize) -> impl Iterator<Item = i32> {
    timesteps.into_iter().map(move |timestep| timestep.clamp(0, n_rows as i32 - 1))
}
