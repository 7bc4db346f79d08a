//! Rollouts: a fixed set of episodes, played as batches.
//!
//! The episodes are a queue, and every slot (an environment with its agent) that becomes free
//! takes the next: the batch stays full until the queue is empty. All episodes of the queue
//! are played to their end, so their order decides nothing. (To stop when enough have
//! finished would prefer short ones.) Every episode has its own seed, derived from the
//! evaluation's seed and its number, so an episode is the same whatever its slot, the number
//! of slots, and what else is played, where the policy's actions are ([`Policy`]: on a CPU).
//!
//! The environments come in groups, each stepped in a thread of its own: while one group
//! steps and resets, the policies act for another. The groups take turns in a fixed order, so
//! nothing depends on which thread is faster.
//!
//! An environment that fails takes its episode with it and nothing else: the episode is
//! reported as failed, in no statistic, and the environment is reset for the next, also where
//! it could not begin: each episode of the queue is tried once, whatever the others did.

mod group;
mod histograms;
mod pace;
mod slot;
mod tally;

use std::ops::ControlFlow;

use overtone_core::protocol::ReturnUnits;
use overtone_core::seed::{derive, derive_nth};
use overtone_core::{BinOrder, Outcome, Policy, PolicyError};
use overtone_env::{ActionSpace, EnvError, VectorEnv};
use serde::{Deserialize, Serialize};

use crate::Pooled;
pub use group::Rows;
use group::{Failed, Group, Seen, Work};
pub use histograms::{ActionHistograms, BINS};
use pace::Clock;
pub use pace::Pace;
use slot::Queue;
use tally::Tally;

/// Which episodes to play.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Episodes for each target return.
    pub episodes: usize,
    /// The returns asked for, in `return_units`.
    pub targets: Vec<f32>,
    /// The evaluation's seed. Episode number `e` of every target is played with the same
    /// seed, so that targets are compared on the same episodes.
    pub seed: u64,
    /// Units of the rewards the policy is told.
    pub return_units: ReturnUnits,
}

impl Plan {
    /// So many episodes for each of these targets, from the first on.
    pub fn new(episodes: usize, targets: Vec<f32>, seed: u64, return_units: ReturnUnits) -> Self {
        Self { episodes, targets, seed, return_units }
    }

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
    /// What the environment was seeded with, derived from `seed`.
    pub environment_seed: u64,
    /// Actions taken.
    pub length: u64,
    /// Sum of raw rewards: the score.
    pub raw_return: f64,
    /// Sum of rewards clipped to [-1, 1].
    pub clipped_return: f64,
    /// Whether the task ended or a limit cut it.
    pub outcome: Outcome,
}

/// An episode that was not played to its end, because its environment failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedEpisode {
    /// The return asked for, in the protocol's return units.
    pub target_return: f32,
    /// Its number under that target, from 0.
    pub episode: usize,
    /// Its seed.
    pub seed: u64,
    /// Actions taken until then.
    pub length: u64,
    /// What failed, in a line.
    pub reason: String,
}

/// How far a rollout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Actions taken so far, all episodes together.
    pub steps: u64,
    /// Episodes finished or failed.
    pub episodes_done: usize,
    /// Episodes planned.
    pub episodes: usize,
    /// Episodes under way.
    pub live: usize,
    /// Actions of the longest episode so far.
    pub longest: u64,
}

/// Every distribution that was played from, summed up for each episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedDistributions {
    /// The environment's name of each bin's action.
    pub actions: Vec<String>,
    /// Which bins are neighbours.
    pub order: BinOrder,
    /// Smoothness, one for each episode of [`Rollout::episodes`].
    pub smoothness: Vec<Pooled>,
    /// Sums of the distributions, `[episodes, n_bins]`.
    pub sums: Vec<Vec<f64>>,
}

/// What a rollout gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Every episode that came to its end, target by target, in order of their numbers.
    pub episodes: Vec<PlayedEpisode>,
    /// How many of them are of each target.
    pub finished: Vec<usize>,
    /// The episodes whose environment failed, in the same order.
    pub failed: Vec<FailedEpisode>,
    /// Absent when the policy does not say what it draws from.
    pub played: Option<PlayedDistributions>,
    /// Absent for discrete actions and for those without bounds.
    pub histograms: Option<ActionHistograms>,
    /// Actions taken, all episodes of `episodes` together.
    pub steps: u64,
    /// Environments used at once, at most.
    pub slots: usize,
    /// Seconds from the first reset to the last step of the whole call, other players'
    /// episodes included.
    pub wall_seconds: f64,
    /// Where the time of the whole call went.
    pub pace: Pace,
}

/// Who plays, and what.
pub struct Player<'a> {
    /// Acts in all episodes of the plan.
    pub policy: &'a mut dyn Policy,
    /// The episodes.
    pub plan: &'a Plan,
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
    /// A group of environments failed as a whole, or was misused.
    #[error("the environment failed")]
    Env(#[from] EnvError),
    /// The policy failed.
    #[error("the policy failed")]
    Policy(#[source] PolicyError),
    /// The policy says it drew from what is no distribution.
    #[error(
        "the policy says it drew {turns} actions from {numbers} numbers in rows of {n_bins}, \
         which are no distributions over the environment's {n_actions} actions"
    )]
    Played {
        /// Agents that acted.
        turns: usize,
        /// Numbers in all rows.
        numbers: usize,
        /// Bins of each row.
        n_bins: usize,
        /// What the environment takes.
        n_actions: usize,
    },
    /// The policy says it drew from a distribution with a number that is none.
    #[error("the policy says it drew an action with a probability that is not a number")]
    Probability,
    /// A thread that steps environments ended before its work.
    #[error("a thread that steps environments ended early")]
    Thread,
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
    let mut rollouts = rollout_together(&mut [env], &mut [Player { policy, plan }], progress)?;
    Ok(rollouts.swap_remove(0))
}

