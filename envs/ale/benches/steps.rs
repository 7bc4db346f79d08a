//! Actions per second of the emulator: 1, 16 and 100 environments of Seaquest with the settings of
//! the recorded data, with random actions and their resets. Also measured: raw screens.
//!
//!     cargo bench -p overtone-ale --bench steps
//!
//! `item/s` is actions per second of all environments together, with four raw frames per action.

use divan::Bencher;
use divan::counter::ItemsCount;
use overtone_ale::{Emulation, Game, open};
use overtone_core::Actions;
use overtone_core::seed::{Generator, derive_nth};
use rand::{RngExt, SeedableRng};

fn game(name: &str) -> &'static Game {
    Game::named(name).expect("in the table")
}

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 16, 100], sample_count = 30, sample_size = 10)]
fn as_recorded(bencher: Bencher<'_, '_>, n_envs: usize) {
    step(bencher, &Emulation::dqn_replay(), n_envs);
}

#[divan::bench(args = [1, 16], sample_count = 30, sample_size = 10)]
fn released(bencher: Bencher<'_, '_>, n_envs: usize) {
    step(bencher, &Emulation::released(), n_envs);
}

fn step(bencher: Bencher<'_, '_>, emulation: &Emulation, n_envs: usize) {
    let envs: Vec<usize> = (0..n_envs).collect();
    let mut env = open(game("seaquest"), emulation, n_envs).expect("`just setup` was run");
    let seeds: Vec<u64> = envs.iter().map(|&env| env as u64).collect();
    env.reset(&envs, &seeds).expect("the emulator starts");
    let mut generator = Generator::seed_from_u64(0);
    bencher.counter(ItemsCount::new(n_envs)).bench_local(move || {
        let actions = envs.iter().map(|_| generator.random_range(0..18)).collect();
        let steps = env.step(&envs, &Actions::Discrete(actions)).expect("the emulator plays");
        let ended: Vec<usize> =
            envs.iter().zip(&steps).filter_map(|(&env, step)| step.outcome.map(|_| env)).collect();
        let seeds: Vec<u64> =
            ended.iter().map(|&env| derive_nth(generator.random(), env as u64)).collect();
        env.reset(&ended, &seeds).expect("the emulator resets");
    });
}
