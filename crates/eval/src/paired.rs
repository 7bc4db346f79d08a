//! Differences of two protocols, episode by episode.
//!
//! Protocols use the same episodes by number, with the same seeds. If two protocols produce the
//! same episode, its difference is exactly zero. If the episodes are unrelated, pairing does no
//! harm.

use std::collections::BTreeMap;

use overtone_core::decimal;

use crate::evaluation::Evaluation;
use crate::statistics::{Bootstrap, ScoreMatrix, StatisticsError, mean};

/// The mean over episodes of the raw return in `now` minus the raw return of the same episode in
/// `before`, with its interval: `+10.0 [+9.0, +11.0]`. `target_return` is one of `now`; `before` has
/// the same one in its own units, at the same place of its list. `None` if no episode finished in
/// both.
///
/// # Errors
/// When a return is not finite, or `bootstrap` is invalid.
pub fn paired_difference(
    before: &Evaluation,
    now: &Evaluation,
    target_return: f32,
    bootstrap: &Bootstrap,
) -> Result<Option<String>, StatisticsError> {
    let place = now.target_returns.iter().position(|&target| target == target_return);
    let target_before = place.and_then(|place| before.target_returns.get(place));
    let episodes = |evaluation: &Evaluation, target| -> BTreeMap<usize, (u64, f64)> {
        let episodes = evaluation.episodes.iter();
        let episodes = episodes.filter(|episode| Some(&episode.target_return) == target);
        episodes.map(|e| (e.episode, (e.length, e.raw_return))).collect()
    };
    let before = episodes(before, target_before);
    let now = episodes(now, Some(&target_return)).into_iter();
    let pairs: Vec<_> =
        now.filter_map(|(episode, now)| Some((*before.get(&episode)?, now))).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    if pairs.iter().all(|(before, now)| before == now) {
        return Ok(Some("0: the same episodes".into()));
    }
    let differences: Vec<f64> = pairs.iter().map(|(before, now)| now.1 - before.1).collect();
    let difference = bootstrap.estimate(&ScoreMatrix::one_task("", &differences)?, mean)?;
    let interval = difference.interval.map_or_else(String::new, |interval| {
        format!(" [{}, {}]", signed(interval.low), signed(interval.high))
    });
    Ok(Some(format!("{}{interval}", signed(difference.value))))
}

/// A difference with its sign.
fn signed(difference: f64) -> String {
    let plus = if difference < 0.0 { "" } else { "+" };
    format!("{plus}{}", decimal(difference, 1))
}
