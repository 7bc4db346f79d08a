//! [`Rollouts`]: episodes that run as one batch, and are returned in the order of their numbers.
//!
//! An episode's number determines its seed and every draw. So the recorded episodes do not depend
//! on how many run in parallel.
//!
//! If the probability of every action is known, its logarithm is recorded. It is the probability
//! under the policy that acted, with the random actions of epsilon.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use overtone_core::picture::FRAME;
use overtone_core::policy::EpisodeStart;
use overtone_core::seed::{Generator, derive, derive_nth};
use overtone_core::{ActionSpace, Actions, ObservationSpace, Observations, Outcome, Played, Turn};
use overtone_data::{ActionColumn, ActionMasks, ObservationColumn, OptionalArrays, WrittenEpisode};
use overtone_env::{EnvError, Step, VectorEnv, cut_seed};
use overtone_eval::{
    allowed_actions,
    rollout::{Rows, role_seeds},
};
use rand::{RngExt, SeedableRng};

use super::cast::Cast;

/// Rules of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Minimum number of steps.
    pub transitions: usize,
    /// Probability of a random action.
    pub epsilon: f64,
    /// Seed of every draw.
    pub seed: u64,
    /// Range of steps that each policy acts in turn.
    pub switch: Option<[u64; 2]>,
    /// Steps after which an episode without a step limit counts as endless.
    pub endless: Option<usize>,
}

/// Parallel episodes before the length of one is known.
const BLIND: usize = 16;

/// Maximum of consecutive failures, in addition to the number of parallel episodes.
const MOST_IN_A_ROW: usize = 20;

/// Episodes that run in parallel.
pub struct Rollouts<'a> {
    env: &'a mut dyn VectorEnv,
    cast: &'a mut Cast,
    rules: Rules,
    /// Whether log-probabilities of the actions are recorded.
    has_log_probs: bool,
    slots: Vec<Option<Live>>,
    /// The number of the next episode.
    next: u64,
    /// Finished episodes that wait for one that started earlier; `None`: failed.
    waiting: BTreeMap<u64, Option<WrittenEpisode>>,
    /// The number of the next episode to return.
    due: u64,
    /// Steps returned so far.
    steps: usize,
    returns: Vec<f64>,
    failed: usize,
    first_failure: String,
    /// Failures since the last finished episode.
    failed_in_a_row: usize,
}

/// A running episode.
struct Live {
    number: u64,
    seed: u64,
    environment_seed: u64,
    random: Generator,
    /// The acting policy, its remaining steps, and whether the next step is its first.
    member: usize,
    left: u64,
    begins: bool,
    reward: f32,
    numbers: Vec<f32>,
    pixels: Vec<u8>,
    chosen: Vec<u16>,
    values: Vec<f32>,
    rewards: Vec<f32>,
    /// Log-probabilities of the actions; `None` if they are not recorded.
    log_probs: Option<Vec<f32>>,
    /// `[steps, n_actions]`, the allowed actions; `None`: the environment does not say.
    allowed: Option<Vec<bool>>,
}

/// The actions of one policy for some turns.
struct Acted {
    actions: Actions,
    /// `[turns, n_actions]`, the probabilities that each action had; `None` if they are not
    /// recorded.
    probs: Option<Vec<f64>>,
}

impl<'a> Rollouts<'a> {
    /// Rollouts without running episodes.
    pub fn new(env: &'a mut dyn VectorEnv, cast: &'a mut Cast, rules: Rules) -> Self {
        let slots = (0..env.n_envs()).map(|_| None).collect();
        let has_log_probs = cast.has_log_probs();
        Self {
            env,
            cast,
            rules,
            has_log_probs,
            slots,
            next: 0,
            waiting: BTreeMap::new(),
            due: 0,
            steps: 0,
            returns: Vec::new(),
            failed: 0,
            first_failure: String::new(),
            failed_in_a_row: 0,
        }
    }

    /// Returns of the returned episodes.
    pub fn returns(&self) -> Vec<f64> {
        self.returns.clone()
    }

    /// The number of failures, and the first error.
    pub fn failed(&self) -> Option<(usize, String)> {
        (self.failed > 0).then(|| (self.failed, self.first_failure.clone()))
    }

