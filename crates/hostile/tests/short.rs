//! A short search by every target, and that the search finds what it looks for.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the program, whose faults are kept in `kept`.
fn hostile(words: &[&str], kept: &Path) -> Output {
    let kept = format!("kept={}", kept.display());
    Command::new(env!("CARGO_BIN_EXE_overtone-hostile")).args(words).arg(kept).output().unwrap()
}

#[test]
fn no_reader_comes_to_harm() {
    let kept = tempfile::tempdir().unwrap();
    // Another seed than that of the long search.
    let output = hostile(&["n=40000", "seed=2"], kept.path());
    let table = String::from_utf8(output.stdout).unwrap();
    let faults = std::fs::read_to_string(kept.path().join("faults.txt")).unwrap_or_default();
    assert!(output.status.success(), "{table}\n{faults}");
    for line in table.lines().skip(2) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [accepted, refused] = [cells[3], cells[4]].map(|cell| cell.parse::<u64>().unwrap());
        assert!(accepted > 0 && refused > 0, "a target that tells nothing apart: {line}");
    }
}

#[test]
fn what_is_no_option_is_refused() {
    let kept = tempfile::tempdir().unwrap();
    for (word, part) in
        [("target=none", "there is no target"), ("m=3", "no option `m`"), ("n=x", "n=x")]
    {
        let output = hostile(&[word], kept.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(part), "{said}");
    }
}
