//! The loss on held-out episodes.

use burn::tensor::Device;
use overtone_data::{Share, Subset};

use crate::{
    algorithm::{Algorithm, n_labels},
    config::TrainConfig,
    error::TrainError,
    optimizer::scalar,
    training_data::TrainingData,
};

/// Number of batches in the held-out loss.
pub const BATCHES: usize = 16;

/// Mean of [`Algorithm::held_out_loss`] over [`BATCHES`] batches of contexts of held-out episodes;
/// NaN if no batch has data for it.
///
/// The contexts are always the same in the run with seed `run_seed`. [`TrainConfig::sampling`]
/// draws them from all held-out episodes equally, although training draws half of its contexts from
/// the top episodes if the algorithm has [`top_percents`](Algorithm::top_percents). Batches are cut
/// as in training ([`TrainConfig::micro_batches`]), and need no more memory.
///
/// # Errors
/// When the data cannot be read, or has no held-out context.
pub fn loss<A: Algorithm>(
    algorithm: &A,
    state: &A::State,
    data: &TrainingData,
    config: &TrainConfig,
    run_seed: u64,
    device: &Device,
) -> Result<f64, TrainError> {
    let device = device.clone().inner();
    let sampler = data.sampler(Subset::HeldOut, algorithm.context_length(), config, run_seed)?;
    let transitions = algorithm.lookahead();
    let rows = config.batch_size / config.micro_batches;
    let mut loader = data.load(sampler, rows, transitions, Share::default())?;
    let (mut sum, mut n_batches) = (0.0, 0);
    for _ in 0..BATCHES {
        let (mut of_batch, mut n_of_batch) = (0.0, 0);
        for _ in 0..config.micro_batches {
            let mut part = loader.next()?;
            let n = n_labels(algorithm, &part);
            let loss = algorithm.held_out_loss(state, &mut part, data, &device);
            loader.recycle(part);
            if let Some(loss) = loss {
                of_batch += scalar(loss) * n as f64;
                n_of_batch += n;
            }
        }
        if n_of_batch > 0 {
            sum += of_batch / n_of_batch as f64;
            n_batches += 1;
        }
    }
    Ok(sum / f64::from(n_batches))
}
