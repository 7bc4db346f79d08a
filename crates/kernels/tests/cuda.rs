//! The kernels in CUDA C++ on an NVIDIA GPU of compute capability 8.0 or more, compared with the
//! reference in `f64`. They need the feature `cuda` and such a GPU, or a driver that emulates one.

mod agreement;

use agreement::{
    Leaves, distance,
    operands::{frames_on, nature_parameters, nature_weights, pixels},
    run, run_on,
};
use burn::tensor::{DType, Device};
use overtone_kernels::{Form, Half, nature_encoder, nature_encoder_windows};

/// Weights and the layers' outputs have 8 bits, so that some ReLUs are on where they would be off.
/// Largest seen: 7e-2 with an emulated driver. Mixed precision in plain tensors: 1e-1.
const TOLERANCE: f64 = 1.5e-1;

#[track_caller]
fn check(sequences: usize, length: usize, d: usize) {
    let inputs = nature_parameters(d);
    let operation = |device: &Device| {
        let frames = frames_on(pixels(sequences * length), sequences, device);
        move |leaves: &Leaves, form| match length {
            4 => nature_encoder(frames.clone(), nature_weights(leaves), form),
            _ => nature_encoder_windows(frames.clone(), nature_weights(leaves), form),
        }
    };
    let gpu = Device::cuda(0).autodiff();
    let mixed = Form::Mixed(Half::Bf16);
    let got = run_on(&gpu, &inputs, DType::F32, mixed, operation(&gpu));
    let again = run_on(&gpu, &inputs, DType::F32, mixed, operation(&gpu));
    assert_eq!(got, again, "two runs have different bits");
    let cpu = Device::flex().autodiff();
    let exact = run(&inputs, DType::F64, Form::Reference, operation(&cpu));
    let gradients = got.gradients.iter().zip(&exact.gradients);
    let gradients = gradients.map(|((name, got), (_, exact))| (*name, distance(got, exact)));
    let output = ("output", distance(&got.output, &exact.output));
    for (name, apart) in [output].into_iter().chain(gradients) {
        println!("{sequences} of {length} frames, {d}: {name}: {apart:.1e}");
        assert!(apart < TOLERANCE, "{name}: {apart:.1e}");
    }
}

#[test]
fn the_encoder_of_windows() {
    check(2, 5, 32);
}

#[test]
fn the_encoder_of_stacks() {
    check(3, 4, 24);
}
