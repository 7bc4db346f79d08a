//! [`Findings`]: what is wrong with a recording, collected while it is looked at.

mod refused;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

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

/// What was found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// Name of the file that is being looked at.
    file: String,
    pub(crate) list: Vec<Finding>,
    pub(crate) left_out: BTreeMap<&'static str, usize>,
}

impl Findings {
    /// The next findings are of the file or folder at `path`.
    pub fn of(&mut self, path: &Path) {
        self.file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    }

    /// Adds an error; `dataset` is empty where the finding is about the whole file.
    pub fn error(
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
    pub fn warning(
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
    pub fn note(
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
    pub(crate) fn take(&mut self, other: Self) {
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
    pub fn compare(&mut self, code: &'static str, what: &str, expected: u64, found: u64) {
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
pub(crate) struct Tally {
    pub count: u64,
    pub first: String,
}

impl Tally {
    /// Counts one more, which is at `place`.
    pub fn add(&mut self, place: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = place();
        }
        self.count += 1;
    }

    /// `3 steps, the first in row 7`, where there is one.
    pub fn told(&self, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {what}, the first in {}", self.count, self.first))
    }
}
