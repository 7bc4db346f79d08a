//! The Fourier attention module, compared with the golden files, the transformer's own block, and
//! central differences.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;

use burn::{
    module::Param,
    nn::Linear,
    tensor::{Bool, DType, Device, Tensor, TensorData},
};
use overtone_kernels::{
    AttentionOptions, AttentionWeights, Form, Queries, Score, attention_block, layer_norm,
};
use overtone_model::{FourierAttention, FourierAttentionConfig, RShape};
use overtone_testkit::{Golden, assert_close, assert_gradient, golden};
use serde_json::Value;

/// Numbers without a pattern, between -1 and 1.
fn noise(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| (1.3 * (i * i + 1) as f64 + 0.7 * seed as f64 + i as f64).sin()).collect()
}

fn tensor<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, dtype))
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// A module whose every number is noise.
fn module(config: &FourierAttentionConfig, device: &Device, dtype: DType) -> FourierAttention {
    let d = config.d_model;
    let linear = |seed| Linear {
        weight: Param::from_tensor(tensor(noise(d * d, seed), [d, d], device, dtype) * 0.4),
        bias: Some(Param::from_tensor(tensor(noise(d, seed + 1), [d], device, dtype) * 0.1)),
    };
    let shape = config.r.dims(config.n_heads, d / config.n_heads);
    let r = tensor(noise(shape[0] * shape[1], 9), shape, device, dtype) * 0.3 + 1.5;
    FourierAttention {
        query: linear(1),
        key: linear(3),
        value: linear(5),
        output: linear(7),
        r: Param::from_tensor(r),
        ..config.init(device)
    }
}

/// Each case of the golden file: a module whose linear layers select `q`, `k` and `v` from a token
/// that contains all three.
#[test]
fn agrees_with_the_golden_files() {
    let device = Device::flex().autodiff();
    let mut n_tensors = 0;
    for path in golden::files("fourier_attention", ".safetensors") {
        let file = Golden::read(&path);
        let text = fs::read_to_string(path.with_extension("json")).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        for (name, expected) in json["cases"].as_object().unwrap() {
            for (dtype, relative) in [(DType::F64, 1e-9), (DType::F32, 1e-4)] {
                n_tensors += check_golden(&file, name, expected, &device, dtype, relative);
            }
        }
    }
    assert!(n_tensors > 0, "no outputs or gradients");
}

/// Returns the number of tensors in the file for this case.
#[track_caller]
fn check_golden(
    file: &Golden,
    name: &str,
    expected: &Value,
    device: &Device,
    dtype: DType,
    relative: f64,
) -> usize {
    let [q, k, v] = ["q", "k", "v"].map(|which| {
        let array = file.get(which);
        let shape: [usize; 4] = array.shape.clone().try_into().unwrap();
        tensor(array.values.clone(), shape, device, dtype)
    });
    let [batch, n_heads, time, d_head] = q.dims();
    let d = n_heads * d_head;
    let token = |x: Tensor<4>| x.swap_dims(1, 2).reshape([batch, time, d]);
    let x = Tensor::cat(vec![token(q), token(k), token(v)], 2);

    let picks = |which: usize| {
        let entries = (0..3 * d * d).map(|i| if i / d == which * d + i % d { 1.0 } else { 0.0 });
        Param::from_tensor(tensor(entries.collect(), [3 * d, d], device, dtype))
    };
    let same = (0..d * d).map(|i| if i / d == i % d { 1.0 } else { 0.0 }).collect();
    let r: Vec<f64> = match &expected["R"] {
        Value::Array(values) => values.iter().map(|r| r.as_f64().unwrap()).collect(),
        one => vec![one.as_f64().unwrap()],
    };
    let n_r = r.len();
    let number = |key: &str| expected[key].as_f64().unwrap();
    let config = FourierAttentionConfig::new(d, n_heads)
        .with_dropout(0.0)
        .with_power(number("power") as usize as u32)
        .with_epsilon(number("eps"))
        .with_causal(expected["causal"].as_bool().unwrap());
    let attention = FourierAttention {
        query: Linear { weight: picks(0), bias: None },
        key: Linear { weight: picks(1), bias: None },
        value: Linear { weight: picks(2), bias: None },
        output: Linear {
            weight: Param::from_tensor(tensor(same, [d, d], device, dtype)),
            bias: None,
        },
        r: Param::from_tensor(tensor(r, [1, n_r], device, dtype)),
        ..config.init(device)
    };
    let out = attention.forward(x);
    let by_out = file.get("grad_out");
    let by_out = tensor(by_out.values.clone(), [batch, n_heads, time, d_head], device, dtype);
    let loss = (out.clone() * token(by_out)).sum();
    let gradients = loss.backward();
    let by_r = numbers(attention.r.val().grad(&gradients).unwrap());
    let heads = out.inner().reshape([batch, time, n_heads, d_head]).swap_dims(1, 2);
    let mut n_tensors = 0;
    for (key, got) in [("out", numbers(heads)), ("grad_R", by_r)] {
        let Some(expected) = file.try_get(&format!("{name}/{key}")) else { continue };
        let expected = &expected.values;
        let scale = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        assert_close(&format!("{name}, {key}, {dtype:?}"), &got, expected, 0.0, relative * scale);
        n_tensors += 1;
    }
    n_tensors
}

