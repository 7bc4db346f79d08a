//! `overtone`: train offline, play, and report.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(overtone::main(&words))
}
