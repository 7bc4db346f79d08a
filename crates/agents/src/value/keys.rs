//! Checks of options that several algorithms share, with the name of their section.

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

/// The number of different rewards among these, at most three.
pub fn count_rewards(rewards: &[f32]) -> usize {
    let mut different: Vec<f32> = Vec::with_capacity(3);
    for &reward in rewards {
        if different.len() < 3 && !different.contains(&reward) {
            different.push(reward);
        }
    }
    different.len()
}

/// Steps between two values if rewards have at most two values, so that values have a long way.
const STEPS_OF_SPARSE_REWARDS: usize = 5;

/// `n_steps`, or for 0 the number that suits data whose rewards have `n_rewards` values.
pub fn steps_for(n_steps: usize, n_rewards: usize) -> usize {
    match (n_steps, n_rewards) {
        (0, ..=2) => STEPS_OF_SPARSE_REWARDS,
        (0, _) => 1,
        (n_steps, _) => n_steps,
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
