//! Errors about missing requirements. Each case uses a child process, because Python's path is global
//! to a process.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use overtone_ale::{Game, check};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// Variable that is set in the child process.
const CHILD: &str = "OVERTONE_MISSING_CHILD";

/// The code of the child process.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        match check(game("seaquest")) {
            Ok(()) => println!("result: complete"),
            Err(error) => println!("result: {error}"),
        }
    }
}

/// The result of the check in `folder` with these environment variables.
fn result(folder: &Path, variables: &[(&str, &Path)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .current_dir(folder)
        .env_remove("VIRTUAL_ENV")
        .env_remove("ALE_ROMS_DIR")
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("result: ")).map(|(_, result)| result);
    line.unwrap_or_else(|| panic!("the child printed no result: {text}")).to_owned()
}

/// A new directory with a virtual environment for Python `version`.
fn folder_with_venv(name: &str, version: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("overtone-{name}-{}", std::process::id()));
    let packages = folder.join(format!(".venv/lib/python{version}/site-packages"));
    std::fs::create_dir_all(&packages).unwrap();
    std::fs::write(folder.join(".venv/pyvenv.cfg"), "").unwrap();
    (folder, packages)
}

fn built_for() -> String {
    pyo3::Python::attach(|py| {
        let version = py.version_info();
        format!("{}.{}", version.major, version.minor)
    })
}

#[test]
fn in_the_project_nothing_is_missing() {
    assert_eq!(result(Path::new(env!("CARGO_MANIFEST_DIR")), &[]), "complete");
}

#[test]
fn without_a_virtual_environment_the_error_names_the_setup() {
    let (folder, _) = folder_with_venv("none", "3");
    std::fs::remove_dir_all(folder.join(".venv")).unwrap();
    let error = result(&folder, &[]);
    assert!(error.starts_with("no `.venv`") && error.contains("`just setup`"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn without_ale_py_the_error_names_the_setup() {
    let (folder, _) = folder_with_venv("no-ale", &built_for());
    let error = result(&folder, &[]);
    assert!(
        error.starts_with("ale-py is not installed") && error.contains("just setup"),
        "{error}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn another_version_of_ale_py_is_rejected() {
    let (folder, packages) = folder_with_venv("other-ale", &built_for());
    std::fs::create_dir(packages.join("ale_py")).unwrap();
    std::fs::write(packages.join("ale_py/__init__.py"), "__version__ = '0.11.0'\n").unwrap();
    assert!(result(&folder, &[]).starts_with("ale-py 0.11.0 is installed, 0.12.1 is needed"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_error_names_another_version_of_python() {
    let (folder, _) = folder_with_venv("other-python", "3.0");
    let error = result(&folder, &[]);
    assert!(error.contains(&format!("built for Python {}", built_for())), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_error_names_missing_and_invalid_roms() {
    let (folder, _) = folder_with_venv("roms", "3.0");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing = result(here, &[("ALE_ROMS_DIR", &folder)]);
    assert!(missing.starts_with("the ROM of Seaquest is missing"), "{missing}");
    std::fs::write(folder.join("seaquest.bin"), b"not a game").unwrap();
    let other = result(here, &[("ALE_ROMS_DIR", &folder)]);
    assert!(other.contains("has MD5") && other.contains("240bfbac5163af4df5ae713985386f92"));
    std::fs::remove_dir_all(folder).unwrap();
}
