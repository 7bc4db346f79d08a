//! What is said when something is missing: each case in a child process, since Python's path
//! belongs to the process.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use overtone_ale::{Game, check};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// Set in the child.
const CHILD: &str = "OVERTONE_MISSING_CHILD";

/// What the child does; alone it does nothing.
#[test]
#[ignore = "the other process of a test; alone it does nothing"]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        match check(game("seaquest")) {
            Ok(()) => println!("said: all there"),
            Err(error) => println!("said: {error}"),
        }
    }
}

/// What is said in `folder`, with these variables set.
fn said(folder: &Path, variables: &[(&str, &Path)]) -> String {
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
    let line = text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said);
    line.unwrap_or_else(|| panic!("the child said nothing: {text}")).to_owned()
}

/// A folder of its own, and in it a virtual environment for Python `version`.
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
fn here_nothing_is_missing() {
    assert_eq!(said(Path::new(env!("CARGO_MANIFEST_DIR")), &[]), "all there");
}

#[test]
fn without_a_virtual_environment_the_setup_is_named() {
    let (folder, _) = folder_with_venv("none", "3");
    std::fs::remove_dir_all(folder.join(".venv")).unwrap();
    let said = said(&folder, &[]);
    assert!(said.starts_with("no `.venv`") && said.contains("`just setup`"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn without_ale_py_the_setup_is_named() {
    let (folder, _) = folder_with_venv("no-ale", &built_for());
    let said = said(&folder, &[]);
    assert!(said.starts_with("ale-py is not installed") && said.contains("just setup"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn another_ale_py_is_refused() {
    let (folder, packages) = folder_with_venv("other-ale", &built_for());
    std::fs::create_dir(packages.join("ale_py")).unwrap();
    std::fs::write(packages.join("ale_py/__init__.py"), "__version__ = '0.11.0'\n").unwrap();
    assert!(said(&folder, &[]).starts_with("ale-py 0.11.0 is installed, 0.12.1 is needed"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn another_python_is_named() {
    let (folder, _) = folder_with_venv("other-python", "3.0");
    let said = said(&folder, &[]);
    assert!(said.contains(&format!("built for Python {}", built_for())), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn missing_and_other_roms_are_named() {
    let (folder, _) = folder_with_venv("roms", "3.0");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing = said(here, &[("ALE_ROMS_DIR", &folder)]);
    assert!(missing.starts_with("the ROM of Seaquest is missing"), "{missing}");
    std::fs::write(folder.join("seaquest.bin"), b"not a game").unwrap();
    let other = said(here, &[("ALE_ROMS_DIR", &folder)]);
    assert!(other.contains("has MD5") && other.contains("240bfbac5163af4df5ae713985386f92"));
    std::fs::remove_dir_all(folder).unwrap();
}
