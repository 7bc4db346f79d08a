//! Every example runs and prints the expected results.

use std::process::Command;

/// The output of an example.
#[track_caller]
fn output(program: &str, argument: &str) -> String {
    let output =
        Command::new(program).arg(argument).output().expect("cargo builds programs before tests");
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

/// Examples must stay short.
#[test]
fn all_are_short() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, most) in [
        ("own_algorithm", 150),
        ("own_attention", 60),
        ("own_data", 60),
        ("own_environment", 60),
        ("own_head", 60),
        ("play_a_checkpoint", 60),
    ] {
        let text = std::fs::read_to_string(folder.join(name).with_extension("rs"));
        let n_lines = text.expect("a program of this folder").lines().count();
        assert!(n_lines < most, "{name}: {n_lines} lines");
    }
}

/// Both move towards 0, where the recorded actions point nowhere.
#[test]
fn own_algorithm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = output(env!("CARGO_BIN_EXE_own_algorithm"), &folder.path().to_string_lossy());
    let actions = numbers(&text, "action ");
    assert_eq!(actions.len(), 4, "{text}");
    for sides in actions.chunks(2) {
        assert!(sides[0] > 0.2 && sides[1] < -0.2, "{text}");
    }
}

#[test]
fn own_head() {
    let text = output(env!("CARGO_BIN_EXE_own_head"), "");
    // Six bins are equally likely: no loss is below ln 6 = 1.79.
    check_loss_falls(&text, 1.95);
    let densities = numbers(&text, "density in bin 3: ");
    let between = numbers(&text, "density in bin 8: ");
    assert!(densities[0] > 10.0 * between[0], "{text}");
}

#[test]
fn own_attention() {
    check_loss_falls(&output(env!("CARGO_BIN_EXE_own_attention"), ""), 0.2);
}

#[test]
fn own_environment() {
    let returns = numbers(&output(env!("CARGO_BIN_EXE_own_environment"), ""), "mean return ");
    assert!(returns[1] > returns[0] + 20.0, "{returns:?}");
}

#[test]
fn own_data_makes_a_checkpoint_that_acts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = output(env!("CARGO_BIN_EXE_own_data"), &folder.path().to_string_lossy());
    let losses = numbers(&text, "loss ");
    assert!(losses[losses.len() - 1] < losses[0], "{text}");
    let path = text.split("checkpoint ").nth(1).expect("the output contains the path").trim();

    let text = output(env!("CARGO_BIN_EXE_play_a_checkpoint"), path);
    assert!(text.starts_with("own/corridor: Decision Transformer"), "{text}");
    // The optimum: straight to the right, five steps from the farthest cell.
    let returns = numbers(&text, "return ");
    assert!(returns[0] < 19.0 && returns[1] == 20.0, "{text}");
    assert!(numbers(&text, " in ")[1] <= 6.0, "{text}");
}
