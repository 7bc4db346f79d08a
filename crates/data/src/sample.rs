//! Datasets in memory, and batches drawn from them.

pub mod batch;
pub(crate) mod best_shares;
pub(crate) mod combinations;
pub(crate) mod copies;
pub(crate) mod counts;
pub mod dataset;
pub mod episode_index;
pub(crate) mod episode_returns;
pub(crate) mod from_columns;
pub mod held_out;
pub mod loader;
mod mixture;
pub mod options;
pub mod sampler;
pub(crate) mod shares;
pub(crate) mod shuffle;
