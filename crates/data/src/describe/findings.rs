//! [`Findings`]: the defects of a recording, collected during its inspection.

mod refused;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use crate::describe::expected::Expected;
use overtone_core::counted;
use serde::{Deserialize, Serialize};

/// Maximum number of reported findings of one code; further ones are only counted.
const MAX_OF_A_CODE: usize = 20;

/// The severity of a finding; a worse one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; you do not need to act.
    Note,
    /// The recording can be read, but differs from what is expected.
    Warning,
    /// It cannot be read, or training would learn something that was not recorded.
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

/// All rules, by name.
static RULES: LazyLock<BTreeMap<String, Rule>> = LazyLock::new(|| {
    let rules = include_str!("findings/rules.toml");
    toml::from_str(rules).unwrap_or_else(|error| panic!("the table of findings: {error}"))
});

/// A kind of finding.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The code, if it differs from the rule's name.
    code: Option<String>,
    severity: Severity,
    /// The expected state, with `{}` for a detail of the recording.
    expected: String,
    advice: String,
    /// Whether it is about the meaning of numbers.
    #[serde(default)]
    doubt: bool,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// A few words joined by hyphens, the same in every version.
    pub code: &'static str,
    /// Name of the file, or of the folder if the finding is about all files.
    pub file: String,
    /// The array in the file, if the finding is about one of several.
    pub dataset: Option<String>,
    /// The expected state.
    pub expected: String,
    /// The actual state.
    pub found: String,
    /// Advice to the user, in one sentence.
    pub advice: String,
    /// Whether it is a doubt about the meaning of numbers; training reports these too.
    pub doubt: bool,
}

impl Finding {
    /// What the program says without being asked, before training and when Python makes a dataset:
    /// a doubt that is more than a note, with its advice.
    pub fn warning(&self) -> Option<String> {
        (self.doubt && self.severity > Severity::Note).then(|| format!("{self}. {}", self.advice))
    }
}

impl fmt::Display for Finding {
    /// One sentence, without the advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dataset) = &self.dataset {
            write!(f, "{dataset}: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

/// The findings so far.
#[derive(Debug, Default)]
pub struct Findings<'a> {
    /// The expectations for the recording.
    pub expected: Expected<'a>,
    /// Name of the inspected file.
    file: String,
    pub(crate) list: Vec<Finding>,
    pub(crate) left_out: BTreeMap<&'static str, usize>,
}

impl Findings<'_> {
    /// The next findings are of the file or folder at `path`.
    pub fn of(&mut self, path: &Path) {
        self.file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    }

    /// Adds a finding of the rule `name` of `findings/rules.toml`; `dataset` is empty if the
    /// finding is about the whole file.
    ///
    /// # Panics
    /// If the rule does not exist: a caller's bug.
    pub fn tell(&mut self, name: &'static str, dataset: &str, found: impl Into<String>) {
        self.tell_of(name, dataset, "", found);
    }

    /// As [`Findings::tell`], if the expected state depends on `detail`.
    ///
    /// # Panics
    /// As [`Findings::tell`].
    pub fn tell_of(
        &mut self,
        name: &'static str,
        dataset: &str,
        detail: impl fmt::Display,
        found: impl Into<String>,
    ) {
        let rule = RULES.get(name).unwrap_or_else(|| panic!("`{name}` is not a rule"));
        let expected = rule.expected.replace("{}", &detail.to_string());
        let advice = rule.advice.replace("{}", &detail.to_string());
        let says = [expected, found.into(), advice];
        let code = rule.code.as_deref().unwrap_or(name);
        self.add((rule.severity, rule.doubt), code, dataset, says);
    }

    /// As [`Findings::tell`], if `tally` counted any `what`.
    pub(crate) fn tally(
        &mut self,
        name: &'static str,
        dataset: &str,
        tally: &Tally,
        what: [&str; 2],
    ) {
        if let Some(found) = tally.counted(what) {
            self.tell(name, dataset, found);
        }
    }

    /// As [`Findings::tell_of`], of the whole file, if a tally counted any.
    pub(crate) fn tally_of(
        &mut self,
        name: &'static str,
        detail: impl fmt::Display,
        (tally, what): (&Tally, [&str; 2]),
    ) {
        if let Some(found) = tally.counted(what) {
            self.tell_of(name, "", detail, found);
        }
    }

    /// Adds an error without a rule, as [`Findings::tell`].
    fn error(
        &mut self,
        code: &'static str,
        dataset: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let says = [expected.into(), found.into(), advice.into()];
        self.add((Severity::Error, false), code, dataset, says);
    }

    fn add(
        &mut self,
        (severity, doubt): (Severity, bool),
        code: &'static str,
        dataset: &str,
        says: [String; 3],
    ) {
        if self.list.iter().filter(|finding| finding.code == code).count() == MAX_OF_A_CODE {
            *self.left_out.entry(code).or_default() += 1;
            return;
        }
        let [expected, found, advice] = says;
        let dataset = (!dataset.is_empty()).then(|| dataset.to_owned());
        let file = self.file.clone();
        self.list.push(Finding { severity, code, file, dataset, expected, found, advice, doubt });
    }

    /// Adds the findings of `other`.
    pub(crate) fn take(&mut self, other: Findings<'_>) {
        for Finding { severity, code, file, dataset, expected, found, advice, doubt } in other.list
        {
            self.file = file;
            let dataset = dataset.unwrap_or_default();
            self.add((severity, doubt), code, &dataset, [expected, found, advice]);
        }
        for (code, more) in other.left_out {
            *self.left_out.entry(code).or_default() += more;
        }
    }

    /// Compares a count with the description's, if the description has it.
    pub fn compare(&mut self, code: &'static str, what: &str, expected: Option<u64>, found: u64) {
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            self.tell_of(code, "", format!("{expected} {what}"), found.to_string());
        }
    }
}

/// A count and the place of its first occurrence.
#[derive(Clone, Default)]
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

    /// `3 steps with both, the first in row 7`, if any, of the noun `step` and of `with both`.
    pub fn counted(&self, [noun, rest]: [&str; 2]) -> Option<String> {
        let space = if rest.is_empty() { "" } else { " " };
        let counted = counted(self.count as usize, noun);
        (self.count > 0).then(|| format!("{counted}{space}{rest}, the first in {}", self.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation lists each code together with each of its severities.
    #[test]
    fn rules_are_documented() {
        let page = include_str!("../../../../docs/findings.md");
        for (name, rule) in RULES.iter() {
            let code = format!("`{}`", rule.code.as_deref().unwrap_or(name));
            let row = page.lines().find(|line| line.starts_with("| `") && line.contains(&code));
            let row = row.unwrap_or_else(|| panic!("docs/findings.md has no row with {code}"));
            assert!(row.contains(&rule.severity.to_string()), "{code}: {row}");
            assert!(rule.advice.ends_with('.'), "{code}: {}", rule.advice);
        }
    }
}
