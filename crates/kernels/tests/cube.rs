//! The kernels for GPUs compared with the reference, on the device that wgpu finds: any device with
//! Vulkan, including software devices. Without a device these tests fail.

mod agreement;

use std::f64::consts::PI;

use agreement::{
    Input, Leaves, Outcome, distance, infer_on,
    operands::{attend, attention_inputs, first_tokens, fourier_inputs, mlp, mlp_inputs},
    run, run_on,
};
use burn::tensor::{DType, Device, DeviceKind, Int, Tensor, TensorData};
use overtone_kernels::{
    Activation, AdamW, AdamWState, AttentionOptions, Dropout, Form, Half, Queries, ReluLayer,
    Score, TensorSlot, affine, dropout, embedding, layer_norm, relu_layers,
    stored::{self, Words},
};

/// Compared with the reference in `f64`. Largest seen: 9e-7.
const TOLERANCE: f64 = 5e-6;
/// Products of factors of 11 bits. Largest seen: 1.3e-3.
const MIXED_TOLERANCE: f64 = 4e-3;
fn some_dropout() -> Dropout {
    let step_seed = Tensor::from_data(Dropout::words(3), &device());
    Dropout { probability: 0.1, step_seed, nth: 1 }
}

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
        ([2, 45, 80], 1, DOT, ALL, Some([0, 3])),
        ([1, 4, 34], 2, fourier(2, 0.0), ALL, None),
    ];
    for (shape, n_heads, score, queries, first) in cases {
        println!("{shape:?}, {n_heads} heads, {score:?}, {queries:?}, {first:?}");
        let inputs = match score {
            Score::Fourier { .. } => fourier_inputs(shape, [n_heads, 1], 0.5),
            _ => attention_inputs(shape),
        };
        let operation = |leaves: &Leaves, form| {
            let first_token = first.map(|first| first_tokens(leaves, &first));
            let dropout = Some(some_dropout());
            attend(leaves, AttentionOptions { n_heads, score, queries, first_token, dropout, form })
        };
        let got = on_device(&inputs, Form::Auto, operation);
        check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
        if shape[1] == 60 {
            assert_ne!(got, on_device(&inputs, Form::Reference, operation), "kernels did not run");
            let untracked = infer_on(&device(), &inputs, DType::F32, Form::Auto, operation);
            assert_eq!(untracked, got.output, "without autodiff");
            let checkpointed = device().autodiff().gradient_checkpointing();
            let checkpointed = run_on(&checkpointed, &inputs, DType::F32, Form::Auto, operation);
            assert_eq!(checkpointed, got, "with gradient checkpointing");
            let mixed = on_device(&inputs, Form::Mixed(Half::F16), operation);
            check_outcome(&mixed, &exact(&inputs, operation), MIXED_TOLERANCE);
        }
    }
}

fn fourier(leaves: &Leaves, form: Form) -> Tensor<3> {
    let score = Score::Fourier { power: 4, epsilon: 0.0 };
    let (queries, first_token, dropout) = (Queries::ALL, None, None);
    attend(leaves, AttentionOptions { n_heads: 2, score, queries, first_token, dropout, form })
}

/// Slopes near zeros of the sine amplify the rounding of queries and keys. Seen: 6.5e-5, and 3.2e-5
/// in plain tensors on the same device.
#[test]
fn far_fourier_scores_are_nearly_as_accurate_as_in_plain_tensors() {
    let inputs = fourier_inputs([2, 20, 32], [2, 16], 10.0);
    let exact = exact(&inputs, fourier);
    let [got, plain] = [Form::Auto, Form::Reference]
        .map(|form| distance(&on_device(&inputs, form, fourier).output, &exact.output));
    println!("{got:.1e}, plain {plain:.1e}");
    assert!(got < 4.0 * plain, "{got:.1e}, plain {plain:.1e}");
}

/// Differences of queries and keys that are zero, on zeros of the sine, tiny or huge.
#[test]
fn hard_fourier_scores_are_finite() {
    for apart in [0.0, PI, -16.0 * PI, 1e-30, 1e-8, 2.0, 3e7, -1e12, f64::NAN] {
        let mut inputs = fourier_inputs([1, 3, 32], [1, 1], 0.0);
        inputs[7].values.fill(1.0);
        // The same query, and the same key of zero, at each token.
        inputs[3].values.fill(0.0);
        inputs[4].values[..32].fill(apart);
        inputs[4].values[32..64].fill(0.0);
        let Outcome { output, gradients } = on_device(&inputs, Form::Auto, fourier);
        let mut all = gradients.iter().flat_map(|(_, values)| values).chain(&output);
        assert!(all.all(|value| value.is_finite()) != apart.is_nan(), "{apart}");
        assert!(output.iter().all(|value| value.is_nan() == apart.is_nan()), "{apart}");
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
            let [got, expected] = [device(), Device::flex()].map(|device| {
                let step_seed = Tensor::from_data(Dropout::words(seed), &device);
                let probability = [0.1, 0.5, 0.25][i % 3];
                dropped(shape, &Dropout { probability, step_seed, nth: 5 * i as u32 }, &device)
            });
            assert!(got == expected, "{shape:?}");
        }
    }
}

