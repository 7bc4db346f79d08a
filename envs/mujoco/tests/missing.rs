//! Errors about missing requirements. Each case uses a child process, because the loaded library and
//! the current directory are global to a process.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use overtone_mujoco::{Robot, RobotSimulation, SITE_PACKAGES, open, packages};
use overtone_testkit::child;
use tempfile::TempDir;

fn robot(name: &str) -> &'static Robot {
    Robot::named(name).unwrap()
}

const LIBRARY: &str =
    if cfg!(target_os = "macos") { "libmujoco.3.17.0.dylib" } else { "libmujoco.so.3.17.0" };

/// The code of the child process.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    if child::argument().is_some() {
        match open(robot("halfcheetah"), &RobotSimulation::d4rl(), 1) {
            Ok(_) => println!("result: complete"),
            Err(error) => println!("result: {error}"),
        }
    }
}

/// The result of opening an environment in `folder`, with these packages instead of a virtual
/// environment.
fn result(folder: &Path, site_packages: Option<&Path>) -> String {
    child::result(folder, "", |command| {
        command.env_remove(SITE_PACKAGES).envs(site_packages.map(|path| (SITE_PACKAGES, path)));
    })
}

/// A directory of packages with the file `mujoco/NAME`.
fn packages_with(name: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("mujoco")).unwrap();
    fs::write(folder.path().join("mujoco").join(name), bytes).unwrap();
    folder
}

#[track_caller]
fn check(site_packages: &Path, expected: &str) {
    let error = result(site_packages, Some(site_packages));
    assert!(error.contains(expected) && error.contains("`just setup`"), "{error}");
}

#[test]
fn in_the_project_nothing_is_missing_and_nothing_is_written() {
    assert_eq!(result(Path::new(env!("CARGO_MANIFEST_DIR")), None), "complete");
    // HalfCheetah's model causes a warning of MuJoCo, which could write a file.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(result(empty.path(), Some(&packages().unwrap())), "complete");
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn without_packages_the_error_names_the_setup() {
    let folder = tempfile::tempdir().unwrap();
    let error = result(folder.path(), None);
    assert!(error.starts_with("no `.venv`") && error.contains("`just setup`"), "{error}");
}

#[test]
fn the_error_names_a_virtual_environment_without_mujoco() {
    let (folder, _) = child::folder_with_venv("3.10");
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let error = result(&below, None);
    assert!(error.starts_with("MuJoCo's library is missing (`"), "{error}");
    assert!(error.contains("python3.10/site-packages/mujoco"), "{error}");
}

#[test]
fn the_error_names_missing_and_other_libraries() {
    let none = packages_with("__init__.py", b"");
    check(none.path(), &format!("mujoco/{LIBRARY}"));
    let other = packages_with("libmujoco.so.3.3.0", b"");
    check(other.path(), "mujoco/libmujoco.so.3.3.0` is not MuJoCo 3.17.0");
    let broken = packages_with(LIBRARY, b"not a library");
    check(broken.path(), &format!("mujoco/{LIBRARY}` does not load"));
}

#[test]
fn the_error_names_missing_and_other_models() {
    let folder = tempfile::tempdir().unwrap();
    let real = packages().unwrap();
    symlink(real.join("mujoco"), folder.path().join("mujoco")).unwrap();
    check(folder.path(), "assets/half_cheetah.xml`");
    let assets = "gymnasium/envs/mujoco/assets";
    fs::create_dir_all(folder.path().join(assets)).unwrap();
    let (hopper, cheetah) =
        (real.join(assets).join("hopper.xml"), folder.path().join(assets).join("half_cheetah.xml"));
    fs::copy(hopper, cheetah).unwrap();
    check(folder.path(), "half_cheetah.xml` has 6 positions, expected 9");
}
