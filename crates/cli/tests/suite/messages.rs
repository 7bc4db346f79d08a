//! Sentences that name the mistake which was made.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::desk::{Desk, names, project, said};

#[test]
fn flags_are_written_as_keys() {
    let desk = Desk::new();
    let said = desk.run("train game=seaquest --seed 3");
    let expected = "error: options are written key=value: say seed=3 (--help lists all)\n";
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), expected));
}

#[test]
fn a_run_that_no_game_has_is_not_asked_of_the_network() {
    let desk = Desk::new();
    for run in ["0", "9"] {
        desk.refuses(&format!("download game=seaquest run={run}"));
    }
}

/// A folder without a name would be made beside all others.
#[test]
fn a_conversion_needs_a_place() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let told = desk.command("data convert").arg(&file).arg("").output().unwrap();
    said(told).refused();
    assert_eq!(names(&desk.path("")), [""; 0]);
}

#[test]
fn a_path_that_is_not_utf_8() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let odd = desk.path("").join(OsStr::from_bytes(b"hopper_\xff.hdf5"));
    std::fs::copy(file, &odd).unwrap();
    let told = said(desk.command("data lint").arg(&odd).output().unwrap());
    assert_eq!(told.code, Some(0), "{told:?}");
}
