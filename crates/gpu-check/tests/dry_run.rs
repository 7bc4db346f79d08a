//! A dry run of `overtone-gpu-check` on the CPU.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_testkit::Desk;

fn desk() -> Desk {
    Desk::new(env!("CARGO_BIN_EXE_overtone-gpu-check"))
}

#[test]
fn a_dry_run_checks_everything_available() {
    let output = desk().succeeds("device=cpu");
    for part in [
        "dry run",
        "| steps | first logits, softmax and linear head |",
        "mean bf16 loss of 12 steps, Fourier attention and head",
        "| bits | vectors, bf16: 5 steps without recording |",
        "| launches | skipped |",
        "| time | bf16, Fourier attention, linear head, batch 1 |",
        "| bits | IQL in chunks, bf16: 5 steps again |",
        "| time | discrete CQL, batch 1 |",
        "all 24 checks passed",
    ] {
        assert!(output.contains(part), "no {part:?} in {output}");
    }
}

#[test]
fn single_parts_can_run() {
    let output = desk().succeeds("device=cpu parts=launches");
    assert!(
        output.ends_with("no checks were run: each part was skipped or only measured\n"),
        "{output}"
    );
}

#[test]
fn invalid_options_are_rejected() {
    let desk = desk();
    desk.refuses("device=cuda:99", &["device"]);
    desk.refuses("size=huge", &["size=huge", "tiny"]);
    desk.refuses("parts=speed", &["parts=speed", "steps, bits, launches, time"]);
    desk.refuses("steps=-1", &["steps=-1"]);
}
