//! Every combination of observation, action, head, attention and conditioning learns: a few steps
//! on one batch lower its loss, and a saved model equals the loaded one.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod matrix;

use std::{collections::BTreeMap, fmt::Debug};

use burn::{module::Module, tensor::Tensor};
use overtone_model::{AttentionConfig, FourierKernel, RShape, weights};
use overtone_train::{AdamW, AdamWConfig, Decayed, optimizer::scalar};

const BATCH: usize = 3;
const CONTEXT: usize = 4;
const N_STEPS: usize = 8;

fn attentions() -> Vec<AttentionConfig> {
    let mut attentions = vec![AttentionConfig::SOFTMAX];
    for power in [2, 4, 6] {
        for r in [RShape::Scalar, RShape::PerHead, RShape::PerDimension] {
            for epsilon in [0.0, 1e-6] {
                let fourier = FourierKernel { power, r, initial: 1.0, epsilon };
                attentions.push(AttentionConfig::Fourier(fourier));
            }
        }
    }
    attentions
}

/// The loss before each step and after the last, and the trained model.
fn train<M: Module>(
    mut model: M,
    decayed: Decayed,
    (n_steps, learning_rate): (usize, f64),
    loss: impl Fn(&M) -> Tensor<1>,
) -> (Vec<f64>, M) {
    let mut adam = AdamW::new(AdamWConfig { decayed, ..AdamWConfig::ATARI });
    let mut losses = Vec::new();
    for _ in 0..n_steps {
        let loss = loss(&model);
        losses.push(scalar(loss.clone().inner()));
        let (moved, norm) = adam.step(model, loss.backward(), learning_rate);
        assert!(scalar(norm).is_finite());
        model = moved;
    }
    losses.push(scalar(loss(&model).inner()));
    (losses, model)
}

/// The loss has fallen by a tenth, and everything is finite.
fn check_learned(pair: impl Debug, losses: &[f64], trained: &impl Module) {
    let what = format!("{pair:?}: {losses:?}");
    assert!(losses.iter().all(|loss| loss.is_finite()), "{what}");
    let last = losses[losses.len() - 1];
    assert!(last < losses[0] - 0.1 * losses[0].abs(), "{what}");
    for (name, tensor) in weights::export(trained) {
        assert!(tensor.iter::<f64>().all(f64::is_finite), "{name}: {what}");
    }
}

/// `fresh` with the weights of `trained`, by way of a file.
fn reloaded<M: Module>(trained: &M, fresh: M) -> M {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    weights::save(&weights::export(trained), &BTreeMap::new(), &path).unwrap();
    weights::import(fresh, &weights::load(&path).unwrap()).unwrap()
}

/// Every `R` of both layers has moved.
fn check_r(attention: AttentionConfig, trained: &impl Module) {
    let tensors = weights::export(trained);
    let of_r = tensors.iter().filter(|(name, _)| name.ends_with("fourier_r"));
    let names: Vec<&String> = of_r.clone().map(|(name, _)| name).collect();
    let AttentionConfig::Fourier(fourier) = attention else {
        assert!(names.is_empty(), "{names:?}");
        return;
    };
    assert_eq!(names, ["blocks.0.fourier_r", "blocks.1.fourier_r"]);
    for (name, tensor) in of_r {
        assert_eq!(tensor.shape()[..], fourier.r.dims(2, 16), "{name}");
        assert!(tensor.iter::<f64>().all(|r| r != fourier.initial), "{name}: {fourier:?}");
    }
}
