//! Rollouts: a fixed set of episodes, played in batches.
//!
//! The episodes form a queue. Each slot (an environment with its agent) that becomes free takes the
//! next episode, so the batch stays full until the queue is empty. All episodes of the queue are
//! played to their end, so their order does not bias the result. Stopping after a number of finished
//! episodes would favour short ones.
//!
//! Each episode has its own seed, derived from the evaluation's seed and its number. An episode is
//! therefore the same for every slot, number of slots, and set of other episodes. This requires that
//! the policy's actions do not depend on the batch ([`Policy`]: true on a CPU).
//!
//! The environments are split into groups, each stepped in its own thread. While one group steps
//! and resets, the policies act for another. The groups take turns in a fixed order, so the speed of
//! the threads does not affect the result.
//!
//! A failing environment loses only its current episode. That episode is reported as failed and is
//! not in any statistic, and the environment is reset for the next episode. If the episode could not
//! begin, the same applies. Each episode of the queue is tried exactly once.

mod group;
mod slot;
mod tally;
mod timing;

use std::ops::ControlFlow;

use overtone_core::protocol::ReturnUnits;
use overtone_core::seed::{derive, derive_nth};
use overtone_core::{BinOrder, Outcome, Policy, PolicyError};
use overtone_env::{ActionSpace, EnvError, VectorEnv};
use serde::{Deserialize, Serialize};

use crate::smoothness::Pooled;
pub use group::Rows;
use group::{Failed, Group, Seen, Work};
use slot::Queue;
use tally::Tally;
use timing::Clock;
pub use timing::Timing;

/// The episodes of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Number of the first episode; 0 but where earlier ones were played before.
    pub first: usize,
    /// Episodes for each target return.
    pub episodes: usize,
    /// The target returns, in `return_units`.
    pub targets: Vec<f32>,
    /// The evaluation's seed. Episode `e` has the same seed for every target, so targets are
    /// compared on the same episodes.
    pub seed: u64,
    /// Units of the rewards that the policy receives.
    pub return_units: ReturnUnits,
}

impl Plan {
    /// A plan with `episodes` episodes for each target.
    pub fn new(episodes: usize, targets: Vec<f32>, seed: u64, return_units: ReturnUnits) -> Self {
        Self { first: 0, episodes, targets, seed, return_units }
    }

    /// Number of episodes of all targets.
    pub fn n_episodes(&self) -> usize {
        self.episodes * self.targets.len()
    }

    /// The seed of episode number `episode`.
    pub fn episode_seed(&self, episode: usize) -> u64 {
        derive_nth(derive(self.seed, "episode"), episode as u64)
    }
}

/// The seeds of the environment and of the agent in the episode with this seed.
pub fn role_seeds(episode_seed: u64) -> (u64, u64) {
    (derive(episode_seed, "environment"), derive(episode_seed, "agent"))
}

/// A finished episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedEpisode {
    /// The target return, in the protocol's return units.
    pub target_return: f32,
    /// Number of the episode within its target, from 0; see [`Plan::first`].
    pub episode: usize,
    /// Seed of the episode. Together with policy and protocol it determines the episode.
    pub seed: u64,
    /// Seed of the environment, derived from `seed`.
    pub environment_seed: u64,
    /// Seed of the agent's draws, derived from `seed`; absent in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_seed: Option<u64>,
    /// Actions taken.
    pub length: u64,
    /// Sum of raw rewards: the score.
    pub raw_return: f64,
    /// Sum of rewards clipped to [-1, 1].
    pub clipped_return: f64,
    /// Whether the episode terminated or was truncated.
    pub outcome: Outcome,
    /// Whether the episode succeeded; absent if the environment does not say, and in reports of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

/// An episode that did not finish because its environment failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedEpisode {
    /// The target return, in the protocol's return units.
    pub target_return: f32,
    /// Number of the episode within its target, from 0.
    pub episode: usize,
    /// Seed of the episode.
    pub seed: u64,
    /// Actions taken before the failure.
    pub length: u64,
    /// The failure in one line.
    pub reason: String,
}

