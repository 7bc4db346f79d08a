//! Tests of the crate from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod action_masks;
mod conversion;
mod doubts;
mod download;
mod ends_and_jumps;
mod foreign;
mod fortran_order;
mod held_out;
mod lint;
mod log_probs;
mod logs;
mod lookahead;
mod minari_forms;
mod mixtures;
mod optional_arrays;
mod own_arrays;
mod pairs;
mod parquet;
mod rejections;
mod robomimic;
mod robots;
mod starter;
mod tables;
mod tasks;
mod vector_logs;
mod vector_starter;
mod vector_windows;
mod windows;
mod writing;

/// The frame of a row.
fn frame_of(data: &overtone_data::Dataset, row: usize) -> Vec<u8> {
    let mut pixels = vec![0; 84 * 84];
    data.frames().unwrap().read(row, &mut pixels).unwrap();
    pixels
}