    /// Runs one step in every slot; returns the next finished episodes, or `None` when there are
    /// enough steps.
    ///
    /// # Errors
    /// When a policy or all environments fail, or too many episodes fail in a row.
    pub fn step(&mut self) -> Result<Option<Vec<WrittenEpisode>>> {
        if self.steps >= self.rules.transitions {
            return Ok(None);
        }
        self.begin()?;
        if self.failed_in_a_row > self.slots.len() + MOST_IN_A_ROW {
            bail!(
                "{} episodes failed in a row; the first error: {}",
                self.failed_in_a_row,
                self.first_failure
            );
        }
        let envs: Vec<usize> =
            (0..self.slots.len()).filter(|&env| self.slots[env].is_some()).collect();
        if envs.is_empty() {
            return Ok(Some(self.handed_out()));
        }
        self.store_observations(&envs);
        let (actions, log_probs) = self.act(&envs)?;
        self.keep(&envs, &actions, &log_probs);
        let (steps, failures) = match self.env.step(&envs, &actions) {
            Ok(steps) => (envs.iter().copied().zip(steps).collect(), Vec::new()),
            Err(EnvError::Partly { failures, steps }) => (steps, failures),
            Err(error) => return Err(error.into()),
        };
        for failure in failures {
            self.fail(failure.env, &failure.cause.to_string());
        }
        let mut ended = Vec::new();
        for (env, step) in steps {
            match self.count(env, step) {
                Some(outcome) => ended.push((env, outcome)),
                None => self.check_ends(env)?,
            }
        }
        let over: Vec<usize> = ended.iter().map(|(env, _)| *env).collect();
        self.store_observations(&over);
        for (env, outcome) in ended {
            if let Some(live) = self.slots[env].take() {
                let number = live.number;
                let episode = live.written(self.env.observation_space(), self.env.action_space());
                let episode = WrittenEpisode { outcome: Some(outcome), ..episode };
                self.waiting.insert(number, Some(episode));
                self.failed_in_a_row = 0;
            }
        }
        Ok(Some(self.handed_out()))
    }

