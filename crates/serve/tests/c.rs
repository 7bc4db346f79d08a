//! The C interface: a program that is compiled with warnings as errors and the address sanitizer
//! plays what Rust plays.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod small;

use std::{env, fs, path::Path, process::Command};

use overtone_serve::{Action, Agent};

#[test]
fn c_plays_what_rust_plays() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, about) = small::files();
    fs::write(folder.path().join("agent.onnx"), graph).unwrap();
    fs::write(folder.path().join("agent.json"), about).unwrap();

    let libraries = env::current_exe().unwrap().parent().unwrap().to_owned();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.path().join("play");
    let mut compiler = Command::new(env::var_os("CC").unwrap_or("cc".into()));
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-g", "-I"];
    compiler.args(flags).arg(here.join("include")).arg(here.join("tests/play.c")).arg("-o");
    compiler.arg(&program).arg("-L").arg(&libraries).args(["-lovertone_serve", "-lm"]);
    let compiled = compiler.output().unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let mut play = Command::new(&program);
    let played = play
        .arg(folder.path())
        .env("LD_LIBRARY_PATH", &libraries)
        .env("DYLD_LIBRARY_PATH", &libraries)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{errors}");
    let lines = String::from_utf8(played.stdout).unwrap();
    let theirs: Vec<f32> = lines.lines().map(|line| line.parse().unwrap()).collect();

    let mut agent = Agent::open(folder.path()).unwrap();
    agent.begin(1, None).unwrap();
    let mut ours = Vec::new();
    for step in 0..20 {
        let seen: Vec<f32> =
            (0..agent.observation_size()).map(|i| ((step + 3 * i) % 7) as f32 / 7.0).collect();
        let Action::Numbers(action) = agent.act(&seen, 0.5).unwrap() else { panic!("numbers") };
        ours.extend(action);
    }
    assert_eq!(ours, theirs);
}
