//! `overtone`: train offline, evaluate, and report.

#[macro_use]
extern crate overtone_console;

mod command;
mod command_line;
mod host;
mod interrupt;
mod processes;
mod unix_path;

pub use command::{
    data::warnings,
    evaluate::{OwnChoice, play_of},
    find::find,
    prepare::{Prepared, prepare},
};
pub use command_line::{main, run};
pub use host::Event;
