//! Time of a training step as in a run, with dropout and a small batch drawn on the host.

use std::time::Instant;

use anyhow::Result;
use overtone_model::{burn::tensor::Device, device::is_cpu};
use overtone_train::Precision::{self, Bf16, F32};

use super::{
    Scale,
    random_run::{Run, Setting},
    row::Row,
    synthetic::{config, frames, values},
};

/// The reference's context length in timesteps.
const CONTEXT: usize = 30;
/// Number of untimed steps, in which kernels are compiled and the step is recorded.
const WARM_UP: usize = 8;
const MOST_STEPS: f64 = 20.0;
/// Steps of a batch of agents that learn values, as by default.
pub const BATCH_OF_VALUES: usize = 256;

/// Measures the step time of several models and precisions.
///
/// # Errors
/// When a model or its data cannot be made.
pub fn measure(scale: &Scale, device: &Device) -> Result<Vec<Row>> {
    let variants: [(&str, Precision, bool, bool); 5] = [
        ("f32, softmax attention, linear head", F32, false, false),
        ("f32, Fourier attention, linear head", F32, true, false),
        ("f32, softmax attention, Fourier head", F32, false, true),
        ("bf16, softmax attention, linear head", Bf16, false, false),
        ("bf16, Fourier attention, linear head", Bf16, true, false),
    ];
    let mut runs = Vec::new();
    for (name, precision, fourier_attention, fourier_head) in variants {
        let config = config(scale.layers, CONTEXT, fourier_attention, fourier_head);
        let setting = Setting { batch: scale.batch, precision, device };
        runs.push((name, setting.batch, Run::new(config, frames(), setting)?));
    }
    let batch = if scale.is_full { BATCH_OF_VALUES } else { scale.batch };
    for (name, run) in values(Setting { batch, precision: F32, device })? {
        runs.push((name, batch, run));
    }
    let warm_up = if is_cpu(device) { 1 } else { WARM_UP };
    let mut first_steps = Vec::new();
    let mut n_steps = Vec::new();
    for (.., run) in &mut runs {
        let started = Instant::now();
        run.round(1)?;
        first_steps.push(started.elapsed().as_secs_f64());
        run.round(warm_up)?;
        let seconds = run.round(1)?;
        n_steps.push((scale.round_seconds / seconds).clamp(1.0, MOST_STEPS) as usize);
    }
    // Variants take turns, so that other load on the machine affects all of them.
    let mut times = vec![Vec::new(); runs.len()];
    for _ in 0..scale.rounds {
        for (((.., run), &n), times) in runs.iter_mut().zip(&n_steps).zip(&mut times) {
            times.push(1e3 * run.round(n)?);
        }
    }
    let rows = runs.iter().zip(&times).zip(&first_steps).map(|(((name, batch, _), own), first)| {
        let mut ratios: Vec<f64> = own.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ratios.len() / 2];
        let note = format!("{ratio:.2}× the first; its first step took {first:.1} s");
        Row::measured(format!("{name}, batch {batch}"), "ms", own, note)
    });
    Ok(rows.collect())
}
