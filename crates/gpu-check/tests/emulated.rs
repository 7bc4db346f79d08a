//! The program on an emulated CUDA device (`crates/testkit/emulated`): kernels run on the CPU, or
//! are compiled by NVIDIA's NVRTC and counted.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use overtone_testkit::{
    Desk,
    desk::{project, said},
    left_out,
};

/// Whether the device can be compiled here.
fn is_possible() -> bool {
    let here = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let possible = here && Command::new("c++").arg("--version").output().is_ok();
    if !possible {
        left_out("the emulated CUDA device needs Linux on x86-64, and a C++ compiler, `c++`");
    }
    possible
}

/// The output of the program, which succeeds.
fn run(mode: &str, line: &str, cuda: &Path) -> String {
    let program = env!("CARGO_BIN_EXE_overtone-gpu-check");
    let desk = Desk::new(project().join("scripts/emulated-cuda.sh"));
    let golden = project().join("crates/testkit/golden");
    let line = format!("{mode} {program} device=cuda size=tiny {line} golden={}", golden.display());
    let mut command = desk.command(&line);
    // New memory is full of NaN.
    command.env("CUDA_POISON", "1").env("EMULATED", env!("CARGO_TARGET_TMPDIR"));
    command.env("CUDA_PATH", cuda);
    let output = said(command.output().unwrap());
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout
}

#[test]
fn kernels_compute_the_numbers_of_the_reference() {
    if is_possible() {
        let output = run("run", "parts=golden,steps steps=2", Path::new(""));
        assert!(output.contains("all 11 checks passed"), "{output}");
    }
}

/// NVRTC and CUDA's headers are in `OVERTONE_CUDA`. A change of `CUDA_PATH` would build the bindings
/// anew.
#[test]
fn kernels_compile_for_a_gpu_and_are_counted() {
    let cuda = PathBuf::from(std::env::var_os("OVERTONE_CUDA").unwrap_or_default());
    let has_compiler = |folder| cuda.join(folder).join("libnvrtc.so.13").exists();
    if !["lib64", "lib"].into_iter().any(has_compiler) {
        return left_out("NVRTC, libnvrtc.so.13, is not in OVERTONE_CUDA");
    }
    if is_possible() {
        let output = run("count", "parts=launches", &cuda);
        for words in ["vectors, f32, K 5, batch 1: launches per step", "copies to the device ("] {
            assert!(output.contains(words), "no {words:?} in {output}");
        }
    }
}
