//! Every example runs, and says what it is to say.

use std::process::Command;

/// What an example prints.
#[track_caller]
fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("cargo builds programs before tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The numbers after `word`.
fn numbers(text: &str, word: &str) -> Vec<f64> {
    let rest = text.split(word).skip(1);
    rest.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect()
}

#[track_caller]
fn check_loss_falls(text: &str, to: f64) {
    let losses = numbers(text, "loss ");
    assert!(losses.len() > 2, "{text}");
    assert!(losses[losses.len() - 1] < to && to < losses[0], "{text}");
}

#[test]
fn own_head() {
    let text = output(env!("CARGO_BIN_EXE_own_head"));
    // Six bins are equally likely: no loss is below ln 6 = 1.79.
    check_loss_falls(&text, 1.95);
    let densities = numbers(&text, "density in bin 3: ");
    let between = numbers(&text, "density in bin 8: ");
    assert!(densities[0] > 10.0 * between[0], "{text}");
}

#[test]
fn own_attention() {
    check_loss_falls(&output(env!("CARGO_BIN_EXE_own_attention")), 0.2);
}

#[test]
fn own_environment() {
    let returns = numbers(&output(env!("CARGO_BIN_EXE_own_environment")), "mean return ");
    assert!(returns[1] > returns[0] + 20.0, "{returns:?}");
}