/// Progress of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Actions taken so far in all episodes.
    pub steps: u64,
    /// Finished or failed episodes.
    pub episodes_done: usize,
    /// Planned episodes.
    pub episodes: usize,
    /// Running episodes.
    pub live: usize,
    /// Actions of the longest episode so far.
    pub longest: u64,
}

/// The action distributions of a rollout, summarized for each episode.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayedDistributions {
    /// The environment's action name for each bin.
    pub actions: Vec<String>,
    /// Order of the bins.
    pub order: BinOrder,
    /// Smoothness of each episode of [`Rollout::episodes`].
    pub smoothness: Vec<Pooled>,
    /// Sums of the distributions, `[episodes, n_bins]`.
    pub sums: Vec<Vec<f64>>,
}

/// The result of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// All finished episodes, sorted by target and number.
    pub episodes: Vec<PlayedEpisode>,
    /// Number of finished episodes of each target.
    pub finished: Vec<usize>,
    /// The failed episodes, in the same order.
    pub failed: Vec<FailedEpisode>,
    /// The action distributions; absent if the policy does not report them.
    pub played: Option<PlayedDistributions>,
    /// Actions taken in all episodes of `episodes`.
    pub steps: u64,
    /// Maximum number of environments used in parallel.
    pub slots: usize,
    /// Seconds from the first reset to the last step of the whole call, including the episodes of
    /// other players.
    pub wall_seconds: f64,
    /// Breakdown of the time of the whole call.
    pub timing: Timing,
}

/// A policy and its episodes.
pub struct Player<'a> {
    /// The policy that acts in all episodes of the plan.
    pub policy: &'a mut dyn Policy,
    /// The episodes.
    pub plan: &'a Plan,
}

/// Errors of a rollout.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The plan has no episodes.
    #[error("nothing to play: {episodes} episodes for each of {targets} target returns")]
    Empty {
        /// Episodes per target.
        episodes: usize,
        /// Number of targets.
        targets: usize,
    },
    /// A target return is not finite.
    #[error("invalid target return {0}: expected a finite number")]
    Target(f32),
    /// The batch has no environments.
    #[error("the batch has no environment")]
    NoEnvironment,
    /// A group of environments failed as a whole, or was misused.
    #[error("the environment failed")]
    Env(#[from] EnvError),
    /// The policy failed.
    #[error("the policy failed")]
    Policy(#[source] PolicyError),
    /// The policy reported invalid action distributions.
    #[error(
        "the policy reported invalid action distributions: {numbers} probabilities in rows of \
         {n_bins} for {turns} agents, expected one row for each agent over bins of the \
         environment's {n_actions} actions"
    )]
    Played {
        /// Number of agents that acted.
        turns: usize,
        /// Number of probabilities in all rows.
        numbers: usize,
        /// Bins of each row.
        n_bins: usize,
        /// Number of the environment's actions.
        n_actions: usize,
    },
    /// The policy reported a probability that is not a finite number.
    #[error("the policy reported an action probability that is not a finite number")]
    Probability,
    /// A thread that steps environments ended too early.
    #[error("a thread that steps environments ended early")]
    Thread,
    /// The caller's callback stopped the rollout. The finished episodes are dropped, because they
    /// are a biased sample.
    #[error("stopped after {done} of {episodes} episodes")]
    Stopped {
        /// Finished episodes.
        done: usize,
        /// Planned episodes.
        episodes: usize,
    },
}

