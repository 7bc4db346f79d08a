//! The random start of an episode, equal to Gymnasium's `reset(seed=…)`.

use overtone_numpy_random::{Pcg64, Ziggurats};

use crate::Robot;
use crate::robot::VelocityNoise;

/// The start of the episode with seed `seed`: the model's initial state with noise on each number.
/// Positions come first, then velocities.
pub(crate) fn draw(robot: &Robot, seed: u64, initial: &[f64], ziggurats: &Ziggurats) -> Vec<f64> {
    let mut generator = Pcg64::new(seed);
    let (positions, velocities) = initial.split_at(robot.n_positions());
    let scale = robot.facts().start_noise;
    let mut state = Vec::with_capacity(initial.len());
    state.extend(positions.iter().map(|x| x + generator.uniform_between(-scale, scale)));
    state.extend(velocities.iter().map(|x| match robot.facts().velocity_noise {
        VelocityNoise::Normal => x + scale * ziggurats.normal(&mut generator),
        VelocityNoise::Uniform => x + generator.uniform_between(-scale, scale),
    }));
    state
}
