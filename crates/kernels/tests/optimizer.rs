//! The step on slices compared with the step on tensors.

mod agreement;

use agreement::noise;
use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_kernels::{AdamW, AdamWState, Form, TensorSlot};

const SIZES: [usize; 3] = [40_000, 3, 17];
const OPTIMIZER: AdamW = AdamW { learning_rate: 6e-4, betas: [0.9, 0.95], epsilon: 1e-8 };

fn tensor(values: Vec<f64>, dtype: DType) -> Tensor<1> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), (&Device::flex(), dtype))
}

fn start(dtype: DType) -> Vec<TensorSlot> {
    SIZES
        .into_iter()
        .map(|n| TensorSlot {
            parameter: tensor(noise(n, 1), dtype),
            first_moment: Tensor::zeros([n], (&Device::flex(), dtype)),
            second_moment: Tensor::zeros([n], (&Device::flex(), dtype)),
            weight_decay: if n > 10 { 0.1 } else { 0.0 },
        })
        .collect()
}

fn gradients(step: u64, dtype: DType) -> Vec<Tensor<1>> {
    SIZES.into_iter().map(|n| tensor(noise(n, 10 + step), dtype)).collect()
}

fn numbers(tensors: Vec<Tensor<1>>) -> Vec<Vec<f64>> {
    tensors.iter().map(|tensor| tensor.to_data().iter::<f64>().collect()).collect()
}

/// Parameters, moments and norms after ten steps.
fn train(form: Form, dtype: DType, clip_norm: Option<f64>) -> ([Vec<Vec<f64>>; 3], Vec<f64>) {
    let (mut state, mut norms) = (AdamWState::new(start(dtype), form), Vec::new());
    for step in 1..=10 {
        let norm = state.step(OPTIMIZER, step, clip_norm, gradients(step, dtype));
        norms.extend(norm.into_data().iter::<f64>());
    }
    let (first, second) = state.moments().into_iter().map(<(_, _)>::from).unzip();
    ([state.parameters(), first, second].map(numbers), norms)
}

/// Slices compared with tensors, and both compared with tensors in `f64`.
#[test]
fn forms_agree_with_and_without_clipping() {
    for clip_norm in [None, Some(1.0), Some(1e9)] {
        let (slices, slices_norms) = train(Form::Auto, DType::F32, clip_norm);
        let (tensors, tensors_norms) = train(Form::Reference, DType::F32, clip_norm);
        let (exact, exact_norms) = train(Form::Reference, DType::F64, clip_norm);
        let flat = |parts: &[Vec<Vec<f64>>; 3]| -> Vec<f64> {
            parts.iter().flatten().flatten().copied().collect()
        };
        for (slices, tensors) in flat(&slices).iter().zip(flat(&tensors)) {
            assert!((slices - tensors).abs() < 2e-7, "{clip_norm:?}: {slices} {tensors}");
        }
        for (got, exact) in flat(&slices).iter().zip(flat(&exact)) {
            assert!((got - exact).abs() < 1e-6, "{clip_norm:?}: {got} {exact}"); // seen: 3e-7
        }
        for norms in [&slices_norms, &tensors_norms] {
            for (norm, exact) in norms.iter().zip(&exact_norms) {
                assert!((norm / exact - 1.0).abs() < 1e-5, "{norm} {exact}");
            }
        }
        assert_eq!(train(Form::Auto, DType::F32, clip_norm).0, slices);
        // Without clipping, both forms give the same bits, except for the norm's sum.
        assert_ne!(tensors_norms, slices_norms, "the loop over slices did not run");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let train = || train(Form::Auto, DType::F32, Some(1.0));
    assert_eq!(single.install(train), train());
}

/// Both forms continue from the state at which the other stopped, in the given order of parameters.
#[test]
fn a_state_continues_from_its_parts() {
    let slots = |state: &AdamWState| -> Vec<TensorSlot> {
        let parts = state.parameters().into_iter().zip(state.moments()).zip(start(DType::F32));
        parts
            .map(|((parameter, [first_moment, second_moment]), slot)| TensorSlot {
                parameter,
                first_moment,
                second_moment,
                ..slot
            })
            .collect()
    };
    for [first, second] in [[Form::Auto, Form::Reference], [Form::Reference, Form::Auto]] {
        let mut state = AdamWState::new(start(DType::F32), first);
        for step in 1..=5 {
            state.step(OPTIMIZER, step, Some(1.0), gradients(step, DType::F32));
        }
        let mut state = AdamWState::new(slots(&state), second);
        for step in 6..=10 {
            state.step(OPTIMIZER, step, Some(1.0), gradients(step, DType::F32));
        }
        let ([parameters, ..], _) = train(Form::Reference, DType::F32, Some(1.0));
        for (got, expected) in numbers(state.parameters()).iter().zip(&parameters) {
            assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() < 5e-7, "{got} {expected}"); // seen: 1e-7
            }
        }
    }
}

#[test]
fn memory_with_other_references_does_not_change() {
    let slots = start(DType::F32);
    let held = slots[0].parameter.clone();
    let before = held.to_data();
    let mut state = AdamWState::new(slots, Form::Auto);
    state.step(AdamW::default(), 1, None, gradients(1, DType::F32));
    held.to_data().assert_eq(&before, true);
    assert_ne!(state.parameters()[0].to_data(), before);
}

#[test]
fn views_are_steps_on_their_own_elements() {
    let whole = tensor(noise(20, 1), DType::F32);
    let [first, ..] = &start(DType::F32)[..] else { unreachable!() };
    let view = |tensor: &Tensor<1>| tensor.clone().narrow(0, 0, 10);
    let step = |form| {
        let slot = TensorSlot {
            parameter: whole.clone().narrow(0, 5, 10),
            first_moment: view(&first.first_moment),
            second_moment: view(&first.second_moment),
            weight_decay: 0.1,
        };
        let gradient = view(&gradients(2, DType::F32)[0]);
        let mut state = AdamWState::new(vec![slot], form);
        state.step(AdamW::default(), 1, None, vec![gradient]);
        numbers(state.parameters()).remove(0)
    };
    let (slices, tensors) = (step(Form::Auto), step(Form::Reference));
    assert_eq!(slices.len(), 10);
    for (slices, tensors) in slices.iter().zip(tensors) {
        assert!((slices - tensors).abs() < 1e-6);
    }
}
