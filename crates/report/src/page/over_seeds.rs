//! Scores of runs that differ only in their seed. The score of a run is the mean of its episodes.

use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, iqm};
use overtone_eval::table::Table;
use overtone_eval::{ReportError, Summary};

use super::run_files::PageError;
use super::scores::{Row, cell, conditions};

/// Scores over training seeds.
pub(super) struct OverSeeds<'a> {
    /// A row of each run.
    pub(super) rows: Vec<&'a Row<'a>>,
    /// Summary of the runs' mean raw returns.
    pub(super) raw: Summary,
    pub(super) iqm: Estimate,
    pub(super) normalized: Option<Summary>,
    pub(super) normalized_iqm: Option<Estimate>,
}

/// A column of a table for programs, with all digits.
type Column = (&'static str, fn(&OverSeeds<'_>) -> String);

/// The columns that the tables for programs share.
const COLUMNS: [Column; 17] = [
    ("protocol", |all| all.first().protocol.clone()),
    ("checkpoint", |all| all.first().role.name().to_owned()),
    ("target", |all| all.target()),
    ("runs", |all| all.rows.len().to_string()),
    ("training_seeds", |all| all.seeds()),
    ("raw_mean", |all| all.raw.mean.to_string()),
    ("raw_sd", |all| cell(all.raw.sd)),
    ("raw_median", |all| all.raw.median.to_string()),
    ("raw_iqm", |all| all.iqm.value.to_string()),
    ("raw_iqm_low", |all| cell(all.iqm.interval.map(|ends| ends.low))),
    ("raw_iqm_high", |all| cell(all.iqm.interval.map(|ends| ends.high))),
    ("convention", |all| all.first().convention().to_owned()),
    ("normalized_mean", |all| cell(all.normalized.as_ref().map(|scores| scores.mean))),
    ("normalized_sd", |all| cell(all.normalized.as_ref().and_then(|scores| scores.sd))),
    ("normalized_iqm", |all| cell(all.normalized_iqm.map(|iqm| iqm.value))),
    ("normalized_iqm_low", |all| cell(all.normalized_iqm.and_then(|iqm| Some(iqm.interval?.low)))),
    ("normalized_iqm_high", |all| {
        cell(all.normalized_iqm.and_then(|iqm| Some(iqm.interval?.high)))
    }),
];

impl<'a> OverSeeds<'a> {
    /// Scores of these rows: at least one, all of the same task.
    pub(super) fn of(rows: Vec<&'a Row<'a>>, bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let means: Vec<f64> = rows.iter().map(|row| row.raw.mean).collect();
        let (task, target) = (&rows[0].setting().task, rows[0].target.target_return);
        let raw = Summary::of(&means).ok_or(ReportError::NoScore(target))?;
        let iqm = bootstrap.estimate(&ScoreMatrix::one_task(&task.title, &means)?, iqm)?;
        let (mut normalized, mut normalized_iqm) = (None, None);
        if let Some(reference) = &task.reference {
            let normalize = |score: f64| reference.normalize(score);
            normalized = Summary::of(&means.into_iter().map(normalize).collect::<Vec<_>>());
            // Normalization is linear, so it also maps the ends of an interval.
            let interval = iqm.interval.map(|mut interval| {
                interval.low = normalize(interval.low);
                interval.high = normalize(interval.high);
                interval
            });
            normalized_iqm =
                normalized.is_some().then(|| Estimate { value: normalize(iqm.value), interval });
        }
        Ok(Self { rows, raw, iqm, normalized, normalized_iqm })
    }

    /// The row of the first run.
    pub(super) fn first(&self) -> &'a Row<'a> {
        self.rows[0]
    }

    /// The training seeds as text.
    pub(super) fn seeds(&self) -> String {
        self.rows.iter().map(|row| row.seed()).collect::<Vec<_>>().join(" ")
    }

    /// The conditions of all rows with all digits.
    pub(super) fn target(&self) -> String {
        conditions(self.rows.iter().copied(), |target| target.to_string())
    }
}

/// Adds columns with all digits to a table of `scores`, except the columns `without`.
pub(super) fn add_columns<'s, 'a: 's>(
    table: &mut Table,
    scores: impl Iterator<Item = &'s OverSeeds<'a>> + Clone,
    without: &[&str],
) {
    for (name, cell) in COLUMNS.iter().filter(|(name, _)| !without.contains(name)) {
        table.column(name, scores.clone().map(cell).collect());
    }
}
