//! A group of environments with its own thread, and the slots of the group.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Instant;

use overtone_core::{Actions, Observations, Policy, PolicyError, Turn};
use overtone_env::{EnvError, Failure, Step, VectorEnv, cut_seed};

use super::RolloutError;
use super::slot::Slot;

/// Actions for some environments of a group.
pub(super) struct Work {
    pub envs: Vec<usize>,
    /// Row `i` belongs to `envs[i]`.
    pub actions: Actions,
}

/// Work for the thread of a group: environments to reset and actions to take.
struct Order {
    reset: Vec<usize>,
    seeds: Vec<u64>,
    work: Vec<Work>,
}

/// The result of an order.
pub(super) struct Seen {
    /// Each environment that took an action, and its step.
    pub steps: Vec<(usize, Step)>,
    /// The environments that failed.
    pub failed: Vec<Failed>,
    /// The environments that need an action, in ascending order.
    pub acting: Vec<usize>,
    /// Observations of `acting`.
    pub rows: Rows,
    /// Duration of the order.
    pub seconds: f64,
}

/// An environment that failed.
pub(super) struct Failed {
    pub env: usize,
    /// The simulator's error in one line.
    pub reason: String,
}

/// A group of environments. Its thread owns the environments until the rollout ends.
pub(super) struct Group {
    slots: Vec<Option<Slot>>,
    /// Number of environments in the groups before this one.
    first_agent: usize,
    /// Environments whose next episode has not started.
    to_reset: Vec<usize>,
    orders: Sender<Order>,
    answers: Receiver<Result<Seen, EnvError>>,
    /// Whether an order is in progress.
    busy: bool,
    /// Bits of the environments' seeds.
    seed_bits: u32,
}

impl Group {
    /// Starts the thread, which ends when the group is dropped.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        env: &'scope mut dyn VectorEnv,
        first_agent: usize,
    ) -> Self {
        let (orders, received) = channel::<Order>();
        let (answer, answers) = channel();
        let slots = (0..env.n_envs()).map(|_| None).collect();
        let seed_bits = env.seed_bits();
        scope.spawn(move || {
            for order in received {
                if answer.send(carry_out(env, order)).is_err() {
                    return;
                }
            }
        });
        Self { slots, first_agent, to_reset: Vec::new(), orders, answers, busy: false, seed_bits }
    }

    /// Number of environments.
    pub fn n_envs(&self) -> usize {
        self.slots.len()
    }

    /// Assigns the next episode to `env`; `None` if the queue is empty.
    pub fn begin(&mut self, env: usize, mut slot: Option<Slot>) {
        if let Some(Slot { episode, .. }) = &mut slot {
            episode.environment_seed = cut_seed(episode.environment_seed, self.seed_bits);
            self.to_reset.push(env);
        }
        self.slots[env] = slot;
    }

    /// The slot that plays in `env`.
    pub fn slot(&mut self, env: usize) -> Option<&mut Slot> {
        self.slots[env].as_mut()
    }

    /// The environments in `envs` whose episodes belong to `player`.
    pub fn envs_of(&self, player: usize, envs: &[usize]) -> Vec<usize> {
        let plays = |&env: &usize| self.slots[env].as_ref().is_some_and(|s| s.player == player);
        envs.iter().copied().filter(plays).collect()
    }

    /// The turns of the agents in `envs`, and the numbers of their episodes.
    pub fn turns(&self, envs: &[usize]) -> (Vec<Turn>, Vec<usize>) {
        let slot = |&env: &usize| self.slots[env].as_ref().map(|slot| (env, slot));
        let of_slot =
            |(env, slot): (usize, &Slot)| (slot.turn(self.first_agent + env), slot.number);
        envs.iter().filter_map(slot).map(of_slot).unzip()
    }

    /// Sends the assigned resets and these actions to the thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn send(&mut self, work: Vec<Work>) -> Result<(), RolloutError> {
        let reset = std::mem::take(&mut self.to_reset);
        let seed =
            |&env: &usize| self.slots[env].as_ref().map(|slot| slot.episode.environment_seed);
        let seeds = reset.iter().filter_map(seed).collect();
        self.busy = !reset.is_empty() || !work.is_empty();
        if self.busy {
            self.orders.send(Order { reset, seeds, work }).map_err(|_| RolloutError::Thread)?;
        }
        Ok(())
    }

    /// Waits for the result of the last order; `None` if there was no order.
    ///
    /// # Errors
    /// When the environments failed.
    pub fn receive(&mut self) -> Result<Option<Seen>, RolloutError> {
        if !self.busy {
            return Ok(None);
        }
        self.busy = false;
        Ok(Some(self.answers.recv().map_err(|_| RolloutError::Thread)??))
    }
}

