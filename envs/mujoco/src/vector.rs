//! [`MujocoVectorEnv`]: many environments of one robot, stepped in parallel.

use std::sync::Arc;

use overtone_core::{Actions, Observations, Outcome};
use overtone_env::{ActionSpace, EnvError, ObservationSpace, Slots, Step, VectorEnv};
use overtone_numpy_random::Ziggurats;
use rayon::prelude::*;

use crate::simulator::{Data, Model};
use crate::{MujocoError, Revision, Robot, RobotSimulation, rules, start};

/// Environments of one robot.
///
/// They share one model. Each environment has its own simulation, and several are stepped in
/// parallel. The episode with seed `s` has the same start as Gymnasium's `reset(seed=s)`. Actions
/// outside [-1, 1] are allowed, as in Gymnasium: the motors clip them, but the cost in the reward uses
/// the given action.
///
/// If a simulation diverges, its episode ends and the call returns [`EnvError::Partly`]. The other
/// environments have taken their step. A reset clears the diverged simulation.
pub struct MujocoVectorEnv {
    robot: &'static Robot,
    revision: Revision,
    max_steps: u32,
    /// The model's initial state, `[n_positions + n_velocities]`.
    initial: Vec<f64>,
    ziggurats: Ziggurats,
    lanes: Vec<RobotLane>,
    slots: Slots,
    observations: Vec<f32>,
}

/// One environment.
struct RobotLane {
    data: Data,
    /// State after the last step or reset, `[n_positions + n_velocities]`.
    state: Vec<f64>,
    /// Observation of the state, `[observation_width]`.
    observation: Vec<f64>,
    /// Reward of the last step.
    reward: f64,
    /// Steps taken in this episode.
    n_steps: u32,
}

/// The work of one environment in a call: its lane, the row of its observation, and its order.
struct Job<'a, Order> {
    env: usize,
    lane: &'a mut RobotLane,
    row: &'a mut [f32],
    order: Order,
}

impl MujocoVectorEnv {
    /// Loads the model and creates `n_envs` simulations of it.
    ///
    /// # Errors
    /// When the library or the model is missing or has another version, or the step limit is 0.
    pub fn new(
        robot: &'static Robot,
        simulation: &RobotSimulation,
        n_envs: usize,
    ) -> Result<Self, MujocoError> {
        let RobotSimulation { revision, max_steps } = *simulation;
        if max_steps == 0 {
            return Err(MujocoError::NoSteps);
        }
        let model = Model::load(robot, revision)?;
        let mut initial = vec![0.0; robot.n_positions() + robot.n_velocities()];
        Data::new(&model)?.state(&mut initial);
        let lane = |_| RobotLane::new(robot, &model);
        Ok(Self {
            robot,
            revision,
            max_steps,
            initial,
            ziggurats: Ziggurats::default(),
            lanes: (0..n_envs).map(lane).collect::<Result<_, _>>()?,
            slots: Slots::new(n_envs),
            observations: vec![0.0; n_envs * robot.observation_width()],
        })
    }

    /// The robot.
    pub fn robot(&self) -> &'static Robot {
        self.robot
    }

    /// Starts an episode in `env` in the given state instead of a random one. A running episode there
    /// is dropped.
    ///
    /// # Shapes
    /// - `positions`: `[n_positions]`, metres and radians
    /// - `velocities`: `[n_velocities]`, the same per second
    ///
    /// # Errors
    /// When the environment is unknown, or the state has the wrong size or is not finite.
    pub fn reset_to(
        &mut self,
        env: usize,
        positions: &[f64],
        velocities: &[f64],
    ) -> Result<(), EnvError> {
        self.slots.check_reset(&[env], &[0])?;
        let (n_positions, n_velocities) = (self.robot.n_positions(), self.robot.n_velocities());
        let state = [positions, velocities].concat();
        let fits = positions.len() == n_positions && velocities.len() == n_velocities;
        if !fits || state.iter().any(|value| !value.is_finite()) {
            let (positions, velocities) = (positions.len(), velocities.len());
            let got = if fits {
                "a number that is not finite".into()
            } else {
                format!("{positions} and {velocities} numbers")
            };
            return Err(MujocoError::BadState { env, n_positions, n_velocities, got }.into());
        }
        self.begin(&[env], vec![state])
    }

    /// Positions (metres and radians) and velocities of environment `env`. They are zero before the
    /// first reset.
    ///
    /// # Panics
    /// When environment `env` does not exist.
    pub fn state(&self, env: usize) -> (&[f64], &[f64]) {
        self.lanes[env].state.split_at(self.robot.n_positions())
    }

    /// The observation of environment `env` in the simulator's 64 bits.
    ///
    /// # Panics
    /// When environment `env` does not exist.
    pub fn observation(&self, env: usize) -> &[f64] {
        &self.lanes[env].observation
    }

    /// The reward of the last step of environment `env` in the simulator's 64 bits.
    ///
    /// # Panics
    /// When environment `env` does not exist.
    pub fn reward(&self, env: usize) -> f64 {
        self.lanes[env].reward
    }

    /// Starts an episode in each of the distinct, valid `envs`, in these states.
    fn begin(&mut self, envs: &[usize], states: Vec<Vec<f64>>) -> Result<(), EnvError> {
        let robot = self.robot;
        let results = in_parallel(self.jobs(envs, states), |job| {
            let begun = job.lane.begin(robot, &job.order);
            job.lane.show(job.row);
            begun.map_err(|message| MujocoError::Diverged { env: job.env, message })
        });
        self.slots.after_reset(envs, results)
    }

    /// A job for each of the distinct, valid `envs`, in their order.
    fn jobs<Order>(
        &mut self,
        envs: &[usize],
        orders: impl IntoIterator<Item = Order>,
    ) -> Vec<Job<'_, Order>> {
        let rows = self.observations.chunks_mut(self.robot.observation_width());
        let mut lanes: Vec<_> = self.lanes.iter_mut().zip(rows).map(Some).collect();
        let mut jobs = Vec::with_capacity(envs.len());
        for (&env, order) in envs.iter().zip(orders) {
            if let Some((lane, row)) = lanes[env].take() {
                jobs.push(Job { env, lane, row, order });
            }
        }
        jobs
    }
}

