//! Actions per second of the robots compared with Gymnasium: 1 and 100 environments with uniform
//! actions and their resets.
//!
//!     cargo bench -p overtone-mujoco --bench steps
//!
//! `item/s` is actions per second of all environments together. A sample is 1,000 actions of one
//! environment, or 50 actions of each of 100 environments. `<0>` is HalfCheetah, `<1>` Hopper, `<2>`
//! Walker2d. Gymnasium runs in its own process and receives one command per sample. Its batch of 100
//! is a `SyncVectorEnv`, whose resets take a separate step.

#[path = "../tests/peer/mod.rs"]
mod peer;

use divan::Bencher;
use divan::counter::ItemsCount;
use overtone_core::Actions;
use overtone_core::seed::generator;
use overtone_env::VectorEnv;
use overtone_mujoco::{Revision, Robot, RobotSimulation, open};
use peer::Gymnasium;
use rand::RngExt;

const SIMULATION: RobotSimulation = RobotSimulation { revision: Revision::V4, max_steps: 1000 };

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 100], consts = [0, 1, 2], sample_count = 20, sample_size = 1)]
fn overtone<const TASK: usize>(bencher: Bencher<'_, '_>, n_envs: usize) {
    let robot = &Robot::all()[TASK];
    let envs: Vec<usize> = (0..n_envs).collect();
    let mut env = open(robot, &SIMULATION, n_envs).expect("`just setup` was run");
    let mut seeds = 0..;
    let mut take = |n: usize| -> Vec<u64> { seeds.by_ref().take(n).collect() };
    env.reset(&envs, &take(n_envs)).expect("the robots start");
    let (width, steps) = (robot.action_width(), steps(n_envs));
    let mut generator = generator(0, "actions");
    let actions: Vec<Actions> = (0..steps)
        .map(|_| {
            let values = (0..n_envs * width).map(|_| generator.random_range(-1.0..1.0)).collect();
            Actions::Continuous { width, values }
        })
        .collect();
    bencher.counter(ItemsCount::new(n_envs * steps)).bench_local(move || {
        for actions in &actions {
            let steps = env.step(&envs, actions).expect("the robots move");
            let ended: Vec<usize> = envs
                .iter()
                .zip(&steps)
                .filter_map(|(&env, step)| step.outcome.map(|_| env))
                .collect();
            env.reset(&ended, &take(ended.len())).expect("the robots start again");
        }
    });
}

#[divan::bench(args = [1, 100], consts = [0, 1, 2], sample_count = 20, sample_size = 1)]
fn gymnasium<const TASK: usize>(bencher: Bencher<'_, '_>, n_envs: usize) {
    let steps = steps(n_envs);
    let mut theirs = Gymnasium::start(&Robot::all()[TASK], SIMULATION.revision, n_envs);
    theirs.ask("reset 0");
    bencher
        .counter(ItemsCount::new(n_envs * steps))
        .bench_local(move || theirs.ask(&format!("play {steps}")));
}

/// Number of actions of each environment in a sample.
fn steps(n_envs: usize) -> usize {
    if n_envs == 1 { 1000 } else { 50 }
}
