//! The step on flat slices, on all threads.

use multiversion::multiversion;
use rayon::prelude::*;

use super::AdamW;
use crate::simd::sum;

/// Elements per task, 256 KB of parameter, gradient and moments: the size of a second-level cache.
/// Norms are summed in the same units, so they do not depend on the number of threads.
const CHUNK: usize = 16 * 1024;

/// One parameter with its gradient and moments; all slices have the same length.
pub(super) struct Slot<'a> {
    /// The values before the step.
    pub old: &'a [f32],
    /// The values after it.
    pub parameter: &'a mut [f32],
    /// The gradient of the loss with respect to the old values.
    pub gradient: &'a [f32],
    /// Average of the gradient; zero before the first step.
    pub first_moment: &'a mut [f32],
    /// Average of the gradient's square; zero before the first step.
    pub second_moment: &'a mut [f32],
    /// Decay per unit of learning rate, independent of the gradient.
    pub weight_decay: f64,
}

/// The Euclidean norm of all gradients together.
pub(super) fn global_norm<'a>(gradients: impl IntoIterator<Item = &'a [f32]>) -> f64 {
    let chunks: Vec<&[f32]> =
        gradients.into_iter().flat_map(|gradient| gradient.chunks(CHUNK)).collect();
    let squares: Vec<f32> = chunks.into_par_iter().map(square_sum).collect();
    squares.into_iter().map(f64::from).sum::<f64>().sqrt()
}

/// The factor that scales gradients of this norm to at most `max_norm`, as in PyTorch:
/// `min(1, max_norm / (norm + 1e-6))`, NaN if the norm is NaN.
pub(super) fn clip_factor(norm: f64, max_norm: f64) -> f64 {
    let factor = max_norm / (norm + 1e-6);
    if factor > 1.0 { 1.0 } else { factor }
}

/// One step, the `step`-th (from 1), with gradients multiplied by `gradient_scale`, as defined in
/// the [module](super).
///
/// # Panics
/// When the slices of a slot differ in length, or `step` is zero.
pub(super) fn adamw_step(optimizer: AdamW, step: u64, gradient_scale: f64, slots: Vec<Slot<'_>>) {
    assert!(step > 0, "steps count from 1");
    for Slot { old, parameter, gradient, first_moment, second_moment, .. } in &slots {
        let n = parameter.len();
        let lengths = [old.len(), gradient.len(), first_moment.len(), second_moment.len()];
        assert_eq!(lengths, [n; 4], "a parameter of {n} elements and its slices");
    }
    let chunks: Vec<Slot<'_>> = slots.into_iter().flat_map(chunks).collect();
    chunks.into_par_iter().for_each(|chunk| {
        let factors = Factors::new(optimizer, step, gradient_scale, chunk.weight_decay);
        chunk.parameter.copy_from_slice(chunk.old);
        update(factors, chunk.parameter, chunk.gradient, chunk.first_moment, chunk.second_moment);
    });
}

/// Factors of the loop. `η / (1 − β₁ᵗ)` and `1 / sqrt(1 − β₂ᵗ)` are computed outside of it, so that
/// an element needs one square root and one division.
#[derive(Clone, Copy)]
struct Factors {
    /// `1 − η λ`
    keep: f32,
    /// Factor of the gradients.
    scale: f32,
    betas: [f32; 2],
    /// `1 − β` of both averages, computed in `f64`: `1 − 0.999` has three digits less in `f32`.
    rests: [f32; 2],
    rate: f32,
    root: f32,
    epsilon: f32,
}

impl Factors {
    fn new(optimizer: AdamW, step: u64, gradient_scale: f64, weight_decay: f64) -> Self {
        let AdamW { learning_rate, betas, epsilon } = optimizer;
        let corrections = betas.map(|beta| 1.0 - beta.powf(step as f64));
        Self {
            keep: (1.0 - learning_rate * weight_decay) as f32,
            scale: gradient_scale as f32,
            betas: betas.map(|beta| beta as f32),
            rests: betas.map(|beta| (1.0 - beta) as f32),
            rate: (learning_rate / corrections[0]) as f32,
            root: (1.0 / corrections[1].sqrt()) as f32,
            epsilon: epsilon as f32,
        }
    }
}

fn chunks(slot: Slot<'_>) -> impl Iterator<Item = Slot<'_>> {
    let Slot { old, parameter, gradient, first_moment, second_moment, weight_decay } = slot;
    let values = old.chunks(CHUNK).zip(parameter.chunks_mut(CHUNK)).zip(gradient.chunks(CHUNK));
    let moments = first_moment.chunks_mut(CHUNK).zip(second_moment.chunks_mut(CHUNK));
    values.zip(moments).map(move |(((old, parameter), gradient), (first_moment, second_moment))| {
        Slot { old, parameter, gradient, first_moment, second_moment, weight_decay }
    })
}

#[multiversion(targets = "simd")]
fn update(
    by: Factors,
    parameter: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let moments = first.iter_mut().zip(second);
    for ((parameter, gradient), (first, second)) in parameter.iter_mut().zip(gradient).zip(moments)
    {
        let gradient = gradient * by.scale;
        *first = by.betas[0] * *first + by.rests[0] * gradient;
        *second = by.betas[1] * *second + by.rests[1] * (gradient * gradient);
        let change = *first / (second.sqrt() * by.root + by.epsilon);
        *parameter = *parameter * by.keep - by.rate * change;
    }
}

#[multiversion(targets = "simd")]
fn square_sum(values: &[f32]) -> f32 {
    sum([values], |[x]| x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_by_hand() {
        // η = 0.1, λ = 0.5, g = 2: m = 0.2, v = 0.004; m / (1 - 0.9) = 2, v / (1 - 0.999) = 4,
        // so p = 3 · 0.95 - 0.1 · 2 / (2 + 1e-8) = 2.75.
        let (mut parameter, mut first, mut second) = ([0.0f32], [0.0], [0.0]);
        let slot = Slot {
            old: &[3.0],
            parameter: &mut parameter,
            gradient: &[4.0],
            first_moment: &mut first,
            second_moment: &mut second,
            weight_decay: 0.5,
        };
        let optimizer = AdamW { learning_rate: 0.1, ..AdamW::default() };
        adamw_step(optimizer, 1, 0.5, vec![slot]);
        assert!((parameter[0] - 2.75).abs() < 1e-6, "{}", parameter[0]);
        assert!((first[0] - 0.2).abs() < 1e-7 && (second[0] - 0.004).abs() < 1e-9);
    }

    #[test]
    fn norm_and_clipping() {
        let many = vec![0.5f32; 40_000];
        // 40,000 · 0.25 + 3² + 4² = 10,025
        let norm = global_norm([&many[..], &[3.0, 4.0], &[]]);
        assert!((norm - 10_025f64.sqrt()).abs() < 1e-4, "{norm}");
        assert!((clip_factor(4.0, 1.0) - 0.25).abs() < 1e-6);
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert!(clip_factor(f64::NAN, 1.0).is_nan());
    }

    #[test]
    #[should_panic(expected = "a parameter of 2 elements")]
    fn slices_of_other_lengths_are_refused() {
        let slot = Slot {
            old: &[0.0; 2],
            parameter: &mut [0.0; 2],
            gradient: &[0.0; 3],
            first_moment: &mut [0.0; 2],
            second_moment: &mut [0.0; 2],
            weight_decay: 0.0,
        };
        adamw_step(AdamW::default(), 1, 1.0, vec![slot]);
    }
}
