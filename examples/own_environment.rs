//! Your own environment: a room that should stay at 20°, heated by a policy and at random.
//!
//! `cargo run --release -p overtone-examples --bin own_environment`

use std::{error::Error, ops::ControlFlow};

use overtone_core::{ActionSpace, Actions, Observations, Outcome, Policy, PolicyError};
use overtone_core::{Turn, protocol::ReturnUnits};
use overtone_env::{Action, Batched, Env, Step};
use overtone_eval::{Plan, RandomPolicy, rollout};

#[derive(Default)]
struct Room {
    degrees: f32,
    hour: u32,
}

impl Env for Room {
    fn observation_width(&self) -> usize {
        1
    }
    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { names: vec!["off".into(), "heat".into()] }
    }
    fn reset(&mut self, seed: u64) {
        *self = Self { degrees: 10.0 + (seed % 10) as f32, hour: 0 };
    }
    fn step(&mut self, action: Action<'_>) -> Step {
        self.degrees += if action == Action::Discrete(1) { 1.5 } else { -1.0 };
        self.hour += 1;
        let outcome = (self.hour == 24).then_some(Outcome::Truncated);
        Step { reward: -(self.degrees - 20.0).abs(), outcome, success: None }
    }
    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.degrees;
    }
}

struct Thermostat;

impl Policy for Thermostat {
    fn act(&mut self, _: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(degrees) = seen else { return Err("no numbers".into()) };
        Ok(Actions::Discrete(degrees.iter().map(|&x| usize::from(x < 20.0)).collect()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (episodes, seed) = (12, 1);
    let plan = Plan::new(episodes, vec![0.0], seed, ReturnUnits::Raw);
    let mut rooms = Batched::of(vec![Room::default(), Room::default(), Room::default()]);
    let mut random = RandomPolicy::new(Room::default().action_space(), 3);
    for policy in [&mut random as &mut dyn Policy, &mut Thermostat] {
        let played = rollout(&mut rooms, policy, &plan, &mut |_| ControlFlow::Continue(()))?;
        let sum: f64 = played.episodes.iter().map(|episode| episode.raw_return).sum();
        println!("mean return {:.1}", sum / played.episodes.len() as f64);
    }
    Ok(())
}
