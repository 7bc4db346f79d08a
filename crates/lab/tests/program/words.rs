//! The words of the command line.

use std::fs;

use crate::desk;

#[test]
fn the_nearest_option_is_named() {
    let desk = desk();
    desk.refuses("density rounds=1", &["unknown option `rounds`", "--help lists all"]);
    desk.refuses("density epoch=1", &["unknown option `epoch`", "`epochs`"]);
    desk.refuses("density 3", &["key=value, got `3`"]);
    desk.refuses("densty", &["no experiment `densty`"]);
}

#[test]
fn help_has_options_defaults_and_reasons() {
    let desk = desk();
    let help = desk.succeeds("density --help");
    for part in ["  data_seeds=1,2,3,42\n", "so one says little", "quick=false", "epochs=150"] {
        assert!(help.contains(part), "no {part:?} in {help}");
    }
    assert!(desk.succeeds("language --help").contains("  d_model=64\n"));
    let all = desk.succeeds("--help");
    assert!(all.contains("density") && all.contains("translation"), "{all}");
}

#[test]
fn a_quick_page_does_not_replace_a_long_runs() {
    let desk = desk();
    desk.succeeds("scaling-law quick=true bins=256 from=4 to=16 most_fitted=8");
    let page = desk.path("runs/lab/scaling-law-quick/scaling-law.md");
    let page = fs::read_to_string(page).unwrap();
    let command = "just lab scaling-law bins=256 from=4 most_fitted=8 quick=true to=16\n";
    assert!(page.contains(command), "{page}");
}

#[test]
fn a_page_by_hand_keeps_its_prose() {
    let desk = desk();
    fs::create_dir(desk.path("page")).unwrap();
    let path = desk.path("page/smoothness.md");
    fs::write(&path, "# Noise\n\n<!-- table smoothness-noise -->\n<!-- end -->\n\nBlue.\n")
        .unwrap();
    desk.succeeds("smoothness trials=3 length=64 out=page");
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("# Noise\n") && page.ends_with("<!-- end -->\n\nBlue.\n"), "{page}");
    assert!(page.contains("| brown |") && !page.contains("just lab"), "{page}");
}

/// A file in the way, which stops root as well.
#[test]
fn where_nothing_can_be_written_nothing_is_computed() {
    let desk = desk();
    fs::write(desk.path("file"), "").unwrap();
    for study in ["smoothness trials=1000000", "density", "fourier-integral", "forecast"] {
        let output = desk.run(&format!("{study} out=file/pages"));
        output.refused_naming(&["out=file/pages", "directory"]);
        assert_eq!(output.stdout, "", "{study}");
    }
}

/// Outside the project and without its data.
#[test]
fn missing_datasets_are_named() {
    let desk = desk();
    let mut command = desk.command("series");
    let output =
        overtone_testkit::desk::said(command.env_remove("OVERTONE_DATASETS").output().unwrap());
    output.refused_naming(&["no folder datasets", "OVERTONE_DATASETS"]);
}

#[test]
fn flags_are_options_as_well() {
    desk().refuses("density --epochs", &["key=value", "--epochs"]);
    desk().succeeds("smoothness --trials=2 --length=16");
}
