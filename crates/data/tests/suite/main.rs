//! Tests of the crate from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod conversion;
mod doubts;
mod download;
mod foreign;
mod held_out;
mod lint;
mod log_probs;
mod logs;
mod minari_forms;
mod mixtures;
mod own_arrays;
mod pairs;
mod rejections;
mod robots;
mod starter;
mod tasks;
mod vector_logs;
mod vector_starter;
mod vector_windows;
mod windows;
mod writing;
