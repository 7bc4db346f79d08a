//! Errors that name the mistake.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::desk::{Desk, names, project, said};

#[test]
fn flags_are_written_as_keys() {
    let desk = Desk::new();
    let said = desk.run("train game=seaquest --seed 3");
    let expected = "error: write options as key=value: use seed=3 (--help lists all)\n";
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), expected));
}

#[test]
fn an_unknown_run_is_refused_without_a_request() {
    let desk = Desk::new();
    for run in ["0", "9"] {
        desk.refuses(&format!("download game=seaquest run={run}"));
    }
}

/// A directory without a name would be created in the current one.
#[test]
fn a_conversion_needs_a_place() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let output = desk.command("data convert").arg(&file).arg("").output().unwrap();
    said(output).refused();
    assert_eq!(names(&desk.path("")), [""; 0]);
}

#[test]
fn a_path_that_is_not_utf_8() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let odd = desk.path("").join(OsStr::from_bytes(b"hopper_\xff.hdf5"));
    std::fs::copy(file, &odd).unwrap();
    let output = said(desk.command("data lint").arg(&odd).output().unwrap());
    assert_eq!(output.code, Some(0), "{output:?}");
}
