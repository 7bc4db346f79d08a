//! The published Decision Transformer on Gym.
//!
//! Its transformer is GPT-2's, whose matrices (`c_attn`, `c_proj`, `c_fc`) are `[in, out]` as
//! ours, with query, key and value in one; the linear weights around it are `[out, in]`.

use super::{
    Layout::{OutIn, Same},
    Source, head, import, layer,
};
use crate::{
    config::Conditioning, continuous_config::ContinuousModelConfig, error::ModelError,
    head::ContinuousHeadConfig, weights::NamedTensors,
};

/// Renames and transposes published tensors into those of
/// [`ContinuousDecisionTransformer`](crate::ContinuousDecisionTransformer), keeping their float
/// type.
///
/// # Errors
/// When a tensor is missing, or the head is one that has never been published with this model.
pub fn gym(
    config: &ContinuousModelConfig,
    theirs: &NamedTensors,
) -> Result<NamedTensors, ModelError> {
    let mut sources = Vec::new();
    for (ours, theirs, layout) in [
        ("observation", "embed_state", OutIn),
        ("action", "embed_action", OutIn),
        ("embedding_norm", "embed_ln", Same),
        ("final_norm", "transformer.ln_f", Same),
    ] {
        sources.extend(layer(ours, theirs, layout));
    }
    if config.conditioning == Conditioning::Return {
        sources.extend(layer("return", "embed_return", OutIn));
    }
    sources.push(Source::new("timestep_embedding", "embed_timestep.weight", Same));
    for block in 0..config.n_layers {
        for (ours, theirs) in [
            ("norm_1", "ln_1"),
            ("qkv", "attn.c_attn"),
            ("projection", "attn.c_proj"),
            ("norm_2", "ln_2"),
            ("mlp_1", "mlp.c_fc"),
            ("mlp_2", "mlp.c_proj"),
        ] {
            let (ours, theirs) =
                (format!("blocks.{block}.{ours}"), format!("transformer.h.{block}.{theirs}"));
            sources.extend(layer(&ours, &theirs, Same));
        }
    }
    match &config.head {
        // The reference leaves the tanh out by an option.
        ContinuousHeadConfig::Tanh | ContinuousHeadConfig::Pointwise => {
            sources.extend(head("predict_action.0"));
        }
        other => {
            return Err(ModelError::Input {
                what: "head of published weights",
                got: format!("{other:?}"),
                expected: "tanh or pointwise".into(),
            });
        }
    }
    import(sources, theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_were_never_published_are_refused() {
        let head = ContinuousHeadConfig::Gaussian;
        let config = ContinuousModelConfig { head, ..ContinuousModelConfig::gym(2, 1, 5) };
        let error = gym(&config, &NamedTensors::new()).unwrap_err().to_string();
        assert!(error.contains("got Gaussian, expected tanh or pointwise"), "{error}");
    }
}
