//! Fourier attention compared with the golden files; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use overtone_kernels::{
    Form,
    fourier_scores::{fourier_scores, probabilities},
};
use overtone_testkit::{Golden, assert_close, golden};
use serde_json::Value;

/// Relative to a tensor's largest entry, in `f64`.
const DOUBLE: f64 = 1e-9;
/// The same in `f32`.
const SINGLE: f64 = 1e-4;

#[test]
fn fourier_attention() {
    for path in golden::files("fourier_attention", ".safetensors") {
        println!("checking {}", path.display());
        let file = Golden::read(&path);
        let text = fs::read_to_string(path.with_extension("json")).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let cases = json["cases"].as_object().unwrap();
        assert!(!cases.is_empty());
        let mut n_tensors = 0;
        for (name, expected) in cases {
            for (dtype, form, tolerance) in [
                (DType::F64, Form::Reference, DOUBLE),
                (DType::F32, Form::Reference, SINGLE),
                (DType::F32, Form::Auto, SINGLE),
            ] {
                let device = Device::flex().autodiff();
                let case = Case { file: &file, name, expected, device, dtype, form, tolerance };
                n_tensors += case.check();
            }
        }
        println!("{} cases, {n_tensors} tensors", cases.len());
        assert!(n_tensors > 0, "{}: no outputs or gradients", path.display());
    }
}

struct Case<'a> {
    file: &'a Golden,
    name: &'a str,
    expected: &'a Value,
    device: Device,
    dtype: DType,
    form: Form,
    tolerance: f64,
}

impl Case<'_> {
    fn tensor<const D: usize>(&self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), (&self.device, self.dtype))
    }

    fn four(&self, name: &str) -> Tensor<4> {
        let array = self.file.get(name);
        self.tensor(array.values.clone(), array.shape.clone().try_into().unwrap())
    }

    /// One number, or one for each dimension.
    fn r(&self) -> Tensor<2> {
        let values = match &self.expected["R"] {
            Value::Array(values) => values.iter().map(|r| r.as_f64().unwrap()).collect(),
            one => vec![one.as_f64().unwrap()],
        };
        let n = values.len();
        self.tensor(values, [1, n])
    }

    /// Returns the number of tensors in the file for this case.
    fn check(&self) -> usize {
        let number = |key: &str| self.expected[key].as_f64().unwrap();
        let [q, k, v] = ["q", "k", "v"].map(|name| self.four(name).require_grad());
        let r = self.r().require_grad();

        let power = number("power") as u32;
        let mut scores = fourier_scores(q.clone(), k.clone(), r.clone(), power, self.form);
        let [batch, heads, tokens, _] = scores.dims();
        if self.expected["causal"].as_bool().unwrap() {
            let n = batch * heads * tokens;
            let future: Vec<bool> =
                (0..n).flat_map(|row| (0..tokens).map(move |key| key > row % tokens)).collect();
            let future = TensorData::new(future, [batch, heads, tokens, tokens]);
            let future = Tensor::<4, Bool>::from_data(future, &scores.device());
            scores = scores.mask_fill(future, f32::NEG_INFINITY);
        }
        let weights = scores.clone().inner().exp();
        let out = probabilities(scores, number("eps")).matmul(v.clone());
        let loss = (out.clone() * self.four("grad_out")).sum();
        self.check_values("L", numbers(loss.clone().inner()), &[number("L")]);

        let gradients = loss.backward();
        let results = [
            ("kernel", numbers(weights)),
            ("out", numbers(out.inner())),
            ("grad_q", numbers(q.grad(&gradients).unwrap())),
            ("grad_k", numbers(k.grad(&gradients).unwrap())),
            ("grad_v", numbers(v.grad(&gradients).unwrap())),
            ("grad_R", numbers(r.grad(&gradients).unwrap())),
        ];
        let mut n_compared = 0;
        for (key, got) in results {
            if let Some(expected) = self.file.try_get(&format!("{}/{key}", self.name)) {
                self.check_values(key, got, &expected.values);
                n_compared += 1;
            }
        }
        n_compared
    }

    fn check_values(&self, key: &str, got: Vec<f64>, expected: &[f64]) {
        let Self { name, device, dtype, form, .. } = self;
        let what = format!("{name}, {key}, {device:?}, {dtype:?}, {form:?}");
        let scale = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        assert_close(&what, &got, expected, 0.0, self.tolerance * scale);
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
