//! The queue of episodes and the slots that run them.

use overtone_core::policy::EpisodeStart;
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Outcome, Turn};

use super::{FailedEpisode, Plan, PlayedEpisode, role_seeds};

/// The episodes that are not assigned to a slot yet, sorted by player and target.
pub(super) struct Queue<'a> {
    plans: &'a [&'a Plan],
    player: usize,
    /// The next episode's number in its player's plan.
    number: usize,
}

impl<'a> Queue<'a> {
    pub fn new(plans: &'a [&'a Plan]) -> Self {
        Self { plans, player: 0, number: 0 }
    }
}

impl Iterator for Queue<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        let plan = self.plans.get(self.player)?;
        let slot = Slot::new(plan, self.player, self.number);
        self.number += 1;
        if self.number == plan.n_episodes() {
            (self.player, self.number) = (self.player + 1, 0);
        }
        Some(slot)
    }
}

/// A running episode.
pub(super) struct Slot {
    /// Index of its player.
    pub player: usize,
    /// Number in the player's plan: `target_idx · episodes + episode`.
    pub number: usize,
    pub episode: PlayedEpisode,
    /// The last reward, in the plan's return units.
    reward: f32,
}

impl Slot {
    fn new(plan: &Plan, player: usize, number: usize) -> Self {
        let episode = plan.first + number % plan.episodes;
        let seed = plan.episode_seed(episode);
        let (environment_seed, agent_seed) = role_seeds(seed);
        Self {
            player,
            number,
            episode: PlayedEpisode {
                target_return: plan.targets[number / plan.episodes],
                episode,
                seed,
                environment_seed,
                agent_seed: Some(agent_seed),
                length: 0,
                raw_return: 0.0,
                clipped_return: 0.0,
                outcome: Outcome::Truncated,
                success: None,
            },
            reward: 0.0,
        }
    }

    pub fn turn(&self, agent: usize) -> Turn {
        let start = (self.episode.length == 0).then(|| EpisodeStart {
            seed: role_seeds(self.episode.seed).1,
            target_return: self.episode.target_return,
        });
        Turn { agent, reward: self.reward, start }
    }

    /// The record of a failed episode.
    pub fn failed(&self, reason: String) -> FailedEpisode {
        let PlayedEpisode { target_return, episode, seed, length, .. } = self.episode;
        FailedEpisode { target_return, episode, seed, length, reason }
    }

    pub fn add(&mut self, raw_reward: f32, units: ReturnUnits) {
        self.episode.length += 1;
        self.episode.raw_return += f64::from(raw_reward);
        self.episode.clipped_return += f64::from(ReturnUnits::Clipped.of(raw_reward));
        self.reward = units.of(raw_reward);
    }
}
