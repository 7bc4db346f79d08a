//! Scores of runs that differ only in their seed. The score of a run is the mean of its episodes.

use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, iqm};
use overtone_eval::{ReportError, Summary};

use super::run_files::PageError;
use super::scores::{Row, cell, ends};

/// Scores over training seeds.
pub(super) struct OverSeeds {
    /// Summary of the runs' mean raw returns.
    pub(super) raw: Summary,
    pub(super) iqm: Estimate,
    pub(super) normalized: Option<Summary>,
    pub(super) normalized_iqm: Option<Estimate>,
}

impl OverSeeds {
    /// Scores of these rows: at least one, all of the same task.
    pub(super) fn of(rows: &[&Row<'_>], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let means: Vec<f64> = rows.iter().map(|row| row.raw.mean).collect();
        let (task, target) = (&rows[0].evaluation().setting.task, rows[0].target.target_return);
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
        Ok(Self { raw, iqm, normalized, normalized_iqm })
    }

    /// The raw interquartile mean and the ends of its interval, with all digits.
    pub(super) fn raw_iqm_cells(&self) -> [String; 3] {
        ends(Some(self.iqm))
    }

    /// The normalized scores with all digits: mean, deviation, interquartile mean and the ends of
    /// its interval. Missing values are empty.
    pub(super) fn normalized_cells(&self) -> [String; 5] {
        let normalized = self.normalized.as_ref();
        let [iqm, low, high] = ends(self.normalized_iqm);
        let mean = cell(normalized.map(|summary| summary.mean));
        [mean, cell(normalized.and_then(|summary| summary.sd)), iqm, low, high]
    }
}
