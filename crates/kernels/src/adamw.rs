//! AdamW with clipping by the global norm: on tensors, on flat slices, and on one flat tensor.

mod flat;
mod reference;
mod slices;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

pub use flat::Flat;
pub use slices::{Slot, adamw_step, clip_factor, global_norm};

use crate::Form;
use crate::flex::is_flex_f32;

/// The optimizer's constants, with the meaning they have in PyTorch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Step size.
    pub learning_rate: f64,
    /// Decay rates of the averages of the gradient and of its square.
    pub betas: [f64; 2],
    /// Added to the square root of the second moment.
    pub epsilon: f64,
}

impl Default for AdamW {
    /// PyTorch's defaults.
    fn default() -> Self {
        Self { learning_rate: 1e-3, betas: [0.9, 0.999], epsilon: 1e-8 }
    }
}

/// One parameter and what belongs to it, flat and of one length, on a device without
/// autodiff.
#[derive(Clone, Debug)]
pub struct TensorSlot {
    /// The values to improve.
    pub parameter: Tensor<1>,
    /// The gradient of the loss by them.
    pub gradient: Tensor<1>,
    /// Average of the gradient; zero before the first step.
    pub first_moment: Tensor<1>,
    /// Average of the gradient's square; zero before the first step.
    pub second_moment: Tensor<1>,
    /// Decay per unit of learning rate, apart from the gradient.
    pub weight_decay: f64,
}

/// One step over all parameters, the `step`-th (from 1), as [`adamw_step`] defines it.
///
/// Gradients are first scaled as [`clip_factor`] says if there is a `clip_norm`. Returns
/// the slots with new parameters and moments, in order, the gradients as they were; and
/// the norm of all gradients together before clipping, `[1]`.
///
/// The fused form writes parameters and moments in place where nothing else holds them;
/// the reference reads nothing back from its device.
///
/// # Panics
/// When there is no slot, the tensors of a slot differ in length, or `step` is zero.
pub fn adamw(
    optimizer: AdamW,
    step: u64,
    clip_norm: Option<f64>,
    slots: Vec<TensorSlot>,
    form: Form,
) -> (Vec<TensorSlot>, Tensor<1>) {
    assert!(step > 0, "steps count from 1");
    assert!(!slots.is_empty(), "an optimizer of no parameters");
    let fused = form == Form::Auto && slots.iter().all(|slot| slot.all().iter().all(is_plain));
    if !fused {
        return reference::adamw(optimizer, step, clip_norm, slots);
    }
    let device = slots[0].parameter.device();
    let mut parts: Vec<[FlexTensor; 4]> =
        slots.iter().map(|slot| slot.all().map(contiguous)).collect();
    let decays: Vec<f64> = slots.iter().map(|slot| slot.weight_decay).collect();
    // The slots' own references are gone from here on: what nobody else holds is written
    // in place.
    drop(slots);

    let norm = global_norm(parts.iter().map(|[_, gradient, ..]| gradient.storage::<f32>()));
    let scale = clip_norm.map_or(1.0, |clip_norm| clip_factor(norm, clip_norm));
    let flat = parts
        .iter_mut()
        .zip(&decays)
        .map(|([parameter, gradient, first_moment, second_moment], weight_decay)| Slot {
            parameter: parameter.storage_mut(),
            gradient: gradient.storage(),
            first_moment: first_moment.storage_mut(),
            second_moment: second_moment.storage_mut(),
            weight_decay: *weight_decay,
        })
        .collect();
    adamw_step(optimizer, step, scale, flat, Form::Auto);

    let slots = parts
        .into_iter()
        .zip(decays)
        .map(|(parts, weight_decay)| {
            let [parameter, gradient, first_moment, second_moment] =
                parts.map(Tensor::from_primitive::<Flex>);
            TensorSlot { parameter, gradient, first_moment, second_moment, weight_decay }
        })
        .collect();
    (slots, Tensor::from_data([norm as f32], &device))
}

impl TensorSlot {
    fn all(&self) -> [Tensor<1>; 4] {
        [&self.parameter, &self.gradient, &self.first_moment, &self.second_moment].map(Clone::clone)
    }
}

fn is_plain(tensor: &Tensor<1>) -> bool {
    is_flex_f32(tensor) && !tensor.device().is_autodiff()
}

/// The whole storage of a tensor for which [`is_plain`] holds, and nothing beside.
fn contiguous(tensor: Tensor<1>) -> FlexTensor {
    let [length] = tensor.dims();
    match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) if tensor.is_contiguous() && tensor.storage::<f32>().len() == length => tensor,
        Ok(view) => FlexTensor::from_data(view.into_data()),
        Err(error) => unreachable!("checked to be on the CPU: {error:?}"),
    }
}
