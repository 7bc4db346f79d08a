//! [`train`]: a perceptron with a [`ReturnHead`] learns a recording's returns for a number of
//! updates that was fixed before; nothing is chosen by what it says of held-out steps.

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{Init, ModelError, PerceptronConfig, ReturnModel, perceptron::Perceptron};
use overtone_train::{AdamW, AdamWConfig};
use rand::RngExt;

use super::{
    head::ReturnHead,
    recording::Recorded,
    score::{Answers, LEVELS},
};
use crate::learning::descend;

/// How long it learns, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Training {
    /// Steps of the optimizer.
    pub updates: usize,
    /// Timesteps of each.
    pub batch_size: usize,
    /// Width of the two hidden layers.
    pub width: usize,
}

impl Default for Training {
    /// The sizes of the library's model of returns.
    fn default() -> Self {
        Self { updates: 1500, batch_size: 256, width: 256 }
    }
}

/// Learning rate of the first update, from which it falls as a cosine to 0.
const LEARNING_RATE: f64 = 1e-3;
/// Steps that are asked about at a time.
const ASKED_AT_ONCE: usize = 1024;

/// A perceptron that has learned.
#[derive(Debug)]
pub struct Learner {
    kind: ReturnHead,
    model: ReturnModel,
}

/// Learns the returns of `rows`. Every head begins with the same hidden layers and sees the same
/// rows in the same order.
///
/// # Errors
/// When a perceptron cannot be made of these sizes.
pub fn train(
    kind: ReturnHead,
    recorded: &Recorded,
    rows: &[usize],
    training: Training,
    run_seed: u64,
) -> Result<Learner, ModelError> {
    let device = Device::flex().autodiff();
    let model = model(kind, recorded.width, training.width, run_seed, &device)?;
    let mut generator = seed::generator(run_seed, "rows");
    let rate = |done: usize| {
        let progress = done as f64 / training.updates as f64;
        LEARNING_RATE * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
    };
    let loss = |model: &ReturnModel, device: &Device| {
        let mut draw = |_| rows[generator.random_range(0..rows.len())];
        let batch: Vec<usize> = (0..training.batch_size).map(&mut draw).collect();
        let hidden = model.hidden(observations(recorded, &batch, device));
        let total = kind.loss(&model.perceptron.head, hidden, &recorded.told(&batch));
        [total.clone(), total]
    };
    let optimizer = AdamW::new(AdamWConfig::default());
    let (model, _) = descend(model, optimizer, training.updates, rate, loss, |_, _| ());
    Ok(Learner { kind, model })
}

/// Two hidden layers and the head, which may be one that the library has no return model with.
fn model(
    kind: ReturnHead,
    observed: usize,
    width: usize,
    run_seed: u64,
    device: &Device,
) -> Result<ReturnModel, ModelError> {
    let config = PerceptronConfig {
        n_layers: 2,
        width,
        context_length: 1,
        dropout: 0.0,
        head: kind.config(),
        conditioning: None,
    };
    let observations = ObservationSpace::Vectors { width: observed };
    let mut generator = seed::generator(run_seed, "init");
    let init = &mut Init::drawn(device, &mut generator);
    let perceptron = Perceptron::init(&config, &observations, &ActionSpace::unit(1), init)?;
    Ok(ReturnModel { perceptron, smoothing: 0.0 })
}

impl Learner {
    /// What it says about these rows.
    pub fn answers(&self, recorded: &Recorded, rows: &[usize]) -> Answers {
        let device = Device::flex();
        let mut log_density = self.kind.has_density().then(Vec::new);
        let mut quantiles = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ASKED_AT_ONCE) {
            let hidden = self.model.hidden(observations(recorded, rows, &device));
            let head = &self.model.perceptron.head;
            let told = recorded.told(rows);
            if let Some(all) = &mut log_density {
                all.extend(self.kind.log_density(head, hidden.clone(), &told).unwrap_or_default());
            }
            quantiles.extend(self.kind.quantiles(head, hidden, &LEVELS));
        }
        Answers { log_density, quantiles }
    }
}

