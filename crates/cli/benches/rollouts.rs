//! Steps per second in Seaquest, emulator included; same model, same emulator, same run,
//! alternating:
//!
//! - A: 100 episodes as one batch, cached embeddings; emulators and policy by turns
//! - A2: the same in two halves, so that the emulators of one step while the policy acts for
//!   the other
//! - B: one episode, the whole context encoded again at every step, as the Decision Transformer's
//!   released evaluation does
//! - C: as B, with plain burn operations instead of the fused ones of `kernels`
//!
//! Then whole evaluations of three targets: in one call, and in three calls.
//!
//! `just bench` or `cargo bench --workspace --locked --features '' --bench rollouts`.

use std::{collections::VecDeque, ops::ControlFlow, time::Instant};

use overtone_ale::{Emulation, Game};
use overtone_core::{ActionSpace, Actions, ObservationSpace, Observations, Play, Simulation, seed};
use overtone_env::VectorEnv;
use overtone_eval::{Plan, Player, RolloutError, Timing, rollout_together};
use overtone_model::{
    Acted, Contexts, DecisionTransformer, DecisionTransformerConfig, Init, Model, ModelPolicy,
    Observed,
    burn::tensor::{DType, Device, Int, Tensor, TensorData},
    contexts::timesteps_from,
    decision_transformer::Form,
};

const EPISODES: usize = 100;
const CONTEXT: usize = 30;
/// Steps of each episode before the clock starts: contexts are full from then on.
const WARM_UP: usize = CONTEXT;
const BATCH_STEPS: usize = 20;
const SINGLE_STEPS: usize = 60;
const ROUNDS: usize = 3;
/// Episodes of each target in a whole evaluation.
const WHOLE: usize = 4;
/// Maximum of raw frames of an episode in a whole evaluation.
const WHOLE_FRAMES: u32 = 600;
const TARGETS: [f32; 3] = [8.0, 16.0, 32.0];

type Any = Box<dyn std::error::Error + Send + Sync>;

fn seaquest() -> &'static Game {
    Game::named("seaquest").expect("in the table")
}

fn main() -> Result<(), Any> {
    let config = DecisionTransformerConfig {
        context_length: CONTEXT,
        ..DecisionTransformerConfig::atari(2286)
    };
    let device = Device::flex();
    let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let generator = &mut seed::generator(1, "init");
    let init = &mut Init::drawn(&device, generator);
    let model =
        DecisionTransformer::init(&config, &observations, &ActionSpace::numbered(18), init)?;
    let plain = DecisionTransformer { form: Form::Reference, ..model.clone() };
    let emulation = Emulation::dqn_replay();
    let mut halves = [EPISODES / 2, EPISODES - EPISODES / 2]
        .map(|half| overtone_ale::open(seaquest(), &emulation, half));
    let [first, second] = &mut halves;
    let (Ok(first), Ok(second)) = (first, second) else {
        return Err("the emulators cannot be started: run `just setup`".into());
    };
    let mut whole = overtone_ale::open(seaquest(), &emulation, EPISODES)?;
    let mut one = overtone_ale::open(seaquest(), &emulation, 1)?;

    println!("Seaquest, atari preset, {CONTEXT} timesteps of context, steps per second");
    println!("A: {EPISODES} episodes as one batch, emulators and policy by turns");
    println!("A2: {EPISODES} episodes in two halves, emulators and policy side by side");
    println!("B: one episode, whole context encoded again; C: B on plain burn operations");
    println!("round        A       A2        B        C     A2/A      A/B      A/C");
    let mut rates: [Vec<f64>; 7] = Default::default();
    for round in 1..=ROUNDS {
        let a = play_batch(&model, &mut [whole.as_mut()])?;
        let a2 = play_batch(&model, &mut [first.as_mut(), second.as_mut()])?;
        let b = play_single(&model, &device, one.as_mut())?;
        let c = play_single(&plain, &device, one.as_mut())?;
        let row = [a, a2, b, c, a2 / a, a / b, a / c];
        println!("{round:>5} {}", row.map(|value| format!("{value:>8.2}")).join(" "));
        rates.iter_mut().zip(row).for_each(|(all, rate)| all.push(rate));
    }
    println!("median (least-most): {}", rates.map(spread).join(", "));

    println!("\n{WHOLE} episodes for each of 3 targets, at most {WHOLE_FRAMES} frames, seconds");
    println!("round   one call   three calls   ratio");
    let mut seconds: [Vec<f64>; 3] = Default::default();
    let mut timing = Timing::default();
    for round in 1..=ROUNDS {
        let together;
        (together, timing) = play_whole(&model, &TARGETS)?;
        let mut apart = 0.0;
        for target in TARGETS {
            apart += play_whole(&model, &[target])?.0;
        }
        let row = [together, apart, apart / together];
        println!("{round:>5} {}", row.map(|value| format!("{value:>12.2}")).join(" "));
        seconds.iter_mut().zip(row).for_each(|(all, value)| all.push(value));
    }
    println!("median (least-most): {}", seconds.map(spread).join(", "));
    println!("of the last in one call: {timing:?}");
    Ok(())
}

