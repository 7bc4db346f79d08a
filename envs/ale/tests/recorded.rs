//! Replay of recorded episodes in the real emulator: observations, rewards and outcomes must equal
//! the recording bit by bit.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_ale::{AleVectorEnv, Emulation, Game};
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, Observations, Outcome};
use overtone_env::VectorEnv;
use serde::Deserialize;
use sha2::{Digest, Sha256};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// An episode written by `recorded/make.py`.
#[derive(Deserialize)]
struct Recorded {
    ale_seed: i32,
    actions: Vec<usize>,
    /// Clipped to [-1, 1].
    rewards: Vec<f32>,
    /// Sum of the pixels of each frame before an action.
    frame_sums: Vec<u64>,
    /// Hash of all these frames.
    frames_sha256: String,
}

const FRAME: usize = 84 * 84;

#[track_caller]
fn check(game: &'static Game) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let file = folder.join(game.title()).with_extension("json");
    let recorded: Recorded = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();

    // The episode is in the middle of three environments. The others are not stepped.
    let mut env = AleVectorEnv::new(game, &Emulation::dqn_replay(), 3).unwrap();
    env.reset_with_ale_seeds(&[1], &[recorded.ale_seed]).unwrap();
    let mut hash = Sha256::new();
    let mut before = vec![0; 3 * FRAME];
    let mut outcome = None;
    for (step_idx, &action) in recorded.actions.iter().enumerate() {
        assert_eq!(outcome, None, "the episode ended early, before step {step_idx}");
        let Observations::Pixels(pixels) = env.observations() else { unreachable!() };
        let stack = &pixels[4 * FRAME..8 * FRAME];
        // Frames of the episode so far, with zeros before its first frame.
        assert_eq!(&stack[..3 * FRAME], before, "older frames at step {step_idx}");
        let frame = &stack[3 * FRAME..];
        let sum: u64 = frame.iter().map(|&pixel| u64::from(pixel)).sum();
        assert_eq!(sum, recorded.frame_sums[step_idx], "frame at step {step_idx}");
        hash.update(frame);
        before.copy_from_slice(&stack[FRAME..]);

        let step = env.step(&[1], &Actions::Discrete(vec![action])).unwrap()[0];
        let clipped = ReturnUnits::Clipped.of(step.reward);
        assert_eq!(clipped, recorded.rewards[step_idx], "reward at step {step_idx}");
        outcome = step.outcome;
    }
    assert_eq!(outcome, Some(Outcome::Terminated));
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, recorded.frames_sha256);
}

#[test]
fn seaquest_equals_the_recording() {
    check(game("seaquest"));
}

#[test]
fn gravitar_equals_the_recording() {
    check(game("gravitar"));
}

#[test]
fn bank_heist_equals_the_recording() {
    check(game("bank_heist"));
}

#[test]
fn double_dunk_equals_the_recording() {
    check(game("double_dunk"));
}
