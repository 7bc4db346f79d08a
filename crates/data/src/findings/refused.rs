//! What a reader refuses, as a finding.

use std::path::Path;

use super::Findings;
use crate::columns::FINITE;
use crate::error::DataError;

const AGAIN: &str = "Fetch or copy the file again.";
const CORRECT: &str = "Correct the array, or fetch or copy the file again.";
const WITHOUT: &str = "Fetch the file again, or take these steps out: it is refused as it is.";
const LIMIT: &str = "a flag where a step limit ended an episode";
const OTHER_KIND: &str = "Take this file away, or name the data it belongs to.";

impl Findings<'_> {
    /// Adds the error that `error` is; it is about one file, or an array in it.
    pub fn refused(&mut self, error: &DataError) {
        if let Some(path) = path_of(error) {
            self.of(path);
        }
        match error {
            DataError::Missing { hint, .. } => {
                let advice = format!("Fetch or copy the file: {hint}.");
                self.error("missing-file", "", "the file", "no such file", advice);
            }
            DataError::Truncated { got, expected, .. } => {
                let expected = format!("an array of {expected} bytes");
                self.error("cut-file", "", expected, format!("{got} bytes, then the end"), AGAIN);
            }
            DataError::Gzip { reason, .. } => {
                self.error("broken-file", "", "a sound gzip file", reason.as_str(), AGAIN);
            }
            DataError::TrailingData { .. } => {
                self.error("broken-file", "", "the end of the array", "more bytes", AGAIN);
            }
            DataError::NpyHeader { reason, .. } => {
                self.error("broken-file", "", "an array as NumPy saves it", reason.as_str(), AGAIN);
            }
            DataError::NotHdf5 { .. } => {
                self.error("broken-file", "", "an HDF5 file", "a file of another kind", AGAIN);
            }
            DataError::Npz { reason, .. } => {
                self.error("broken-file", "", "a sound .npz file", reason.as_str(), AGAIN);
            }
            DataError::Unread { what, way_out, .. } => {
                let advice = format!("Do as follows: {way_out}.");
                self.error("unread-form", "", "a form that is read", what.as_str(), advice);
            }
            DataError::Locked { .. } => {
                let advice = "Wait until the program that writes it is done; on a disk without \
                              locks, set HDF5_USE_FILE_LOCKING=FALSE.";
                self.error("locked-file", "", "a file that no program writes", "a lock", advice);
            }
            DataError::Hdf5 { path, .. } if path.to_str().is_none() => {
                let advice = "Rename the file or the folder it is in; the file may be sound.";
                self.error(
                    "unreadable",
                    "",
                    "a path in UTF-8, which HDF5 needs",
                    "another",
                    advice,
                );
            }
            DataError::Hdf5 { what, reason, .. } => {
                let found = format!("{what} cannot be read ({reason})");
                self.error("broken-file", "", "a sound HDF5 file", found, AGAIN);
            }
            DataError::DatasetClaim { dataset, claimed, stored, .. } => {
                let expected = format!("the {claimed} bytes that its shape says");
                let found = format!("{stored} bytes stored");
                self.error("broken-file", dataset, expected, found, AGAIN);
            }
            DataError::Pickled { dtype, .. } => {
                let found = format!("pickled Python objects ({dtype}), which may run code");
                self.error("wrong-type", "", "numbers", found, OTHER_KIND);
            }
            DataError::Dtype { got, expected, .. } => {
                self.error("wrong-type", "", *expected, got.as_str(), OTHER_KIND);
            }
            DataError::DatasetType { dataset, got, expected, .. } => {
                self.error("wrong-type", dataset, *expected, got.as_str(), OTHER_KIND);
            }
            DataError::Shape { got, expected, .. } => {
                self.error("wrong-shape", "", expected.as_str(), format!("{got:?}"), OTHER_KIND);
            }
            DataError::DatasetShape { dataset, got, expected, .. } => {
                let found = format!("{got:?}");
                self.error("wrong-shape", dataset, expected.as_str(), found, OTHER_KIND);
            }
            DataError::DatasetLength { dataset, got, expected, other, .. } => {
                let expected = format!("{expected} rows, because of `{other}`");
                self.error("wrong-length", dataset, expected, format!("{got} rows"), AGAIN);
            }
            DataError::Value { slot, what, .. } => {
                let found = format!("in slot {slot}: {what}");
                self.error("impossible-value", "", "values of a recording", found, AGAIN);
            }
            DataError::DatasetValue { dataset, row, what, .. } => {
                let found = format!("in row {row}: {what}");
                match what.ends_with(FINITE) {
                    true => self.error("non-finite", dataset, "finite numbers", found, WITHOUT),
                    false => {
                        let values = "values of a recording";
                        self.error("impossible-value", dataset, values, found, CORRECT);
                    }
                }
            }
            DataError::NoTimeouts { .. } => self.error(
                "no-timeouts",
                "timeouts",
                LIMIT,
                "no such array, as in D4RL's versions 0 and 1",
                "Fetch version 2 (…-v2.hdf5): without it such episodes run into the next.",
            ),
            // An .npz file's: Minari's flags have other names.
            DataError::MissingDataset { dataset, hint, .. } if dataset == "timeouts" => {
                let advice = "Add the array, zeros alone where no limit ended an episode; of a \
                              file of OGBench, which has none, say that it is one (layout ogbench).";
                self.error("no-timeouts", dataset, LIMIT, hint.as_str(), advice);
            }
            DataError::MissingEpisodes { total, found, .. } => {
                let expected = format!("{total} episodes, as its total_episodes says");
                self.error("missing-episodes", "", expected, found.to_string(), AGAIN);
            }
            DataError::MissingDataset { dataset, hint, .. } => {
                self.error("missing-array", dataset, "the array", hint.as_str(), AGAIN);
            }
            DataError::Inconsistent { reason, .. } => {
                let expected = "files of one recording";
                self.error("other-recording", "", expected, reason.as_str(), OTHER_KIND);
            }
            other => self.error("unreadable", "", "a readable file", other.to_string(), AGAIN),
        }
    }
}

fn path_of(error: &DataError) -> Option<&Path> {
    match error {
        DataError::Missing { path, .. }
        | DataError::Io { path, .. }
        | DataError::NoLog { path, .. }
        | DataError::Truncated { path, .. }
        | DataError::Gzip { path, .. }
        | DataError::NpyHeader { path, .. }
        | DataError::Pickled { path, .. }
        | DataError::Dtype { path, .. }
        | DataError::Shape { path, .. }
        | DataError::TrailingData { path }
        | DataError::Value { path, .. }
        | DataError::Inconsistent { path, .. }
        | DataError::NotHdf5 { path }
        | DataError::Locked { path }
        | DataError::Npz { path, .. }
        | DataError::Unread { path, .. }
        | DataError::Hdf5 { path, .. }
        | DataError::NoTimeouts { path }
        | DataError::MissingDataset { path, .. }
        | DataError::DatasetType { path, .. }
        | DataError::DatasetShape { path, .. }
        | DataError::DatasetLength { path, .. }
        | DataError::DatasetClaim { path, .. }
        | DataError::DatasetValue { path, .. }
        | DataError::MissingEpisodes { path, .. } => Some(path),
        _ => None,
    }
}
