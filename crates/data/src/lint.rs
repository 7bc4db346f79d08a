//! What is wrong with a recording, before time is spent on training with it.
//!
//! Each [`Finding`] says what was expected, what was found and what to do. Damage that makes
//! the readers refuse a file is a finding like any other: the rest is still looked at.

mod arrays;
mod recording;
mod refused;
mod replay;
mod seen;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::card::DatasetCard;
use crate::error::DataError;
use crate::family::{Family, family_of};
use crate::inspect::ReadFrames;

/// Findings of one code that are told; more are counted.
const MAX_OF_A_CODE: usize = 20;

/// How bad a finding is; the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing need be done.
    Note,
    /// It can be read, and is not as it should be.
    Warning,
    /// It cannot be read, or training would learn something else than what was recorded.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in a few words joined by hyphens, the same in every version.
    pub code: &'static str,
    /// Name of the file, or of the folder where it is about all files.
    pub file: String,
    /// The array in the file, where it is about one of several.
    pub dataset: Option<String>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// What to do, in one sentence.
    pub advice: String,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintReport {
    /// What was looked at.
    pub path: PathBuf,
    /// Which kind of recording it is.
    pub family: Family,
    /// Name of the description that it was compared with, where there was one.
    pub expected: Option<String>,
    /// What was found, the worst first, else in the order in which it was looked for.
    pub findings: Vec<Finding>,
    /// How many findings of a code are not in the list, because it has many of them already.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl LintReport {
    /// The worst there is; `None` where nothing was found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// What a program ends with: 0 for nothing or notes alone, 1 for warnings, 2 for errors.
    pub fn exit_code(&self) -> u8 {
        match self.worst() {
            None | Some(Severity::Note) => 0,
            Some(Severity::Warning) => 1,
            Some(Severity::Error) => 2,
        }
    }

    fn count(&self, severity: Severity) -> usize {
        let of_it = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(of_it).count()
    }
}

/// Looks at the recording at `path`: a D4RL or Minari file, or a run of DQN-replay files (see
/// [`family_of`]). It is compared with its description where `expected` gives one
/// ([`DatasetCard::of`] finds it), else with what every recording of its kind must be; `frames`
/// says whether the pictures of a run are read.
///
/// # Errors
/// When there is no recording at `path`. Whatever is wrong with one that is there is a finding.
pub fn lint(
    path: &Path,
    expected: Option<&DatasetCard>,
    frames: ReadFrames,
) -> Result<LintReport, DataError> {
    let family = family_of(path)?;
    let mut findings = Findings::default();
    match (family, expected) {
        (Family::Atari, Some(DatasetCard::Atari(card))) => {
            replay::lint(path, Some(card), frames, &mut findings)?;
        }
        (Family::Continuous, Some(DatasetCard::Continuous(card))) => {
            recording::lint(path, Some(card), &mut findings)?;
        }
        (_, Some(card)) => {
            findings.of(path);
            findings.error(
                "other-family",
                "",
                format!("a recording as `{}` describes", card.name()),
                "a recording of the other family",
                "Compare it with another description, or with none.",
            );
        }
        (Family::Atari, None) => replay::lint(path, None, frames, &mut findings)?,
        (Family::Continuous, None) => recording::lint(path, None, &mut findings)?,
    }
    let Findings { mut list, left_out, .. } = findings;
    list.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(LintReport {
        path: path.to_path_buf(),
        family,
        expected: expected.map(|card| card.name().to_owned()),
        findings: list,
        left_out,
    })
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    /// Name of the file that is being looked at.
    file: String,
    list: Vec<Finding>,
    left_out: BTreeMap<&'static str, usize>,
}

impl Findings {
    /// The next findings are of the file or folder at `path`.
    fn of(&mut self, path: &Path) {
        self.file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    }

    /// Adds an error; `dataset` is empty where the finding is about the whole file.
    fn error(
        &mut self,
        code: &'static str,
        dataset: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let says = [expected.into(), found.into(), advice.into()];
        self.add(Severity::Error, code, dataset, says);
    }

    /// Adds a warning, as [`Findings::error`].
    fn warning(
        &mut self,
        code: &'static str,
        dataset: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let says = [expected.into(), found.into(), advice.into()];
        self.add(Severity::Warning, code, dataset, says);
    }

    /// Adds a note, as [`Findings::error`].
    fn note(
        &mut self,
        code: &'static str,
        dataset: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let says = [expected.into(), found.into(), advice.into()];
        self.add(Severity::Note, code, dataset, says);
    }

    fn add(&mut self, severity: Severity, code: &'static str, dataset: &str, says: [String; 3]) {
        if self.list.iter().filter(|finding| finding.code == code).count() == MAX_OF_A_CODE {
            *self.left_out.entry(code).or_default() += 1;
            return;
        }
        let [expected, found, advice] = says;
        let dataset = (!dataset.is_empty()).then(|| dataset.to_owned());
        let file = self.file.clone();
        self.list.push(Finding { severity, code, file, dataset, expected, found, advice });
    }

    /// Adds those of `other`.
    fn take(&mut self, other: Self) {
        for Finding { severity, code, file, dataset, expected, found, advice } in other.list {
            self.file = file;
            let dataset = dataset.unwrap_or_default();
            self.add(severity, code, &dataset, [expected, found, advice]);
        }
        for (code, more) in other.left_out {
            *self.left_out.entry(code).or_default() += more;
        }
    }

    /// Compares a count with the description's.
    fn compare(&mut self, code: &'static str, what: &str, expected: u64, found: u64) {
        if expected != found {
            self.error(
                code,
                "",
                format!("{expected} {what}, as the dataset's description says"),
                found.to_string(),
                "Fetch or copy the data again, or correct the description.",
            );
        }
    }
}

/// How often something was seen, and where first.
#[derive(Default)]
struct Tally {
    count: u64,
    first: String,
}

impl Tally {
    /// Counts one more, which is at `place`.
    fn add(&mut self, place: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = place();
        }
        self.count += 1;
    }

    /// `3 steps, the first in row 7`, where there is one.
    fn told(&self, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {what}, the first in {}", self.count, self.first))
    }
}

impl fmt::Display for LintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.code.len()).max().unwrap_or(0);
        for finding in &self.findings {
            let Finding { severity, code, file, dataset, expected, found, advice } = finding;
            write!(f, "{severity:<8} {code:<width$}  {file}")?;
            if let Some(dataset) = dataset {
                write!(f, ": {dataset}")?;
            }
            let lines = [("expected", expected), ("found", found), ("do", advice)];
            for (name, text) in lines {
                write!(f, "\n{:8} {name:<width$}  {text}", "")?;
            }
            writeln!(f)?;
        }
        for (code, more) in &self.left_out {
            writeln!(f, "{:8} {more} more of {code}", "")?;
        }
        let counted = [Severity::Error, Severity::Warning, Severity::Note].map(|severity| {
            let n = self.count(severity);
            format!("{n} {severity}{}", if n == 1 { "" } else { "s" })
        });
        f.write_str(&counted.join(", "))
    }
}
