//! The kernels for GPUs compared with the reference, on the device that wgpu finds: any device with
//! Vulkan, including software devices. Without a device these tests fail.

mod agreement;

use agreement::{
    Input, Leaves, Outcome, distance, infer_on,
    operands::{
        attend, attention_inputs, check_far_scores, check_hard_scores, check_nan_of_scores, fourier_inputs, mlp,
        mlp_inputs, score_inputs, scores,
    },
    run, run_on,
};
use burn::tensor::{DType, Device, DeviceKind, Tensor, TensorData};
use overtone_kernels::{
    Activation, AdamW, AdamWState, AttentionOptions, Dropout, FirstToken, Form, Half, Queries,
    Score, Seed, TensorSlot, dropout, fourier_scores, layer_norm,
    stored::{self, Words},
};

/// Compared with the reference in `f64`. Largest seen: 7e-7, and 9e-7 in a whole attention block.
const TOLERANCE: f64 = 5e-6;
/// The same for stored values with 11 bits. Largest seen: 5e-4.
const HALF_TOLERANCE: f64 = 1e-3;

/// Products of factors of 11 bits. Largest seen: 1.3e-3.
const MIXED_TOLERANCE: f64 = 4e-3;
const DROPOUT: Dropout = Dropout { probability: 0.1, seed: Seed::Number(3) };

fn device() -> Device {
    Device::wgpu(DeviceKind::DefaultDevice)
}

