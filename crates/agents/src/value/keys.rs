//! Options that several algorithms share: checks with the name of their section, and steps that follow
//! from the data.

use overtone_data::Dataset;
use overtone_model::{ModelError, error::config_error};

/// # Errors
/// Names the first key with a value that is negative or not finite.
pub fn check_positive(section: &str, keys: &[(&str, f64)]) -> Result<(), ModelError> {
    match keys.iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
        Some((key, value)) => {
            Err(config_error(format!("{section}.{key}"), value, "must be 0 or positive"))
        }
        None => Ok(()),
    }
}

/// The most steps with another reward than the step before, relative to all, where values have a long way.
const RARE: f64 = 0.05;

/// Whether rewards rarely change within an episode, such as -1 until the task is solved, or the number of parts
/// that are not solved yet: at most at one step in twenty.
pub fn has_rare_rewards(data: &Dataset) -> bool {
    are_rare(data.episodes().as_slice().iter().map(|episode| &data.rewards()[episode.range()]))
}

/// The same of the rewards of each episode.
fn are_rare<'a>(episodes: impl Iterator<Item = &'a [f32]>) -> bool {
    let (mut pairs, mut changes) = (0, 0);
    for rewards in episodes {
        pairs += rewards.len() - 1;
        changes += rewards.windows(2).filter(|pair| pair[0] != pair[1]).count();
    }
    pairs > 0 && changes as f64 <= RARE * pairs as f64
}

/// Steps between two values if rewards are rare, so that values have a long way.
const STEPS_OF_RARE_REWARDS: usize = 5;

/// `n_steps`, or for 0 the number that suits data with or without [rare rewards](has_rare_rewards).
pub fn steps_for(n_steps: usize, has_rare_rewards: bool) -> usize {
    match n_steps {
        0 if has_rare_rewards => STEPS_OF_RARE_REWARDS,
        0 => 1,
        n_steps => n_steps,
    }
}

/// # Errors
/// When a target has the rewards of no step, or of more than a thousand.
pub fn check_n_steps(section: &str, n_steps: usize) -> Result<(), ModelError> {
    match n_steps {
        1..=1000 => Ok(()),
        _ => Err(config_error(format!("{section}.n_steps"), n_steps, "must lie in 1 to 1000")),
    }
}

/// # Errors
/// Names the first key with a value outside of [0, 1].
pub fn check_fractions(section: &str, keys: &[(&str, f64)]) -> Result<(), ModelError> {
    match keys.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
        Some((key, value)) => {
            Err(config_error(format!("{section}.{key}"), value, "must lie in [0, 1]"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_rare_if_one_step_in_twenty_changes_them() {
        let mut staged = [-2.0; 41];
        staged[20..].fill(-1.0);
        let of = |episodes: &[&[f32]]| are_rare(episodes.iter().copied());
        assert!(of(&[&staged]) && of(&[&staged[..21]]) && of(&[&[1.0; 2]]));
        // 1 of 19 pairs; a change between episodes; no pair; a reward at each step.
        assert!(!of(&[&staged[1..21]]) && of(&[&[0.0; 30], &[1.0; 30]]));
        assert!(!of(&[&[0.0], &[1.0]]) && !of(&[&[0.5, 0.25, 0.125, 1.0]]));
    }
}
