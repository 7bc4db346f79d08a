//! Steps per second of playing Seaquest: 100 episodes as one batch with cached embeddings,
//! against one episode at a time with the whole context encoded anew at every step, as the
//! Decision Transformer's released evaluation does. Same model, same emulator, same run,
//! alternating. The one-episode loop runs twice: with the fused operations of `kernels`, and
//! with plain burn operations.
//!
//! `just bench` or `cargo bench -p overtone --bench rollouts`.

use std::{collections::VecDeque, time::Instant};

use overtone_ale::Game;
use overtone_core::{
    Actions, Emulation, Observations, Policy, Protocol, Turn, policy::EpisodeStart, seed,
};
use overtone_env::VectorEnv;
use overtone_model::{
    AttentionConfig, Conditioning, DecisionTransformer, HeadConfig, Inputs, ModelConfig,
    TransformerPolicy,
    burn::tensor::{DType, Device, Int, Tensor, TensorData},
    decision_transformer::{Form, Frames},
};

const EPISODES: usize = 100;
const CONTEXT: usize = 30;
/// Steps before the clock starts: contexts are full from then on.
const WARM_UP: usize = CONTEXT;
const BATCH_STEPS: usize = 20;
const SINGLE_STEPS: usize = 60;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let config = ModelConfig {
        n_layers: 6,
        n_heads: 8,
        d_model: 128,
        context_length: CONTEXT,
        n_actions: 18,
        max_timestep: 2286,
        dropout: 0.1,
        conditioning: Conditioning::Return,
        attention: AttentionConfig::Softmax,
        head: HeadConfig::Linear,
    };
    let device = Device::flex();
    let model = DecisionTransformer::init(&config, &device, &mut seed::generator(1, "init"))?;
    let emulation = Emulation::dqn_replay();
    let mut many = overtone_ale::open(Game::Seaquest, &emulation, EPISODES)?;
    let mut one = overtone_ale::open(Game::Seaquest, &emulation, 1)?;

    let plain = DecisionTransformer { form: Form::Reference, ..model.clone() };

    let mut rates: [Vec<f64>; 3] = Default::default();
    println!("Seaquest, atari preset, {CONTEXT} timesteps of context, steps per second");
    println!("A: {EPISODES} episodes as one batch, embeddings cached");
    println!("B: one episode, whole context encoded anew; C: B on plain burn operations");
    println!("round        A        B        C    A/B    A/C");
    for round in 1..=ROUNDS {
        let row = [
            play_batch(&model, many.as_mut())?,
            play_single(&model, &device, one.as_mut())?,
            play_single(&plain, &device, one.as_mut())?,
        ];
        let [a, b, c] = row;
        println!("{round:>5} {a:>8.1} {b:>8.1} {c:>8.1} {:>6.1} {:>6.1}", a / b, a / c);
        rates.iter_mut().zip(row).for_each(|(all, rate)| all.push(rate));
    }
    let [a, b, c] = rates.map(|mut all| median(&mut all));
    println!("median {a:>7.1} {b:>8.1} {c:>8.1} {:>6.1} {:>6.1}", a / b, a / c);
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

type Rate = Result<f64, Box<dyn std::error::Error + Send + Sync>>;

/// Steps per second, emulator included. Episodes that end are begun again.
fn play_batch(model: &DecisionTransformer, env: &mut dyn VectorEnv) -> Rate {
    let mut policy = TransformerPolicy::new(model, &Protocol::matched(&Emulation::dqn_replay()));
    let all: Vec<usize> = (0..EPISODES).collect();
    let seeds: Vec<u64> = (0..EPISODES as u64).collect();
    env.reset(&all, &seeds)?;
    let start = |agent: usize| EpisodeStart { seed: agent as u64, target_return: 32.0 };
    let mut turns: Vec<Turn> =
        all.iter().map(|&agent| Turn { agent, reward: 0.0, start: Some(start(agent)) }).collect();
    let mut began = Instant::now();
    for step in 0..WARM_UP + BATCH_STEPS {
        if step == WARM_UP {
            began = Instant::now();
        }
        let actions = policy.act(&turns, env.observations())?;
        for (agent, step) in env.step(&all, &actions)?.into_iter().enumerate() {
            let over = step.outcome.is_some();
            if over {
                env.reset(&[agent], &[seeds[agent]])?;
            }
            turns[agent] = Turn {
                agent,
                reward: step.reward.clamp(-1.0, 1.0),
                start: over.then(|| start(agent)),
            };
        }
    }
    Ok((BATCH_STEPS * EPISODES) as f64 / began.elapsed().as_secs_f64())
}

/// Steps per second of the plain loop, emulator included.
fn play_single(model: &DecisionTransformer, device: &Device, env: &mut dyn VectorEnv) -> Rate {
    env.reset(&[0], &[0])?;
    let (mut pixels, mut actions, mut to_go) =
        (VecDeque::<Vec<u8>>::new(), VecDeque::<i32>::new(), VecDeque::<f32>::new());
    to_go.push_back(32.0);
    let mut began = Instant::now();
    for step in 0..WARM_UP + SINGLE_STEPS {
        if step == WARM_UP {
            began = Instant::now();
        }
        let Observations::Pixels(observation) = env.observations() else {
            return Err("pixels were expected".into());
        };
        pixels.push_back(observation.to_vec());
        while pixels.len() > CONTEXT {
            pixels.pop_front();
            actions.pop_front();
            to_go.pop_front();
        }
        let time = pixels.len();
        let frames: Vec<u8> = pixels.iter().flatten().copied().collect();
        let known: Vec<i32> = actions.iter().copied().chain([0]).collect();
        let returns: Vec<f32> = to_go.iter().copied().collect();
        let inputs = Inputs {
            actions: Tensor::from_data(TensorData::new(known, [1, time]), device),
            returns_to_go: Tensor::from_data(TensorData::new(returns, [1, time]), device),
            global_timesteps: Tensor::from_data([(step + 1 - time) as i32], device),
            n_padding: vec![0],
        };
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(frames, [time, 4, 84, 84]),
            (device, DType::U8),
        );
        let logits = model.logits(Frames::Stacks(frames), &inputs).into_data();
        let logits: Vec<f32> = logits.iter::<f32>().collect();
        let last = &logits[(time - 1) * 18..];
        let action = (0..18).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap_or(0);
        let played = env.step(&[0], &Actions::Discrete(vec![action]))?;
        actions.push_back(action as i32);
        to_go.push_back(to_go.back().copied().unwrap_or(32.0) - played[0].reward.clamp(-1.0, 1.0));
        if played[0].outcome.is_some() {
            env.reset(&[0], &[0])?;
        }
    }
    Ok(SINGLE_STEPS as f64 / began.elapsed().as_secs_f64())
}
