//! Acting with only a checkpoint. This one is from `own_data`, and acts in a corridor.
//!
//! `cargo run --release -p overtone-examples --bin play_a_checkpoint runs/corridor/checkpoints/...`

use std::{error::Error, ops::ControlFlow, path::Path};

use overtone_agents::{Agent, policy};
use overtone_core::{Play, Policy, protocol::ActionChoice};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::{Plan, RandomPolicy, rollout};
use overtone_model::burn::tensor::Device;
use overtone_train::Checkpoint;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("pass a checkpoint")?;
    let checkpoint = Checkpoint::open(Path::new(&path))?;
    let agent = Agent::of(&checkpoint)?;
    println!("{}: {}", agent.task.id(), agent.algorithm.describe());

    // The training protocol with one change: the most probable action instead of a sample.
    let play = Play { action_choice: ActionChoice::Mode, ..agent.matched() };
    let mut agent = policy(&checkpoint, &play, &Device::flex())?;

    // Eight corridors in parallel, 40 episodes, each with a target return of 20.
    let mut corridors = Corridor::new(8, 7, 30, 0.0);
    let mut random = RandomPolicy::new(corridors.action_space().clone(), 8);
    let (episodes, seed) = (40, 1);
    let plan = Plan::new(episodes, vec![20.0], seed, play.return_units);
    for (name, policy) in [("random", &mut random as &mut dyn Policy), ("agent", &mut *agent)] {
        let played = rollout(&mut corridors, policy, &plan, &mut |_| ControlFlow::Continue(()))?;
        let n = played.episodes.len() as f64;
        let sum: f64 = played.episodes.iter().map(|episode| episode.raw_return).sum();
        println!("{name}: return {:.2} in {:.1} steps", sum / n, played.steps as f64 / n);
    }
    Ok(())
}
