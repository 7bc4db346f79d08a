//! Words that cannot be carried out.

use std::fs;

use crate::desk;

#[test]
fn only_what_is_alike_is_taken_for_what_was_meant() {
    let desk = desk();
    let said = desk.run("density rounds=1");
    said.refused_naming(&["no option `rounds` (--help lists all)"]);
    desk.refuses("density epoch=1", &["no option `epoch`", "`epochs`"]);
}

#[test]
fn reasons_of_several_lines_are_told_whole() {
    let help = desk().succeeds("density --help");
    let whole = "Runs of each head on each draw. The paper has one; runs on the same rows differ \
                 as much as runs on other rows, so one says little.";
    // Lines are broken where the terminal ends.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(whole), "{help}");
}

/// A file in the way, which stops root as well.
#[test]
fn where_nothing_can_be_written_nothing_is_computed() {
    let desk = desk();
    fs::write(desk.path("file"), "").unwrap();
    for lab in [
        "smoothness trials=1000000",
        "density",
        "likelihood",
        "scaling-law",
        "fourier-integral",
        "forecast",
        "series",
        "images",
        "language",
        "translation",
        "tempo",
    ] {
        let said = desk.run(&format!("{lab} out=file/pages"));
        said.refused_naming(&["out=file/pages", "directory"]);
        assert_eq!(said.stdout, "", "{lab}");
    }
}

/// Outside the project and without its data.
#[test]
fn what_is_missing_is_asked_for_in_the_labs_own_words() {
    let desk = desk();
    let mut command = desk.command("series");
    let said =
        overtone_testkit::desk::said(command.env_remove("OVERTONE_DATASETS").output().unwrap());
    said.refused_naming(&["no folder datasets", "OVERTONE_DATASETS"]);
    assert!(!said.stderr.contains("dataset="), "{said:?}");
}

#[test]
fn flags_are_written_as_keys() {
    let said = desk().run("density --epochs 3");
    let expected = "error: options are written key=value: say epochs=3 (--help lists all)\n";
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), expected));
}
