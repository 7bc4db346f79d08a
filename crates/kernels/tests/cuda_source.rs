//! The kernels in CUDA C++ on the CPU: the system's compiler compiles their text, and fibers emulate
//! the threads of a block and the instructions of a warp.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

#[path = "../src/gpu/sources.rs"]
#[allow(dead_code, reason = "the crate launches each source by its name")]
mod sources;

/// Compiles and runs `tests/cuda/main.cpp` with every source in a namespace of its name.
#[test]
fn kernels_are_exact() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda");
    fs::create_dir_all(&directory).expect("a directory for files of tests");
    let mut text = String::new();
    for source in sources::ALL {
        let (name, source) = (source.name, source.text());
        writeln!(text, "namespace {name} {{\n{source}\n}}").expect("a string");
        // `DEV` belongs to the emulator.
        for line in source.lines().filter(|line| !line.starts_with("#define DEV ")) {
            if let Some(rest) = line.strip_prefix("#define ") {
                let end = rest.find([' ', '(']).unwrap_or(rest.len());
                writeln!(text, "#undef {}", &rest[..end]).expect("a string");
            }
        }
    }
    fs::write(directory.join("sources.inc"), text).expect("the sources");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let program = directory.join("program");
    let compiled = Command::new("c++")
        .args(["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-w", "-I"])
        .arg(&directory)
        .arg("-I")
        .arg(&here)
        .args([here.join("main.cpp"), here.join("threads.cpp")])
        .arg("-o")
        .arg(&program)
        .output();
    let compiled = match compiled {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("left out: this machine has no C++ compiler, `c++`");
            return;
        }
        compiled => compiled.expect("the compiler runs"),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(program).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    println!("{text}");
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
