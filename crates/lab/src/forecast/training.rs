//! Training a forecaster on windows drawn from series, as Chronos is trained: AdamW, clipping
//! by the global norm, a learning rate that falls linearly to zero, no warm-up.

use burn::tensor::Device;
use overtone_core::seed;
use overtone_model::ModelError;
use overtone_train::{AdamW, AdamWConfig};

use super::binning::Binning;
use super::forecaster::{Forecaster, ForecasterConfig, Tokens};
use super::series::Series;
use super::tokens::{Window, random_window};
use crate::learning::descend;

/// Stretches of training whose mean loss is kept.
pub const STRETCHES: usize = 20;

/// How long, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingConfig {
    /// Optimizer steps.
    pub steps: usize,
    /// Windows of a step.
    pub batch: usize,
    /// Learning rate of the first step.
    pub learning_rate: f64,
}

/// A trained forecaster.
pub struct Trained {
    /// Without autodiff.
    pub model: Forecaster,
    /// Mean cross-entropy, in nats a bin, over [`STRETCHES`] stretches of equal length (of
    /// one step each, if there are fewer steps).
    pub losses: Vec<f64>,
}

/// Tokens of windows of one length, `[windows, context + horizon]`.
pub fn to_tokens(windows: &[Window], binning: &Binning, device: &Device) -> Tokens {
    let rows: Vec<Vec<i32>> = windows.iter().map(|window| window.tokens(binning)).collect();
    let seasons: Vec<usize> = windows.iter().map(|window| window.season).collect();
    Tokens::new(&rows, &seasons, device)
}

/// Trains a new forecaster on random windows of `series`; weights and windows are drawn from
/// `weight_seed`.
///
/// # Errors
/// When `config` describes no model.
///
/// # Panics
/// When a series is shorter than a window.
pub fn train(
    config: &ForecasterConfig,
    binning: &Binning,
    series: &[Series],
    training: TrainingConfig,
    weight_seed: u64,
) -> Result<Trained, ModelError> {
    let device = Device::flex().autodiff();
    let model = Forecaster::init(config, &device, &mut seed::generator(weight_seed, "init"))?;
    // As Chronos: PyTorch's AdamW without weight decay, gradients clipped to norm 1.
    let optimizer = AdamW::new(AdamWConfig::default());
    let mut windows = seed::generator(weight_seed, "windows");
    let rate = |done: usize| training.learning_rate * (1.0 - done as f64 / training.steps as f64);
    let loss = |model: &Forecaster, device: &Device| {
        let batch: Vec<Window> = (0..training.batch)
            .map(|_| random_window(series, config.context, config.horizon, &mut windows))
            .collect();
        let loss = model.loss(&to_tokens(&batch, binning, device));
        [loss.total, loss.cross_entropy]
    };
    let (model, losses) = descend(model, optimizer, training.steps, rate, loss, |_, _| ());
    let stretch = losses.len().div_ceil(STRETCHES).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    Ok(Trained { model, losses: losses.chunks(stretch).map(mean).collect() })
}
