//! Conditioning by adaptive layer norm, and the perceptron beside the transformer, against a
//! PyTorch program of the same equations: `scripts/peers/adaln_golden.py` makes the files.

use std::path::Path;

use burn::tensor::{DType, Device, Tensor};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_kernels::Form;
use overtone_model::{
    Acted, Conditioning, Contexts, DecisionTransformer, DecisionTransformerConfig, Init, Observed,
    positions::PositionsConfig,
    tokens::Steps,
    weights::{self, NamedTensors},
};
use overtone_testkit::{Golden, assert_close, golden::Array};
use overtone_train::{AdamWConfig, BatchLoss, Decayed, Learner, TrainConfig};

/// Absolute, of outputs in [-1, 1], and relative, of losses.
const OUTPUTS: f64 = 1e-10;
/// Relative to a tensor's largest entry.
const GRADIENTS: f64 = 1e-9;
/// Likewise, after 20 steps.
const FINAL: f64 = 1e-8;

const STEPS: usize = 20;

fn model() -> DecisionTransformer {
    let config = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 16,
        context_length: 5,
        dropout: 0.0,
        conditioning: Conditioning::Adaln,
        positions: PositionsConfig::Timestep { horizon: 9, std: 1.0 },
        ..DecisionTransformerConfig::gym(9)
    };
    let observations = ObservationSpace::Vectors { width: 11 };
    let generator = &mut seed::generator(0, "init");
    let init = &mut Init::drawn(&Device::flex().autodiff(), generator);
    DecisionTransformer::init(&config, &observations, &ActionSpace::unit(3), init).unwrap()
}

/// One step's batch.
fn contexts(golden: &Golden, step: usize) -> Contexts {
    let device = &Device::flex().autodiff();
    let column = |name: &str| {
        let Array { shape, values, single } = golden.get(&format!("batch/{name}"));
        let size = values.len() / STEPS;
        let values = values[step * size..][..size].to_vec();
        Array { shape: shape[1..].to_vec(), values, single: *single }
    };
    let timesteps = column("timesteps").values;
    let n_padding = &golden.get("n_padding").values;
    Contexts {
        observations: Observed::Vectors(column("observations").tensor(device, DType::F64)),
        actions: Acted::Continuous(column("actions").tensor(device, DType::F64)),
        returns_to_go: column("returns_to_go").tensor(device, DType::F64),
        timesteps: timesteps.iter().map(|&timestep| timestep as i32).collect(),
        n_padding: n_padding.iter().map(|&pad| pad as usize).collect(),
        best: Vec::new(),
    }
}

fn named(golden: &Golden, prefix: &str) -> NamedTensors {
    let named = golden.iter().filter_map(|(name, array)| {
        Some((name.strip_prefix(prefix)?.to_owned(), array.data(DType::F64)))
    });
    named.collect()
}

#[track_caller]
fn check_all(golden: &Golden, prefix: &str, ours: &NamedTensors, tolerance: f64) {
    assert_eq!(ours.len(), named(golden, prefix).len(), "{prefix}");
    for (name, got) in ours {
        let expected = golden.get(&format!("{prefix}{name}"));
        assert_eq!(got.shape()[..], expected.shape[..], "{name}");
        let got: Vec<f64> = got.iter::<f64>().collect();
        let scale = expected.values.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        // The bias of keys has no effect, and its gradient is rounding.
        let absolute = tolerance * scale.max(1e-6);
        assert_close(&format!("{prefix}{name}"), &got, &expected.values, 0.0, absolute);
    }
}

fn check(form: Form) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden = Golden::read(&folder.join("adaln.safetensors"));
    let model = weights::import(model(), &named(&golden, "initial/")).unwrap();
    let model = DecisionTransformer { form, ..model };

    let first = contexts(&golden, 0);
    let hidden = model.hidden(&first, Steps::All, None);
    let [batch, time, d_model] = hidden.dims();
    let outputs = model.head.decide(hidden.inner().reshape([batch * time, d_model]));
    let outputs = outputs.numbers().unwrap().modes();
    let expected = &golden.get("outputs").values;
    // Of padded steps they mean nothing.
    for (row, &pad) in first.n_padding.iter().enumerate() {
        let real = (row * time + pad) * 3..(row + 1) * time * 3;
        assert_close("outputs", &outputs[real.clone()], &expected[real], 0.0, OUTPUTS);
    }
    let gradients = model.loss(&first, None).total.backward();
    check_all(&golden, "gradient/", &weights::export_gradients(&model, &gradients), GRADIENTS);

    let optimizer = AdamWConfig {
        weight_decay: 1e-2,
        decayed: Decayed::Everything,
        clip_norm: 1e9,
        ..AdamWConfig::default()
    };
    let config = TrainConfig { optimizer, ..TrainConfig::default() };
    let mut learned = Learner::new(model, &config);
    for step in 0..STEPS {
        let total: Tensor<1> = learned.network.loss(&contexts(&golden, step), None).total;
        let loss = learned.descend(BatchLoss { total, figures: Vec::new() }, 3e-3).loss;
        let expected = golden.get("loss").values[step];
        assert_close("loss", &[loss.into_scalar::<f64>()], &[expected], OUTPUTS, 0.0);
    }
    check_all(&golden, "final/", &weights::export(&learned.network), FINAL);
}

#[test]
fn returns_by_adaptive_layer_norm() {
    check(Form::Auto);
    check(Form::Reference);
}
