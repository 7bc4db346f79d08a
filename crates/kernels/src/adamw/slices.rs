//! The step on flat slices.

use rayon::prelude::*;

use super::AdamW;
use crate::Form;
use crate::simd::{sum, vectorised};

/// Elements one task takes: the unit in which norms are summed, so that they do not depend
/// on the number of threads.
const CHUNK: usize = 16 * 1024;

/// One parameter and what belongs to it; all slices are of one length.
#[derive(Debug)]
pub struct Slot<'a> {
    /// The values to improve.
    pub parameter: &'a mut [f32],
    /// The gradient of the loss by them.
    pub gradient: &'a [f32],
    /// Average of the gradient; zero before the first step.
    pub first_moment: &'a mut [f32],
    /// Average of the gradient's square; zero before the first step.
    pub second_moment: &'a mut [f32],
    /// Decay per unit of learning rate, apart from the gradient.
    pub weight_decay: f64,
}

/// The Euclidean norm of all gradients together.
pub fn global_norm<'a>(gradients: impl IntoIterator<Item = &'a [f32]>) -> f64 {
    let chunks: Vec<&[f32]> =
        gradients.into_iter().flat_map(|gradient| gradient.chunks(CHUNK)).collect();
    let squares: Vec<f32> = chunks.into_par_iter().map(square_sum).collect();
    squares.into_iter().map(f64::from).sum::<f64>().sqrt()
}

/// What gradients of this norm are to be multiplied by so that it is at most `max_norm`,
/// as in PyTorch: `min(1, max_norm / (norm + 1e-6))`.
pub fn clip_factor(norm: f64, max_norm: f64) -> f64 {
    (max_norm / (norm + 1e-6)).min(1.0)
}

/// One step, the `step`-th (from 1): with `g = gradient · gradient_scale`,
///
/// `p ← p (1 - η λ)`, `m ← β₁ m + (1 - β₁) g`, `v ← β₂ v + (1 - β₂) g²`,
/// `p ← p - η / (1 - β₁ᵗ) · m / (sqrt(v / (1 - β₂ᵗ)) + ε)`
///
/// (Loshchilov & Hutter 2019). [`Form::Auto`] uses all threads, [`Form::Reference`] is a
/// plain loop; they agree to rounding.
///
/// # Panics
/// When the slices of a slot differ in length, or `step` is zero.
pub fn adamw_step(
    optimizer: AdamW,
    step: u64,
    gradient_scale: f64,
    slots: Vec<Slot<'_>>,
    form: Form,
) {
    assert!(step > 0, "steps count from 1");
    for slot in &slots {
        let n = slot.parameter.len();
        let lengths = [slot.gradient.len(), slot.first_moment.len(), slot.second_moment.len()];
        assert_eq!(lengths, [n; 3], "a parameter of {n} elements and its slices");
    }
    let constants = Constants::new(optimizer, step, gradient_scale);
    match form {
        Form::Reference => slots.into_iter().for_each(|slot| plain(constants, slot)),
        Form::Auto | Form::Mixed(_) => {
            let chunks: Vec<Slot<'_>> = slots.into_iter().flat_map(chunks).collect();
            chunks.into_par_iter().for_each(|chunk| {
                update(
                    constants.with_decay(chunk.weight_decay),
                    chunk.parameter,
                    chunk.gradient,
                    chunk.first_moment,
                    chunk.second_moment,
                );
            });
        }
    }
}

/// A step's factors.
#[derive(Clone, Copy)]
struct Constants {
    learning_rate: f64,
    betas: [f64; 2],
    epsilon: f64,
    gradient_scale: f64,
    /// `1 - βᵗ` of either average.
    corrections: [f64; 2],
}

impl Constants {
    fn new(optimizer: AdamW, step: u64, gradient_scale: f64) -> Self {
        let AdamW { learning_rate, betas, epsilon } = optimizer;
        let corrections = betas.map(|beta| 1.0 - beta.powf(step as f64));
        Self { learning_rate, betas, epsilon, gradient_scale, corrections }
    }

    fn with_decay(self, weight_decay: f64) -> Factors {
        Factors {
            keep: (1.0 - self.learning_rate * weight_decay) as f32,
            scale: self.gradient_scale as f32,
            betas: self.betas.map(|beta| beta as f32),
            rests: self.betas.map(|beta| (1.0 - beta) as f32),
            rate: (self.learning_rate / self.corrections[0]) as f32,
            root: (1.0 / self.corrections[1].sqrt()) as f32,
            epsilon: self.epsilon as f32,
        }
    }
}

/// What the loop multiplies by.
#[derive(Clone, Copy)]
struct Factors {
    keep: f32,
    scale: f32,
    betas: [f32; 2],
    rests: [f32; 2],
    rate: f32,
    root: f32,
    epsilon: f32,
}

