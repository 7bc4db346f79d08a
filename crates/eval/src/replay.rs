//! One episode played again, step by step, in front of someone who looks.
//!
//! An episode is determined by its seed, its policy and its protocol, so it comes out as it
//! did in the rollout. This is the simplest form of playing; the rollout's tests compare it
//! with batches.

use std::ops::ControlFlow;

use overtone_core::policy::EpisodeStart;
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, Observations, Play, Played, Policy, Turn};
use overtone_env::VectorEnv;

use crate::rollout::role_seeds;
use crate::{PlayedEpisode, RolloutError};

/// A step, before its action is taken.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    /// Actions taken before.
    pub step: u64,
    /// Sum of the raw rewards before.
    pub raw_return: f64,
    /// What is still asked for, in the protocol's return units.
    pub return_to_go: f32,
    /// What the agent sees.
    pub observation: Observations<'a>,
    /// What it does.
    pub actions: &'a Actions,
    /// What it drew from, if it says so.
    pub played: Option<Played<'a>>,
}

/// Plays `episode` again in the first environment of `env`, and says how it went. `look` is
/// called before each action is taken; breaking ends the episode where it is. `play` is how the
/// policy plays: what its rewards are told in, and how its return-to-go falls.
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
    let (env_seed, agent_seed) = role_seeds(episode.seed);
    env.reset(&[0], &[env_seed])?;
    let target_return = episode.target_return;
    let mut start = Some(EpisodeStart { seed: agent_seed, target_return });
    let mut again =
        PlayedEpisode { length: 0, raw_return: 0.0, clipped_return: 0.0, ..episode.clone() };
    let (mut reward, mut return_to_go) = (0.0, target_return);
    loop {
        let observation = first_row(env);
        let turn = Turn { agent: 0, reward, start: start.take() };
        let actions = policy.act(&[turn], observation).map_err(RolloutError::Policy)?;
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
            return Ok(again);
        }
    }
}

/// The observation of the first environment.
fn first_row(env: &dyn VectorEnv) -> Observations<'_> {
    let size = env.observation_space().size();
    match env.observations() {
        Observations::Pixels(pixels) => Observations::Pixels(&pixels[..size]),
        Observations::Vectors(numbers) => Observations::Vectors(&numbers[..size]),
    }
}
