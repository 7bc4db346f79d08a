//! Time of a training step: forward, backward, clipping and AdamW, with dropout, on a batch that is
//! already on the device.

use std::time::Instant;

use anyhow::Result;
use overtone_model::{
    Contexts, DecisionTransformer,
    burn::tensor::{Device, Tensor},
    decision_transformer::{DropoutSeed, Form, Half},
    device::is_cpu,
};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};

use super::{
    Scale,
    report::Row,
    synthetic::{batch, config, model},
};

/// The reference's context length in timesteps.
const CONTEXT: usize = 30;
/// Number of untimed steps, in which kernels are compiled and tuned.
const WARM_UP: usize = 5;
const MOST_STEPS: f64 = 20.0;

/// Measures the step time of several models and precisions.
///
/// # Errors
/// When a model cannot be made.
pub fn measure(scale: &Scale, device: &Device) -> Result<Vec<Row>> {
    let autodiff = &device.clone().autodiff();
    let data = batch(7, scale.batch, CONTEXT, autodiff);
    let mixed = Form::Mixed(Half::Bf16);
    let variants = [
        ("f32, softmax attention, linear head", Form::Auto, false, false),
        ("f32, Fourier attention, linear head", Form::Auto, true, false),
        ("f32, softmax attention, Fourier head", Form::Auto, false, true),
        ("bf16, softmax attention, linear head", mixed, false, false),
        ("bf16, Fourier attention, linear head", mixed, true, false),
    ];
    let mut trainers = Vec::new();
    for (_, form, fourier_attention, fourier_head) in variants {
        let config = config(scale.layers, CONTEXT, fourier_attention, fourier_head);
        let model = DecisionTransformer { form, ..model(&config, autodiff)? };
        trainers.push(Trainer { model, adam: AdamW::new(AdamWConfig::ATARI), data: data.clone() });
    }
    let warm_up = if is_cpu(device) { 0 } else { WARM_UP };
    let mut n_steps = Vec::new();
    let mut first_steps = Vec::new();
    for trainer in &mut trainers {
        first_steps.push(trainer.round(1));
        trainer.round(warm_up);
        let seconds = trainer.round(1);
        n_steps.push((scale.round_seconds / seconds).clamp(1.0, MOST_STEPS) as usize);
    }
    // Variants take turns, so that other load on the machine affects all of them.
    let mut times = vec![Vec::new(); trainers.len()];
    for _ in 0..scale.rounds {
        for ((trainer, &n), times) in trainers.iter_mut().zip(&n_steps).zip(&mut times) {
            times.push(1e3 * trainer.round(n));
        }
    }
    let rows = variants.iter().zip(&times).zip(&first_steps).map(|(((name, ..), own), first)| {
        let mut ratios: Vec<f64> = own.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ratios.len() / 2];
        let note = format!("{ratio:.2}× the first; its first step took {first:.1} s");
        let what = format!("{name}, batch {}", scale.batch);
        Row::measured(what, "ms", own, note)
    });
    Ok(rows.collect())
}

struct Trainer {
    model: DecisionTransformer,
    adam: AdamW,
    data: Contexts,
}

impl Trainer {
    /// Takes `n` steps and returns the seconds per step. Only the last loss is read.
    fn round(&mut self, n: usize) -> f64 {
        let started = Instant::now();
        let mut last: Option<Tensor<1>> = None;
        for _ in 0..n {
            let dropout = Some(DropoutSeed::Number(self.adam.n_steps()));
            let loss = self.model.loss(&self.data, dropout).total;
            let (model, norm) = self.adam.step(self.model.clone(), loss.backward(), 1e-4);
            self.model = model;
            last = Some(loss.inner() + norm);
        }
        if let Some(last) = last {
            scalar(last);
        }
        started.elapsed().as_secs_f64() / n.max(1) as f64
    }
}
