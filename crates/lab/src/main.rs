//! `overtone-lab`: the papers' experiments, each one command.

#[macro_use]
extern crate overtone_console;

mod command;

use std::process::ExitCode;

use overtone_console::errors;
use overtone_lab::memory::Counting;

/// Counts memory: the memory of an update is a result of some experiments.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(errors::exit_code(command::run(&words).map(|()| 0), 1))
}
