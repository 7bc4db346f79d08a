//! Inspection of a recording before you spend time on training with it: one pass over the data
//! finds its contents and its defects.
//!
//! Each [`Finding`](crate::Finding) says what was expected, what was found and what to do. Damage
//! that makes the readers refuse a file is a finding like any other: the rest is still looked at.

mod columns;
mod doubted_number;
mod doubts;
mod ends;
mod figures;
pub(crate) mod hdf5;
pub(crate) mod inspection;
pub(crate) mod log;
mod optional_figures;
mod outliers;
mod range;
pub(crate) mod replay;
mod report;
mod sample;
pub mod spread;
mod steps;
mod table;
mod vectors;

use std::path::Path;

pub use columns::ColumnsInspection;
pub use inspection::Inspection;
pub use log::LogInspection;
pub use range::Range;
pub use report::LintReport;

use crate::describe::expected::Expected;
use crate::describe::findings::{Findings, Severity};
use crate::error::DataError;
use crate::read::form::Form;
use crate::read::reader_as;

/// The result of inspecting a recording.
#[derive(Debug)]
pub struct Check {
    /// Its contents, if an agent can be trained on it; else the reason why not.
    pub inspection: Result<Inspection, DataError>,
    /// The findings.
    pub report: LintReport,
}

/// Inspects the recording at `path`, of any format. It is compared with `expected`, else with the
/// requirements of its format.
///
/// # Errors
/// If `path` does not hold a recording. Every defect of an existing recording is a finding.
pub fn check(path: &Path, expected: &Expected<'_>) -> Result<Check, DataError> {
    check_as(path, &Form::default(), expected)
}

/// As [`check`], of a recording that is read as `form` says, as [`reader_as`] finds it.
///
/// # Errors
/// As [`check`], and when no format has that name.
pub fn check_as(path: &Path, form: &Form, expected: &Expected<'_>) -> Result<Check, DataError> {
    let reader = reader_as(path, form)?;
    let place = reader.place(path)?;
    let mut findings = Findings::default();
    findings.expected = *expected;
    if let Some(card) = findings.expected.card.take_if(|card| card.format != reader.name()) {
        findings.of(path);
        findings.tell_of(
            "other-format",
            "",
            format!("`{}` describes, in the format {}", card.name, card.format),
            format!("a recording in the format {}", reader.name()),
        );
    }
    findings.of(&place);
    let inspection = reader.check(&place, &mut findings);
    let has_error = findings.list.iter().any(|finding| finding.severity == Severity::Error);
    if let (Err(error), false) = (&inspection, has_error) {
        findings.refused(error);
    }
    let name = expected.card.map(|card| card.name.clone());
    let report = LintReport::new(path, reader.name(), name, findings);
    Ok(Check { inspection, report })
}
