//! Steps per second of moving HalfCheetah, simulator included; same model, same simulator, same
//! run, alternating. (An untrained Hopper falls after twenty steps, and its contexts are never
//! full; HalfCheetah cannot fall.)
//!
//! - A: 100 episodes as one batch, the last layer at the newest token alone
//! - B: one episode, all of the context through all of the model at every step, as the Decision
//!   Transformer's evaluation does
//! - C: as B, with plain burn operations instead of the fused ones of `kernels`
//!
//! `just bench` or `cargo bench --workspace --locked --features '' --bench robots`.

use std::{ops::ControlFlow, time::Instant};

use overtone_core::{
    ActionSpace, Actions, Normalization, ObservationSpace, Observations, Play,
    protocol::ReturnUnits, seed,
};
use overtone_env::VectorEnv;
use overtone_eval::{Plan, RolloutError, rollout};
use overtone_model::{
    Acted, Contexts, DecisionTransformer, DecisionTransformerConfig, Init, Model, ModelPolicy,
    Observed, Steps,
    burn::tensor::{Device, Tensor, TensorData},
    decision_transformer::Form,
};
use overtone_mujoco::{MujocoVectorEnv, Robot, RobotSimulation};

const EPISODES: usize = 100;
const CONTEXT: usize = 20;
/// Steps of each episode before the clock starts: contexts are full from then on.
const WARM_UP: usize = CONTEXT;
const BATCH_STEPS: usize = 60;
const SINGLE_STEPS: usize = 300;
const ROUNDS: usize = 5;
const TARGET: f32 = 12000.0;
const SCALE: f32 = 1000.0;

type Any = Box<dyn std::error::Error + Send + Sync>;

fn cheetah() -> &'static Robot {
    Robot::named("halfcheetah").expect("in the table")
}

fn main() -> Result<(), Any> {
    let robot = cheetah();
    let (wide, narrow) = (robot.observation_width(), robot.action_width());
    let simulation = RobotSimulation::d4rl();
    let config = DecisionTransformerConfig::gym(simulation.max_steps as usize);
    let device = Device::flex();
    let mut generator = seed::generator(1, "init");
    let init = &mut Init::drawn(&device, &mut generator);
    let observations = ObservationSpace::Vectors { width: wide };
    let model =
        DecisionTransformer::init(&config, &observations, &ActionSpace::unit(narrow), init)?;
    let agent = Model::Transformer(model.clone());
    let plain = DecisionTransformer { form: Form::Reference, ..model.clone() };
    let mut many = overtone_mujoco::open(robot, &simulation, EPISODES)?;
    let mut one = overtone_mujoco::open(robot, &simulation, 1)?;

    println!("HalfCheetah, gym preset, {CONTEXT} timesteps of context, steps per second");
    println!("A: {EPISODES} episodes as one batch; B: one episode, whole model over the context");
    println!("C: B on plain burn operations");
    println!("round        A        B        C      A/B      A/C");
    let mut rates: [Vec<f64>; 5] = Default::default();
    for round in 1..=ROUNDS {
        let a = play_batch(&agent, &mut many)?;
        let b = play_single(&model, &device, &mut one)?;
        let c = play_single(&plain, &device, &mut one)?;
        let row = [a, b, c, a / b, a / c];
        println!("{round:>5} {}", row.map(|value| format!("{value:>8.2}")).join(" "));
        rates.iter_mut().zip(row).for_each(|(all, rate)| all.push(rate));
    }
    println!("median (least-most): {}", rates.map(spread).join(", "));
    Ok(())
}

/// `median (least-most)`
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    format!("{:.2} ({least:.2}-{most:.2})", values[values.len() / 2])
}

/// Steps per second of episodes without an end.
fn play_batch(agent: &Model, env: &mut MujocoVectorEnv) -> Result<f64, Any> {
    let protocol = Play { return_scale: SCALE, ..cheetah().task.matched(None) };
    let normalization = Normalization::identity(env.observation_space().size());
    let mut policy = ModelPolicy::new(agent, None, Some(&normalization), &protocol)?;
    let plan = Plan::new(1000 * EPISODES, vec![TARGET], 1, ReturnUnits::Raw);
    let mut began = None;
    let mut rate = 0.0;
    let mut watch = |progress: &overtone_eval::Progress| {
        if progress.steps < (WARM_UP * EPISODES) as u64 {
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
    match rollout(env, &mut policy, &plan, &mut watch) {
        Err(RolloutError::Stopped { .. }) => Ok(rate),
        Err(error) => Err(error.into()),
        Ok(_) => Err("the episodes have an end".into()),
    }
}

/// Steps per second of the plain loop: one environment, contexts padded to their full length.
fn play_single(
    model: &DecisionTransformer,
    device: &Device,
    env: &mut MujocoVectorEnv,
) -> Result<f64, Any> {
    let (wide, narrow) = (model.observations.size(), model.actions.size());
    env.reset(&[0], &[0])?;
    let mut observations = vec![0.0f32; CONTEXT * wide];
    let mut actions = vec![0.0f32; CONTEXT * narrow];
    let mut to_go = vec![0.0f32; CONTEXT];
    let mut timesteps = vec![0i32; CONTEXT];
    let (mut n_seen, mut step_of_episode, mut left) = (0, 0, TARGET / SCALE);
    let mut began = Instant::now();
    for step in 0..WARM_UP + SINGLE_STEPS {
        if step == WARM_UP {
            began = Instant::now();
        }
        let Observations::Vectors(observation) = env.observations() else {
            return Err("vectors were expected".into());
        };
        push(&mut observations, observation);
        push(&mut actions, &vec![0.0; narrow]);
        push(&mut to_go, &[left]);
        push(&mut timesteps, &[step_of_episode]);
        n_seen += 1;
        let shaped = |values: &[f32], width: usize| {
            Tensor::<3>::from_data(TensorData::new(values.to_vec(), [1, CONTEXT, width]), device)
        };
        let contexts = Contexts {
            observations: Observed::Vectors(shaped(&observations, wide)),
            actions: Acted::Continuous(shaped(&actions, narrow)),
            returns_to_go: Tensor::from_data(TensorData::new(to_go.clone(), [1, CONTEXT]), device),
            timesteps: timesteps.clone(),
            n_padding: vec![CONTEXT - n_seen.min(CONTEXT)],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        };
        let hidden = model.hidden(&contexts, Steps::All, None);
        let hidden = hidden.reshape([CONTEXT, model.config.d_model]);
        let all = model.head.decide(hidden).numbers().ok_or("no numbers")?.modes();
        let action: Vec<f32> = all[(CONTEXT - 1) * narrow..].iter().map(|&x| x as f32).collect();
        actions[(CONTEXT - 1) * narrow..].copy_from_slice(&action);
        let played = env.step(&[0], &Actions::Continuous { width: narrow, values: action })?;
        left -= played[0].reward / SCALE;
        step_of_episode += 1;
        if played[0].outcome.is_some() {
            // The context stays full, because its cost is measured.
            env.reset(&[0], &[step as u64])?;
            step_of_episode = 0;
        }
    }
    Ok(SINGLE_STEPS as f64 / began.elapsed().as_secs_f64())
}

/// Moves rows forward by one, the oldest out, and puts `row` at the end.
fn push<T: Copy>(rows: &mut [T], row: &[T]) {
    rows.copy_within(row.len().., 0);
    let end = rows.len() - row.len();
    rows[end..].copy_from_slice(row);
}
