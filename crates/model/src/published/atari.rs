//! The published Atari Decision Transformer.
//!
//! There, linear weights are `[out, in]`, query, key and value are three layers, and the
//! position tables have a leading axis of length one.

use super::{
    Layout::{LeadingOne, OutIn, Same},
    Source, head, import, layer,
};
use crate::{
    config::{Conditioning, ModelConfig},
    error::ModelError,
    head::HeadConfig,
    weights::NamedTensors,
};

/// Renames and transposes published tensors into those of
/// [`DecisionTransformer`](crate::DecisionTransformer), keeping their float type.
///
/// # Errors
/// When a tensor is missing or cannot be joined with its neighbours.
pub fn atari(config: &ModelConfig, theirs: &NamedTensors) -> Result<NamedTensors, ModelError> {
    let mut sources = Vec::new();
    for (ours, theirs, layout) in [
        ("conv_1", "state_encoder.0", Same),
        ("conv_2", "state_encoder.2", Same),
        ("conv_3", "state_encoder.4", Same),
        ("observation", "state_encoder.7", OutIn),
        ("final_norm", "ln_f", Same),
    ] {
        sources.extend(layer(ours, theirs, layout));
    }
    if config.conditioning == Conditioning::Return {
        sources.extend(layer("return", "ret_emb.0", OutIn));
    }
    for (ours, theirs, layout) in [
        ("action_embedding", "action_embeddings.0.weight", Same),
        ("position_embedding", "pos_emb", LeadingOne),
        ("global_position_embedding", "global_pos_emb", LeadingOne),
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
            let (ours, theirs) =
                (format!("blocks.{block}.{ours}"), format!("blocks.{block}.{theirs}"));
            sources.extend(layer(&ours, &theirs, layout));
        }
        for (part, layout) in [("weight", OutIn), ("bias", Same)] {
            let theirs =
                ["query", "key", "value"].map(|role| format!("blocks.{block}.attn.{role}.{part}"));
            let ours = format!("blocks.{block}.qkv_{part}");
            sources.push(Source { ours, theirs: theirs.to_vec(), layout });
        }
    }
    match config.head {
        HeadConfig::Linear => sources.push(Source::new("head.weight", "head.weight", OutIn)),
        HeadConfig::Fourier(_) => {
            sources.extend(head("head.fc_extract_autocorrelation_params"));
        }
        // Named as in the reference's synthetic experiments: its Atari model has no such head.
        HeadConfig::Gmm(_) => {
            sources.extend(head("head.mean_layer"));
            sources.push(Source::new("head.raw_std", "head.log_stds", Same));
        }
    }
    import(sources, theirs)
}
