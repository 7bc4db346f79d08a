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
