//! Rollouts: a fixed set of episodes, played as one batch.
//!
//! Which slot plays which episode is decided before the start: slot `i` of `n` plays episodes
//! `i`, `i + n`, `i + 2n`, … (the first episodes to *finish* would be a biased sample: short
//! ones). Every episode has its own seed, derived from the evaluation's seed and its number,
//! so an episode is the same whatever the number of slots. A slot that has played its quota
//! drops out, and the batch the policy sees shrinks.

use std::ops::ControlFlow;
use std::time::Instant;

use overtone_core::policy::EpisodeStart;
use overtone_core::protocol::ReturnUnits;
use overtone_core::seed::{derive, derive_nth};
use overtone_core::{Actions, BinOrder, Observations, Outcome, Played, Policy, PolicyError, Turn};
use overtone_env::{EnvError, VectorEnv};
use serde::{Deserialize, Serialize};

use crate::{Pooled, Smoothness};

/// Which episodes to play.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Episodes for each target return.
    pub episodes: usize,
    /// The returns asked for, in `return_units`; all are played in one batch.
    pub targets: Vec<f32>,
    /// The evaluation's seed. Episode number `e` of every target is played with the same
    /// seed, so that targets are compared on the same episodes.
    pub seed: u64,
    /// Units of the rewards the policy is told.
    pub return_units: ReturnUnits,
}

impl Plan {
    /// Number of episodes, all targets together.
    pub fn n_episodes(&self) -> usize {
        self.episodes * self.targets.len()
    }

    /// The seed of episode number `episode`.
    pub fn episode_seed(&self, episode: usize) -> u64 {
        derive_nth(derive(self.seed, "episode"), episode as u64)
    }
}

/// The seeds of the two that draw numbers in the episode with this seed: the environment,
/// and the agent.
pub fn role_seeds(episode_seed: u64) -> (u64, u64) {
    (derive(episode_seed, "environment"), derive(episode_seed, "agent"))
}

/// One episode that was played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedEpisode {
    /// The return asked for, in the protocol's return units.
    pub target_return: f32,
    /// Its number under that target, from 0.
    pub episode: usize,
    /// Its seed, which determines it (with the policy and the protocol).
    pub seed: u64,
    /// Actions taken.
    pub length: u64,
    /// Sum of raw rewards: the score.
    pub raw_return: f64,
    /// Sum of rewards clipped to [-1, 1].
    pub clipped_return: f64,
    /// Whether the task ended or a limit cut it.
    pub outcome: Outcome,
}

/// How far a rollout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Actions taken so far, all episodes together.
    pub steps: u64,
    /// Episodes finished.
    pub episodes_done: usize,
    /// Episodes planned.
    pub episodes: usize,
    /// Episodes under way.
    pub live: usize,
}

/// The smoothness of every distribution that was played from.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayedSmoothness {
    /// Bins of each distribution.
    pub n_bins: usize,
    /// Which bins are neighbours.
    pub order: BinOrder,
    /// One for each episode, in the order of the episodes.
    pub episodes: Vec<Pooled>,
}

/// What a rollout gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Every episode, target by target, in order of their numbers.
    pub episodes: Vec<PlayedEpisode>,
    /// Absent when the policy does not say what it draws from.
    pub smoothness: Option<PlayedSmoothness>,
    /// Actions taken, all episodes together.
    pub steps: u64,
    /// Environments used at once, at most.
    pub slots: usize,
    /// Seconds from the first reset to the last step.
    pub wall_seconds: f64,
}

