//! Observations of the released evaluation compared with OpenCV, in the real emulator.

#![allow(clippy::unwrap_used)]

use std::ffi::CString;

use overtone_ale::seed::ale_seed;
use overtone_ale::{Emulation, Game, ReleasedAle, check};
use overtone_core::seed::{Generator, derive};
use overtone_core::{Actions, Observations};
use overtone_env::VectorEnv;
use pyo3::prelude::*;
use rand::{RngExt, SeedableRng};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// Observations, rewards and whether the game ended, from `released.py`.
fn with_opencv(game: &'static Game, seed: u64, actions: &[usize]) -> (Vec<u8>, Vec<f32>, bool) {
    check(game).unwrap(); // makes ale-py importable
    let mut noops = Generator::seed_from_u64(derive(seed, "noops"));
    let noops = [noops.random_range(0..=29u32), noops.random_range(0..=29u32)];
    Python::attach(|py| {
        let code = CString::new(include_str!("released.py")).unwrap();
        let reference = PyModule::from_code(py, &code, c"released.py", c"released").unwrap();
        let rom = py.import("ale_py.roms").unwrap();
        let rom = rom.call_method1("get_rom_path", (game.task.name.as_str(),)).unwrap();
        let arguments = (rom, ale_seed(seed), noops.to_vec(), actions.to_vec());
        reference.call_method1("play", arguments).unwrap().extract().unwrap()
    })
}

#[track_caller]
fn compare(game: &'static Game, seed: u64, steps: usize) -> bool {
    let n_actions = game.action_ids.len();
    let actions: Vec<usize> = (0..steps).map(|i| (i / 3 * 7 + 1) % n_actions).collect();
    let (expected, rewards, over) = with_opencv(game, seed, &actions);
    let mut env = ReleasedAle::new(game, &Emulation::released(), 2).unwrap();
    env.reset(&[1], &[seed]).unwrap();
    let shown = |env: &ReleasedAle| {
        let Observations::Pixels(pixels) = env.observations() else { unreachable!() };
        pixels[pixels.len() / 2..].to_vec()
    };
    let mut expected = expected.chunks(4 * 84 * 84);
    assert_eq!(shown(&env), expected.next().unwrap(), "{game}: the first observation");
    let mut ended = false;
    for (step_idx, (&action, &reward)) in actions.iter().zip(&rewards).enumerate() {
        assert!(!ended, "{game}: ended before step {step_idx}");
        let step = env.step(&[1], &Actions::Discrete(vec![action])).unwrap()[0];
        assert_eq!(step.reward, reward, "{game}: the reward at step {step_idx}");
        assert!(shown(&env) == expected.next().unwrap(), "{game}: the frame at step {step_idx}");
        ended = step.outcome.is_some();
    }
    assert_eq!(ended, over);
    ended
}

#[test]
fn observations_equal_opencv_bit_by_bit() {
    for game in Game::all().iter().take(5) {
        compare(game, 17, 150);
    }
    // Games with few actions, including one without a no-op.
    for name in ["pong", "skiing", "backgammon"] {
        compare(game(name), 17, 150);
    }
}

#[test]
fn a_whole_game_equals_the_reference() {
    assert!(compare(game("seaquest"), 5, 3000), "the game must end within the test");
}
