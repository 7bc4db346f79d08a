//! OGBench's files. The last row of a trajectory is the observation after its last action, and has
//! no action of its own, unless another array says so: `valids` marks the rows that are steps, and
//! with `next_observations` or `timeouts` all rows are.

use std::path::Path;

use overtone_core::{Episode, Outcome};

use super::{LIMITS, NEXT, NpzFile};
use crate::error::DataError;
use crate::read::array_names::LOG_PROBS;
use crate::read::column::ObservationColumn;
use crate::read::columns::Columns;
use crate::read::hdf5_layout::cut;
use crate::read::observed::observed;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::recording::{Reader, Recording};
use crate::read::source::{Source, column, flags, same, unread_arrays, wrong_shape, wrong_value};

/// Flags of the rows that are steps.
const VALIDS: &str = "valids";

/// Arrays in OGBench's form.
pub(crate) struct Ogbench;

impl Reader for Ogbench {
    fn name(&self) -> &'static str {
        "OGBench"
    }

    /// Only if the user names the format: its array names equal those in [`super::Npz`], but mean
    /// something else.
    fn reads(&self, _path: &Path) -> bool {
        false
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(self.open_with_last(path)?.0)
    }

    /// If the file's end cuts a trajectory, its last row is a step: it also stands for the
    /// observation after that step.
    fn open_with_last(
        &self,
        path: &Path,
    ) -> Result<(Recording, Option<ObservationColumn>), DataError> {
        let file = NpzFile::open(path)?;
        let ends = flags(&file, "terminals")?;
        let rows = ends.len();
        let flags_of = |name: &'static str| {
            let flags = flags(&file, name)?;
            same(&file, name, flags.len(), rows, "terminals")?;
            Ok::<_, DataError>(flags)
        };
        let limits = file.first(LIMITS).map(flags_of).transpose()?;
        let valids = file.has(VALIDS).then(|| flags_of(VALIDS)).transpose()?;
        let next = file.first(NEXT);
        let (observations, mut actions, mut stored) = file.steps(&[("terminals", rows)])?;
        stored.without_rewards = !file.has("rewards");
        let mut odd = Vec::new();
        let rewards = if file.has("rewards") {
            column(&file, "rewards")?
        } else {
            odd.push("it has no rewards, and all are taken as 0: every return is the same".into());
            vec![0.0; rows]
        };
        same(&file, "rewards", rewards.len(), rows, "terminals")?;
        // A trajectory's last row has no action: its log-probability may be any number, and is checked
        // after it is left out.
        let behavior_log_probs =
            file.has(LOG_PROBS).then(|| column(&file, LOG_PROBS)).transpose()?;
        if let Some(log_probs) = &behavior_log_probs {
            same(&file, LOG_PROBS, log_probs.len(), rows, "terminals")?;
        }
        let optional = OptionalArrays::read(&file, "", &actions)?;
        optional.count_actions(&mut actions);
        let mut columns = Columns {
            path: path.to_path_buf(),
            format: self.name(),
            behavior_log_probs,
            optional,
            odd,
            stored,
            ..Columns::new(observations, actions, rewards, Vec::new())
        };
        let mut last_rows = Vec::new();
        let (trajectories, finished) = cut(&ends, limits.as_deref().unwrap_or(&vec![false; rows]));
        for (trajectory, finished) in trajectories.into_iter().zip(finished) {
            let last_row = trajectory.end() - 1;
            let last_is_step = match &valids {
                Some(valids) => {
                    let earlier = &valids[trajectory.start..last_row];
                    if let Some(at) = earlier.iter().position(|is_step| !is_step) {
                        let what = "0, expected 1 except in an episode's last row".into();
                        return Err(wrong_value(&file, VALIDS, trajectory.start + at, what));
                    }
                    valids[last_row]
                }
                None => !finished || next.is_some() || limits.is_some(),
            };
            let length = trajectory.length - usize::from(!last_is_step);
            if length > 0 {
                // Without `timeouts` the flags mark the ends of trajectories, not of the task.
                let outcome = match limits {
                    Some(_) => trajectory.outcome,
                    None => Outcome::Truncated,
                };
                columns.episodes.push(Episode { start: trajectory.start, length, outcome });
                columns.finished.push(finished);
                last_rows.push((last_row, last_is_step));
            }
        }
        let last = match next {
            Some(next) => {
                let led = observed(&file, next, None)?;
                same(&file, next, led.rows(), rows, "terminals")?;
                let led = led.seen();
                let mut last = columns.observations.rows_at(0..0);
                for &(row, is_step) in &last_rows {
                    let from = if is_step { &led } else { &columns.observations };
                    if !last.extend(from.rows_at(row..row + 1)) {
                        let expected = "rows of the form of `observations`";
                        return Err(wrong_shape(&file, next, &file.shape(next)?, expected));
                    }
                }
                Some(last)
            }
            None if limits.is_some() && valids.is_none() => None,
            None => Some(columns.observations.rows_at(last_rows.iter().map(|&(row, _)| row))),
        };
        let all: Vec<usize> = (0..columns.episodes.len()).collect();
        // One more row, so that the kept rows are never all of it.
        let end = Episode { start: rows, length: 0, outcome: Outcome::Truncated };
        columns.episodes.push(end);
        columns.finished.push(false);
        columns.keep(&all);
        columns.check()?;
        columns.stored.unread = unread_arrays(&file, "");
        columns.odd.extend(file.claims.rounding.sentences());
        Ok((Recording::Columns(columns), last))
    }
}