/// `median (least-most)`
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    format!("{:.2} ({least:.2}-{most:.2})", values[values.len() / 2])
}

fn plan(episodes: usize, targets: &[f32], protocol: &Play) -> Plan {
    Plan::new(episodes, targets.to_vec(), 1, protocol.return_units)
}

/// Steps per second, emulators included, of episodes without an end in these groups.
fn play_batch(model: &DecisionTransformer, groups: &mut [&mut dyn VectorEnv]) -> Result<f64, Any> {
    let protocol = seaquest().task.matched(None);
    let mut policy = ModelPolicy::new(&Model::Transformer(model.clone()), None, None, &protocol)?;
    let plan = plan(100 * EPISODES, &[32.0], &protocol);
    let mut began = None;
    let mut rate = 0.0;
    let mut watch = |progress: &overtone_eval::Progress| {
        let warm_up = (WARM_UP * EPISODES) as u64;
        if progress.steps < warm_up {
            return ControlFlow::Continue(());
        }
        let &mut (start, steps) = began.get_or_insert((Instant::now(), progress.steps));
        let played = progress.steps - steps;
        rate = played as f64 / start.elapsed().as_secs_f64();
        match played < (BATCH_STEPS * EPISODES) as u64 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    match rollout_together(groups, &mut players, &mut watch) {
        Err(RolloutError::Stopped { .. }) => Ok(rate),
        Err(error) => Err(error.into()),
        Ok(_) => Err("the episodes have an end".into()),
    }
}

/// Seconds of a whole evaluation, from starting the emulators to the last step.
fn play_whole(model: &DecisionTransformer, targets: &[f32]) -> Result<(f64, Timing), Any> {
    let emulation = Emulation { max_frames: WHOLE_FRAMES, ..Emulation::dqn_replay() };
    let protocol = seaquest().task.matched(Some(&Simulation::of(&emulation)));
    let plan = plan(WHOLE, targets, &protocol);
    let began = Instant::now();
    let mut policy = ModelPolicy::new(&Model::Transformer(model.clone()), None, None, &protocol)?;
    let mut env = overtone_ale::open(seaquest(), &emulation, plan.n_episodes())?;
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let mut go_on = |_: &_| ControlFlow::Continue(());
    let played = rollout_together(&mut [env.as_mut()], &mut players, &mut go_on)?;
    Ok((began.elapsed().as_secs_f64(), played[0].timing))
}

/// Steps per second of the plain loop, emulator included.
fn play_single(
    model: &DecisionTransformer,
    device: &Device,
    env: &mut dyn VectorEnv,
) -> Result<f64, Any> {
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
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(frames, [time, 4, 84, 84]),
            (device, DType::U8),
        );
        let contexts = Contexts {
            observations: Observed::Frames(frames),
            actions: Acted::Discrete(Tensor::from_data(TensorData::new(known, [1, time]), device)),
            returns_to_go: Tensor::from_data(TensorData::new(returns, [1, time]), device),
            timesteps: timesteps_from(&[(step + 1 - time) as i32], &[0], time),
            n_padding: vec![0],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        };
        let logits = model.logits(&contexts).ok_or("no logits")?.into_data();
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
