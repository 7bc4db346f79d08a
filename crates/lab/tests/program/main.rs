//! The program `overtone-lab` as its users meet it.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod studies;
mod words;

use overtone_testkit::Desk;

fn desk() -> Desk {
    Desk::new(env!("CARGO_BIN_EXE_overtone-lab"))
}