/// Plays every episode of every player in all environments of all `groups`, and returns one
/// rollout for each player: what playing them apart gives, in less time.
///
/// A policy acts at once for all its agents of a group. Environment `i` of group `g` is agent
/// `i + n` of every policy, for the `n` environments of the groups before `g`. With one group
/// policies and environments take turns; from two on, they work side by side. `progress` is
/// called after each step of a group; breaking ends the rollout.
///
/// Episodes whose environment failed alone ([`EnvError::Partly`]) are in
/// [`Rollout::failed`]; the others are played to their end.
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
    let action_space = match groups.first() {
        Some(env) => env.action_space().clone(),
        None => return Err(RolloutError::NoEnvironment),
    };
    let action_names = match &action_space {
        ActionSpace::Discrete { names } => names.clone(),
        ActionSpace::Continuous { .. } => Vec::new(),
    };
    let mut game = Game {
        action_names,
        queue: Queue::new(&plans),
        records: plans.iter().map(|plan| Record::new(plan, &action_space)).collect(),
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
    let (wall_seconds, pace) = game.clock.stop(n_slots, game.progress.steps);
    let finished = |record: Record<'_>| record.finish(n_slots, wall_seconds, pace);
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

/// How a rollout stands, beside the groups and the policies.
struct Game<'a> {
    /// Empty for actions without names.
    action_names: Vec<String>,
    queue: Queue<'a>,
    /// One for each player.
    records: Vec<Record<'a>>,
    clock: Clock,
    progress: Progress,
}

impl Game<'_> {
    /// Begins the first episodes, spread evenly over the groups.
    fn begin(&mut self, groups: &mut [Group]) -> Result<(), RolloutError> {
        let most = groups.iter().map(Group::n_envs).max().unwrap_or(0);
        for env in 0..most {
            for group in groups.iter_mut().filter(|group| env < group.n_envs()) {
                group.begin(env, self.queue.next());
            }
        }
        groups.iter_mut().try_for_each(|group| group.send(Vec::new()))
    }

    /// Counts the steps of a group, and gives the slots whose episodes ended or failed their
    /// next.
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
            record.played[slot.number] = Some(Ok(slot.episode.clone()));
            self.go_on(group, env);
        }
        for Failed { env, reason } in &seen.failed {
            let Some(slot) = group.slot(*env) else { continue };
            self.records[slot.player].played[slot.number] = Some(Err(slot.failed(reason.clone())));
            self.go_on(group, *env);
        }
    }

    /// Counts the episode in `env` as done, and begins the next there.
    fn go_on(&mut self, group: &mut Group, env: usize) {
        let next = self.queue.next();
        self.progress.episodes_done += 1;
        self.progress.live -= usize::from(next.is_none());
        group.begin(env, next);
    }

    /// Lets each player act in the environments of a group that wait for an action.
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
            let own = (envs.len() < seen.acting.len()).then(|| seen.rows.of(&seen.acting, &envs));
            let rows = own.as_ref().unwrap_or(&seen.rows);
            let acted = self.clock.acting(|| player.policy.act(&turns, rows.view()));
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
            if let Some(histograms) = &mut self.records[player_idx].histograms {
                histograms.add(&actions, &numbers);
            }
            work.push(Work { envs, actions });
        }
        Ok(work)
    }
}

/// What one player has played.
struct Record<'a> {
    plan: &'a Plan,
    /// By number in the plan.
    played: Vec<Option<Result<PlayedEpisode, FailedEpisode>>>,
    tally: Option<Tally>,
    histograms: Option<ActionHistograms>,
}

impl<'a> Record<'a> {
    fn new(plan: &'a Plan, actions: &ActionSpace) -> Self {
        let n = plan.n_episodes();
        let histograms = ActionHistograms::new(actions, n);
        Self { plan, played: vec![None; n], tally: None, histograms }
    }

    fn finish(self, n_slots: usize, wall_seconds: f64, pace: Pace) -> Rollout {
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
            let mut found = tally.found;
            found.smoothness = kept(found.smoothness, &ended);
            found.sums = kept(found.sums, &ended);
            found
        });
        let histograms = self
            .histograms
            .map(|found| ActionHistograms { counts: kept(found.counts, &ended), ..found });
        Rollout {
            played,
            histograms,
            steps: episodes.iter().map(|episode| episode.length).sum(),
            slots: n_slots.min(self.played.len()),
            episodes,
            finished,
            failed,
            wall_seconds,
            pace,
        }
    }
}

/// Those of `all` that `keep` says.
fn kept<T>(all: Vec<T>, keep: &[bool]) -> Vec<T> {
    all.into_iter().zip(keep).filter_map(|(one, keep)| keep.then_some(one)).collect()
}
