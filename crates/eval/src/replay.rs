//! Replay of one episode, step by step, with a callback.
//!
//! Seed, policy and protocol determine an episode, so a replay gives the same episode as the
//! rollout. This is the simplest rollout loop; tests compare batched rollouts with it.

use std::ops::ControlFlow;

use overtone_core::policy::EpisodeStart;
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, Observations, Play, Played, Policy, Turn};
use overtone_env::VectorEnv;

use crate::rollout::{PlayedEpisode, RolloutError, Rows, role_seeds};

/// The state of an episode before an action is taken.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    /// Actions taken before.
    pub step: u64,
    /// Sum of the raw rewards before.
    pub raw_return: f64,
    /// The return-to-go, in the protocol's return units.
    pub return_to_go: f32,
    /// The current observation.
    pub observation: Observations<'a>,
    /// The agent's action.
    pub actions: &'a Actions,
    /// The action distribution, if the policy reports it.
    pub played: Option<Played<'a>>,
}

/// Plays `episode` again in the first environment of `env` and returns the new record of it.
///
/// `look` is called before each action; a break ends the episode there. `play` sets the units of
/// the rewards for the policy and how the return-to-go decreases.
///
/// # Errors
/// When the environment or the policy fails.
pub fn replay(
    env: &mut dyn VectorEnv,
    policy: &mut dyn Policy,
    episode: &PlayedEpisode,
    play: &Play,
    look: &mut dyn FnMut(&Moment<'_>) -> ControlFlow<()>,
) -> Result<PlayedEpisode, RolloutError> {
    let (_, agent_seed) = role_seeds(episode.seed);
    env.reset(&[0], &[episode.environment_seed])?;
    let target_return = episode.target_return;
    let mut start = Some(EpisodeStart { seed: agent_seed, target_return });
    let mut again =
        PlayedEpisode { length: 0, raw_return: 0.0, clipped_return: 0.0, ..episode.clone() };
    let (mut reward, mut return_to_go) = (0.0, target_return);
    loop {
        let rows = Rows::of(env, &[0]);
        let observation = rows.view();
        let turn = Turn { agent: 0, reward, start: start.take() };
        let actions = rows.act(policy, &[turn]).map_err(RolloutError::Policy)?;
        let played = policy.played();
        let (step, raw_return) = (again.length, again.raw_return);
        let moment =
            Moment { step, raw_return, return_to_go, observation, actions: &actions, played };
        if look(&moment).is_break() {
            return Ok(again);
        }
        let steps = env.step(&[0], &actions)?;
        let Some(step) = steps.first() else { return Err(RolloutError::NoEnvironment) };
        reward = play.return_units.of(step.reward);
        if !play.delayed_reward {
            return_to_go -= reward;
        }
        if play.integer_returns {
            return_to_go = return_to_go.trunc();
        }
        again.length += 1;
        again.raw_return += f64::from(step.reward);
        again.clipped_return += f64::from(ReturnUnits::Clipped.of(step.reward));
        if let Some(outcome) = step.outcome {
            again.outcome = outcome;
            again.success = step.success;
            return Ok(again);
        }
    }
}
