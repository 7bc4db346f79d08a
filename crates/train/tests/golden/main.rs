//! The reference implementations' numbers, file by file; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod atari;
mod case;
mod fourier_heads;
mod gym;

use overtone_testkit::golden;

/// Outputs, losses and gradients of `f64` files, relative to the reference. Largest seen:
/// 4e-13 (logits), 2e-12 (gradients).
const DOUBLE: f64 = 1e-9;
/// Logits in `f32`, absolute, away from zeros of a density. Largest seen: 3e-6.
const SINGLE_LOGITS: f64 = 2e-5;
/// Losses in `f32`, relative.
const SINGLE_LOSS: f64 = 1e-5;
/// Losses of the first ten steps in `f32`, relative, without a density.
const SINGLE_TRAJECTORY: f64 = 1e-4;

#[test]
fn the_folder_holds_golden_files() {
    let n_files: usize =
        golden::PATTERNS.iter().map(|(prefix, suffix)| golden::files(prefix, suffix).len()).sum();
    assert!(n_files > 0, "no golden files in {}", golden::folder().display());
}
