//! What a recording holds and what is wrong with it, before time is spent on training with it:
//! one pass over the data finds both.
//!
//! Each [`Finding`](crate::Finding) says what was expected, what was found and what to do. Damage
//! that makes the readers refuse a file is a finding like any other: the rest is still looked at.

mod columns;
pub(crate) mod hdf5;
mod log;
pub(crate) mod replay;
mod report;
pub mod spread;
mod vectors;

use std::fmt;
use std::path::Path;

use serde::Serialize;

pub use columns::{ColumnsInspection, Range};
pub use log::LogInspection;
pub use report::LintReport;

use crate::error::DataError;
use crate::expected::Expected;
use crate::findings::{Findings, Severity};
use crate::read::reader_of;
use spread::Returns;

/// What one look at a recording gives.
#[derive(Debug)]
pub struct Check {
    /// What it holds, where it can be trained on; else why not.
    pub inspection: Result<Inspection, DataError>,
    /// What is wrong with it.
    pub report: LintReport,
}

/// What a recording holds, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Inspection {
    /// A recording in memory.
    Columns(Box<ColumnsInspection>),
    /// A log of frames.
    Log(Box<LogInspection>),
}

impl Inspection {
    /// Finished episodes.
    pub fn episodes(&self) -> u64 {
        match self {
            Self::Columns(inspection) => inspection.episodes,
            Self::Log(inspection) => inspection.episodes,
        }
    }

    /// Returns of the finished episodes.
    pub fn returns(&self) -> &Returns {
        match self {
            Self::Columns(inspection) => &inspection.returns,
            Self::Log(inspection) => &inspection.returns,
        }
    }

    fn odd(&mut self) -> &mut Vec<String> {
        match self {
            Self::Columns(inspection) => &mut inspection.odd,
            Self::Log(inspection) => &mut inspection.odd,
        }
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns(inspection) => inspection.fmt(f),
            Self::Log(inspection) => inspection.fmt(f),
        }
    }
}

/// Looks at the recording at `path`, of any format. It is compared with what is `expected` of
/// it, else with what every recording of its format must be.
///
/// # Errors
/// When there is no recording at `path`. Whatever is wrong with one that is there is a finding.
pub fn check(path: &Path, expected: &Expected<'_>) -> Result<Check, DataError> {
    let reader = reader_of(path)?;
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
    let mut inspection = reader.check(&place, &mut findings);
    let told = findings.list.iter().any(|finding| finding.severity == Severity::Error);
    if let (Err(error), false) = (&inspection, told) {
        findings.refused(error);
    }
    let name = expected.card.map(|card| card.name.clone());
    let report = LintReport::new(path, reader.name(), name, findings);
    if let Ok(inspection) = &mut inspection {
        *inspection.odd() = report.findings.iter().map(ToString::to_string).collect();
    }
    Ok(Check { inspection, report })
}

/// A table of names and values, and under it what is odd.
fn write_table(
    f: &mut fmt::Formatter<'_>,
    rows: &[(impl AsRef<str>, String)],
    odd: &[String],
) -> fmt::Result {
    for (name, value) in rows {
        writeln!(f, "{:<14} {value}", name.as_ref())?;
    }
    if odd.is_empty() {
        return write!(f, "{:<14} nothing", "odd");
    }
    let lines: Vec<_> = odd.iter().map(|line| format!("{:<14} {line}", "odd")).collect();
    f.write_str(&lines.join("\n"))
}