impl VectorEnv for MujocoVectorEnv {
    fn n_envs(&self) -> usize {
        self.slots.n_envs()
    }

    fn observation_space(&self) -> &ObservationSpace {
        &self.robot.task.observations
    }

    fn action_space(&self) -> &ActionSpace {
        &self.robot.task.actions
    }

    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.slots.check_reset(envs, seeds)?;
        let draw = |&seed| start::draw(self.robot, seed, &self.initial, &self.ziggurats);
        let states = seeds.iter().map(draw).collect();
        self.begin(envs, states)
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.robot.task.actions)?;
        let Actions::Continuous { width, values } = actions else { unreachable!("checked above") };
        let rows = || values.chunks_exact(*width);
        let finite = |row: &[f32]| row.iter().all(|value| value.is_finite());
        if let Some((&env, _)) = envs.iter().zip(rows()).find(|(_, row)| !finite(row)) {
            return Err(MujocoError::NonFiniteAction { env }.into());
        }
        let (robot, revision, max_steps) = (self.robot, self.revision, self.max_steps);
        let results = in_parallel(self.jobs(envs, rows()), |job| {
            let stepped = job.lane.step(robot, revision, job.order);
            job.lane.show(job.row);
            let fallen =
                stepped.map_err(|message| MujocoError::Diverged { env: job.env, message })?;
            let outcome = if fallen {
                Some(Outcome::Terminated)
            } else {
                (job.lane.n_steps >= max_steps).then_some(Outcome::Truncated)
            };
            Ok(Step { reward: job.lane.reward as f32, outcome, success: None })
        });
        self.slots.after_step(envs, results)
    }

    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&self.observations)
    }
}

impl RobotLane {
    fn new(robot: &Robot, model: &Arc<Model>) -> Result<Self, MujocoError> {
        Ok(Self {
            data: Data::new(model)?,
            state: vec![0.0; robot.n_positions() + robot.n_velocities()],
            observation: vec![0.0; robot.observation_width()],
            reward: 0.0,
            n_steps: 0,
        })
    }

    /// Starts an episode in `state`. The error is the reason of a divergence, here and in `step`.
    fn begin(&mut self, robot: &Robot, state: &[f64]) -> Result<(), String> {
        let begun = self.data.reset(state);
        (self.reward, self.n_steps) = (0.0, 0);
        self.observe(robot);
        begun
    }

    /// Takes an action and returns whether the robot has fallen.
    ///
    /// The reward must be finite. The state must be finite unless the robot has fallen, as in
    /// Gymnasium.
    fn step(&mut self, robot: &Robot, revision: Revision, action: &[f32]) -> Result<bool, String> {
        let before = self.state[0];
        let controls: Vec<f64> = action.iter().copied().map(f64::from).collect();
        let stepped = self.data.step(&controls, robot.action_steps());
        self.observe(robot);
        self.n_steps += 1;
        let healthy = rules::is_healthy(robot, &self.state);
        self.reward = rules::reward(robot, revision, (before, self.state[0]), action, healthy);
        stepped?;
        if !self.reward.is_finite() {
            return Err("the reward is not finite".into());
        }
        if healthy && self.state.iter().any(|value| !value.is_finite()) {
            return Err("the state is not finite".into());
        }
        Ok(!healthy)
    }

    fn observe(&mut self, robot: &Robot) {
        self.data.state(&mut self.state);
        rules::observe(robot, &self.state, &mut self.observation);
    }

    fn show(&self, row: &mut [f32]) {
        row.iter_mut().zip(&self.observation).for_each(|(shown, &value)| *shown = value as f32);
    }
}

/// Runs all jobs, in parallel if there are several. A step takes tens of microseconds, much more than
/// moving it to another thread.
fn in_parallel<Order: Send, T: Send>(
    jobs: Vec<Job<'_, Order>>,
    work: impl Fn(Job<'_, Order>) -> Result<T, MujocoError> + Send + Sync,
) -> Vec<Result<T, MujocoError>> {
    if jobs.len() < 2 {
        jobs.into_iter().map(work).collect()
    } else {
        jobs.into_par_iter().map(work).collect()
    }
}