/// Runs forward and backward on the device in `f32`.
fn on_device<const D: usize>(
    inputs: &[Input],
    form: Form,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Outcome {
    run_on(&device().autodiff(), inputs, DType::F32, form, operation)
}

fn exact<const D: usize>(
    inputs: &[Input],
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Outcome {
    run(inputs, DType::F64, Form::Reference, operation)
}

#[track_caller]
fn check_outcome(got: &Outcome, exact: &Outcome, tolerance: f64) {
    let outputs = ("output", &got.output, &exact.output);
    let gradients = got.gradients.iter().zip(&exact.gradients);
    let gradients = gradients.map(|((name, got), (_, exact))| (*name, got, exact));
    for (name, got, exact) in [outputs].into_iter().chain(gradients) {
        let apart = distance(got, exact);
        println!("{name}: {apart:.1e}");
        // A sum of cancelling terms: largest seen 5e-6.
        let tolerance = if name == "fourier_r" { 10.0 * tolerance } else { tolerance };
        assert!(apart < tolerance, "{name}: {apart:.1e}");
    }
}

#[track_caller]
fn check_scores(inputs: &[Input], power: u32) {
    println!("{:?}, R of {:?}, power {power}", inputs[0].shape, inputs[2].shape);
    let operation = |leaves: &Leaves, form| scores(leaves, power, form);
    let got = on_device(inputs, Form::Auto, operation);
    check_outcome(&got, &exact(inputs, operation), TOLERANCE);
}

#[test]
fn agrees_with_the_reference() {
    for (shape, size) in [([2, 3, 7, 16], 0.4), ([2, 3, 33, 32], 0.55), ([1, 2, 70, 64], 0.5)] {
        for r in [[shape[1], shape[3]], [1, 1], [shape[1], 1], [1, shape[3]]] {
            for power in [2, 4, 6] {
                check_scores(&score_inputs(shape, r, size), power);
            }
        }
    }
}

/// Heads that do not fill a cube, or with dimensions that do not fit in shared memory at once; more
/// keys than fit there; more than the kernels support; and the heads of real models.
#[test]
fn odd_shapes_agree_with_the_reference() {
    for shape in [
        [1, 1, 1, 1],
        [3, 2, 11, 5],
        [1, 2, 34, 48],
        [1, 1, 9, 200],
        [3, 8, 90, 16],
        [4, 1, 60, 64],
        [1, 2, 150, 16],
        [1, 1, 8, 256],
        [1, 1, 4, 300],
    ] {
        check_scores(&score_inputs(shape, [shape[1], shape[3]], 0.3), 4);
    }
}

#[test]
fn the_kernels_run() {
    let inputs = score_inputs([1, 2, 40, 16], [2, 16], 0.5);
    let operation = |leaves: &Leaves, form| scores(leaves, 4, form);
    let of = |form| on_device(&inputs, form, operation);
    let (fused, reference) = (of(Form::Auto), of(Form::Reference));
    // If the kernels had not run, this would equal the reference to the last bit.
    assert_ne!(fused, reference);
    assert_eq!(fused, of(Form::Auto), "another run");
    let untracked = infer_on(&device(), &inputs, DType::F32, Form::Auto, operation);
    assert_eq!(untracked, fused.output, "without autodiff");
    let checkpointed = device().autodiff().gradient_checkpointing();
    let checkpointed = run_on(&checkpointed, &inputs, DType::F32, Form::Auto, operation);
    assert_eq!(checkpointed, fused, "with gradient checkpointing");
}

/// Queries, keys and the gradient of scores in a memory order that differs from their axes.
#[test]
fn strides_are_followed() {
    let inputs = score_inputs([2, 35, 3, 16], [3, 16], 0.5);
    let operation = |leaves: &Leaves, form| {
        let [q, k] = ["q", "k"].map(|name| leaves.four(name).swap_dims(1, 2));
        fourier_scores(q, k, leaves.two("r"), 4, form).swap_dims(2, 3)
    };
    let got = on_device(&inputs, Form::Auto, operation);
    check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
}

#[test]
fn far_arguments_are_as_accurate_as_in_plain_tensors() {
    check_far_scores(|inputs| {
        on_device(inputs, Form::Auto, |leaves, form| scores(leaves, 4, form))
    });
}

#[test]
fn hard_points_are_finite() {
    check_hard_scores(|inputs| {
        on_device(inputs, Form::Auto, |leaves, form| scores(leaves, 6, form))
    });
}

#[test]
fn a_nan_is_in_every_score_that_depends_on_it() {
    check_nan_of_scores(|inputs| {
        on_device(inputs, Form::Auto, |leaves, form| scores(leaves, 4, form))
    });
}

/// Stored values have 11 bits, including the gradient of scores; the computation has 24.
#[test]
fn half_precision_rounds_only_stored_values() {
    let (device, dtype) = (device(), DType::F16);
    assert!(device.supports_dtype(dtype), "a device without `f16`");
    let mut inputs = score_inputs([2, 2, 33, 32], [2, 32], 0.4);
    for value in inputs.iter_mut().flat_map(|input| &mut input.values) {
        *value = (*value * 512.0).round() / 512.0;
    }
    let operation = |leaves: &Leaves, form| scores(leaves, 2, form);
    let got = run_on(&device.autodiff(), &inputs, dtype, Form::Auto, operation);
    check_outcome(&got, &exact(&inputs, operation), HALF_TOLERANCE);
}

/// Whole blocks: heads of one and of several slices, one token and many, the heads of real models;
/// padding, dropout, and results at some tokens only.
#[test]
fn the_attention_block_agrees_with_the_reference() {
    const ALL: Queries = Queries::ALL;
    const DOT: Score<'static> = Score::DotProduct;
    let fourier = |power, epsilon| Score::Fourier { power, epsilon };
    let cases = [
        ([2, 90, 128], 8, DOT, ALL, Some([0, 33])),
        ([2, 90, 128], 8, fourier(4, 0.0), Queries { first: 1, step: 3 }, Some([0, 89])),
        ([2, 60, 128], 1, DOT, ALL, Some([17, 0])),
        ([2, 60, 64], 1, fourier(4, 0.0), ALL, Some([0, 17])),
        ([2, 15, 128], 1, DOT, Queries { first: 1, step: 3 }, None),
        ([2, 7, 24], 2, fourier(2, 1e-6), ALL, None),
        ([2, 1, 32], 2, DOT, ALL, None),
        ([2, 130, 32], 2, DOT, Queries::one(128, 130), Some([5, 128])),
        ([2, 33, 40], 2, fourier(6, 0.0), ALL, Some([32, 0])),
    ];
    for (shape, n_heads, score, queries, first) in cases {
        println!("{shape:?}, {n_heads} heads, {score:?}, {queries:?}, {first:?}");
        let inputs = match score {
            Score::Fourier { .. } => fourier_inputs(shape, [n_heads, 1], 0.5),
            _ => attention_inputs(shape),
        };
        let operation = |leaves: &Leaves, form| {
            let first_token = first.as_ref().map(|first| FirstToken::Host(first));
            let dropout = Some(DROPOUT);
            attend(leaves, AttentionOptions { n_heads, score, queries, first_token, dropout, form })
        };
        let got = on_device(&inputs, Form::Auto, operation);
        check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
        if shape[1] == 60 {
            assert_ne!(got, on_device(&inputs, Form::Reference, operation), "kernels did not run");
            let mixed = on_device(&inputs, Form::Mixed(Half::F16), operation);
            check_outcome(&mixed, &exact(&inputs, operation), MIXED_TOLERANCE);
        }
    }
}

/// Forward and backward dropout on `device`: exact, because every element is a product.
fn dropped(shape: [usize; 3], how: &Dropout, device: &Device) -> [Vec<f32>; 2] {
    let n = shape.iter().product();
    let values: Vec<f32> = agreement::noise(n, 5).iter().map(|&x| x as f32).collect();
    let x = Tensor::<3>::from_data(TensorData::new(values, shape), &device.clone().autodiff());
    let x = x.require_grad();
    let y = dropout(x.clone(), how.clone(), Form::Auto);
    let gradients = (y.clone() * 3.0).sum().backward();
    let by_x = x.grad(&gradients).expect("a gradient");
    [y.inner(), by_x].map(|tensor| tensor.into_data().iter::<f32>().collect())
}

#[test]
fn dropout_drops_the_same_elements_as_the_cpu() {
    let seeds = [0, 1, 7, u64::MAX, 0x8000_0000_0000_0000, 0x1234_5678_9abc_def1];
    for shape in [[1, 1, 1], [2, 3, 90], [3, 70, 128], [2, 301, 33], [1, 40_000, 9]] {
        for (i, seed) in seeds.into_iter().enumerate() {
            let how = |seed| Dropout { probability: [0.1, 0.5, 0.25][i % 3], seed };
            let expected = dropped(shape, &how(Seed::Number(seed)), &Device::flex());
            assert!(dropped(shape, &how(Seed::Number(seed)), &device()) == expected, "{shape:?}");
            // Of a step's seed in memory, with the same result on both devices.
            let [got, expected] = [device(), Device::flex()].map(|device| {
                let step_seed = Tensor::from_data(Seed::words(seed), &device);
                dropped(shape, &how(Seed::Stored { step_seed, nth: 5 }), &device)
            });
            assert!(got == expected, "{shape:?}, in memory");
        }
    }
}

/// A view whose elements are not contiguous in their logical order.
#[test]
fn dropout_of_a_view() {
    let how = Dropout { probability: 0.5, seed: Seed::Number(3) };
    let run = |device: &Device| -> Vec<f32> {
        let values: Vec<f32> = agreement::noise(2 * 5 * 7, 5).iter().map(|&x| x as f32).collect();
        let x = Tensor::<3>::from_data(TensorData::new(values, [2, 5, 7]), device);
        dropout(x.swap_dims(1, 2), how.clone(), Form::Auto).into_data().iter().collect()
    };
    assert_eq!(run(&device()), run(&Device::flex()));
}

#[test]
fn layer_norm_agrees_with_the_reference() {
    for shape in [[2, 90, 128], [3, 70, 33], [1, 1, 8], [2, 3, 1000]] {
        let inputs = &mlp_inputs(shape, 1, [0.2, 0.1])[..3];
        let operation = |leaves: &Leaves, form| {
            let [weight, bias] = ["norm_weight", "norm_bias"].map(|name| leaves.one(name));
            layer_norm(leaves.three("x"), weight, bias, form)
        };
        let got = on_device(inputs, Form::Auto, operation);
        check_outcome(&got, &exact(inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(inputs, Form::Auto, operation), "another run");
    }
}

fn perceptron(leaves: &Leaves, form: Form) -> Tensor<3> {
    mlp(leaves, Activation::Gelu, Some(DROPOUT), form)
}

fn perceptron_inputs() -> Vec<Input> {
    mlp_inputs([2, 7, 32], 128, [0.2, 0.1])
}

#[test]
fn the_perceptron_block_agrees_with_the_reference() {
    for (shape, h) in [([2, 7, 32], 128), ([3, 70, 33], 50), ([1, 1, 8], 8)] {
        let inputs = mlp_inputs(shape, h, [0.2, 0.1]);
        for (activation, dropout) in [(Activation::Gelu, Some(DROPOUT)), (Activation::Relu, None)] {
            let operation = |leaves: &Leaves, form| mlp(leaves, activation, dropout.clone(), form);
            let got = on_device(&inputs, Form::Auto, operation);
            check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
            assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
        }
    }
}

#[test]
fn mixed_precision_rounds_only_factors() {
    let inputs = perceptron_inputs();
    let got = on_device(&inputs, Form::Mixed(Half::F16), perceptron);
    check_outcome(&got, &exact(&inputs, perceptron), MIXED_TOLERANCE);
    assert_ne!(got, on_device(&inputs, Form::Auto, perceptron), "nothing was rounded");
}

#[test]
fn the_optimizer_agrees_with_the_cpu() {
    // More gradients than one operation takes.
    let sizes: [usize; 70] = std::array::from_fn(|i| [3, 4096, 128, 17][i % 4]);
    let run = |device: &Device| -> Vec<f32> {
        let tensor = |n: usize, seed: u64| {
            let values: Vec<f32> = agreement::noise(n, seed).iter().map(|&x| x as f32).collect();
            Tensor::<1>::from_data(TensorData::new(values, [n]), device)
        };
        let slots: Vec<TensorSlot> = sizes
            .into_iter()
            .map(|n| TensorSlot {
                parameter: tensor(n, 1),
                first_moment: Tensor::zeros([n], device),
                second_moment: Tensor::zeros([n], device),
                weight_decay: if n > 100 { 0.1 } else { 0.0 },
            })
            .collect();
        let mut state = AdamWState::new(slots, Form::Reference);
        let mut norms = Vec::new();
        for step in 1..=5 {
            let gradients = sizes.map(|n| tensor(n, 10 + step)).to_vec();
            norms.push(state.step(AdamW::default(), step, Some(1.0), gradients));
        }
        let parts = norms.into_iter().chain(state.parameters());
        parts.flat_map(|part| part.into_data().iter::<f32>().collect::<Vec<_>>()).collect()
    };
    for (got, expected) in run(&device()).iter().zip(run(&Device::flex())) {
        assert!((got - expected).abs() < 5e-6 * expected.abs().max(1.0), "{got} {expected}");
    }
}

/// Parts share memory, so they have the values that are written later.
#[test]
fn stored_memory_keeps_its_place() {
    let device = device();
    let mut words = Words::new((0..200).collect(), &device);
    let (ints, floats) = (words.ints(64, 3), words.floats(128, 2));
    assert_eq!(ints.clone().into_data().iter::<i32>().collect::<Vec<_>>(), [64, 65, 66]);
    words.write((0..200).map(|i| (i as f32 + 0.5).to_bits() as i32).collect());
    let numbers = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
    assert_eq!(numbers(floats), [128.5, 129.5]);
    let flat = Tensor::<1>::zeros([130], &device);
    let part = stored::part(&flat, 128, 2);
    let all = stored::copy_into(flat.clone(), Tensor::ones([130], &device));
    assert_eq!([flat, all].map(numbers), [vec![1.0; 130], vec![1.0; 130]]);
    assert_eq!(numbers(part), [1.0, 1.0]);
    drop(ints);
}
