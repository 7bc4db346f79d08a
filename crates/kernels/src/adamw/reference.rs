//! The step in burn tensors.

use burn::tensor::Tensor;

use super::{AdamW, TensorSlot};

pub(super) fn adamw(
    optimizer: AdamW,
    step: u64,
    clip_norm: Option<f64>,
    slots: Vec<TensorSlot>,
) -> (Vec<TensorSlot>, Tensor<1>) {
    let AdamW { learning_rate, betas: [beta1, beta2], epsilon } = optimizer;
    let [correction1, correction2] = [beta1, beta2].map(|beta| 1.0 - beta.powf(step as f64));
    let squares = slots.iter().map(|slot| slot.gradient.clone().square().sum()).collect();
    let norm = Tensor::cat(squares, 0).sum().sqrt();
    let scale =
        clip_norm.map(|clip_norm| ((norm.clone() + 1e-6).recip() * clip_norm).clamp_max(1.0));
    let slots = slots
        .into_iter()
        .map(|slot| {
            let gradient = match &scale {
                Some(scale) => slot.gradient.clone() * scale.clone(),
                None => slot.gradient.clone(),
            };
            let first_moment = slot.first_moment.clone() * beta1 + gradient.clone() * (1.0 - beta1);
            let second_moment =
                slot.second_moment.clone() * beta2 + gradient.square() * (1.0 - beta2);
            let root = (second_moment.clone() / correction2).sqrt() + epsilon;
            let kept = slot.parameter.clone() * (1.0 - learning_rate * slot.weight_decay);
            let parameter = kept - first_moment.clone() / root * (learning_rate / correction1);
            TensorSlot { parameter, first_moment, second_moment, ..slot }
        })
        .collect();
    (slots, norm)
}
