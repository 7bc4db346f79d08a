//! Findings for the errors of a reader.

use super::Findings;
use crate::error::advice::FINITE;
use crate::error::advice::{
    GIVE_ARRAYS_OR_TABLE, LEFT_OPEN, episodes, of_episodes, of_shape, of_type, of_value, sentence,
};
use crate::error::{DataError, Fault};
use overtone_core::counted;

const AGAIN: &str = "Fetch or copy the file again.";
const LIMIT: &str = "a flag where a step limit ended an episode";

impl Findings<'_> {
    /// Adds the error that `error` is; it is about one file, or an array in it.
    pub fn refused(&mut self, error: &DataError) {
        if let DataError::At { path, .. }
        | DataError::Missing { path, .. }
        | DataError::Io { path, .. } = error
        {
            self.of(path);
        }
        let fault = match error {
            DataError::At { fault, .. } => fault,
            DataError::Missing { hint, .. } => {
                let advice = format!("Fetch or copy the file: {hint}.");
                return self.error("missing-file", "", "the file", "no such file", advice);
            }
            DataError::Io { doing, source, .. } => {
                let found = format!("the system cannot {doing} it ({source})");
                let advice = "See that you may read the file and that its disk is there.";
                return self.error("unreadable", "", "a readable file", found, advice);
            }
            _ => return self.error("unreadable", "", "a readable file", error.to_string(), AGAIN),
        };
        match fault {
            Fault::Truncated { got, expected } => {
                let expected = format!("an array of {expected} bytes");
                self.error("cut-file", "", expected, format!("{got} bytes, then the end"), AGAIN);
            }
            Fault::Gzip(reason) => {
                self.error("broken-file", "", "a sound gzip file", reason.as_str(), AGAIN);
            }
            Fault::TrailingData => {
                self.error("broken-file", "", "the end of the array", "more bytes", AGAIN);
            }
            Fault::NpyHeader(reason) => {
                self.error("broken-file", "", "an array as NumPy saves it", reason.as_str(), AGAIN);
            }
            Fault::NotHdf5 => {
                let advice = "Name a recording of a format that docs/data.md lists, or fetch the \
                              file again if it should be one.";
                self.error("broken-file", "", "an HDF5 file", "a file of another kind", advice);
            }
            Fault::Npz(reason) => {
                let (found, advice) = match reason.split_once(": save it") {
                    Some((found, how)) => (found, format!("Save it{how}.")),
                    None => (reason.as_str(), AGAIN.into()),
                };
                self.error("broken-file", "", "a sound .npz file", found, advice);
            }
            Fault::Unread { what, way_out } => {
                let found = what.trim_end_matches(',');
                self.error("unread-form", "", "a form that is read", found, sentence(way_out));
            }
            Fault::UnknownFormat => {
                let found = "a format that Overtone does not read";
                let advice = sentence(GIVE_ARRAYS_OR_TABLE);
                self.error("unread-form", "", "a form that is read", found, advice);
            }
            Fault::LeftOpen => {
                let found = "a mark that a program writes it";
                let advice = sentence(LEFT_OPEN);
                self.error("locked-file", "", "a file that no program writes", found, advice);
            }
            Fault::Locked => {
                let advice = "Wait until the program that writes it is done.";
                self.error("locked-file", "", "a file that no program writes", "a lock", advice);
            }
            Fault::Hdf5 { what, reason } => {
                let found = format!("{what} cannot be read ({reason})");
                self.error("broken-file", "", "a sound HDF5 file", found, AGAIN);
            }
            Fault::DatasetClaim { dataset, claimed, stored } => {
                let expected = format!("the {claimed} bytes that its shape says");
                let found = format!("{stored} bytes stored");
                self.error("broken-file", dataset, expected, found, AGAIN);
            }
            Fault::Pickled { array, dtype } => {
                let found = format!("pickled Python objects ({dtype}), which may run code");
                let name = array.trim_matches('`');
                let dataset = if name == array { "" } else { name };
                let advice = "Save numbers: `numpy.stack(array).astype(\"float32\")`.";
                self.error("wrong-type", dataset, "numbers", found, advice);
            }
            Fault::Dtype { got, expected } => {
                let advice = format!(
                    "Save it as {expected}, or save a recording of your own as .npz (docs/data.md)."
                );
                self.error("wrong-type", "", *expected, got.as_str(), advice);
            }
            Fault::DatasetType { dataset, got, expected } => {
                let advice = sentence(&of_type(dataset, got, expected));
                self.error("wrong-type", dataset, *expected, got.as_str(), advice);
            }
            Fault::Shape { got, expected } => {
                let advice = "Use the files of one run, or save a recording of your own as .npz \
                              (docs/data.md).";
                self.error("wrong-shape", "", expected.as_str(), format!("{got:?}"), advice);
            }
            Fault::DatasetShape { dataset, got, expected } => {
                let advice = sentence(&of_shape(dataset, got, expected));
                let found = format!("{got:?}");
                self.error("wrong-shape", dataset, expected.as_str(), found, advice);
            }
            Fault::DatasetLength { dataset, got, expected, other, way_out } => {
                let expected = format!("{}, because of `{other}`", counted(*expected, "row"));
                let found = counted(*got, "row");
                self.error("wrong-length", dataset, expected, found, sentence(way_out));
            }
            Fault::Value { slot, what } => {
                let found = format!("in slot {slot}: {what}");
                self.error("impossible-value", "", "values of a recording", found, AGAIN);
            }
            Fault::DatasetValue { dataset, row, what } => {
                let found = format!("in row {row}: {what}");
                let (code, values) = match what.contains(FINITE) {
                    true => ("non-finite", "finite numbers"),
                    false => ("impossible-value", "values of a recording"),
                };
                self.error(code, dataset, values, found, of_value(dataset, what));
            }
            Fault::NoTimeouts => self.error(
                "no-timeouts",
                "timeouts",
                LIMIT,
                "no such array, which D4RL's versions 0 and 1 lack too",
                "Fetch version 2 of D4RL's file (…-v2.hdf5), or add the array to one of your own, \
                 zeros alone where no limit ended an episode.",
            ),
            // An .npz file's: Minari's flags have other names.
            Fault::MissingDataset { dataset, hint, way_out } if dataset == "timeouts" => {
                let advice = format!(
                    "{} Of a file of OGBench, which has none, say that it is one (layout ogbench).",
                    sentence(way_out)
                );
                self.error("no-timeouts", dataset, LIMIT, hint.as_str(), advice);
            }
            Fault::MissingEpisodes { total, found, missing } => {
                let expected = format!("{total} episodes");
                let missing = missing.as_deref();
                let advice = sentence(of_episodes(missing));
                self.error("missing-episodes", "", expected, episodes(*found, missing), advice);
            }
            Fault::MissingDataset { dataset, hint, way_out } => {
                self.error("missing-array", dataset, "the array", hint.as_str(), sentence(way_out));
            }
            Fault::Inconsistent(reason) => {
                let expected = "files of one recording";
                let advice = "Use the files of one recording, or correct what is named here.";
                self.error("other-recording", "", expected, reason.as_str(), advice);
            }
            Fault::NoLog(reason) => {
                let advice = "Name a file or a folder of a format that docs/data.md lists.";
                self.error("unreadable", "", "a recording", reason.as_str(), advice);
            }
            _ => self.error("unreadable", "", "a readable file", error.to_string(), AGAIN),
        }
    }
}
