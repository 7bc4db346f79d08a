//! Weights in the layout of the published Atari Decision Transformer.
//!
//! There, linear weights are `[out, in]`, query, key and value are three layers, and the
//! position tables have a leading axis of length one. Names are the reference's.

use burn::tensor::{DType, TensorData};

use crate::{
    config::{Conditioning, ModelConfig},
    error::ModelError,
    head::HeadConfig,
    weights::NamedTensors,
};

/// The published name of each of our tensors; several names are joined along the output
/// axis.
fn published_names(config: &ModelConfig) -> Vec<(String, Vec<String>)> {
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |ours: String, theirs: &[String]| names.push((ours, theirs.to_vec()));
    let layer = |ours: &str, theirs: &str| {
        ["weight", "bias"].map(|part| (format!("{ours}_{part}"), vec![format!("{theirs}.{part}")]))
    };
    let mut pairs = Vec::new();
    for (ours, theirs) in [
        ("conv_1", "state_encoder.0"),
        ("conv_2", "state_encoder.2"),
        ("conv_3", "state_encoder.4"),
        ("observation", "state_encoder.7"),
        ("final_norm", "ln_f"),
    ] {
        pairs.extend(layer(ours, theirs));
    }
    if config.conditioning == Conditioning::Return {
        pairs.extend(layer("return", "ret_emb.0"));
    }
    for block in 0..config.n_layers {
        for (ours, theirs) in [
            ("norm_1", "ln1"),
            ("norm_2", "ln2"),
            ("projection", "attn.proj"),
            ("mlp_1", "mlp.0"),
            ("mlp_2", "mlp.2"),
        ] {
            let (ours, theirs) =
                (format!("blocks.{block}.{ours}"), format!("blocks.{block}.{theirs}"));
            pairs.extend(layer(&ours, &theirs));
        }
        for part in ["weight", "bias"] {
            let theirs =
                ["query", "key", "value"].map(|role| format!("blocks.{block}.attn.{role}.{part}"));
            pairs.push((format!("blocks.{block}.qkv_{part}"), theirs.to_vec()));
        }
    }
    for (ours, theirs) in pairs {
        add(ours, &theirs);
    }
    add("action_embedding".into(), &["action_embeddings.0.weight".into()]);
    add("position_embedding".into(), &["pos_emb".into()]);
    add("global_position_embedding".into(), &["global_pos_emb".into()]);
    match config.head {
        HeadConfig::Linear => add("head.weight".into(), &["head.weight".into()]),
        HeadConfig::Fourier(_) => {
            for part in ["weight", "bias"] {
                let theirs = format!("head.fc_extract_autocorrelation_params.{part}");
                add(format!("head.{part}"), &[theirs]);
            }
        }
        // Named as in the reference's synthetic experiments: its Atari model has no such head.
        HeadConfig::Gmm(_) => {
            for part in ["weight", "bias"] {
                add(format!("head.{part}"), &[format!("head.mean_layer.{part}")]);
            }
            add("head.raw_std".into(), &["head.log_stds".into()]);
        }
    }
    names
}

/// Renames and transposes published tensors into this crate's, keeping their float type.
///
/// # Errors
/// When a tensor is missing or cannot be joined with its neighbours.
pub fn import(config: &ModelConfig, theirs: &NamedTensors) -> Result<NamedTensors, ModelError> {
    published_names(config)
        .into_iter()
        .map(|(ours, names)| {
            let parts: Result<Vec<&TensorData>, _> = names
                .iter()
                .map(|name| {
                    theirs.get(name).ok_or_else(|| ModelError::MissingTensor { name: name.clone() })
                })
                .collect();
            let tensor = convert(&ours, &parts?);
            Ok((ours, tensor))
        })
        .collect()
}

/// Joins along the first (output) axis, drops a leading axis of one, and transposes
/// matrices of linear layers.
fn convert(ours: &str, parts: &[&TensorData]) -> TensorData {
    let dtype = parts[0].dtype();
    let values: Vec<f64> = parts.iter().flat_map(|part| part.iter::<f64>()).collect();
    let mut shape = parts[0].shape().to_vec();
    shape[0] = parts.iter().map(|part| part.shape()[0]).sum();
    if shape.len() == 3 && shape[0] == 1 {
        shape.remove(0);
    }
    let linear = ours.ends_with("weight") && shape.len() == 2;
    let (values, shape) = match shape[..] {
        [out, inputs] if linear => (transposed(&values, out, inputs), vec![inputs, out]),
        _ => (values, shape),
    };
    if dtype == DType::F64 {
        TensorData::new(values, shape)
    } else {
        TensorData::new(values.into_iter().map(|value| value as f32).collect::<Vec<_>>(), shape)
    }
}

fn transposed(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| values[row * columns + column]))
        .collect()
}
