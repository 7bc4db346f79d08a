//! A small Decision Transformer of a reference: its files, and the checks of each.

use std::{collections::BTreeMap, fs, path::Path};

use burn::{
    module::Module,
    tensor::{Tensor, TensorData},
};
use overtone_model::{ModelError, weights::NamedTensors};
use overtone_testkit::{Golden, assert_close, golden::Array};
use overtone_train::{AdamW, AdamWConfig, Decayed, Schedule, optimizer::scalar};
use serde_json::Value;

use crate::DOUBLE;

/// The four files of one model.
pub struct Case {
    pub weights: Golden,
    pub inputs: Golden,
    pub outputs: Golden,
    pub expected: Value,
}

impl Case {
    pub fn read(weights: &Path) -> Self {
        let name = weights.file_name().unwrap().to_string_lossy().into_owned();
        let sibling =
            |suffix: &str| weights.with_file_name(name.replace("_weights.safetensors", suffix));
        let text = fs::read_to_string(sibling("_expected.json")).unwrap();
        Self {
            weights: Golden::read(weights),
            inputs: Golden::read(&sibling("_inputs.safetensors")),
            outputs: Golden::read(&sibling("_outputs.safetensors")),
            expected: serde_json::from_str(&text).unwrap(),
        }
    }

    /// A number of the configuration.
    pub fn number(&self, key: &str) -> f64 {
        self.expected["config"][key]
            .as_f64()
            .unwrap_or_else(|| panic!("config does not have {key}"))
    }

    /// A count or size of the configuration.
    pub fn integer(&self, key: &str) -> usize {
        self.number(key) as usize
    }

    /// The configuration's optimizer.
    pub fn adam(&self, decayed: Decayed) -> AdamWConfig {
        let betas = &self.expected["config"]["betas"];
        AdamWConfig {
            beta_1: betas[0].as_f64().unwrap(),
            beta_2: betas[1].as_f64().unwrap(),
            epsilon: self.number("eps"),
            weight_decay: self.number("weight_decay"),
            decayed,
            clip_norm: self.number("clip"),
        }
    }
}

/// One step of a training run.
pub struct Step {
    pub loss: f64,
    pub rate: f64,
    /// Gradient norm before clipping.
    pub norm: f64,
}

/// Trains for `n_steps`; `loss` gives the loss of a step's batch and its action labels.
pub fn train<M: Module>(
    mut model: M,
    adam: AdamWConfig,
    schedule: Schedule,
    n_steps: usize,
    loss: impl Fn(&M, usize) -> (Tensor<1>, usize),
) -> (M, Vec<Step>) {
    let mut adam = AdamW::new(adam);
    let mut tokens = 0;
    let steps = (0..n_steps)
        .map(|step| {
            let (loss, n_labels) = loss(&model, step);
            let value = scalar(loss.clone().inner());
            let rate = schedule.at(step as u64, tokens);
            let (moved, norm) = adam.step(model.clone(), loss.backward(), rate);
            model = moved;
            tokens += n_labels as u64;
            Step { loss: value, rate, norm: scalar(norm) }
        })
        .collect();
    (model, steps)
}

/// Every step of a run in `f64`.
pub fn check_trajectory(steps: &[Step], expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(steps.len(), expected.len());
    for (step, entry) in steps.iter().zip(expected) {
        let number = |key: &str| [entry[key].as_f64().unwrap()];
        assert_close("trajectory loss", &[step.loss], &number("loss"), DOUBLE, 0.0);
        assert_close("learning rate", &[step.rate], &number("lr_used"), 1e-12, 0.0);
        let norm = number("grad_norm_before_clip");
        assert_close("gradient norm", &[step.norm], &norm, 1e-8, 0.0);
    }
}

/// Norms of tensors in the published layout.
pub fn check_norms<'a>(
    theirs: &BTreeMap<String, Vec<f64>>,
    norms: impl IntoIterator<Item = (&'a String, &'a Value)>,
) {
    for (name, norm) in norms {
        let got = theirs[name].iter().map(|x| x * x).sum::<f64>().sqrt();
        let expected = norm.as_f64().unwrap();
        // The key's bias has no effect on attention: its gradient is only rounding error.
        assert_close(name, &[got], &[expected], DOUBLE, 1e-13);
    }
}

/// Gradients in the published layout: those in `outputs` under `prefix`, element by element.
pub fn check_gradients(theirs: &BTreeMap<String, Vec<f64>>, outputs: &Golden, prefix: &str) {
    let mut n_checked = 0;
    for (key, array) in outputs.iter() {
        if let Some(name) = key.strip_prefix(prefix) {
            check_scaled(key, &theirs[name], &array.values);
            n_checked += 1;
        }
    }
    assert!(n_checked > 0, "the file holds no {prefix}*");
}

/// Our tensors, element by element in the published layout. The mapping is found by importing
/// tensors whose values number their elements.
pub fn in_published_layout<'a>(
    published: impl Iterator<Item = (String, &'a Array)>,
    import: impl FnOnce(&NamedTensors) -> Result<NamedTensors, ModelError>,
    ours: &NamedTensors,
) -> BTreeMap<String, Vec<f64>> {
    let mut next = 0;
    let numbered: NamedTensors = published
        .map(|(name, array)| {
            let ids: Vec<f64> = (next..next + array.values.len()).map(|i| i as f64).collect();
            next += ids.len();
            (name, TensorData::new(ids, array.shape.clone()))
        })
        .collect();
    let mut value_of = vec![0.0; next];
    for (name, ids) in import(&numbered).unwrap() {
        for (id, value) in ids.iter::<f64>().zip(ours[&name].iter::<f64>()) {
            value_of[id as usize] = value;
        }
    }
    numbered
        .into_iter()
        .map(|(name, ids)| (name, ids.iter::<f64>().map(|id| value_of[id as usize]).collect()))
        .collect()
}

/// Entries may differ by [`DOUBLE`] of the tensor's largest entry.
#[track_caller]
pub fn check_scaled(what: &str, got: &[f64], expected: &[f64]) {
    let scale = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    assert_close(what, got, expected, 0.0, DOUBLE * scale.max(1e-9));
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
