//! The kernels in CUDA C++ on the CPU: the system's compiler compiles their text, and fibers emulate
//! the threads of a block and the instructions of a warp (`cuda/host.h`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

#[path = "../src/gpu/sources.rs"]
#[allow(dead_code, reason = "the crate launches each source by its name")]
mod sources;

/// A directory for one test's files.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda").join(name);
    fs::create_dir_all(&path).expect("a directory for files of tests");
    path
}

/// Compiles and runs `tests/cuda/{program}.cpp` with each of these sources in a namespace of its
/// name.
fn run(program: &str, names: &[&str]) {
    let directory = directory(program);
    let mut text = String::new();
    for name in names {
        let source = sources::ALL.iter().find(|source| source.name == *name).expect("a source");
        let source = source.text();
        writeln!(text, "namespace {name} {{\n{source}\n}}").expect("a string");
        for line in source.lines() {
            if let Some(rest) = line.strip_prefix("#define ") {
                let end = rest.find([' ', '(']).unwrap_or(rest.len());
                writeln!(text, "#undef {}", &rest[..end]).expect("a string");
            }
        }
    }
    // `DEV` belongs to the emulator.
    let text = text.replace("#undef DEV\n", "");
    fs::write(directory.join("sources.inc"), text).expect("the sources");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let executable = directory.join("program");
    let compiled = Command::new("c++")
        .args(["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-w", "-I"])
        .arg(&directory)
        .arg("-I")
        .arg(&tests)
        .arg(tests.join(program).with_extension("cpp"))
        .arg("-o")
        .arg(&executable)
        .output();
    let compiled = match compiled {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("left out: this machine has no C++ compiler, `c++`");
            return;
        }
        compiled => compiled.expect("the compiler runs"),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(executable).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program}:\n{text}");
    println!("{text}");
}

#[test]
fn products_are_exact() {
    run(
        "products",
        &[
            "product",
            "product_f32",
            "product_bias",
            "product_bias_gelu",
            "product_bias_relu",
            "product_bias_tanh",
            "product_residual",
            "transposed",
            "transposed_f32",
            "transposed_gelu",
            "transposed_relu",
        ],
    );
}

#[test]
fn gradients_by_weights_are_exact() {
    run("outer", &["outer", "sums"]);
}

#[test]
fn convolutions_are_exact() {
    run(
        "encoder",
        &[
            "encoder_weights",
            "conv1",
            "conv1_outer",
            "conv1_sums",
            "conv2",
            "conv2_input",
            "conv2_outer",
            "conv2_sums",
            "conv3",
            "conv3_input",
            "conv3_outer",
            "conv3_sums",
            "linear_sums",
            "tanh_slope",
        ],
    );
}

/// Writes every source as a file of its name, for `scripts/ptx-check.sh`.
#[test]
fn write_sources() {
    let Some(directory) = env::var_os("OVERTONE_CUDA_SOURCES") else { return };
    for source in sources::ALL {
        let path = Path::new(&directory).join(source.name).with_extension("cu");
        fs::write(path, source.text()).expect("a source");
    }
}
