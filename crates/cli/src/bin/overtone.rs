//! `overtone`: train offline, play, and report.

use std::process::ExitCode;

fn main() -> ExitCode {
    overtone::main()
}
