//! How long an epoch takes.

use std::time::Instant;

use overtone_core::seed;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::data::Split;
use super::trainer::{LEARNING_RATE, Rows};
use super::{Dataset, HeadKind, Trainer};

/// Heads whose time is worth knowing.
pub const HEADS: [HeadKind; 5] = [
    HeadKind::Linear,
    HeadKind::Fourier { frequencies: 12, gamma: 0.0 },
    HeadKind::Fourier { frequencies: 12, gamma: 1e-6 },
    HeadKind::Gmm { components: 2 },
    HeadKind::FourierLikelihood { frequencies: 12, gamma: 0.0 },
];

/// Steps of an epoch.
pub const STEPS: usize = 125;

/// Seconds for one epoch of one run of `kind` on the gmm2 data, training alone, when as many
/// runs as there are threads train at once: the wall's seconds divided by the epochs of all
/// runs. The first epoch of each run is not counted.
pub fn seconds_per_epoch(kind: HeadKind, epochs: usize) -> f64 {
    let rows = Rows::<f32>::new(&Dataset::Gmm2.draw(42), &Split::default().train, kind);
    let n_runs = rayon::current_num_threads();
    let mut runs: Vec<_> = (0..n_runs as u64)
        .map(|run| {
            let trainer = Trainer::<f32>::new(kind, &mut seed::generator(run, "init"));
            (trainer, seed::generator(run, "sampling"))
        })
        .collect();
    let mut train = |epochs: usize| {
        let runs: Vec<_> = runs.iter_mut().collect();
        runs.into_par_iter().with_max_len(1).for_each(|(trainer, order)| {
            for _ in 0..epochs {
                trainer.epoch(&rows, LEARNING_RATE, order);
            }
        });
    };
    train(1);
    let start = Instant::now();
    train(epochs);
    start.elapsed().as_secs_f64() / (epochs * n_runs) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_that_many_steps_and_takes_time() {
        assert_eq!(Split::default().train.len(), STEPS * super::super::trainer::BATCH);
        let seconds = seconds_per_epoch(HeadKind::Pointwise, 2);
        assert!(seconds > 0.0 && seconds < 10.0, "{seconds}");
    }
}
