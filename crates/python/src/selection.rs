//! Selection of policies by few episodes, for returns of any program.

use overtone_eval::selection::{self, BUDGETS, Rule, Trials};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Number of episodes, mean, 2.5th and 97.5th percentile, standard error and regret of a point.
type Point = (usize, f64, f64, f64, f64, f64);

/// The points of a budget curve. `None` for `budgets`: the usual ones; for `candidates`: all.
///
/// # Errors
/// Names the invalid argument.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
#[expect(clippy::needless_pass_by_value, reason = "converted from Python")]
pub fn budget_curve(
    py: Python<'_>,
    returns: Vec<Vec<f64>>,
    estimates: Option<Vec<f64>>,
    rule: &str,
    budgets: Option<Vec<usize>>,
    candidates: Option<usize>,
    batch: usize,
    trials: usize,
    seed: u64,
) -> PyResult<Vec<Point>> {
    let wrong = |reason| PyValueError::new_err(format!("rule={rule}: {reason}"));
    let rule: Rule = rule.parse().map_err(wrong)?;
    let settings = Trials {
        rule,
        budgets: budgets.unwrap_or_else(|| BUDGETS.to_vec()),
        candidates: candidates.unwrap_or(returns.len()),
        batch,
        trials,
        seed,
    };
    let curve = py.detach(|| selection::budget_curve(&returns, estimates.as_deref(), &settings));
    let curve = curve.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let point = |at: selection::BudgetPoint| {
        (at.episodes, at.mean, at.low, at.high, at.standard_error, at.regret)
    };
    Ok(curve.into_iter().map(point).collect())
}
