//! What is said when something is missing: each case in a child process, since the loaded
//! library and the current folder belong to the process.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use overtone_mujoco::{Robot, RobotSimulation, SITE_PACKAGES, open, packages};
use tempfile::TempDir;

fn robot(name: &str) -> &'static Robot {
    Robot::named(name).unwrap()
}

/// Set in the child.
const CHILD: &str = "OVERTONE_MISSING_CHILD";
const LIBRARY: &str =
    if cfg!(target_os = "macos") { "libmujoco.3.17.0.dylib" } else { "libmujoco.so.3.17.0" };

/// What the child does; alone it does nothing.
#[test]
#[ignore = "the other process of a test; alone it does nothing"]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        match open(robot("halfcheetah"), &RobotSimulation::d4rl(), 1) {
            Ok(_) => println!("said: all there"),
            Err(error) => println!("said: {error}"),
        }
    }
}

/// What is said in `folder`, with these packages instead of a virtual environment's.
fn said(folder: &Path, site_packages: Option<&Path>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .current_dir(folder)
        .env_remove("VIRTUAL_ENV")
        .env_remove(SITE_PACKAGES)
        .env(CHILD, "1");
    if let Some(site_packages) = site_packages {
        command.env(SITE_PACKAGES, site_packages);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said);
    line.unwrap_or_else(|| panic!("the child said nothing: {text}")).to_owned()
}

/// Packages with `mujoco/NAME`.
fn packages_with(name: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("mujoco")).unwrap();
    fs::write(folder.path().join("mujoco").join(name), bytes).unwrap();
    folder
}

#[track_caller]
fn check(site_packages: &Path, expected: &str) {
    let said = said(site_packages, Some(site_packages));
    assert!(said.contains(expected) && said.contains("`just setup`"), "{said}");
}

#[test]
fn here_nothing_is_missing_and_nothing_is_written() {
    assert_eq!(said(Path::new(env!("CARGO_MANIFEST_DIR")), None), "all there");
    // HalfCheetah's model makes MuJoCo warn, and a warning could leave a file behind.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(said(empty.path(), Some(&packages().unwrap())), "all there");
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn without_packages_the_setup_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = said(folder.path(), None);
    assert!(said.starts_with("no `.venv`") && said.contains("`just setup`"), "{said}");
}

#[test]
fn a_virtual_environment_without_mujoco_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let site_packages = folder.path().join(".venv/lib/python3.10/site-packages");
    fs::create_dir_all(&site_packages).unwrap();
    fs::write(folder.path().join(".venv/pyvenv.cfg"), "").unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let said = said(&below, None);
    assert!(said.starts_with("MuJoCo's library is missing (`"), "{said}");
    assert!(said.contains("python3.10/site-packages/mujoco"), "{said}");
}

#[test]
fn missing_and_other_libraries_are_named() {
    let none = packages_with("__init__.py", b"");
    check(none.path(), &format!("mujoco/{LIBRARY}"));
    let other = packages_with("libmujoco.so.3.3.0", b"");
    check(other.path(), "mujoco/libmujoco.so.3.3.0` is not MuJoCo 3.17.0");
    let broken = packages_with(LIBRARY, b"not a library");
    check(broken.path(), &format!("mujoco/{LIBRARY}` does not load"));
}

#[test]
fn missing_and_other_models_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let real = packages().unwrap();
    symlink(real.join("mujoco"), folder.path().join("mujoco")).unwrap();
    check(folder.path(), "assets/half_cheetah.xml`");
    let assets = "gymnasium/envs/mujoco/assets";
    fs::create_dir_all(folder.path().join(assets)).unwrap();
    let (hopper, cheetah) =
        (real.join(assets).join("hopper.xml"), folder.path().join(assets).join("half_cheetah.xml"));
    fs::copy(hopper, cheetah).unwrap();
    check(folder.path(), "half_cheetah.xml` has 6 positions, 9 were expected");
}
