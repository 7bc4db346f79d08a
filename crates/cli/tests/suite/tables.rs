//! The script that kills runs.

use std::{path::Path, process::Command};

use crate::desk::{ProgramOutput, project, said};

fn script(name: &str, words: &str) -> ProgramOutput {
    let mut command = Command::new(project().join(".venv/bin/python"));
    let program = Path::new(env!("CARGO_BIN_EXE_overtone"));
    command
        .arg(project().join("scripts").join(name))
        .args(words.split_whitespace())
        .env("CARGO_TARGET_DIR", program.parent().unwrap().parent().unwrap());
    said(command.output().unwrap())
}

/// Checks that it stops at once, with one sentence and the exit code of an invalid command.
#[track_caller]
fn refuses(name: &str, words: &str, parts: &[&str]) {
    let said = script(name, words);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "no {part:?} in: {}", said.stderr);
    }
}

#[test]
fn wrong_words_are_refused_in_one_sentence() {
    refuses("kills.py", "n=abc", &["n=abc", "whole number"]);
    refuses("kills.py", "bogus=3", &["unknown option `bogus`", "n, seed"]);
}
