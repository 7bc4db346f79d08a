//! A slippery corridor: a tiny environment with a known optimum, for tests.

use overtone_core::Outcome;
use overtone_core::seed::Generator;
use rand::{RngExt, SeedableRng};

use crate::{
    ActionSpace,
    batched::{Action, Batched, Env},
    step::Step,
};

/// Environment with one task: walk right to the end of a corridor.
///
/// An episode starts in a cell drawn from its seed, `0 .. n_cells - 1`. Action 0 goes left, 1 goes
/// right; with probability `slip` the opposite happens. Reaching the last cell gives
/// [`REWARD`](Self::REWARD) and terminates; `max_steps` truncates. The observation is the cell and
/// the number of steps taken.
pub type Corridor = Batched<Walker>;

/// One corridor.
#[derive(Debug)]
pub struct Walker {
    n_cells: usize,
    max_steps: usize,
    slip: f64,
    cell: usize,
    steps: usize,
    generator: Generator,
}

impl Corridor {
    /// Raw reward for reaching the end.
    pub const REWARD: f32 = 20.0;

    /// `n_envs` corridors of `n_cells` cells (at least two).
    ///
    /// # Panics
    /// When `n_cells < 2`, `slip` is not a probability or `n_envs` is 0: a caller's bug.
    pub fn new(n_envs: usize, n_cells: usize, max_steps: usize, slip: f64) -> Self {
        assert!(n_cells >= 2, "a corridor needs two cells");
        assert!((0.0..=1.0).contains(&slip), "slip is a probability");
        let walker = |_| {
            let generator = Generator::seed_from_u64(0);
            Walker { n_cells, max_steps, slip, cell: 0, steps: 0, generator }
        };
        Self::of((0..n_envs).map(walker).collect())
    }
}

impl Env for Walker {
    fn observation_width(&self) -> usize {
        2
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { names: vec!["left".into(), "right".into()] }
    }

    fn reset(&mut self, seed: u64) {
        self.generator = Generator::seed_from_u64(seed);
        self.cell = self.generator.random_range(0..self.n_cells - 1);
        self.steps = 0;
    }

    fn step(&mut self, action: Action<'_>) -> Step {
        let slips = self.generator.random_bool(self.slip);
        self.cell = if (action == Action::Discrete(1)) != slips {
            self.cell + 1
        } else {
            self.cell.saturating_sub(1)
        };
        self.steps += 1;
        let arrived = self.cell == self.n_cells - 1;
        let outcome = if arrived {
            Some(Outcome::Terminated)
        } else {
            (self.steps == self.max_steps).then_some(Outcome::Truncated)
        };
        let reward = if arrived { Corridor::REWARD } else { 0.0 };
        Step { reward, outcome, success: outcome.map(|_| arrived) }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.cell as f32, self.steps as f32]);
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::{Actions, Observations};

    use super::*;
    use crate::{error::EnvError, vector_env::VectorEnv};

    /// The cells of the episode with this seed, always going right.
    fn cells(env: &mut Corridor, slot: usize, seed: u64) -> Vec<f32> {
        env.reset(&[slot], &[seed]).unwrap();
        let mut cells = Vec::new();
        loop {
            let Observations::Vectors(rows) = env.observations() else { unreachable!() };
            cells.push(rows[slot * 2]);
            if env.step(&[slot], &Actions::Discrete(vec![1])).unwrap()[0].outcome.is_some() {
                return cells;
            }
        }
    }

    #[test]
    fn going_right_arrives() {
        let mut env = Corridor::new(1, 7, 100, 0.0);
        let cells = cells(&mut env, 0, 11);
        let expected: Vec<f32> = (cells[0] as usize..6).map(|cell| cell as f32).collect();
        assert_eq!(cells, expected);
    }

    #[test]
    fn a_seed_is_an_episode_whatever_the_slot() {
        let alone = cells(&mut Corridor::new(1, 9, 50, 0.4), 0, 3);
        let in_batch = cells(&mut Corridor::new(5, 9, 50, 0.4), 3, 3);
        assert_eq!(alone, in_batch);
        let other = cells(&mut Corridor::new(1, 9, 50, 0.4), 0, 4);
        assert_ne!(alone, other);
    }

    #[test]
    fn the_limit_truncates_and_requires_a_reset() {
        let mut env = Corridor::new(1, 4, 2, 0.0);
        env.reset(&[0], &[1]).unwrap();
        let left = Actions::Discrete(vec![0]);
        assert_eq!(env.step(&[0], &left).unwrap()[0].outcome, None);
        assert_eq!(env.step(&[0], &left).unwrap()[0].outcome, Some(Outcome::Truncated));
        assert!(matches!(env.step(&[0], &left), Err(EnvError::NoEpisode { env: 0 })));
    }
}