/// The transformer's block is `x + attention(norm(x))`, causal.
#[test]
fn the_transformers_block_is_the_module_with_norm_and_residual() {
    let (d, n_heads, batch, time) = (12, 3, 2, 5);
    for (dtype, form, tolerance) in
        [(DType::F64, Form::Reference, 1e-12), (DType::F32, Form::Auto, 2e-5)]
    {
        let device = Device::flex();
        let config = FourierAttentionConfig::new(d, n_heads)
            .with_causal(true)
            .with_r(RShape::PerDimension)
            .with_epsilon(1e-6);
        let attention = module(&config, &device, dtype);
        let x = || tensor(noise(batch * time * d, 11), [batch, time, d], &device, dtype);
        let norm_weight = || tensor(vec![1.0; d], [d], &device, dtype);
        let norm_bias = || tensor(vec![0.0; d], [d], &device, dtype);

        let bias = |linear: &Linear| linear.bias.as_ref().unwrap().val();
        let three = [&attention.query, &attention.key, &attention.value];
        let weights = AttentionWeights {
            norm_weight: norm_weight(),
            norm_bias: norm_bias(),
            qkv_weight: Tensor::cat(three.map(|linear| linear.weight.val()).to_vec(), 1),
            qkv_bias: Tensor::cat(three.map(bias).to_vec(), 0),
            projection_weight: attention.output.weight.val(),
            projection_bias: bias(&attention.output),
            score_parameter: Some(attention.r.val()),
        };
        // In the second sequence, the first two tokens are padding.
        for first_token in [None, Some([0, 2])] {
            let options = AttentionOptions {
                n_heads,
                score: Score::Fourier { power: 4, epsilon: 1e-6 },
                queries: Queries::ALL,
                first_token: first_token
                    .map(|first| Tensor::from_data(first.map(|t| t as i32), &device)),
                dropout: None,
                form,
            };
            let block = attention_block(x(), weights.clone(), options);
            let valid_mask = first_token.map(|first| {
                let real = first.iter().flat_map(|&first| (0..time).map(move |t| t >= first));
                let real = TensorData::new(real.collect::<Vec<bool>>(), [batch, time]);
                Tensor::<2, Bool>::from_data(real, &device)
            });
            let normal = layer_norm(x(), norm_weight(), norm_bias(), form);
            let got = x() + attention.forward_masked(normal, valid_mask);
            assert_close("block", &numbers(got), &numbers(block), 0.0, tolerance);
        }
    }
}

