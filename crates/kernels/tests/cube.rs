//! The kernels for GPUs against the reference, on the device that wgpu finds: any with Vulkan,
//! a software one too. Without a device these tests fail.

mod agreement;

use std::f64::consts::PI;

use agreement::{Input, Leaves, Outcome, distance, run, run_on};
use burn::tensor::{DType, Device, DeviceKind, Tensor};
use overtone_kernels::{Form, fourier_scores::fourier_scores};

/// Against the reference in `f64`. A single `R` has a gradient whose terms cancel.
fn tolerance(of: &str) -> f64 {
    if of == "r" { 1e-5 } else { 2e-6 }
}

fn device() -> Device {
    Device::wgpu(DeviceKind::DefaultDevice)
}

fn scores(leaves: &Leaves, power: u32, form: Form) -> Tensor<4> {
    let [q, k] = ["q", "k"].map(|name| leaves.four(name));
    fourier_scores(q, k, leaves.two("r"), power, form)
}

/// Queries and keys within `size` of zero, `R` around 2.
fn inputs(shape: [usize; 4], r: [usize; 2], size: f64) -> Vec<Input> {
    vec![
        Input::new("q", &shape, 0.0, size),
        Input::new("k", &shape, 0.0, size),
        Input::new("r", &r, 2.0, 0.4),
    ]
}

fn on_device(inputs: &[Input], power: u32, form: Form) -> Outcome {
    let device = device().autodiff();
    run_on(&device, inputs, DType::F32, form, |leaves, form| scores(leaves, power, form))
}

#[track_caller]
fn check(inputs: &[Input], power: u32) {
    let exact =
        run(inputs, DType::F64, Form::Reference, |leaves, form| scores(leaves, power, form));
    let got = on_device(inputs, power, Form::Auto);
    let apart = distance(&got.output, &exact.output);
    println!("{:?} {:?} {power}: {apart:.1e}", inputs[0].shape, inputs[2].shape);
    assert!(apart < tolerance("output"), "output: {apart:.1e}");
    for ((name, got), (_, exact)) in got.gradients.iter().zip(&exact.gradients) {
        let apart = distance(got, exact);
        println!("{name}: {apart:.1e}");
        assert!(apart < tolerance(name), "{name}: {apart:.1e}");
    }
}

#[test]
fn agrees_with_the_reference() {
    for (shape, size) in [([2, 3, 7, 16], 0.4), ([2, 3, 33, 32], 0.55), ([1, 2, 70, 64], 0.5)] {
        for r in [[shape[1], shape[3]], [1, 1], [shape[1], 1], [1, shape[3]]] {
            for power in [2, 4, 6] {
                check(&inputs(shape, r, size), power);
            }
        }
    }
}

#[test]
fn hard_points_are_finite() {
    let d = 16;
    // Differences: none, on zeros of the sine, tiny, huge.
    let apart = [0.0, PI, 3.0 * PI, 16.0 * PI, -PI, 1e-30, 1e-8, 2.0, -2.0, 1e5, 3e7, -1e12];
    let mut q = vec![0.0; apart.len() * d];
    for (token, apart) in apart.iter().enumerate() {
        q[token * d..][..d].fill(f64::from(*apart as f32));
    }
    let shape = [1, 1, apart.len(), d];
    let mut inputs = inputs(shape, [1, 1], 0.0);
    inputs[0].values = q;
    for r in [1.0, 0.0, -1.0] {
        inputs[2].values = vec![r];
        let outcome = on_device(&inputs, 6, Form::Auto);
        let all = outcome.gradients.iter().flat_map(|(_, values)| values);
        for value in outcome.output.iter().chain(all) {
            assert!(value.is_finite(), "{r}: {outcome:?}");
        }
        // A key at the query has the largest score there is.
        assert_eq!(outcome.output[0], 0.0, "{r}");
        assert!(outcome.output.iter().all(|score| *score <= 0.0));
    }
}
