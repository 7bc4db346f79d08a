//! Actions per second of 16 Gymnasium environments with random actions and their resets, compared
//! with a plain Python loop and Gymnasium's `SyncVectorEnv` with the same actions.
//!
//!     cargo bench -p overtone-gymnasium --bench steps
//!
//! `item/s` is actions per second of all environments together.

use divan::Bencher;
use divan::counter::ItemsCount;
use overtone_core::{ActionSpace, Actions, Policy, Turn, policy::EpisodeStart};
use overtone_env::Suite;
use overtone_eval::RandomPolicy;
use overtone_gymnasium::Gymnasium;
use pyo3::prelude::*;

const N: usize = 16;

fn main() {
    divan::main();
}

const TASKS: [&str; 3] = ["CartPole-v1", "Pendulum-v1", "Hopper-v5"];

/// A hundred batches of random actions for all environments.
fn actions(space: &ActionSpace) -> Vec<Actions> {
    let mut policy = RandomPolicy::new(space.clone(), N);
    let act = |time: usize| {
        let start = (time == 0).then_some(EpisodeStart { seed: 1, target_return: 0.0 });
        let turn = |agent| Turn { agent, reward: 0.0, start };
        let turns: Vec<Turn> = (0..N).map(turn).collect();
        policy.act(&turns, overtone_core::Observations::Vectors(&[])).expect("it acts")
    };
    (0..100).map(act).collect()
}

#[divan::bench(args = TASKS, sample_count = 20, sample_size = 100)]
fn ours(bencher: Bencher<'_, '_>, name: &str) {
    let task = Gymnasium.task(name).expect("`just setup` was run");
    let mut env = Gymnasium.open(task, &task.simulation, N).expect("the environments are created");
    let envs: Vec<usize> = (0..N).collect();
    env.reset(&envs, &[1; N]).expect("the episodes start");
    let actions = actions(&task.actions);
    let mut time = 0;
    bencher.counter(ItemsCount::new(N)).bench_local(move || {
        let steps = env.step(&envs, &actions[time % actions.len()]).expect("it plays");
        time += 1;
        let ended: Vec<usize> =
            envs.iter().zip(&steps).filter_map(|(&env, step)| step.outcome.map(|_| env)).collect();
        env.reset(&ended, &vec![time as u64; ended.len()]).expect("the episodes start");
    });
}

/// A plain loop: a list of environments, each stepped and reset at its end.
#[divan::bench(args = TASKS, sample_count = 20, sample_size = 100)]
fn plain_loop(bencher: Bencher<'_, '_>, name: &str) {
    let task = Gymnasium.task(name).expect("`just setup` was run");
    Python::attach(|py| {
        let code = c"import gymnasium
def make(name, n):
    envs = [gymnasium.make(name) for _ in range(n)]
    for env in envs:
        env.reset(seed=1)
    def step(actions, seed):
        for env, action in zip(envs, actions):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset(seed=seed)
    return step";
        let module = PyModule::from_code(py, code, c"loop.py", c"loop").expect("it compiles");
        let step = module.call_method1("make", (name, N)).expect("they are made");
        let actions = arrays(py, &task.actions);
        let mut time = 0;
        bencher.counter(ItemsCount::new(N)).bench_local(move || {
            step.call1((&actions[time % actions.len()], time)).expect("it plays");
            time += 1;
        });
    });
}

/// Random actions as NumPy arrays.
fn arrays<'py>(py: Python<'py>, space: &ActionSpace) -> Vec<Bound<'py, PyAny>> {
    let array = |actions| match actions {
        Actions::Discrete(indices) => {
            let indices: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
            numpy::PyArray1::from_vec(py, indices).into_any()
        }
        Actions::Continuous { width, values } => {
            let rows: Vec<Vec<f32>> = values.chunks(width).map(<[f32]>::to_vec).collect();
            numpy::PyArray2::from_vec2(py, &rows).expect("of one length").into_any()
        }
    };
    actions(space).into_iter().map(array).collect()
}

#[divan::bench(args = TASKS, sample_count = 20, sample_size = 100)]
fn sync_vector_env(bencher: Bencher<'_, '_>, name: &str) {
    let task = Gymnasium.task(name).expect("`just setup` was run");
    Python::attach(|py| {
        let code = c"import gymnasium
def make(name, n):
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(name)] * n)
    envs.reset(seed=1)
    return envs.step";
        let module = PyModule::from_code(py, code, c"bench.py", c"bench").expect("it compiles");
        let step = module.call_method1("make", (name, N)).expect("they are made");
        let actions = arrays(py, &task.actions);
        let mut time = 0;
        bencher.counter(ItemsCount::new(N)).bench_local(move || {
            step.call1((&actions[time % actions.len()],)).expect("it plays");
            time += 1;
        });
    });
}
