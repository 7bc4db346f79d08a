//! A folder of its own to run a program in, and what every run of it must hold to.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "the helpers of tests are tests too"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::project::project;

/// An empty folder and a program.
#[derive(Debug)]
pub struct Desk {
    folder: TempDir,
    program: PathBuf,
}

/// The printed output of a run of the program.
#[derive(Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ProgramOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    /// A desk for the program at this path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), program: program.into() }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with the words of `line`, here, with the project's data and packages.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env("OVERTONE_DATASETS", project().join("datasets"))
            .env("VIRTUAL_ENV", project().join(".venv"))
            .env("RUST_BACKTRACE", "1")
            .env_remove("ALE_ROMS_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it with the words of `line`.
    #[track_caller]
    pub fn run(&self, line: &str) -> ProgramOutput {
        said(self.command(line).output().unwrap())
    }

    /// Runs what must succeed, without a word on standard error.
    #[track_caller]
    pub fn succeeds(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{line}\n{}", said.stdout);
        said.stdout
    }

    /// Runs what must be refused, in one sentence that has all `parts`.
    #[track_caller]
    pub fn refuses(&self, line: &str, parts: &[&str]) {
        self.run(line).refused_naming(parts);
    }
}

impl ProgramOutput {
    /// It was refused, in the [sentence](crate::sentences) that stands in the module's file.
    #[track_caller]
    pub fn refused(&self) {
        self.refused_naming(&[]);
        crate::sentences::check(&self.stderr);
    }

    /// It was refused, in one sentence that has all `parts`.
    #[track_caller]
    pub fn refused_naming(&self, parts: &[&str]) {
        let error = self.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("{self:?}"));
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(error.lines().count(), 1, "more than a sentence: {error}");
        for part in parts {
            assert!(error.contains(part), "no {part:?} in: {error}");
        }
        let clauses: Vec<&str> = error.trim().split(": ").collect();
        for (i, clause) in clauses.iter().enumerate() {
            assert!(!clauses[..i].contains(clause), "said twice: {error}");
        }
    }
}

/// The printed output, after checks that apply to every run: no panic, and no terminal codes
/// without a terminal.
#[track_caller]
pub fn said(output: Output) -> ProgramOutput {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in [&stdout, &stderr] {
        assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
        assert!(!text.contains(['\x1b', '\r', '\x08']), "control codes: {text:?}");
    }
    ProgramOutput { code: output.status.code(), stdout, stderr }
}

/// Names in a folder, sorted; empty if the folder does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    let mut names: Vec<String> = entries
        .unwrap_or_default()
        .iter()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
