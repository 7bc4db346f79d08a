//! The fused optimizer step against the reference.

mod agreement;

use agreement::noise;
use burn::tensor::{Device, Tensor, TensorData};
use overtone_kernels::{AdamW, Flat, Form, TensorSlot, adamw};

const SIZES: [usize; 3] = [40_000, 3, 17];

fn tensor(values: Vec<f64>) -> Tensor<1> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), &Device::flex())
}

fn start() -> Vec<TensorSlot> {
    SIZES
        .into_iter()
        .map(|n| TensorSlot {
            parameter: tensor(noise(n, 1)),
            gradient: tensor(noise(n, 2)),
            first_moment: Tensor::zeros([n], &Device::flex()),
            second_moment: Tensor::zeros([n], &Device::flex()),
            weight_decay: if n > 10 { 0.1 } else { 0.0 },
        })
        .collect()
}

/// Parameters and norms after ten steps.
fn train(form: Form, clip_norm: Option<f64>) -> (Vec<Vec<f32>>, Vec<f32>) {
    let optimizer = AdamW { learning_rate: 6e-4, betas: [0.9, 0.95], epsilon: 1e-8 };
    let (mut slots, mut norms) = (start(), Vec::new());
    for step in 1..=10 {
        for slot in &mut slots {
            let [n] = slot.parameter.dims();
            slot.gradient = tensor(noise(n, 10 + step));
        }
        let (next, norm) = adamw(optimizer, step, clip_norm, slots, form);
        slots = next;
        norms.push(norm.into_scalar::<f32>());
    }
    let values = |slot: &TensorSlot| slot.parameter.to_data().iter::<f32>().collect();
    (slots.iter().map(values).collect(), norms)
}

#[test]
fn forms_agree_with_and_without_clipping() {
    for clip_norm in [None, Some(1.0), Some(1e9)] {
        let (fused, fused_norms) = train(Form::Auto, clip_norm);
        let (reference, norms) = train(Form::Reference, clip_norm);
        for (fused, reference) in fused.iter().flatten().zip(reference.iter().flatten()) {
            assert!((fused - reference).abs() < 2e-7, "{clip_norm:?}: {fused} {reference}");
        }
        for (fused, norm) in fused_norms.iter().zip(&norms) {
            assert!((fused / norm - 1.0).abs() < 1e-5, "{fused} {norm}");
        }
        assert_eq!(train(Form::Auto, clip_norm).0, fused);
        assert_ne!(reference, fused, "the fused form did not run");
    }
}

/// The flat form goes on where tensors of their own were left, and they where it was left.
#[test]
fn the_flat_form_agrees_and_its_parts_are_in_the_given_order() {
    let optimizer = AdamW { learning_rate: 6e-4, betas: [0.9, 0.95], epsilon: 1e-8 };
    for clip_norm in [None, Some(1.0)] {
        // The one of 40,000 is laid first, since it alone is a multiple of 64.
        let mut slots = start();
        slots.rotate_left(1);
        let mut flat = Flat::new(&slots);
        for step in 1..=10 {
            for slot in &mut slots {
                let [n] = slot.parameter.dims();
                slot.gradient = tensor(noise(n, 10 + step));
            }
            let gradients = slots.iter().map(|slot| slot.gradient.clone()).collect();
            let norm = flat.step(optimizer, step, clip_norm, gradients).into_scalar::<f32>();
            let (next, expected) = adamw(optimizer, step, clip_norm, slots, Form::Reference);
            let expected = expected.into_scalar::<f32>();
            assert!((norm / expected - 1.0).abs() < 1e-5, "{norm} {expected}");
            slots = next;
            if step == 5 {
                flat = Flat::new(&slots);
            }
        }
        let check = |parts: Vec<Tensor<1>>, expected: fn(&TensorSlot) -> &Tensor<1>| {
            for (part, slot) in parts.iter().zip(&slots) {
                let (part, expected) = (part.to_data(), expected(slot).to_data());
                assert_eq!(part.shape(), expected.shape());
                for (got, expected) in part.iter::<f32>().zip(expected.iter::<f32>()) {
                    assert!((got - expected).abs() < 5e-7, "{got} {expected}"); // seen: 1e-7
                }
            }
        };
        check(flat.parameters(), |slot| &slot.parameter);
        check(flat.first_moments(), |slot| &slot.first_moment);
        check(flat.second_moments(), |slot| &slot.second_moment);
    }
}

#[test]
fn what_others_hold_is_left_alone() {
    let slots = start();
    let held = slots[0].parameter.clone();
    let before = held.to_data();
    let (after, _) = adamw(AdamW::default(), 1, None, slots, Form::Auto);
    held.to_data().assert_eq(&before, true);
    assert_ne!(after[0].parameter.to_data(), before);
}

#[test]
fn views_are_steps_on_their_own_elements() {
    let whole = tensor(noise(20, 1));
    let first = start().remove(0);
    let view = |tensor: &Tensor<1>| tensor.clone().narrow(0, 0, 10);
    let slots = vec![TensorSlot {
        parameter: whole.narrow(0, 5, 10),
        gradient: view(&first.gradient),
        first_moment: view(&first.first_moment),
        second_moment: view(&first.second_moment),
        weight_decay: 0.1,
    }];
    let step = |form| {
        let (slots, _) = adamw(AdamW::default(), 1, None, slots.clone(), form);
        slots[0].parameter.to_data().iter::<f32>().collect::<Vec<f32>>()
    };
    for (fused, reference) in step(Form::Auto).iter().zip(step(Form::Reference)) {
        assert!((fused - reference).abs() < 1e-6);
    }
}
