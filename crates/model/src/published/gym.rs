//! The published Decision Transformer on Gym.
//!
//! Its transformer is GPT-2's, with matrices (`c_attn`, `c_proj`, `c_fc`) that are `[in, out]` like
//! ours, and one matrix for query, key and value. The linear weights around it are `[out, in]`.

use super::{
    Layout::{OutIn, Same},
    Source, export, import, layer, unpublished,
};
use crate::{
    decision_transformer::{DecisionTransformerConfig, positions::PositionsConfig},
    error::ModelError,
    head::HeadConfig,
    parameters::weights::NamedTensors,
};

/// Renames and transposes published tensors into those of
/// [`DecisionTransformer`](crate::DecisionTransformer), keeping their float type.
///
/// # Errors
/// When a tensor is missing, or the head was never published with this model.
pub fn gym(
    config: &DecisionTransformerConfig,
    theirs: &NamedTensors,
) -> Result<NamedTensors, ModelError> {
    import(sources(config, "transformer")?, theirs)
}

/// The same from `DecisionTransformerModel` in Hugging Face's transformers, which has another name
/// for the transformer.
///
/// # Errors
/// As [`gym`].
pub fn hugging_face(
    config: &DecisionTransformerConfig,
    theirs: &NamedTensors,
) -> Result<NamedTensors, ModelError> {
    import(sources(config, "encoder")?, theirs)
}

/// The inverse of [`hugging_face`].
///
/// # Errors
/// As [`gym`].
pub fn to_hugging_face(
    config: &DecisionTransformerConfig,
    ours: &NamedTensors,
) -> Result<NamedTensors, ModelError> {
    export(sources(config, "encoder")?, ours)
}

fn sources(
    config: &DecisionTransformerConfig,
    transformer: &str,
) -> Result<Vec<Source>, ModelError> {
    let final_norm = format!("{transformer}.ln_f");
    let mut sources = Vec::new();
    for (ours, theirs, layout) in [
        ("encoder.", "embed_state", OutIn),
        ("action.", "embed_action", OutIn),
        ("positions.norm_", "embed_ln", Same),
        ("final_norm_", &final_norm, Same),
    ] {
        sources.extend(layer(ours, theirs, layout));
    }
    if config.conditioning.is_some() {
        sources.extend(layer("returns.", "embed_return", OutIn));
    }
    if config.positions != PositionsConfig::Order {
        sources.push(Source::new("positions.table", "embed_timestep.weight", Same));
    }
    for block in 0..config.n_layers {
        for (ours, theirs) in [
            ("norm_1", "ln_1"),
            ("qkv", "attn.c_attn"),
            ("projection", "attn.c_proj"),
            ("norm_2", "ln_2"),
            ("mlp_1", "mlp.c_fc"),
            ("mlp_2", "mlp.c_proj"),
        ] {
            let ours = format!("blocks.{block}.{ours}_");
            let theirs = format!("{transformer}.h.{block}.{theirs}");
            sources.extend(layer(&ours, &theirs, Same));
        }
    }
    match &config.head {
        // The reference has an option without the tanh.
        HeadConfig::Tanh(_) | HeadConfig::Pointwise(_) => {
            sources.extend(layer("head.", "predict_action.0", OutIn));
        }
        other => return Err(unpublished(other, "tanh or pointwise")),
    }
    Ok(sources)
}
