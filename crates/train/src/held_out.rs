//! The loss on episodes that are kept out of training.

use burn::{module::Module, tensor::Device};
use overtone_data::Part;

use crate::{config::TrainConfig, error::TrainError, learner::Learner};

/// Batches that the loss is measured on.
pub const BATCHES: usize = 16;

/// Mean loss of actions in contexts of held-out episodes, without dropout and without the
/// head's regulariser, over [`BATCHES`] batches: always the same contexts in the run with seed
/// `run_seed`, drawn as training's are.
///
/// # Errors
/// When the data cannot be read, or has no held-out context.
pub fn loss<L: Learner>(
    learner: &L,
    model: &L::Model,
    config: &TrainConfig,
    run_seed: u64,
    device: &Device,
) -> Result<f64, TrainError> {
    let (model, device) = (model.valid(), device.clone().inner());
    let sampler = learner.sampler(Part::HeldOut, config, run_seed)?;
    let mut loader = learner.load(sampler, config.batch_size)?;
    let mut sum = 0.0;
    for _ in 0..BATCHES {
        let mut batch = loader.next()?;
        let loss = learner.loss(&model, &mut batch, None, &device);
        loader.recycle(batch);
        let numbers = loss.figures.first().map(|loss| loss.clone().into_data());
        sum += numbers.and_then(|data| data.iter::<f64>().next()).unwrap_or(f64::NAN);
    }
    Ok(sum / BATCHES as f64)
}
