//! The loss on episodes that are kept out of training.

use burn::tensor::Device;
use overtone_data::{Part, Share};

use crate::{
    algorithm::Algorithm, config::TrainConfig, error::TrainError, optimizer::scalar,
    training_data::TrainingData,
};

/// Batches that the loss is measured on.
pub const BATCHES: usize = 16;

/// Mean loss of actions in contexts of held-out episodes, without dropout and without the
/// head's regulariser, over [`BATCHES`] batches: always the same contexts in the run with seed
/// `run_seed`, drawn by [`TrainConfig::sampling`] from all held-out episodes alike. Training draws
/// half of its contexts from the best episodes where the algorithm has
/// [`best_percents`](Algorithm::best_percents).
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
    let sampler = data.sampler(Part::HeldOut, algorithm.context_length(), config, run_seed)?;
    let transitions = algorithm.reads_transitions();
    let mut loader = data.load(sampler, config.batch_size, transitions, Share::default())?;
    let mut sum = 0.0;
    for _ in 0..BATCHES {
        let mut batch = loader.next()?;
        let loss = algorithm.held_out_loss(state, &mut batch, data, &device);
        loader.recycle(batch);
        sum += scalar(loss);
    }
    Ok(sum / BATCHES as f64)
}
