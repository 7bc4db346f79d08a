//! Comparison of the same training, including dropout, on the device and on the CPU.

use anyhow::{Context, Result};
use overtone_model::{
    DecisionTransformer, DropoutSeed,
    burn::tensor::Device,
    decision_transformer::{Form, Half},
    device::is_cpu,
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};

use super::{
    Scale,
    row::Row,
    synthetic::{batch, config, model},
};

/// Absolute tolerances of the first logits on the CPU for linear and Fourier head, and on a GPU, which
/// can round the factors of `f32` products to 11 bits.
const LOGITS: [[f64; 2]; 2] = [[2e-5, 2e-4], [5e-3, 5e-2]];
/// Relative tolerance of the first losses. The two forms on the CPU differ by 2e-6.
const LOSSES: f64 = 1e-2;
const FIRST: usize = 10;
/// Relative tolerance of the mean loss of all steps. Rounding errors accumulate in training, and
/// single losses of a Fourier head differ much for actions with a density near zero.
const MEAN: f64 = 2e-2;
/// Relative tolerance of the mean loss in `bf16` compared with `f32`.
const MEAN_BF16: f64 = 5e-2;
/// Tolerance of the distance between the final weights, relative to the distance from start to end.
const WEIGHTS: f64 = 0.2;
const BATCH: usize = 2;
const CONTEXT: usize = 6;
const LEARNING_RATE: f64 = 1e-4;

/// Compares training on `device` with the CPU.
///
/// # Errors
/// When a model cannot be made.
pub fn check(scale: &Scale, device: &Device) -> Result<Vec<Row>> {
    let cpu = Device::flex();
    // On the CPU, fused operations are compared with plain operations.
    let form = if is_cpu(device) { Form::Reference } else { Form::Auto };
    let logit_tolerances = LOGITS[usize::from(!is_cpu(device))];
    let steps = scale.compared_steps;
    let mut rows = Vec::new();
    for (fourier, logit_tolerance) in [false, true].into_iter().zip(logit_tolerances) {
        let expected = train(fourier, &cpu, Form::Auto, steps)?;
        let kind = if fourier { "Fourier attention and head" } else { "softmax and linear head" };
        let got = train(fourier, device, form, steps)?;
        let name = |what: &str| format!("{what} of {steps} steps, {kind}");
        let pairs = got.logits.iter().zip(&expected.logits);
        let apart = largest(pairs.map(|(got, expected)| (got - expected).abs()));
        rows.push(Row::compared(format!("first logits, {kind}"), apart, logit_tolerance));
        let first = FIRST.min(steps);
        let apart = relative(&got.losses[..first], &expected.losses[..first]);
        rows.push(Row::compared(format!("losses of {first} steps, {kind}"), apart, LOSSES));
        rows.push(Row::compared(name("mean loss"), got.mean_apart(&expected), MEAN));
        rows.push(Row::compared(name("weights"), got.apart(&expected), WEIGHTS));
        let got = train(fourier, device, Form::Mixed(Half::Bf16), steps)?;
        let apart = got.mean_apart(&expected);
        rows.push(Row::compared(name("mean bf16 loss"), apart, MEAN_BF16));
    }
    Ok(rows)
}

/// The largest number; NaN if one of them is NaN.
fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |largest, x| if x > largest || x.is_nan() { x } else { largest })
}

fn relative(got: &[f64], expected: &[f64]) -> f64 {
    largest(got.iter().zip(expected).map(|(got, expected)| (got - expected).abs() / expected))
}

/// First logits, losses and weights of a training.
struct Trained {
    logits: Vec<f64>,
    losses: Vec<f64>,
    start: NamedTensors,
    end: NamedTensors,
}

impl Trained {
    /// Relative difference of the mean losses.
    fn mean_apart(&self, other: &Self) -> f64 {
        let [own, other] = [self, other].map(|trained| [trained.losses.iter().sum::<f64>()]);
        relative(&own, &other)
    }

    /// Distance between the final weights, relative to the distance from start to end.
    fn apart(&self, other: &Self) -> f64 {
        let distance = |a: &NamedTensors, b: &NamedTensors| {
            let squares = a.iter().map(|(name, a)| {
                let pairs = a.iter::<f64>().zip(b[name].iter::<f64>());
                pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>()
            });
            squares.sum::<f64>().sqrt()
        };
        distance(&self.end, &other.end) / distance(&other.start, &other.end)
    }
}

fn train(fourier: bool, device: &Device, form: Form, n_steps: usize) -> Result<Trained> {
    let device = &device.clone().autodiff();
    let config = config(2, CONTEXT, fourier, fourier);
    let mut model = DecisionTransformer { form, ..model(&config, device)? };
    let start = weights::export(&model);
    let logits = model.logits(&batch(0, BATCH, CONTEXT, device)).context("no logits")?;
    let logits = logits.into_data().iter::<f64>().collect();
    let mut adam = AdamW::new(AdamWConfig::ATARI);
    let mut losses = Vec::new();
    for step in 0..n_steps as u64 {
        // A few batches are repeated, so that the model can learn something.
        let contexts = batch(step % 4, BATCH, CONTEXT, device);
        let loss = model.loss(&contexts, Some(DropoutSeed::new(step, device))).total;
        losses.push(loss.clone().inner());
        model = adam.step(model.clone(), loss.backward(), LEARNING_RATE).0;
    }
    let losses = losses.into_iter().map(scalar).collect();
    Ok(Trained { logits, losses, start, end: weights::export(&model) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_largest() {
        assert_eq!(largest([0.5, 2.0, 1.0].into_iter()), 2.0);
        assert!(largest([5.0, f64::NAN, 1e-6].into_iter()).is_nan());
    }
}
