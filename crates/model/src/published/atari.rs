//! The published Atari Decision Transformer.
//!
//! There, linear weights are `[out, in]`, query, key and value are three layers, and the
//! position tables have a leading axis of length one.

use super::{
    Layout::{LeadingOne, OutIn, Same},
    Source, import, layer, unpublished,
};
use crate::{
    decision_transformer::DecisionTransformerConfig,
    error::ModelError,
    head::{HeadConfig, MixtureStd, MixtureWeights},
    parameters::weights::NamedTensors,
};

/// Renames and transposes published tensors into those of
/// [`DecisionTransformer`](crate::DecisionTransformer), keeping their float type.
///
/// # Errors
/// When a tensor is missing or cannot be joined with its neighbours, or the head was never
/// published with this model.
pub fn atari(
    config: &DecisionTransformerConfig,
    theirs: &NamedTensors,
) -> Result<NamedTensors, ModelError> {
    let mut sources = Vec::new();
    for (ours, theirs, layout) in [
        ("encoder.conv_1_", "state_encoder.0", Same),
        ("encoder.conv_2_", "state_encoder.2", Same),
        ("encoder.conv_3_", "state_encoder.4", Same),
        ("encoder.linear_", "state_encoder.7", OutIn),
        ("final_norm_", "ln_f", Same),
    ] {
        sources.extend(layer(ours, theirs, layout));
    }
    if config.conditioning.is_some() {
        sources.extend(layer("returns.", "ret_emb.0", OutIn));
    }
    for (ours, theirs, layout) in [
        ("action.table", "action_embeddings.0.weight", Same),
        ("positions.local", "pos_emb", LeadingOne),
        ("positions.global", "global_pos_emb", LeadingOne),
    ] {
        sources.push(Source::new(ours, theirs, layout));
    }
    for block in 0..config.n_layers {
        for (ours, theirs, layout) in [
            ("norm_1", "ln1", Same),
            ("norm_2", "ln2", Same),
            ("projection", "attn.proj", OutIn),
            ("mlp_1", "mlp.0", OutIn),
            ("mlp_2", "mlp.2", OutIn),
        ] {
            let ours = format!("blocks.{block}.{ours}_");
            let theirs = format!("blocks.{block}.{theirs}");
            sources.extend(layer(&ours, &theirs, layout));
        }
        for (part, layout) in [("weight", OutIn), ("bias", Same)] {
            let theirs =
                ["query", "key", "value"].map(|role| format!("blocks.{block}.attn.{role}.{part}"));
            let ours = format!("blocks.{block}.qkv_{part}");
            sources.push(Source { ours, theirs: theirs.to_vec(), layout });
        }
    }
    match &config.head {
        HeadConfig::Linear(_) => sources.push(Source::new("head.weight", "head.weight", OutIn)),
        HeadConfig::Fourier(_) => {
            sources.extend(layer("head.", "head.fc_extract_autocorrelation_params", OutIn));
        }
        // Named as in the reference's synthetic experiments: its Atari model has no such head.
        HeadConfig::Gmm(options)
            if options.weights == MixtureWeights::Equal && options.std != MixtureStd::State =>
        {
            sources.extend(layer("head.", "head.mean_layer", OutIn));
            if options.std == MixtureStd::Shared {
                sources.push(Source::new("head.raw_std", "head.log_stds", Same));
            }
        }
        HeadConfig::Gmm(_) => {
            let expected = "head.weights=equal, and head.std=shared or fixed";
            return Err(unpublished(&config.head, expected));
        }
        other => return Err(unpublished(other, "linear, fourier or gmm")),
    }
    import(sources, theirs)
}
