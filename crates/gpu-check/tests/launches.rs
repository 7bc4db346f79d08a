//! The program with a CUDA driver that counts launches and computes nothing, so without a GPU:
//! NVIDIA's NVRTC compiles every kernel.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::PathBuf;

use overtone_testkit::{Desk, desk::said, left_out, project};

/// NVRTC and CUDA's headers are in `OVERTONE_CUDA`. A change of `CUDA_PATH` would build the bindings
/// anew.
#[test]
fn kernels_compile_for_a_gpu_and_are_counted() {
    let cuda = PathBuf::from(std::env::var_os("OVERTONE_CUDA").unwrap_or_default());
    let has_compiler = |folder| cuda.join(folder).join("libnvrtc.so.13").exists();
    if !["lib64", "lib"].into_iter().any(has_compiler) {
        return left_out("NVRTC, libnvrtc.so.13, is not in OVERTONE_CUDA");
    }
    let program = env!("CARGO_BIN_EXE_overtone-gpu-check");
    let desk = Desk::new(project().join("scripts/count-launches.sh"));
    let mut command = desk.command(&format!("{program} device=cuda size=tiny parts=launches"));
    let output = said(command.env("CUDA_PATH", &cuda).output().unwrap());
    assert_eq!(output.code, Some(0), "{output:?}");
    for words in ["vectors, f32, K 5, batch 1: launches per step", "copies to the device ("] {
        assert!(output.stdout.contains(words), "no {words:?} in {}", output.stdout);
    }
}