/// A view whose elements are not contiguous in their logical order.
#[test]
fn dropout_of_a_view() {
    let how = some_dropout();
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

#[test]
fn affine_layers_agree_with_the_reference() {
    // Those with more than 512 rows are not for the kernels of small layers.
    let shapes =
        [[96, 11, 128], [31, 17, 18], [640, 1, 3], [1, 8, 8], [512, 200, 1], [1100, 256, 256]];
    for [rows, n_in, n_out] in shapes {
        let inputs = [
            Input::new("x", &[rows, n_in], 0.0, 1.0),
            Input::new("weight", &[n_in, n_out], 0.0, 0.5),
            Input::new("bias", &[n_out], 0.0, 0.5),
        ];
        let operation =
            |leaves: &Leaves, _| affine(leaves.two("x"), leaves.two("weight"), leaves.one("bias"));
        let got = on_device(&inputs, Form::Auto, operation);
        check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
    }
}

#[test]
fn layers_with_relu_agree_with_the_reference() {
    for [rows, n_in, width] in [[96, 11, 64], [31, 17, 18], [1, 8, 8], [1100, 11, 256]] {
        let inputs = [
            Input::new("x", &[rows, n_in], 0.0, 1.0),
            Input::new("first_weight", &[n_in, width], 0.0, 0.5),
            Input::new("first_bias", &[width], 0.0, 0.5),
            Input::new("second_weight", &[width, width], 0.0, 0.5),
            Input::new("second_bias", &[width], 0.0, 0.5),
            Input::new("last_weight", &[width, 3], 0.0, 0.5),
            Input::new("last_bias", &[3], 0.0, 0.5),
        ];
        let layers = |leaves: &Leaves| {
            let names = [
                ["first_weight", "first_bias"],
                ["second_weight", "second_bias"],
                ["last_weight", "last_bias"],
            ];
            let layer = |[weight, bias]: [&str; 2]| ReluLayer {
                weight: leaves.two(weight),
                bias: leaves.one(bias),
                norm: None,
            };
            names.map(layer).into()
        };
        let operation = |leaves: &Leaves, form| relu_layers(leaves.two("x"), layers(leaves), form);
        let got = on_device(&inputs, Form::Auto, operation);
        check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
        let untracked = infer_on(&device(), &inputs, DType::F32, Form::Auto, operation);
        assert_eq!(untracked, got.output, "without autodiff");
    }
}

/// Rows that are looked up often, once and never.
#[test]
fn lookups_agree_with_the_reference() {
    for ([n_rows, width], n) in [([7, 33], 700), ([300, 128], 5), ([1, 1], 1), ([18, 128], 257)] {
        let inputs = [Input::new("table", &[n_rows, width], 0.0, 1.0)];
        let rows: Vec<i32> = (0..n as i32).map(|i| i * i % n_rows as i32).collect();
        let operation = |leaves: &Leaves, _| {
            let table = leaves.two("table");
            let rows = Tensor::<1, Int>::from_data(&rows[..], &table.device());
            embedding(table, rows)
        };
        let got = on_device(&inputs, Form::Auto, operation);
        check_outcome(&got, &exact(&inputs, operation), TOLERANCE);
        assert_eq!(got, on_device(&inputs, Form::Auto, operation), "another run");
    }
}

fn perceptron(leaves: &Leaves, form: Form) -> Tensor<3> {
    mlp(leaves, Activation::Gelu, Some(some_dropout()), form)
}

fn perceptron_inputs() -> Vec<Input> {
    mlp_inputs([2, 7, 32], 128, [0.2, 0.1])
}

#[test]
fn the_perceptron_block_agrees_with_the_reference() {
    for (shape, h) in [([2, 7, 32], 128), ([3, 70, 33], 50), ([1, 1, 8], 8)] {
        let inputs = mlp_inputs(shape, h, [0.2, 0.1]);
        for (activation, dropout) in
            [(Activation::Gelu, Some(some_dropout())), (Activation::Relu, None)]
        {
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
