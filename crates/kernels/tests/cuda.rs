//! The kernels in CUDA C++ on an NVIDIA GPU of compute capability 8.0 or more, compared with the
//! reference in `f64`. They need the feature `cuda` and such a GPU, or a driver that emulates one.

mod agreement;

use agreement::{Input, distance, noise, run, run_on};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_kernels::{Form, Half, NatureWeights, nature_encoder, nature_encoder_windows};

/// Weights and the layers' outputs have 8 bits, so that some ReLUs are on where they would be off.
/// Largest seen: 7e-2 with an emulated driver. Mixed precision in plain tensors: 1e-1.
const TOLERANCE: f64 = 1.5e-1;
const FRAME: usize = 84;

fn pixels(shape: [usize; 4]) -> TensorData {
    let values: Vec<u8> =
        noise(shape.iter().product(), 5).into_iter().map(|x| ((x + 1.0) * 127.5) as u8).collect();
    TensorData::new(values, shape)
}

#[track_caller]
fn check(sequences: usize, length: usize, d: usize) {
    let inputs = [
        Input::new("conv1_weight", &[32, 4, 8, 8], 0.0, 0.0625),
        Input::new("conv1_bias", &[32], 0.0, 0.0625),
        Input::new("conv2_weight", &[64, 32, 4, 4], 0.0, 0.044),
        Input::new("conv2_bias", &[64], 0.0, 0.044),
        Input::new("conv3_weight", &[64, 64, 3, 3], 0.0, 0.042),
        Input::new("conv3_bias", &[64], 0.0, 0.042),
        Input::new("linear_weight", &[3136, d], 0.0, 0.018),
        Input::new("linear_bias", &[d], 0.0, 0.018),
    ];
    let pixels = pixels([sequences, length, FRAME, FRAME]);
    let operation = |device: &Device| {
        let frames = Tensor::<4, Int>::from_data(pixels.clone(), (device, DType::U8));
        move |leaves: &agreement::Leaves, form| {
            let weights = NatureWeights {
                conv1_weight: leaves.four("conv1_weight"),
                conv1_bias: leaves.one("conv1_bias"),
                conv2_weight: leaves.four("conv2_weight"),
                conv2_bias: leaves.one("conv2_bias"),
                conv3_weight: leaves.four("conv3_weight"),
                conv3_bias: leaves.one("conv3_bias"),
                linear_weight: leaves.two("linear_weight"),
                linear_bias: leaves.one("linear_bias"),
            };
            match length {
                4 => nature_encoder(frames.clone(), weights, form),
                _ => nature_encoder_windows(frames.clone(), weights, form),
            }
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