/// Plays all episodes of `plan`, with one slot for each environment of `env`.
///
/// Agent `i` of `policy` acts in environment `i`. `progress` is called after each step of the batch;
/// a break ends the rollout.
///
/// # Errors
/// When the plan is empty, the environment or the policy fails, or `progress` breaks.
pub fn rollout(
    env: &mut dyn VectorEnv,
    policy: &mut dyn Policy,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Rollout, RolloutError> {
    let mut rollouts = rollout_together(&mut [env], &mut [Player { policy, plan }], progress)?;
    Ok(rollouts.swap_remove(0))
}

/// Plays all episodes of all players in the environments of all `groups`, and returns a rollout for
/// each player. The results equal separate rollouts, but take less time.
///
/// A policy acts in one call for all its agents of a group. Environment `i` of group `g` is agent
/// `i + n` of every policy, where `n` is the number of environments in the groups before `g`. With
/// one group, policies and environments take turns. With several groups they work in parallel.
/// `progress` is called after each step of a group; a break ends the rollout.
///
/// Episodes whose environment failed alone ([`EnvError::Partly`]) are in [`Rollout::failed`]. The
/// other episodes are played to their end.
///
/// # Errors
/// When a plan or a group is empty, a whole group or a policy fails, or `progress` breaks.
pub fn rollout_together(
    groups: &mut [&mut (dyn VectorEnv + '_)],
    players: &mut [Player<'_>],
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Vec<Rollout>, RolloutError> {
    let plans: Vec<&Plan> = players.iter().map(|player| player.plan).collect();
    plans.iter().try_for_each(|plan| check(plan))?;
    let n_envs: usize = groups.iter().map(|env| env.n_envs()).sum();
    if n_envs == 0 || plans.is_empty() {
        return Err(RolloutError::NoEnvironment);
    }
    let episodes: usize = plans.iter().map(|plan| plan.n_episodes()).sum();
    let n_slots = n_envs.min(episodes);
    let action_names = match groups.first().map(|env| env.action_space()) {
        Some(ActionSpace::Discrete { names }) => names.clone(),
        Some(ActionSpace::Continuous { .. }) => Vec::new(),
        None => return Err(RolloutError::NoEnvironment),
    };
    let mut game = Game {
        action_names,
        queue: Queue::new(&plans),
        records: plans.iter().copied().map(Record::new).collect(),
        clock: Clock::start(),
        progress: Progress { steps: 0, episodes_done: 0, episodes, live: n_slots, longest: 0 },
    };
    std::thread::scope(|scope| {
        let mut first_agent = 0;
        let mut started = Vec::with_capacity(groups.len());
        for env in groups.iter_mut() {
            let group = Group::start(scope, &mut **env, first_agent);
            first_agent += group.n_envs();
            started.push(group);
        }
        game.begin(&mut started)?;
        while game.progress.live > 0 {
            for group in &mut started {
                let Some(seen) = game.clock.waiting(|| group.receive())? else { continue };
                game.count(group, &seen);
                let work = game.act(group, players, &seen)?;
                group.send(work)?;
                let Progress { episodes_done: done, episodes, .. } = game.progress;
                if progress(&game.progress).is_break() && done < episodes {
                    return Err(RolloutError::Stopped { done, episodes });
                }
            }
        }
        Ok(())
    })?;
    let (wall_seconds, timing) = game.clock.stop(n_slots, game.progress.steps);
    let finished = |record: Record<'_>| record.finish(n_slots, wall_seconds, timing);
    Ok(game.records.into_iter().map(finished).collect())
}

fn check(plan: &Plan) -> Result<(), RolloutError> {
    if plan.n_episodes() == 0 {
        let targets = plan.targets.len();
        return Err(RolloutError::Empty { episodes: plan.episodes, targets });
    }
    match plan.targets.iter().find(|target| !target.is_finite()) {
        Some(&target) => Err(RolloutError::Target(target)),
        None => Ok(()),
    }
}

/// State of a rollout, without the groups and the policies.
struct Game<'a> {
    /// Names of discrete actions; empty for continuous actions.
    action_names: Vec<String>,
    queue: Queue<'a>,
    /// The record of each player.
    records: Vec<Record<'a>>,
    clock: Clock,
    progress: Progress,
}

impl Game<'_> {
    /// Starts the first episodes, spread evenly over the groups.
    fn begin(&mut self, groups: &mut [Group]) -> Result<(), RolloutError> {
        let most = groups.iter().map(Group::n_envs).max().unwrap_or(0);
        for env in 0..most {
            for group in groups.iter_mut().filter(|group| env < group.n_envs()) {
                group.begin(env, self.queue.next());
            }
        }
        groups.iter_mut().try_for_each(|group| group.send(Vec::new()))
    }

    /// Counts the steps of a group, and assigns the next episodes to slots whose episodes finished
    /// or failed.
    fn count(&mut self, group: &mut Group, seen: &Seen) {
        self.clock.stepping += seen.seconds;
        self.clock.live(self.progress.live);
        for &(env, step) in &seen.steps {
            let Some(slot) = group.slot(env) else { continue };
            let record = &mut self.records[slot.player];
            slot.add(step.reward, record.plan.return_units);
            self.progress.steps += 1;
            self.progress.longest = self.progress.longest.max(slot.episode.length);
            let Some(outcome) = step.outcome else { continue };
            slot.episode.outcome = outcome;
            slot.episode.success = step.success;
            record.played[slot.number] = Some(Ok(slot.episode.clone()));
            self.start_next(group, env);
        }
        for Failed { env, reason } in &seen.failed {
            let Some(slot) = group.slot(*env) else { continue };
            self.records[slot.player].played[slot.number] = Some(Err(slot.failed(reason.clone())));
            self.start_next(group, *env);
        }
    }

    /// Counts the episode in `env` as done and starts the next one there.
    fn start_next(&mut self, group: &mut Group, env: usize) {
        let next = self.queue.next();
        self.progress.episodes_done += 1;
        self.progress.live -= usize::from(next.is_none());
        group.begin(env, next);
    }

    /// Asks each player's policy for actions in the environments of a group that need one.
    fn act(
        &mut self,
        group: &Group,
        players: &mut [Player<'_>],
        seen: &Seen,
    ) -> Result<Vec<Work>, RolloutError> {
        let mut work = Vec::new();
        for (player_idx, player) in players.iter_mut().enumerate() {
            let envs = group.envs_of(player_idx, &seen.acting);
            if envs.is_empty() {
                continue;
            }
            let (turns, numbers) = group.turns(&envs);
            let subset =
                (envs.len() < seen.acting.len()).then(|| seen.rows.some(&seen.acting, &envs));
            let rows = subset.as_ref().unwrap_or(&seen.rows);
            let acted = self.clock.acting(|| rows.act(player.policy, &turns));
            let actions = acted.map_err(RolloutError::Policy)?;
            if let Some(played) = player.policy.played() {
                let record = &mut self.records[player_idx];
                let tally = match &mut record.tally {
                    Some(tally) => tally,
                    none => none.insert(Tally::new(
                        &played,
                        numbers.len(),
                        &self.action_names,
                        record.played.len(),
                    )?),
                };
                tally.add(&played, &numbers)?;
            }
            work.push(Work { envs, actions });
        }
        Ok(work)
    }
}

/// The episodes of one player so far.
struct Record<'a> {
    plan: &'a Plan,
    /// Results by number in the plan.
    played: Vec<Option<Result<PlayedEpisode, FailedEpisode>>>,
    tally: Option<Tally>,
}

impl<'a> Record<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, played: vec![None; plan.n_episodes()], tally: None }
    }

    fn finish(self, n_slots: usize, wall_seconds: f64, timing: Timing) -> Rollout {
        let ended: Vec<bool> =
            self.played.iter().map(|played| matches!(played, Some(Ok(_)))).collect();
        let count = |ended: &[bool]| ended.iter().filter(|ended| **ended).count();
        let finished = ended.chunks(self.plan.episodes.max(1)).map(count).collect();
        let (mut episodes, mut failed) = (Vec::new(), Vec::new());
        for played in self.played.iter().flatten() {
            match played {
                Ok(episode) => episodes.push(episode.clone()),
                Err(episode) => failed.push(episode.clone()),
            }
        }
        let played = self.tally.map(|tally| {
            let mut distributions = tally.distributions;
            distributions.smoothness = kept(distributions.smoothness, &ended);
            distributions.sums = kept(distributions.sums, &ended);
            distributions
        });
        Rollout {
            played,
            steps: episodes.iter().map(|episode| episode.length).sum(),
            slots: n_slots.min(self.played.len()),
            episodes,
            finished,
            failed,
            wall_seconds,
            timing,
        }
    }
}

/// The elements of `all` whose `keep` is `true`.
fn kept<T>(all: Vec<T>, keep: &[bool]) -> Vec<T> {
    all.into_iter().zip(keep).filter_map(|(one, keep)| keep.then_some(one)).collect()
}
