//! Models and batches with random numbers, for checks without data.

use anyhow::Result;
use overtone_agents::{
    DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig, Rebrac, RebracConfig, Td3Bc, Td3BcConfig,
    iql::InChunks,
};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, AttentionConfig, Contexts, DecisionTransformer, DecisionTransformerConfig,
    FourierKernel, HeadConfig, Init, ModelError, Observed, RShape,
    burn::tensor::{DType, Device, Int, Tensor, TensorData},
    contexts::{FRAME, STACK, timesteps_from},
    head::{ActionOrder, FourierHeadConfig, LinearConfig},
};

use super::random_run::{Run, Setting};

/// Number of actions.
const N_ACTIONS: usize = 18;

/// The configuration of a model, optionally with the paper's Fourier attention or Fourier head.
pub fn config(
    n_layers: usize,
    context_length: usize,
    fourier_attention: bool,
    fourier_head: bool,
) -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        n_layers,
        context_length,
        attention: match fourier_attention {
            false => AttentionConfig::SOFTMAX,
            true => AttentionConfig::Fourier(FourierKernel {
                power: 4,
                r: RShape::Scalar,
                initial: 1.0,
                epsilon: 0.0,
            }),
        },
        head: match fourier_head {
            false => HeadConfig::Linear(LinearConfig {}),
            true => HeadConfig::Fourier(FourierHeadConfig {
                gamma: 1e-6,
                action_order: ActionOrder::atari().into(),
                ..FourierHeadConfig::new(14)
            }),
        },
        ..DecisionTransformerConfig::atari(4_000)
    }
}

/// The observation space of an Atari model.
pub fn frames() -> ObservationSpace {
    ObservationSpace::Pixels { shape: vec![STACK, FRAME, FRAME] }
}

/// A name, and a run.
pub type Named = (&'static str, Run);

/// Runs of the agents that learn values, with their defaults, and observations and actions as wide as
/// those of OGBench's `cube-single`.
///
/// # Errors
/// When an algorithm is invalid.
pub fn values(setting: Setting<'_>) -> Result<Vec<Named>> {
    let observations = ObservationSpace::Vectors { width: 28 };
    let (actions, listed) = (ActionSpace::unit(5), ActionSpace::numbered(5));
    let spaces = (&observations, &actions);
    let td3_bc = Td3Bc::new(Td3BcConfig::default(), &observations, &actions);
    let rebrac = RebracConfig { n_steps: 1, ..RebracConfig::default() };
    let rebrac = Rebrac::new(rebrac, &observations, &actions);
    let chunk_size = 5;
    let networks = InChunks::new(&observations, &actions.in_chunks(chunk_size));
    let iql = Iql::new(IqlConfig { chunk_size, ..IqlConfig::default() }, networks);
    let (config, observed) = (DiscreteCqlConfig::default(), observations.clone());
    let cql = DiscreteCql { config, observations: observed, actions: listed.clone() };
    Ok(vec![
        ("TD3+BC", Run::of(td3_bc, spaces, setting)?),
        ("ReBRAC", Run::of(rebrac, spaces, setting)?),
        ("IQL in chunks", Run::of(iql, spaces, setting)?),
        ("discrete CQL", Run::of(cql, (&observations, &listed), setting)?),
    ])
}

/// A model with the same initial weights on every device.
///
/// # Errors
/// When `config` is invalid.
pub fn model(
    config: &DecisionTransformerConfig,
    device: &Device,
) -> Result<DecisionTransformer, ModelError> {
    let generator = &mut seed::generator(1, "init");
    let init = &mut Init::drawn(device, generator);
    DecisionTransformer::init(config, &frames(), &ActionSpace::numbered(N_ACTIONS), init)
}

/// The `nth` batch of contexts. Its second context, if any, has padding.
pub fn batch(nth: u64, batch: usize, time: usize, device: &Device) -> Contexts {
    let numbers = |of: &str, n: usize| {
        let of = seed::derive(nth, of);
        (0..n as u64).map(move |i| seed::derive_nth(of, i))
    };
    let shape = [batch, time + STACK - 1, FRAME, FRAME];
    let n_words = shape.iter().product::<usize>() / 8;
    let pixels: Vec<u8> = numbers("pixels", n_words).flat_map(u64::to_le_bytes).collect();
    let actions: Vec<i32> =
        numbers("actions", batch * time).map(|x| (x % N_ACTIONS as u64) as i32).collect();
    let returns: Vec<f32> = numbers("returns", batch * time).map(|x| (x % 64) as f32).collect();
    let starts: Vec<i32> = numbers("starts", batch).map(|x| (x % 1000) as i32).collect();
    let mut n_padding = vec![0; batch];
    if let Some(second) = n_padding.get_mut(1) {
        *second = time / 3;
    }
    let frames = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (device, DType::U8));
    let actions = Tensor::from_data(TensorData::new(actions, [batch, time]), device);
    Contexts {
        observations: Observed::Frames(frames),
        actions: Acted::Discrete(actions),
        returns_to_go: Tensor::from_data(TensorData::new(returns, [batch, time]), device),
        timesteps: timesteps_from(&starts, &n_padding, time),
        n_padding,
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
    }
}
