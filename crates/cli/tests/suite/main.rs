//! End-to-end tests: each test runs the binary.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

mod anywhere;
mod choosing;
mod clusters;
mod desk;
mod downloads;
#[cfg(feature = "python")]
mod environments;
mod errors;
mod evaluating;
mod exchange;
mod faults;
mod fine_tuning;
#[cfg(feature = "python")]
mod games;
mod given;
mod held_out;
mod judging;
mod kills;
mod learning_curves;
mod linting;
mod messages;
mod minari;
mod mixing;
mod mpi;
mod output;
mod own_tasks;
mod pages;
mod pairs;
mod played;
#[cfg(feature = "python")]
mod playing;
#[cfg(feature = "python")]
mod recording;
mod reference_pages;
mod robots;
mod runs;
mod studies;
mod tables;
