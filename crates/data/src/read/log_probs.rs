//! Log-probabilities of the recorded actions under the policy that recorded them.
//!
//! Training does not read them. Estimates of other policies from the recording alone do.

use crate::error::advice::FINITE;
use crate::error::{DataError, Fault};
use crate::read::column::ActionColumn;
use crate::read::source::{Kind, Source, column, same, wrong_value};

/// The largest log-probability of a discrete action. Above 0, it is the rounding of a softmax in
/// half precision or float32.
const HIGHEST: f32 = 1e-3;

/// The log-probabilities of `actions` in the array with one of `names`, if any: `[rows]`.
///
/// # Errors
/// If two of them exist, or the array does not fit the actions or holds an impossible number.
pub(crate) fn read(
    source: &dyn Source,
    names: &[&str],
    actions: &ActionColumn,
) -> Result<Option<Vec<f32>>, DataError> {
    let mut existing = names.iter().filter(|name| source.has(name));
    let Some(name) = existing.next() else { return Ok(None) };
    if let Some(other) = existing.next() {
        let reason = format!("`{name}` and `{other}` mean the same: keep one of them");
        return Err(Fault::Inconsistent(reason).at(source.path()));
    }
    let values = column(source, name)?;
    same(source, name, values.len(), actions.rows(), "actions")?;
    match impossible(&values, actions, name) {
        None => Ok(Some(values)),
        Some((row, what)) => Err(wrong_value(source, name, row, what)),
    }
}

/// Whether array `name` holds one real number for each of `steps`.
pub(crate) fn is_one_a_step(source: &dyn Source, name: &str, steps: usize) -> bool {
    source.shape(name).is_ok_and(|shape| shape == [steps] || shape == [steps, 1])
        && source.kind(name).is_ok_and(|kind| kind == Kind::Real)
}

/// The first row with a number that is not the log-probability of its discrete action, and what is
/// wrong with it. `name` is the array's. Densities of continuous actions are kept as they are:
/// nothing computes with them.
pub(crate) fn impossible(
    values: &[f32],
    actions: &ActionColumn,
    name: &str,
) -> Option<(usize, String)> {
    let own_name = name.rsplit('/').next().unwrap_or(name);
    if matches!(actions, ActionColumn::Continuous { .. }) {
        return None;
    }
    let wrong = |&value: &f32| match value {
        f32::NEG_INFINITY => Some(format!(
            "-inf, so a recorded action has probability 0: correct it, or leave `{name}` out"
        )),
        _ if !value.is_finite() => {
            Some(format!("{value}, {FINITE}: correct it, or leave `{name}` out"))
        }
        _ if value > HIGHEST => Some(format!(
            "{value}, expected the logarithm of a probability, which is at most 0: if these are \
             probabilities, save their logarithms, `numpy.log({own_name})`"
        )),
        _ => None,
    };
    values.iter().enumerate().find_map(|(row, value)| Some((row, wrong(value)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f32], is_discrete: bool, expected: Option<(usize, &str)>) {
        let actions = match is_discrete {
            true => ActionColumn::Discrete { n_actions: 2, values: vec![0; values.len()] },
            false => ActionColumn::Continuous { width: 1, values: vec![0.0; values.len()] },
        };
        let found = impossible(values, &actions, "infos/action_log_probs");
        let (row, what) = found.as_ref().map(|(row, what)| (*row, &**what)).unzip();
        assert_eq!(row, expected.map(|(row, _)| row), "{what:?}");
        let (what, part) = (what.unwrap_or(""), expected.map_or("", |(_, part)| part));
        assert!(what.contains(part), "{what}");
    }

    #[test]
    fn impossible_log_probs_are_found() {
        check(&[], true, None);
        check(&[-0.5, 0.0, -700.0], true, None);
        // Rounding of a softmax.
        check(&[1e-4], true, None);
        check(&[-0.5, 0.25], true, Some((1, "`numpy.log(action_log_probs)`")));
        // A density exceeds 1.
        check(&[-0.5, 3.5], false, None);
        check(&[f32::NAN, f32::NEG_INFINITY], false, None);
        check(&[-0.5, f32::NAN], true, Some((1, "NaN, expected a finite number")));
        check(&[f32::INFINITY], true, Some((0, "inf, expected a finite number")));
        check(&[-0.5, -0.5, f32::NEG_INFINITY], true, Some((2, "has probability 0")));
    }
}
