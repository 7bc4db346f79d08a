//! OGBench's files: the last row of a trajectory is the observation after its last action, and has
//! no action of its own.

use std::path::Path;

use overtone_core::{Episode, Outcome};

use super::NpzFile;
use crate::columns::{Columns, ObservationColumn};
use crate::error::DataError;
use crate::options::keep;
use crate::read::hdf5_layout::cut;
use crate::read::log_probs::LOG_PROBS;
use crate::read::source::{Source, column, flags, same};
use crate::recording::{Reader, Recording};

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
        let (observations, actions, mut stored) = file.steps(rows, "terminals")?;
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
        // As trajectories of all rows; then each without its last.
        let (whole, finished) = cut(&ends, &vec![false; rows]);
        let mut columns = Columns {
            path: path.to_path_buf(),
            format: self.name(),
            behavior_log_probs,
            odd,
            stored,
            ..Columns::new(observations, actions, rewards, Vec::new())
        };
        let mut last_rows = Vec::new();
        for (episode, finished) in whole.into_iter().zip(finished) {
            let length = if finished { episode.length - 1 } else { episode.length };
            if length > 0 {
                // OGBench marks the end of a trajectory, but never the end of a task.
                let outcome = Outcome::Truncated;
                columns.episodes.push(Episode { start: episode.start, length, outcome });
                columns.finished.push(finished);
                last_rows.push(episode.end() - 1);
            }
        }
        let last = columns.observations.rows_at(last_rows.into_iter());
        let all: Vec<usize> = (0..columns.episodes.len()).collect();
        // One more row, so that the kept rows are never all of it.
        let end = Episode { start: rows, length: 0, outcome: Outcome::Truncated };
        columns.episodes.push(end);
        columns.finished.push(false);
        keep(&mut columns, &all);
        columns.check()?;
        columns.odd.extend(file.claims.rounding.sentences());
        Ok((Recording::Columns(columns), Some(last)))
    }
}
