//! A dry run of `overtone-gpu-check` on the CPU.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;

use overtone_testkit::{Desk, project};

fn desk() -> Desk {
    Desk::new(env!("CARGO_BIN_EXE_overtone-gpu-check"))
}

#[test]
fn a_dry_run_checks_everything_available() {
    let desk = desk();
    let golden = project().join("crates/testkit/golden");
    let line = format!(
        "device=cpu playing=1 python=absent golden={} peers={}",
        golden.display(),
        project().join("scripts/peers").display()
    );
    let output = desk.succeeds(&line);
    for part in [
        "dry run",
        "losses of ten steps",
        "Fourier attention",
        "mean bf16 loss",
        "paper profile",
        "passed",
    ] {
        assert!(output.contains(part), "no {part:?} in {output}");
    }
    let text = fs::read_to_string(desk.path("gpu-check.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let parts = json["parts"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    let expected = [
        "golden files",
        "training steps",
        "repetition",
        "kernel launches",
        "step time",
        "PyTorch",
        "paper profile",
        "playing",
    ];
    assert_eq!(names, expected);
    for skipped in [3, 5] {
        assert_eq!(parts[skipped]["rows"][0]["what"], "skipped");
    }
    // All of these rows have measurements.
    for (part, rows) in [(4, 5), (6, 2)] {
        let measured = parts[part]["rows"].as_array().unwrap();
        assert_eq!(measured.len(), rows);
        assert!(measured.iter().all(|row| row["value"].as_f64().unwrap() > 0.0), "{measured:?}");
    }
}

#[test]
fn wrong_results_are_failures() {
    let desk = desk();
    let golden = project().join("crates/testkit/golden");
    // Golden files with changed numbers.
    for entry in fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("dt_atari") {
            fs::create_dir_all(desk.path("golden")).unwrap();
            fs::copy(&path, desk.path("golden").join(&name)).unwrap();
        }
    }
    let outputs = desk.path("golden/dt_atari_outputs.safetensors");
    let mut bytes = fs::read(&outputs).unwrap();
    let n = bytes.len();
    bytes[n / 2..].iter_mut().for_each(|byte| *byte ^= 0x10);
    fs::write(&outputs, bytes).unwrap();
    let output = desk.run("device=cpu playing=0 updates=4 python=absent golden=golden");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("FAILED"), "{output:?}");
    assert!(output.stderr.starts_with("error: ") && output.stderr.contains("failed"), "{output:?}");
}

#[test]
fn single_parts_can_run() {
    let desk = desk();
    let golden = project().join("crates/testkit/golden");
    let output = desk.run(&format!("device=cpu parts=golden golden={}", golden.display()));
    assert_eq!(output.code, Some(0), "{output:?}");
    let text = fs::read_to_string(desk.path("gpu-check.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["parts"].as_array().unwrap().len(), 1);
    assert_eq!(json["parts"][0]["name"], "golden files");
}

#[test]
fn invalid_options_are_rejected() {
    let desk = desk();
    desk.refuses("device=cuda:99", &["device"]);
    desk.refuses("size=huge", &["size=huge", "tiny"]);
    desk.refuses("parts=speed", &["parts=speed", "golden"]);
    desk.refuses("updates=-1", &["updates=-1"]);
    desk.refuses("updates=2", &["updates=2", "at least 3"]);
    desk.refuses("out=no/such/folder/x.json", &["out=no/such/folder/x.json"]);
}