/// The observations of these rows, `[rows, 1, width]`.
fn observations(recorded: &Recorded, rows: &[usize], device: &Device) -> Tensor<3> {
    let shape = [rows.len(), 1, recorded.width];
    Tensor::from_data(TensorData::new(recorded.observations(rows), shape), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse of `F(z) = (z+1)/2 + sin(πz)/2π`, the raised cosine on [-1, 1].
    fn raised_cosine(q: f64) -> f64 {
        let [mut low, mut high] = [-1.0, 1.0];
        for _ in 0..60 {
            let z: f64 = (low + high) / 2.0;
            let pi = std::f64::consts::PI;
            let share = (z + 1.0) / 2.0 + (pi * z).sin() / (2.0 * pi);
            if share < q { low = z } else { high = z }
        }
        low
    }

    /// Two arms: one's returns lie around 0, the other's are half as wide around 0.3.
    fn truth(q: f64, arm: usize) -> f64 {
        match arm {
            0 => raised_cosine(q),
            _ => 0.3 + 0.5 * raised_cosine(q),
        }
    }

    #[test]
    fn a_two_armed_bandit_is_learned() {
        let recorded = Recorded::arms(4000, truth);
        let all: Vec<usize> = (0..recorded.episodes.len()).collect();
        let training = Training { updates: 2000, batch_size: 256, width: 32 };
        for kind in [
            ReturnHead::Fourier,
            ReturnHead::FourierMargin,
            ReturnHead::FourierHalf,
            ReturnHead::Softmax,
            ReturnHead::HlGauss,
        ] {
            let learner = train(kind, &recorded, &all, training, 1).unwrap();
            let answers = learner.answers(&recorded, &[0, 1]);
            for (arm, quantiles) in answers.quantiles.iter().enumerate() {
                for (&level, got) in LEVELS.iter().zip(quantiles).take(3) {
                    let off = got - truth(level, arm);
                    println!("{kind} arm {arm} at {level}: {off:+.4}");
                    assert!(off.abs() < 0.02, "{kind} arm {arm} at {level}: off by {off}");
                }
            }
        }
    }

    /// Also where nothing was learned: quantiles rise, and densities integrate to one.
    #[test]
    fn quantiles_rise_and_densities_are_densities() {
        let device = Device::flex();
        let points = 20_001;
        let recorded = Recorded::arms(points, |q, _| 2.0 * q - 1.0);
        for kind in ReturnHead::ALL {
            let model = model(kind, 1, 16, 3, &device).unwrap();
            let qs: Vec<f64> = (1..200).map(|i| f64::from(i) / 200.0).collect();
            let hidden = model.hidden(observations(&recorded, &[0, 1], &device));
            for row in kind.quantiles(&model.perceptron.head, hidden, &qs) {
                assert_eq!(row.len(), qs.len());
                assert!(row.is_sorted(), "{kind}");
                assert!(row.iter().all(|z| (-1.0..=1.0).contains(z)), "{kind}");
            }
            // Arm 0 at every return between the ends.
            let rows: Vec<usize> = (0..points).map(|i| 2 * i).collect();
            let answers = Learner { kind, model }.answers(&recorded, &rows);
            let Some(nats) = answers.log_density else { continue };
            let total = nats.iter().map(|nats| nats.exp()).sum::<f64>() * 2.0 / points as f64;
            match kind {
                // Some of these lie beyond the ends.
                ReturnHead::Gmm | ReturnHead::Gaussian => assert!(total < 1.0, "{kind}: {total}"),
                ReturnHead::FourierMargin => assert!(total < 1.001, "{kind}: {total}"),
                _ => assert!((total - 1.0).abs() < 1e-3, "{kind}: {total}"),
            }
        }
    }
}