fn chunks(slot: Slot<'_>) -> impl Iterator<Item = Slot<'_>> {
    let Slot { parameter, gradient, first_moment, second_moment, weight_decay } = slot;
    parameter
        .chunks_mut(CHUNK)
        .zip(gradient.chunks(CHUNK))
        .zip(first_moment.chunks_mut(CHUNK))
        .zip(second_moment.chunks_mut(CHUNK))
        .map(move |(((parameter, gradient), first_moment), second_moment)| Slot {
            parameter,
            gradient,
            first_moment,
            second_moment,
            weight_decay,
        })
}

/// The definition, in `f64`.
fn plain(constants: Constants, slot: Slot<'_>) {
    let Constants { learning_rate, betas: [beta1, beta2], epsilon, .. } = constants;
    for i in 0..slot.parameter.len() {
        let gradient = f64::from(slot.gradient[i]) * constants.gradient_scale;
        let first = beta1 * f64::from(slot.first_moment[i]) + (1.0 - beta1) * gradient;
        let second = beta2 * f64::from(slot.second_moment[i]) + (1.0 - beta2) * gradient * gradient;
        let [correction1, correction2] = constants.corrections;
        let kept = f64::from(slot.parameter[i]) * (1.0 - learning_rate * slot.weight_decay);
        let change = first / correction1 / ((second / correction2).sqrt() + epsilon);
        slot.parameter[i] = (kept - learning_rate * change) as f32;
        slot.first_moment[i] = first as f32;
        slot.second_moment[i] = second as f32;
    }
}

vectorised! {
    fn update(
        by: Factors,
        parameter: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let moments = first.iter_mut().zip(second);
        for ((parameter, gradient), (first, second)) in
            parameter.iter_mut().zip(gradient).zip(moments)
        {
            let gradient = gradient * by.scale;
            *first = by.betas[0] * *first + by.rests[0] * gradient;
            *second = by.betas[1] * *second + by.rests[1] * (gradient * gradient);
            let change = *first / (second.sqrt() * by.root + by.epsilon);
            *parameter = *parameter * by.keep - by.rate * change;
        }
    }

    fn square_sum(values: &[f32]) -> f32 {
        sum([values], |[x]| x * x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    #[test]
    fn one_step_by_hand() {
        // η = 0.1, λ = 0.5, g = 2: m = 0.2, v = 0.004; m / (1 - 0.9) = 2, v / (1 - 0.999) = 4,
        // so p = 3 · 0.95 - 0.1 · 2 / (2 + 1e-8) = 2.75.
        for form in [Form::Auto, Form::Reference] {
            let (mut parameter, mut first, mut second) = ([3.0f32], [0.0], [0.0]);
            let slot = Slot {
                parameter: &mut parameter,
                gradient: &[4.0],
                first_moment: &mut first,
                second_moment: &mut second,
                weight_decay: 0.5,
            };
            let optimizer = AdamW { learning_rate: 0.1, ..AdamW::default() };
            adamw_step(optimizer, 1, 0.5, vec![slot], form);
            assert!((parameter[0] - 2.75).abs() < 1e-6, "{form:?}: {}", parameter[0]);
            assert!((first[0] - 0.2).abs() < 1e-7 && (second[0] - 0.004).abs() < 1e-9);
        }
    }

    #[test]
    fn forms_agree_over_many_steps() {
        let sizes = [40_000, 3, 17];
        let run = |form| {
            let mut state: Vec<[Vec<f32>; 3]> =
                sizes.map(|n| [noise(n, 1), vec![0.0; n], vec![0.0; n]]).to_vec();
            for step in 1..=20 {
                let gradients = sizes.map(|n| noise(n, 100 * step as u32 + n as u32));
                let norm = global_norm(gradients.iter().map(Vec::as_slice));
                let slots = state
                    .iter_mut()
                    .zip(&gradients)
                    .map(|([parameter, first_moment, second_moment], gradient)| Slot {
                        parameter,
                        gradient,
                        first_moment,
                        second_moment,
                        weight_decay: 0.1,
                    })
                    .collect();
                adamw_step(AdamW::default(), step, clip_factor(norm, 1.0), slots, form);
            }
            state
        };
        let (fast, plain) = (run(Form::Auto), run(Form::Reference));
        for (fast, plain) in fast.iter().zip(&plain) {
            for (fast, plain) in fast[0].iter().zip(&plain[0]) {
                assert!((fast - plain).abs() < 1e-6, "{fast} {plain}"); // seen: 2e-7
            }
        }
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(single.install(|| run(Form::Auto)), fast);
    }

    #[test]
    fn norm_and_clipping() {
        let many = vec![0.5f32; 40_000];
        // 40,000 · 0.25 + 3² + 4² = 10,025
        let norm = global_norm([&many[..], &[3.0, 4.0], &[]]);
        assert!((norm - 10_025f64.sqrt()).abs() < 1e-4, "{norm}");
        assert!((clip_factor(4.0, 1.0) - 0.25).abs() < 1e-6);
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
    }

    #[test]
    #[should_panic(expected = "a parameter of 2 elements")]
    fn slices_of_other_lengths_are_refused() {
        let slot = Slot {
            parameter: &mut [0.0; 2],
            gradient: &[0.0; 3],
            first_moment: &mut [0.0; 2],
            second_moment: &mut [0.0; 2],
            weight_decay: 0.0,
        };
        adamw_step(AdamW::default(), 1, 1.0, vec![slot], Form::Auto);
    }
}
