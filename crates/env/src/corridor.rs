//! A slippery corridor: a tiny environment whose optimum is known, for tests.

use overtone_core::seed::Generator;
use overtone_core::{Actions, Observations, Outcome};
use rand::{RngExt, SeedableRng};

use crate::{ActionSpace, EnvError, ObservationSpace, Slots, Step, VectorEnv};

/// Walking right to the end of a corridor.
///
/// An episode starts in a cell drawn from its seed, `0 .. n_cells - 1`. Action 0 goes left,
/// 1 goes right; with probability `slip` the other happens. Reaching the last cell gives
/// [`REWARD`](Self::REWARD) and terminates; `max_steps` truncates. The observation is the
/// cell and the steps taken.
#[derive(Debug)]
pub struct Corridor {
    n_cells: usize,
    max_steps: usize,
    slip: f64,
    slots: Slots,
    agents: Vec<Walker>,
    observations: Vec<f32>,
    observation_space: ObservationSpace,
    action_space: ActionSpace,
}

#[derive(Debug)]
struct Walker {
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
    /// When `n_cells < 2` or `slip` is no probability: a caller's bug.
    pub fn new(n_envs: usize, n_cells: usize, max_steps: usize, slip: f64) -> Self {
        assert!(n_cells >= 2, "a corridor needs two cells");
        assert!((0.0..=1.0).contains(&slip), "slip is a probability");
        let walker = |_| Walker { cell: 0, steps: 0, generator: Generator::seed_from_u64(0) };
        Self {
            n_cells,
            max_steps,
            slip,
            slots: Slots::new(n_envs),
            agents: (0..n_envs).map(walker).collect(),
            observations: vec![0.0; n_envs * 2],
            observation_space: ObservationSpace::Vectors { width: 2 },
            action_space: ActionSpace::Discrete { names: vec!["left".into(), "right".into()] },
        }
    }

    fn show(&mut self, env: usize) {
        let walker = &self.agents[env];
        self.observations[env * 2] = walker.cell as f32;
        self.observations[env * 2 + 1] = walker.steps as f32;
    }
}

impl VectorEnv for Corridor {
    fn n_envs(&self) -> usize {
        self.slots.n_envs()
    }

    fn observation_space(&self) -> &ObservationSpace {
        &self.observation_space
    }

    fn action_space(&self) -> &ActionSpace {
        &self.action_space
    }

    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.slots.check_reset(envs, seeds)?;
        for (&env, &seed) in envs.iter().zip(seeds) {
            let mut generator = Generator::seed_from_u64(seed);
            let cell = generator.random_range(0..self.n_cells - 1);
            self.agents[env] = Walker { cell, steps: 0, generator };
            self.slots.begin(env);
            self.show(env);
        }
        Ok(())
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.action_space)?;
        let Actions::Discrete(actions) = actions else { unreachable!("checked above") };
        let mut steps = Vec::with_capacity(envs.len());
        for (&env, &action) in envs.iter().zip(actions) {
            let walker = &mut self.agents[env];
            let slips = walker.generator.random_bool(self.slip);
            walker.cell = if (action == 1) != slips {
                walker.cell + 1
            } else {
                walker.cell.saturating_sub(1)
            };
            walker.steps += 1;
            let arrived = walker.cell == self.n_cells - 1;
            let outcome = if arrived {
                Some(Outcome::Terminated)
            } else {
                (walker.steps == self.max_steps).then_some(Outcome::Truncated)
            };
            if outcome.is_some() {
                self.slots.end(env);
            }
            steps.push(Step { reward: if arrived { Self::REWARD } else { 0.0 }, outcome });
            self.show(env);
        }
        Ok(steps)
    }

    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&self.observations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let beside = cells(&mut Corridor::new(5, 9, 50, 0.4), 3, 3);
        assert_eq!(alone, beside);
        let other = cells(&mut Corridor::new(1, 9, 50, 0.4), 0, 4);
        assert_ne!(alone, other);
    }

    #[test]
    fn the_limit_truncates_and_then_a_reset_is_due() {
        let mut env = Corridor::new(1, 4, 2, 0.0);
        env.reset(&[0], &[1]).unwrap();
        let left = Actions::Discrete(vec![0]);
        assert_eq!(env.step(&[0], &left).unwrap()[0].outcome, None);
        assert!(env.step(&[0], &left).unwrap()[0].truncated());
        assert!(matches!(env.step(&[0], &left), Err(EnvError::NoEpisode { env: 0 })));
    }
}
