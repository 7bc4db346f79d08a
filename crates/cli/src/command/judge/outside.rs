//! A policy of another program, given by its probabilities at the rows of a recording.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use overtone_data::{
    ActionColumn, Columns, Dataset, DatasetOptions, Form, Recording, read, read_array,
};
use overtone_judge::{ForcedActions, Known, LEAST_EPISODES};

use super::JudgeOptions;

/// Largest distance of a row's sum from 1: half precision rounds hundreds of probabilities.
const ROUNDING: f64 = 1e-2;

/// The finished episodes of the recording at `options.dataset`, up to `options.steps` steps, and the
/// policy of `options.probs` at their rows.
///
/// # Errors
/// When a file cannot be read, or the probabilities are not those of the recording's rows.
pub fn outside(options: &JudgeOptions) -> Result<(Dataset, Known)> {
    let (path, probs) = (Path::new(&options.dataset), &options.probs);
    let mut columns = match read::open_as(path, &Form::default())? {
        Recording::Columns(columns) => columns,
        Recording::ReplayLog(_) => {
            bail!(
                "{}: the recording has pixel observations; only vectors can be judged",
                path.display()
            )
        }
    };
    columns.check()?;
    ensure!(
        columns.finished_episodes().next().is_some(),
        "{}: no episode has an end flag, so no return is known. Check the flags with data lint",
        path.display()
    );
    let (shape, values) = read_array(probs)?;
    let n_columns = checked(&columns, probs, &shape, &values)?;
    let rows = columns.finished_episodes().map(overtone_core::Episode::range).collect::<Vec<_>>();
    let kept = columns.draw_episodes(options.steps, LEAST_EPISODES, options.seed);
    let rows = kept.into_iter().flat_map(|episode| rows[episode].clone());
    let values = rows.flat_map(|row| &values[row * n_columns..][..n_columns]);
    let values: Vec<f32> = values.map(|&prob| prob as f32).collect();
    let policy = match shape.len() {
        1 => Known::OfRecorded(values),
        _ => Known::Actions(ForcedActions::Probabilities { n: n_columns, values }),
    };
    Ok((Dataset::of(columns, &DatasetOptions::default())?, policy))
}

/// The number of probabilities of each row, if they can be those of a policy on this recording.
fn checked(columns: &Columns, probs: &Path, shape: &[usize], values: &[f64]) -> Result<usize> {
    let (file, rows) = (probs.display(), columns.rewards.len());
    let (expected, n_columns) = match &columns.actions {
        ActionColumn::Discrete { n_actions, .. } => (
            format!(
                "[{rows}, {n_actions}], the policy's probability of each action at each row, or \
                     [{rows}], that of the recorded action"
            ),
            *n_actions,
        ),
        ActionColumn::Continuous { .. } => {
            (format!("[{rows}], the policy's density of the recorded action at each row"), 1)
        }
    };
    let is_discrete = matches!(columns.actions, ActionColumn::Discrete { .. });
    let fits = shape == [rows] || is_discrete && shape == [rows, n_columns];
    ensure!(fits, "{file}: an array of shape {shape:?}, expected {expected}");
    let n_columns = if shape.len() == 1 { 1 } else { n_columns };
    for (row, of_row) in values.chunks_exact(n_columns).enumerate() {
        let largest = if is_discrete { 1.0 + ROUNDING } else { f64::MAX };
        if let Some(prob) = of_row.iter().find(|prob| !(0.0..=largest).contains(*prob)) {
            let what = if is_discrete { "a probability from 0 to 1" } else { "a density from 0" };
            bail!("{file}: row {row} has {prob}, expected {what} (not its logarithm)");
        }
        let sum: f64 = of_row.iter().sum();
        ensure!(
            shape.len() == 1 || (sum - 1.0).abs() <= ROUNDING,
            "{file}: the probabilities of row {row} have the sum {sum}, expected 1"
        );
    }
    Ok(n_columns)
}
