//! The scripts that train several runs for a table.

use std::{fs, path::Path, process::Command};

use crate::desk::{Desk, Said, names, project, said};

fn script(name: &str, words: &str) -> Said {
    let mut command = Command::new(project().join(".venv/bin/python"));
    let program = Path::new(env!("CARGO_BIN_EXE_overtone"));
    command
        .arg(project().join("scripts").join(name))
        .args(words.split_whitespace())
        .env("CARGO_TARGET_DIR", program.parent().unwrap().parent().unwrap());
    said(command.output().unwrap())
}

/// Stops at once, with one sentence and the exit code of a wrong command.
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
    refuses("starter-table.py", "bogus=1", &["no option `bogus`"]);
    refuses("starter-table.py", "bogus", &["`bogus` is no option", "key=value"]);
    refuses("d4rl-table.py", "bogus=1", &["no option `bogus`"]);
    refuses("d4rl-table.py", "path=/nope", &["path=/nope", "no such folder"]);
    refuses("d4rl-table.py", "seeds=1,x", &["seeds=x", "whole number"]);
    refuses("kills.py", "n=abc", &["n=abc", "whole number"]);
    refuses("kills.py", "bogus=3", &["no option `bogus`", "n, seed"]);
}

/// A run of other settings is not taken for the table's, whatever its folder is called.
#[test]
fn old_results_are_not_printed_under_new_settings() {
    let desk = Desk::new();
    let tiny = desk.tiny("evaluation.target=32 train.updates=2 runs=runs");
    desk.succeeds(&tiny);
    let run = desk.only_run("runs");
    // As if it had been played.
    fs::write(run.join("evaluation.json"), "{}").unwrap();
    let runs = format!("runs={}", desk.path("runs").display());
    let words = tiny
        .split_whitespace()
        .filter(|word| word.contains('.') && !word.starts_with("evaluation.target"))
        .collect::<Vec<_>>()
        .join(" ");
    for changed in ["train.updates=3", "train.batch_size=3"] {
        let words = format!("{runs} {words} {changed}");
        let key = changed.split('=').next().unwrap();
        refuses("starter-table.py", &words, &["have other settings", key, "say runs="]);
    }
    // The same settings are found: the run trained next is that of the other head. With no
    // episode it is never played, which the table cannot be made without.
    let said = script("starter-table.py", &format!("{runs} {words}"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("cannot be found there"), "{said:?}");
    let runs = names(&desk.path("runs"));
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().any(|run| run.ends_with("-seaquest-fourier14-s123")), "{runs:?}");
}
