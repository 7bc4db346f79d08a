//! The drawn start of an episode: the same as Gymnasium's `reset(seed=…)`.

use overtone_core::numpy::{Pcg64, Ziggurats};

use crate::Task;

/// The start of the episode with seed `seed`: the model's own state, `initial`, with noise on
/// each number. Positions come first, then velocities.
pub(crate) fn draw(task: Task, seed: u64, initial: &[f64], ziggurats: &Ziggurats) -> Vec<f64> {
    let mut generator = Pcg64::new(seed);
    let (positions, velocities) = initial.split_at(task.n_positions());
    let scale = noise_scale(task);
    let mut state = Vec::with_capacity(initial.len());
    state.extend(positions.iter().map(|x| x + generator.uniform_between(-scale, scale)));
    state.extend(velocities.iter().map(|x| match task {
        Task::HalfCheetah => x + scale * ziggurats.normal(&mut generator),
        Task::Hopper | Task::Walker2d => x + generator.uniform_between(-scale, scale),
    }));
    state
}

/// Largest noise; of HalfCheetah's velocities, its standard deviation.
fn noise_scale(task: Task) -> f64 {
    match task {
        Task::HalfCheetah => 0.1,
        Task::Hopper | Task::Walker2d => 5e-3,
    }
}