#[test]
fn gradients_are_central_differences() {
    let (d, n_heads, batch, time) = (6, 2, 2, 4);
    let shape = [batch, time, d];
    for causal in [false, true] {
        for r in [RShape::Scalar, RShape::PerHead, RShape::PerDimension] {
            let config = FourierAttentionConfig::new(d, n_heads).with_causal(causal).with_r(r);
            // Dropout is for training: none here.
            let config = config.with_dropout(0.0);
            let loss = |attention: &FourierAttention, x: Tensor<3>| {
                let device = x.device();
                let weights = tensor(noise(batch * time * d, 13), shape, &device, DType::F64);
                (attention.forward(x) * weights).sum()
            };
            let at = noise(batch * time * d, 17);
            assert_gradient("by x", &at, 1e-5, 1e-7, |x| {
                let attention = module(&config, &x.device(), DType::F64);
                loss(&attention, x.reshape(shape))
            });

            let device = Device::flex().autodiff();
            let attention = module(&config, &device, DType::F64);
            let x = || tensor(at.clone(), shape, &device, DType::F64);
            let gradients = loss(&attention, x()).backward();
            let by_r = numbers(attention.r.val().grad(&gradients).unwrap());
            let dims = attention.r.val().dims();
            let values = numbers(attention.r.val().inner());
            for (index, by_r) in by_r.iter().enumerate() {
                let moved = |step: f64| -> f64 {
                    let mut values = values.clone();
                    values[index] += step;
                    let r = Param::from_tensor(tensor(values, dims, &device, DType::F64));
                    let attention = FourierAttention { r, ..attention.clone() };
                    loss(&attention, x()).into_scalar()
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let apart = (by_r - difference).abs();
                assert!(apart < 1e-7 * by_r.abs().max(1.0), "R[{index}]: {by_r} {difference}");
            }
        }
    }
}

/// Later tokens and padding do not change the results of earlier or real tokens.
#[test]
fn the_future_and_padding_are_not_seen() {
    let device = Device::flex();
    let (d, time) = (8, 6);
    let config = FourierAttentionConfig::new(d, 2).with_causal(true);
    let attention = module(&config, &device, DType::F32);
    let whole = tensor(noise(time * d, 3), [1, time, d], &device, DType::F32);
    let out = numbers(attention.forward(whole.clone()).narrow(1, 0, 4));
    let start = numbers(attention.forward(whole.clone().narrow(1, 0, 4)));
    assert_close("the first four", &out, &start, 0.0, 1e-6);

    let valid = Tensor::<2, Bool>::from_data([[false, false, true, true, true, true]], &device);
    let out = attention.forward_masked(whole.clone(), Some(valid)).narrow(1, 2, 4);
    let alone = attention.forward(whole.narrow(1, 2, 4));
    assert_close("without padding", &numbers(out), &numbers(alone), 0.0, 1e-6);
}

/// Cross-attention of a sequence to itself is self-attention. Padding in the memory has no effect,
/// and a memory with another length than the queries is allowed.
#[test]
fn cross_attention_sees_the_real_tokens_of_the_memory() {
    let device = Device::flex();
    let (d, time, keys) = (8, 3, 5);
    for epsilon in [0.0, 1e-6] {
        let config = FourierAttentionConfig::new(d, 2).with_epsilon(epsilon);
        let attention = module(&config, &device, DType::F32);
        let x = tensor(noise(2 * time * d, 3), [2, time, d], &device, DType::F32);
        let memory = tensor(noise(2 * keys * d, 4), [2, keys, d], &device, DType::F32);
        let cross = attention.forward_cross(memory.clone(), memory.clone(), None);
        assert_close(
            "itself",
            &numbers(cross),
            &numbers(attention.forward(memory.clone())),
            0.0,
            1e-6,
        );

        let real = [[true, true, true, false, false], [true; 5]];
        let real = Tensor::<2, Bool>::from_data(real, &device);
        let out = attention.forward_cross(x.clone(), memory.clone(), Some(real));
        assert_eq!(out.dims(), [2, time, d]);
        for (row, keys) in [(0, 3), (1, 5)] {
            let part = |all: &Tensor<3>| all.clone().narrow(0, row, 1);
            let alone = attention.forward_cross(part(&x), part(&memory).narrow(1, 0, keys), None);
            assert_close("real", &numbers(part(&out)), &numbers(alone), 0.0, 1e-6);
        }
    }
}

#[test]
fn gradients_of_cross_attention_are_central_differences() {
    let (d, batch, time, keys) = (6, 2, 3, 4);
    let config = FourierAttentionConfig::new(d, 2).with_dropout(0.0);
    let split = batch * time * d;
    let at = noise(split + batch * keys * d, 21);
    assert_gradient("by both sequences", &at, 1e-5, 1e-7, |flat| {
        let device = flat.device();
        let attention = module(&config, &device, DType::F64);
        let x = flat.clone().narrow(0, 0, split).reshape([batch, time, d]);
        let memory = flat.narrow(0, split, batch * keys * d).reshape([batch, keys, d]);
        let real = [[true, true, false, true], [true; 4]];
        let real = Tensor::<2, Bool>::from_data(real, &device);
        let weights = tensor(noise(split, 23), [batch, time, d], &device, DType::F64);
        (attention.forward_cross(x, memory, Some(real)) * weights).sum()
    });
}

#[test]
#[should_panic(expected = "causal attention is within one sequence")]
fn causal_attention_is_within_one_sequence() {
    let attention = FourierAttentionConfig::new(4, 2).with_causal(true).init(&Device::flex());
    let x = Tensor::zeros([1, 2, 4], &Device::flex());
    attention.forward_cross(x.clone(), x, None);
}

#[test]
#[should_panic(expected = "5 heads do not divide a width of 12")]
fn heads_divide_the_width() {
    FourierAttentionConfig::new(12, 5).init(&Device::flex());
}