    /// Starts episodes in free slots while the running ones may not be enough.
    fn begin(&mut self) -> Result<()> {
        let mut room = self.wanted().saturating_sub(self.slots.iter().flatten().count());
        let (mut envs, mut seeds) = (Vec::new(), Vec::new());
        for env in 0..self.slots.len() {
            if self.slots[env].is_some() || room == 0 {
                continue;
            }
            let seed = episode_seed(self.rules.seed, self.next);
            let bits = self.env.seed_bits();
            let mut live = Live::new(self.next, (seed, bits), self.cast, self.rules.switch);
            live.log_probs = self.has_log_probs.then(Vec::new);
            envs.push(env);
            seeds.push(live.environment_seed);
            self.slots[env] = Some(live);
            self.next += 1;
            room -= 1;
        }
        if envs.is_empty() {
            return Ok(());
        }
        match self.env.reset(&envs, &seeds) {
            Ok(()) => Ok(()),
            Err(EnvError::Partly { failures, .. }) => {
                failures.iter().for_each(|f| self.fail(f.env, &f.cause.to_string()));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The number of episodes to run: enough for the missing steps, by the known lengths. More
    /// would be wasted.
    fn wanted(&self) -> usize {
        let waiting = self.waiting.values().flatten().map(|episode| episode.rewards.len());
        let ended = self.steps + waiting.clone().sum::<usize>();
        let n_ended = self.returns.len() + waiting.count();
        let live = self.slots.iter().flatten().map(|live| live.rewards.len());
        let longest = live.max().unwrap_or(0);
        let length = ended.checked_div(n_ended).unwrap_or(0).max(longest).max(1);
        let missing = self.rules.transitions.saturating_sub(ended).div_ceil(length);
        match n_ended {
            0 => missing.min(BLIND),
            _ => missing,
        }
    }

    fn fail(&mut self, env: usize, reason: &str) {
        if let Some(live) = self.slots[env].take() {
            self.waiting.insert(live.number, None);
        }
        if self.failed == 0 {
            self.first_failure = reason.to_owned();
        }
        self.failed += 1;
        self.failed_in_a_row += 1;
    }

    /// Stores the current observations.
    fn store_observations(&mut self, envs: &[usize]) {
        let size = self.env.observation_space().size();
        for &env in envs {
            let Some(live) = &mut self.slots[env] else { continue };
            match self.env.observations() {
                Observations::Vectors(rows) => {
                    live.numbers.extend_from_slice(&rows[env * size..(env + 1) * size]);
                }
                // The newest frame is the last one.
                Observations::Pixels(rows) => {
                    let frames = &rows[env * size..(env + 1) * size];
                    live.pixels.extend_from_slice(&frames[size - FRAME.min(size)..]);
                }
            }
        }
    }

    /// One action for each of `envs`, and its log-probability; those are empty if they are not
    /// recorded.
    fn act(&mut self, envs: &[usize]) -> Result<(Actions, Vec<f32>)> {
        let space = self.env.action_space().clone();
        let n_actions = space.size();
        let mut acted: Vec<Option<Acted>> = envs.iter().map(|_| None).collect();
        for at in 0..self.cast.members.len() {
            let turns: Vec<(usize, usize)> = envs
                .iter()
                .enumerate()
                .filter(|(_, env)| self.slots[**env].as_ref().is_some_and(|l| l.member == at))
                .map(|(row, env)| (row, *env))
                .collect();
            if turns.is_empty() {
                continue;
            }
            let Some(of_policy) = self.by_policy(at, &turns)? else { continue };
            for (place, &(row, _)) in turns.iter().enumerate() {
                let row_of =
                    |all: &Vec<f64>| all[place * n_actions..(place + 1) * n_actions].to_vec();
                acted[row] = Some(Acted {
                    actions: one(&of_policy.actions, place),
                    probs: of_policy.probs.as_ref().map(row_of),
                });
            }
        }
        let (mut rows, mut log_probs) = (Vec::with_capacity(envs.len()), Vec::new());
        for (&env, acted) in envs.iter().zip(acted) {
            let Some(live) = &mut self.slots[env] else { continue };
            let allowed = self.env.allowed_actions();
            let choices = match &space {
                ActionSpace::Discrete { .. } => allowed_actions(allowed, env, n_actions),
                ActionSpace::Continuous { .. } => Vec::new(),
            };
            if let (Some(all), []) = (allowed, &choices[..]) {
                bail!("no action of {} is allowed in a running episode", all.len());
            }
            if let Some(allowed) = allowed {
                let row = &allowed[env * n_actions..(env + 1) * n_actions];
                live.allowed.get_or_insert_default().extend_from_slice(row);
            }
            // Always drawn, so that epsilon does not change other draws.
            let at_random = live.random.random::<f64>() < self.rules.epsilon;
            let random = random_action(&space, &choices, &mut live.random);
            if let (Some(policy), true) = (&mut self.cast.members[live.member].policy, at_random) {
                let turn = Turn { agent: env, reward: 0.0, start: None };
                policy.took(&[turn], &random).map_err(|error| anyhow!("{error}"))?;
            }
            let (chosen, probs) = acted.map(|acted| (acted.actions, acted.probs)).unzip();
            let taken = chosen.filter(|_| !at_random).unwrap_or(random);
            if let (Actions::Discrete(index), true) = (&taken, live.log_probs.is_some()) {
                // Without a policy, actions are uniformly random.
                let uniform = 1.0 / choices.len() as f64;
                let prob = probs.flatten().map_or(uniform, |probs| probs[index[0]]);
                log_probs.push(log_prob(prob, self.rules.epsilon, choices.len()));
            }
            rows.push(taken);
        }
        Ok((joined(rows, &space), log_probs))
    }

    /// The actions of policy `at` for `turns`; `None` for the random policy.
    fn by_policy(&mut self, at: usize, turns: &[(usize, usize)]) -> Result<Option<Acted>> {
        let n_actions = self.env.action_space().size();
        let member = &mut self.cast.members[at];
        let Some(policy) = &mut member.policy else { return Ok(None) };
        let numbered: Vec<Turn> = turns
            .iter()
            .filter_map(|&(_, env)| {
                let live = self.slots[env].as_ref()?;
                let start = live.begins.then(|| EpisodeStart {
                    seed: role_seeds(live.seed).1 ^ live.rewards.len() as u64,
                    target_return: member.target,
                });
                let reward = self.cast.protocol.return_units.of(live.reward);
                Some(Turn { agent: env, reward, start })
            })
            .collect();
        let envs: Vec<usize> = turns.iter().map(|&(_, env)| env).collect();
        let rows = Rows::of(self.env, &envs);
        let actions = rows.act(&mut **policy, &numbered).map_err(|error| anyhow!("{error}"))?;
        let probs = match (self.has_log_probs, policy.played()) {
            (true, Some(played)) => Some(by_action(played, n_actions)),
            (true, None) => bail!("the policy did not store the distributions of its actions"),
            (false, _) => None,
        };
        Ok(Some(Acted { actions, probs }))
    }

    /// Stores the actions, and their log-probabilities if they are recorded.
    fn keep(&mut self, envs: &[usize], actions: &Actions, log_probs: &[f32]) {
        for (row, &env) in envs.iter().enumerate() {
            let Some(live) = &mut self.slots[env] else { continue };
            if let Some(all) = &mut live.log_probs {
                all.push(log_probs[row]);
            }
            match actions {
                Actions::Discrete(indices) => live.chosen.push(indices[row] as u16),
                Actions::Continuous { width, values } => {
                    live.values.extend_from_slice(&values[row * width..(row + 1) * width]);
                }
            }
        }
    }

    /// Stores the result of a step; returns the outcome of a finished episode.
    fn count(&mut self, env: usize, step: Step) -> Option<Outcome> {
        let live = self.slots[env].as_mut()?;
        live.rewards.push(step.reward);
        live.reward = step.reward;
        live.begins = false;
        live.left = live.left.saturating_sub(1);
        if let (0, Some(turns)) = (live.left, self.rules.switch) {
            live.change(self.cast, turns);
        }
        step.outcome
    }

    /// # Errors
    /// When the episode in `env` counts as endless.
    fn check_ends(&self, env: usize) -> Result<()> {
        let length = self.slots[env].as_ref().map_or(0, |live| live.rewards.len());
        match self.rules.endless {
            Some(most) if length >= most => bail!(
                "an episode has not ended after {length} steps, and there is no step limit. Set \
                 one, such as episode_steps={}",
                most / 10
            ),
            _ => Ok(()),
        }
    }

    /// The finished episodes in order, until there are enough steps.
    fn handed_out(&mut self) -> Vec<WrittenEpisode> {
        let mut ready = Vec::new();
        while self.steps < self.rules.transitions
            && let Some(episode) = self.waiting.remove(&self.due)
        {
            self.due += 1;
            let Some(episode) = episode else { continue };
            self.steps += episode.rewards.len();
            self.returns.push(episode.rewards.iter().map(|&reward| f64::from(reward)).sum());
            ready.push(episode);
        }
        ready
    }
}

impl Live {
    /// `seed` of the episode; the environments take `seed_bits`.
    fn new(
        number: u64,
        (seed, seed_bits): (u64, u32),
        cast: &Cast,
        switch: Option<[u64; 2]>,
    ) -> Self {
        let mut live = Self {
            number,
            seed,
            environment_seed: cut_seed(role_seeds(seed).0, seed_bits),
            random: Generator::seed_from_u64(derive(seed, "record")),
            member: 0,
            left: 0,
            begins: true,
            reward: 0.0,
            numbers: Vec::new(),
            pixels: Vec::new(),
            chosen: Vec::new(),
            values: Vec::new(),
            rewards: Vec::new(),
            log_probs: None,
            allowed: None,
        };
        live.change(cast, switch.unwrap_or([u64::MAX; 2]));
        live
    }

    /// Draws the next acting policy. Another policy starts without history, as at the start of an
    /// episode.
    fn change(&mut self, cast: &Cast, [low, high]: [u64; 2]) {
        let before = self.member;
        self.member = cast.drawn(self.random.random::<f64>());
        self.left = self.random.random_range(low..=high);
        self.begins |= before != self.member;
    }

    fn written(self, observations: &ObservationSpace, actions: &ActionSpace) -> WrittenEpisode {
        let n_actions = actions.size();
        let action_masks = self.allowed.map(|allowed| ActionMasks { n_actions, allowed });
        WrittenEpisode {
            observations: match observations {
                ObservationSpace::Vectors { width } => {
                    ObservationColumn::Vectors { width: *width, values: self.numbers }
                }
                ObservationSpace::Pixels { .. } => {
                    ObservationColumn::Frames { pixels: self.pixels }
                }
            },
            actions: match actions {
                ActionSpace::Discrete { names } => {
                    ActionColumn::Discrete { n_actions: names.len(), values: self.chosen }
                }
                ActionSpace::Continuous { low, .. } => {
                    ActionColumn::Continuous { width: low.len(), values: self.values }
                }
            },
            rewards: self.rewards,
            behavior_log_probs: self.log_probs,
            optional: OptionalArrays { action_masks, ..OptionalArrays::default() },
            outcome: None,
            seed: Some(self.environment_seed),
        }
    }
}

/// `[turns, n_actions]`: the probabilities of a policy's distributions, in the environment's order of
/// actions.
fn by_action(played: Played<'_>, n_actions: usize) -> Vec<f64> {
    let n_bins = played.actions.len().max(1);
    let mut probs = vec![0.0; played.probs.len() / n_bins * n_actions];
    let rows = probs.chunks_exact_mut(n_actions.max(1));
    for (row, bins) in rows.zip(played.probs.chunks_exact(n_bins)) {
        for (&action, prob) in played.actions.iter().zip(bins) {
            row[action] += prob;
        }
    }
    probs
}

/// `ln(ε/n + (1 − ε) p)`: the log-probability of an action of a policy's probability `prob`, where a
/// uniformly random action replaces the policy's with probability `epsilon`.
fn log_prob(prob: f64, epsilon: f64, n_actions: usize) -> f32 {
    let mixed = epsilon / n_actions as f64 + (1.0 - epsilon) * prob;
    // A taken action has a probability above 0 and at most 1, also after rounding.
    mixed.clamp(f64::MIN_POSITIVE, 1.0).ln() as f32
}

/// A uniformly random action: one of `choices`, or between the
/// [bounds](ActionSpace::drawn_between) of continuous actions.
fn random_action(space: &ActionSpace, choices: &[usize], random: &mut Generator) -> Actions {
    match space {
        ActionSpace::Discrete { .. } => {
            Actions::Discrete(vec![choices[random.random_range(0..choices.len())]])
        }
        ActionSpace::Continuous { low, .. } => {
            let draw =
                |[low, high]: [f32; 2]| (low + random.random::<f32>() * (high - low)).min(high);
            let values = space.drawn_between().into_iter().map(draw).collect();
            Actions::Continuous { width: low.len(), values }
        }
    }
}

/// The seed of a recorded episode. It differs from the evaluation episodes of the same seed, so
/// that an agent is not evaluated on its training episodes.
fn episode_seed(seed: u64, number: u64) -> u64 {
    derive_nth(derive(seed, "recorded episode"), number)
}

/// The single row `row`.
fn one(actions: &Actions, row: usize) -> Actions {
    match actions {
        Actions::Discrete(indices) => Actions::Discrete(vec![indices[row]]),
        Actions::Continuous { width, values } => Actions::Continuous {
            width: *width,
            values: values[row * width..(row + 1) * width].to_vec(),
        },
    }
}

/// Joins batches of one row into one batch.
fn joined(rows: Vec<Actions>, space: &ActionSpace) -> Actions {
    let (mut indices, mut all) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Actions::Discrete(here) => indices.extend(here),
            Actions::Continuous { values, .. } => all.extend(values),
        }
    }
    match space {
        ActionSpace::Discrete { .. } => Actions::Discrete(indices),
        ActionSpace::Continuous { low, .. } => {
            Actions::Continuous { width: low.len(), values: all }
        }
    }
}

#[cfg(test)]
mod tests;
