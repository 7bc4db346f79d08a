//! Acting in many parallel episodes, in a loop. `scripts/peers/acting.py` does the same from
//! Python, and both take turns (`just bench-peers python`).
//!
//!     acting CHECKPOINT AGENTS STEPS      rounds of STEPS turns of AGENTS agents
//!
//! It prints a number when it is ready. For each input line, it prints the seconds of one turn of
//! all agents. When its input ends, it prints a number in place of the peak memory, which is not
//! used.

use std::{env, error::Error, io, path::Path, time::Instant};

use overtone_agents::{Agent, policy};
use overtone_core::{ObservationSpace, Observations, Turn, policy::EpisodeStart};
use overtone_model::burn::tensor::Device;
use overtone_train::Checkpoint;

/// Turns before the timing starts: after these, every context is full.
const WARM_UP: usize = 30;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // `cargo bench` adds the flag `--bench`.
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let [checkpoint, agents, steps] = &words[..] else {
        println!("acting: run by `just bench-peers python`");
        return Ok(());
    };
    let (agents, steps): (usize, usize) = (agents.parse()?, steps.parse()?);
    let checkpoint = Checkpoint::open(Path::new(checkpoint))?;
    let agent = Agent::of(&checkpoint)?;
    let ObservationSpace::Vectors { width } = agent.task.observations else {
        return Err("the benchmark needs an agent with vector observations".into());
    };
    let mut policy = policy(&checkpoint, &agent.matched(), &Device::flex())?;

    // The observations do not affect the time: sines, as in Python.
    let seen: Vec<f32> = (0..agents * width).map(|i| (i as f32).sin()).collect();
    let mut turn = |begins: bool| {
        let start = begins.then_some(EpisodeStart { seed: 1, target_return: 1000.0 });
        let turns: Vec<Turn> =
            (0..agents).map(|agent| Turn { agent, reward: 1.0, start }).collect();
        policy.act(&turns, Observations::Vectors(&seen)).map(drop)
    };
    for time in 0..WARM_UP {
        turn(time == 0)?;
    }
    println!("0");
    for line in io::stdin().lines() {
        line?;
        let start = Instant::now();
        for _ in 0..steps {
            turn(false)?;
        }
        println!("{}", start.elapsed().as_secs_f64() / steps as f64);
    }
    println!("0");
    Ok(())
}
