//! Errors about missing requirements. Each case uses a child process, because Python's path is global
//! to a process.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_ale::{Game, check};
use overtone_testkit::child::{self, folder_with_venv};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// The code of the child process.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    if child::argument().is_some() {
        match check(game("seaquest")) {
            Ok(()) => println!("result: complete"),
            Err(error) => println!("result: {error}"),
        }
    }
}

/// The result of the check in `folder` with this directory of ROMs.
fn result(folder: &Path, roms: Option<&Path>) -> String {
    child::result(folder, "", |command| {
        command.env_remove("ALE_ROMS_DIR").envs(roms.map(|roms| ("ALE_ROMS_DIR", roms)));
    })
}

fn built_for() -> String {
    pyo3::Python::attach(|py| {
        let version = py.version_info();
        format!("{}.{}", version.major, version.minor)
    })
}

#[test]
fn in_the_project_nothing_is_missing() {
    assert_eq!(result(Path::new(env!("CARGO_MANIFEST_DIR")), None), "complete");
}

#[test]
fn without_a_virtual_environment_the_error_names_the_setup() {
    let (folder, _) = folder_with_venv("3");
    std::fs::remove_dir_all(folder.path().join(".venv")).unwrap();
    let error = result(folder.path(), None);
    assert!(error.starts_with("no `.venv`") && error.contains("`just setup`"), "{error}");
}

#[test]
fn without_ale_py_the_error_names_the_setup() {
    let (folder, _) = folder_with_venv(&built_for());
    let error = result(folder.path(), None);
    assert!(
        error.starts_with("ale-py is not installed") && error.contains("just setup"),
        "{error}"
    );
}

#[test]
fn another_version_of_ale_py_is_rejected() {
    let (folder, packages) = folder_with_venv(&built_for());
    std::fs::create_dir(packages.join("ale_py")).unwrap();
    std::fs::write(packages.join("ale_py/__init__.py"), "__version__ = '0.11.0'\n").unwrap();
    assert!(
        result(folder.path(), None).starts_with("ale-py 0.11.0 is installed, 0.12.1 is needed")
    );
}

#[test]
fn the_error_names_another_version_of_python() {
    let (folder, _) = folder_with_venv("3.0");
    let error = result(folder.path(), None);
    assert!(error.contains(&format!("built for Python {}", built_for())), "{error}");
}

#[test]
fn the_error_names_missing_and_invalid_roms() {
    let (folder, _) = folder_with_venv("3.0");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing = result(here, Some(folder.path()));
    assert!(missing.starts_with("the ROM of Seaquest is missing"), "{missing}");
    std::fs::write(folder.path().join("seaquest.bin"), b"not a game").unwrap();
    let other = result(here, Some(folder.path()));
    assert!(other.contains("has MD5") && other.contains("240bfbac5163af4df5ae713985386f92"));
}