/// Why a rollout could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// Nothing to play.
    #[error("nothing to play: {episodes} episodes for each of {targets} target returns")]
    Empty {
        /// Episodes per target.
        episodes: usize,
        /// Number of targets.
        targets: usize,
    },
    /// A target return that is not a number.
    #[error("a target return of {0} cannot be asked for")]
    Target(f32),
    /// A batch of no environments.
    #[error("the batch has no environment")]
    NoEnvironment,
    /// The environments failed.
    #[error("the environment failed")]
    Env(#[from] EnvError),
    /// The policy failed.
    #[error("the policy failed")]
    Policy(#[source] PolicyError),
    /// The policy says it drew from what is no distribution.
    #[error("the policy says it drew {turns} actions from {numbers} numbers in rows of {n_bins}")]
    Played {
        /// Agents that acted.
        turns: usize,
        /// Numbers in all rows.
        numbers: usize,
        /// Bins of each row.
        n_bins: usize,
    },
    /// The policy says it drew from a distribution with a number that is none.
    #[error("the policy says it drew an action with a probability that is not a number")]
    Probability,
    /// The caller's callback asked to stop; what was played until then is a biased sample
    /// and is dropped.
    #[error("stopped after {done} of {episodes} episodes")]
    Stopped {
        /// Episodes finished.
        done: usize,
        /// Episodes planned.
        episodes: usize,
    },
}

/// Plays every episode of `plan`, as many at once as `env` has environments.
///
/// Agent `i` of `policy` plays in environment `i`. `progress` is called after each step of
/// the batch; breaking ends the rollout.
///
/// # Errors
/// When the plan is empty, the environment or the policy fails, or `progress` breaks.
pub fn rollout(
    env: &mut dyn VectorEnv,
    policy: &mut dyn Policy,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Rollout, RolloutError> {
    let episodes = plan.n_episodes();
    if episodes == 0 {
        let targets = plan.targets.len();
        return Err(RolloutError::Empty { episodes: plan.episodes, targets });
    }
    if let Some(&target) = plan.targets.iter().find(|target| !target.is_finite()) {
        return Err(RolloutError::Target(target));
    }
    if env.n_envs() == 0 {
        return Err(RolloutError::NoEnvironment);
    }
    let start = Instant::now();
    let n_slots = env.n_envs().min(episodes);
    let mut played: Vec<Option<PlayedEpisode>> = vec![None; episodes];
    let mut slots: Vec<Slot> = (0..n_slots).map(|slot| Slot::new(plan, slot)).collect();
    let mut live: Vec<usize> = (0..n_slots).collect();
    let mut to_reset = live.clone();
    let mut gathered = Gathered::default();
    let mut tally = None;
    let mut state = Progress { steps: 0, episodes_done: 0, episodes, live: n_slots };

    while !live.is_empty() {
        if !to_reset.is_empty() {
            let seeds: Vec<u64> =
                to_reset.iter().map(|&slot| role_seeds(slots[slot].episode.seed).0).collect();
            env.reset(&to_reset, &seeds)?;
            to_reset.clear();
        }
        let turns: Vec<Turn> = live.iter().map(|&slot| slots[slot].turn(slot)).collect();
        let observations = gathered.rows(&*env, &live);
        let actions: Actions = policy.act(&turns, observations).map_err(RolloutError::Policy)?;
        if let Some(played) = policy.played() {
            let numbers = live.iter().map(|&slot| slots[slot].number);
            Tally::add(&mut tally, &played, numbers, episodes)?;
        }
        let steps = env.step(&live, &actions)?;
        state.steps += live.len() as u64;

        let mut still_live = Vec::with_capacity(live.len());
        for (&slot_idx, step) in live.iter().zip(&steps) {
            let slot = &mut slots[slot_idx];
            slot.add(step.reward, plan.return_units);
            let Some(outcome) = step.outcome else {
                still_live.push(slot_idx);
                continue;
            };
            slot.episode.outcome = outcome;
            played[slot.number] = Some(slot.episode.clone());
            state.episodes_done += 1;
            let next = slot.number + n_slots;
            if next < episodes {
                *slot = Slot::new(plan, next);
                to_reset.push(slot_idx);
                still_live.push(slot_idx);
            }
        }
        live = still_live;
        state.live = live.len();
        if progress(&state).is_break() && state.episodes_done < episodes {
            return Err(RolloutError::Stopped { done: state.episodes_done, episodes });
        }
    }
    Ok(Rollout {
        episodes: played.into_iter().flatten().collect(),
        smoothness: tally.map(|tally: Tally| tally.found),
        steps: state.steps,
        slots: n_slots,
        wall_seconds: start.elapsed().as_secs_f64(),
    })
}

/// The smoothness of what was played so far.
struct Tally {
    metric: Smoothness,
    found: PlayedSmoothness,
}

impl Tally {
    /// Adds the distributions of one batch; row `i` belongs to the `i`-th of `numbers`, an
    /// episode of the `episodes` in the plan.
    fn add(
        tally: &mut Option<Self>,
        played: &Played<'_>,
        numbers: impl ExactSizeIterator<Item = usize>,
        episodes: usize,
    ) -> Result<(), RolloutError> {
        let &Played { probs, n_bins, order } = played;
        let n_bins_before = tally.as_ref().map_or(n_bins, |tally| tally.found.n_bins);
        if n_bins == 0 || n_bins != n_bins_before || probs.len() != numbers.len() * n_bins {
            let (turns, numbers) = (numbers.len(), probs.len());
            return Err(RolloutError::Played { turns, numbers, n_bins });
        }
        let Self { metric, found } = tally.get_or_insert_with(|| Self {
            metric: Smoothness::new(n_bins),
            found: PlayedSmoothness { n_bins, order, episodes: vec![Pooled::default(); episodes] },
        });
        for (number, pmf) in numbers.zip(probs.chunks_exact(n_bins)) {
            let smoothness = metric.l2(pmf);
            if !smoothness.is_finite() {
                return Err(RolloutError::Probability);
            }
            found.episodes[number].add(smoothness);
        }
        Ok(())
    }
}

/// One environment and the episode it plays.
struct Slot {
    /// The episode's number in the whole plan: `target_idx · episodes + episode`.
    number: usize,
    episode: PlayedEpisode,
    /// The last reward, in the plan's return units.
    reward: f32,
}

impl Slot {
    fn new(plan: &Plan, number: usize) -> Self {
        let episode = number % plan.episodes;
        Self {
            number,
            episode: PlayedEpisode {
                target_return: plan.targets[number / plan.episodes],
                episode,
                seed: plan.episode_seed(episode),
                length: 0,
                raw_return: 0.0,
                clipped_return: 0.0,
                outcome: Outcome::Truncated,
            },
            reward: 0.0,
        }
    }

    fn turn(&self, agent: usize) -> Turn {
        let start = (self.episode.length == 0).then(|| EpisodeStart {
            seed: role_seeds(self.episode.seed).1,
            target_return: self.episode.target_return,
        });
        Turn { agent, reward: self.reward, start }
    }

    fn add(&mut self, raw_reward: f32, units: ReturnUnits) {
        self.episode.length += 1;
        self.episode.raw_return += f64::from(raw_reward);
        self.episode.clipped_return += f64::from(ReturnUnits::Clipped.of(raw_reward));
        self.reward = units.of(raw_reward);
    }
}

/// The observations of the live slots, side by side.
#[derive(Default)]
struct Gathered {
    pixels: Vec<u8>,
    vectors: Vec<f32>,
}

impl Gathered {
    /// Rows `live` of the environment's observations; copied only when some slot is not live.
    fn rows<'a>(&'a mut self, env: &'a dyn VectorEnv, live: &[usize]) -> Observations<'a> {
        let all = env.observations();
        if live.len() == env.n_envs() {
            return all;
        }
        let size = env.observation_space().size();
        match all {
            Observations::Pixels(rows) => {
                gather(rows, size, live, &mut self.pixels);
                Observations::Pixels(&self.pixels)
            }
            Observations::Vectors(rows) => {
                gather(rows, size, live, &mut self.vectors);
                Observations::Vectors(&self.vectors)
            }
        }
    }
}

fn gather<T: Copy>(rows: &[T], size: usize, live: &[usize], out: &mut Vec<T>) {
    out.clear();
    for &slot in live {
        out.extend_from_slice(&rows[slot * size..(slot + 1) * size]);
    }
}
