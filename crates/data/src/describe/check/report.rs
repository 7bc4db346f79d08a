//! [`LintReport`]: what is wrong with a recording.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::describe::findings::{Finding, Findings, Severity};

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintReport {
    /// The inspected path.
    pub path: PathBuf,
    /// Name of its format.
    pub format: &'static str,
    /// Name of the description that it was compared with, if any.
    pub expected: Option<String>,
    /// The findings, the worst first, then in the order of inspection.
    pub findings: Vec<Finding>,
    /// How many findings of a code are not in the list, because it has many of them already.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl LintReport {
    pub(super) fn new(
        path: &Path,
        format: &'static str,
        expected: Option<String>,
        findings: Findings<'_>,
    ) -> Self {
        let Findings { mut list, left_out, .. } = findings;
        list.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self { path: path.to_path_buf(), format, expected, findings: list, left_out }
    }

    /// The worst there is; `None` where nothing was found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// The exit status of a program: 0 for nothing or notes alone, 1 for warnings, 2 for errors.
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

impl fmt::Display for LintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.code.len()).max().unwrap_or(0);
        for finding in &self.findings {
            let Finding { severity, code, file, dataset, expected, found, advice, doubt: _ } =
                finding;
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
