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
    let known = overtone_hostile::targets::targets().len();
    let told = table.lines().skip(2).filter(|line| !line.starts_with("| all")).count();
    assert_eq!(told, known, "{table}");
    for line in table.lines().skip(2) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [accepted, refused] = [cells[3], cells[4]].map(|cell| cell.parse::<u64>().unwrap());
        // Rows of metrics that are damaged are dropped, and the others kept.
        let tells = accepted > 0 && (refused > 0 || cells[1] == "metrics");
        assert!(tells, "a target that tells nothing apart: {line}");
    }
}

/// Of a reader with every fault, each is found, counted and kept, and the search goes on.
#[test]
fn every_fault_is_found() {
    let kept = tempfile::tempdir().unwrap();
    let output = hostile(&["target=faulty", "n=60", "seed=3", "patience=1"], kept.path());
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{table}");
    let line = table.lines().find(|line| line.starts_with("| faulty")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells[2], "60", "inputs: {line}");
    for (cell, what) in [(5, "panics"), (6, "crashes"), (7, "hangs"), (8, "too much memory")] {
        assert!(cells[cell].parse::<u64>().unwrap() > 0, "no {what}: {line}");
    }
    let faults = std::fs::read_to_string(kept.path().join("faults.txt")).unwrap();
    let said = faults.lines().find(|line| line.starts_with("panic")).unwrap();
    assert!(said.contains("as asked") && said.contains("faulty.rs"), "{said}");
    // What is told of a fault has it again, and only it.
    let words: Vec<&str> =
        said.split(": ").nth(1).unwrap().split(' ').filter(|word| word.contains('=')).collect();
    let again = tempfile::tempdir().unwrap();
    let output = hostile(&words, again.path());
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{table}");
    assert!(table.contains("| faulty | 1 | 0 | 0 | 1 |"), "{table}");
    let copies = std::fs::read_dir(again.path()).unwrap().count();
    assert_eq!(copies, 2, "the input, and the line about it");
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