fn carry_out(env: &mut dyn VectorEnv, order: Order) -> Result<Seen, EnvError> {
    let start = Instant::now();
    let Order { reset, seeds, work } = order;
    let (mut steps, mut failed) = (Vec::new(), Vec::new());
    if !reset.is_empty()
        && let Err(error) = env.reset(&reset, &seeds)
    {
        keep_others(error, &mut steps, &mut failed)?;
    }
    let mut acting = reset;
    acting.retain(|env| failed.iter().all(|failed: &Failed| failed.env != *env));
    for Work { envs, actions } in work {
        match env.step(&envs, &actions) {
            Ok(of_envs) => steps.extend(envs.into_iter().zip(of_envs)),
            Err(error) => keep_others(error, &mut steps, &mut failed)?,
        }
    }
    acting.extend(steps.iter().filter(|(_, step)| step.outcome.is_none()).map(|&(env, _)| env));
    acting.sort_unstable();
    let rows = Rows::of(env, &acting);
    Ok(Seen { steps, failed, acting, rows, seconds: start.elapsed().as_secs_f64() })
}

/// Records the failures of single environments and keeps the steps of the others.
///
/// # Errors
/// Returns `error` if it is not [`EnvError::Partly`].
fn keep_others(
    error: EnvError,
    steps: &mut Vec<(usize, Step)>,
    failed: &mut Vec<Failed>,
) -> Result<(), EnvError> {
    let EnvError::Partly { failures, steps: of_others } = error else { return Err(error) };
    steps.extend(of_others);
    failed.extend(failures.into_iter().map(|Failure { env, cause }| {
        let reason = one_line(&*cause);
        Failed { env, reason }
    }));
    Ok(())
}

/// An error and its causes on one line.
fn one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let words: Vec<String> = causes.map(|cause| cause.to_string().replace('\n', " ")).collect();
    words.join(": ")
}

/// What policies see of some environments: rows of observations, and the allowed actions.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Numbers in a row.
    size: usize,
    values: Values,
    /// `[rows, n_actions]`; `None`: all are allowed.
    allowed: Option<Vec<bool>>,
    n_actions: usize,
}

#[derive(Clone, Debug)]
enum Values {
    Pixels(Vec<u8>),
    Vectors(Vec<f32>),
}

impl Rows {
    /// The current state of these environments.
    pub fn of(env: &dyn VectorEnv, envs: &[usize]) -> Self {
        let sizes = [env.observation_space().size(), env.action_space().size()];
        Self::gather(env.observations(), env.allowed_actions(), sizes, envs)
    }

    fn gather(
        all: Observations<'_>,
        allowed: Option<&[bool]>,
        [size, n_actions]: [usize; 2],
        rows: &[usize],
    ) -> Self {
        let values = match all {
            Observations::Pixels(all) => Values::Pixels(gather(all, size, rows)),
            Observations::Vectors(all) => Values::Vectors(gather(all, size, rows)),
        };
        Self { size, values, allowed: allowed.map(|all| gather(all, n_actions, rows)), n_actions }
    }

    /// The rows for `some` environments, where the rows of `self` belong to `envs` (ascending).
    pub(super) fn some(&self, envs: &[usize], some: &[usize]) -> Self {
        let place = |env: &usize| envs.binary_search(env).ok();
        let places: Vec<usize> = some.iter().filter_map(place).collect();
        let sizes = [self.size, self.n_actions];
        Self::gather(self.view(), self.allowed.as_deref(), sizes, &places)
    }

    /// The policy's actions, among the allowed ones.
    ///
    /// # Errors
    /// When the policy fails, or does not support masks of actions.
    pub fn act(&self, policy: &mut dyn Policy, turns: &[Turn]) -> Result<Actions, PolicyError> {
        if let Some(allowed) = &self.allowed {
            policy.allow(allowed.clone())?;
        }
        policy.act(turns, self.view())
    }

    /// A view of all rows.
    pub fn view(&self) -> Observations<'_> {
        match &self.values {
            Values::Pixels(rows) => Observations::Pixels(rows),
            Values::Vectors(rows) => Observations::Vectors(rows),
        }
    }
}

fn gather<T: Copy>(all: &[T], size: usize, rows: &[usize]) -> Vec<T> {
    let mut gathered = Vec::with_capacity(rows.len() * size);
    for row in rows {
        gathered.extend_from_slice(&all[row * size..(row + 1) * size]);
    }
    gathered
}
