//! What is said when something is missing: each case in a child process, since Python's path
//! belongs to the process.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use overtone_env::Suite;
use overtone_gymnasium::Gymnasium;

/// Set in the child: the task that is asked for.
const CHILD: &str = "OVERTONE_GYMNASIUM_CHILD";

/// What the child does; alone it does nothing.
#[test]
#[ignore = "the other process of a test; alone it does nothing"]
fn child() {
    let Some(name) = std::env::var_os(CHILD) else { return };
    match Gymnasium.task(&name.to_string_lossy()) {
        Ok(task) => println!("said: {}", task.id()),
        Err(error) => {
            println!("said: {}", error.source().map_or(error.to_string(), ToString::to_string));
        }
    }
}

/// What is said in `folder` about a task.
fn said(folder: &Path, task: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .current_dir(folder)
        .env_remove("VIRTUAL_ENV")
        .env(CHILD, task)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said);
    line.unwrap_or_else(|| panic!("the child said nothing: {text}")).to_owned()
}

/// A folder of its own, and in it a virtual environment for Python `version`.
fn folder_with_venv(name: &str, version: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("overtone-gym-{name}-{}", std::process::id()));
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
fn without_gymnasium_the_setup_is_named() {
    let (folder, packages) = folder_with_venv("none", &built_for());
    let missing = said(&folder, "CartPole-v1");
    assert!(missing.starts_with("Gymnasium is not installed in"), "{missing}");
    assert!(missing.contains("run `just setup`"), "{missing}");
    std::fs::create_dir(packages.join("gymnasium")).unwrap();
    std::fs::write(packages.join("gymnasium/__init__.py"), "__version__ = '0.29.1'\n").unwrap();
    let other = said(&folder, "CartPole-v1");
    assert!(other.starts_with("Gymnasium 0.29.1 is installed, version 1 is needed"), "{other}");
    std::fs::remove_dir_all(folder.join(".venv")).unwrap();
    let no_venv = said(&folder, "CartPole-v1");
    assert!(no_venv.starts_with("no `.venv` here nor in a folder above"), "{no_venv}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn packages_that_are_installed_as_editable_are_found() {
    let (folder, packages) = folder_with_venv("editable", &built_for());
    let write = |name: &str, text: &str| {
        let file = packages.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("gymnasium/__init__.py", "__version__ = '1.4.0'\nregistry = {}\nspaces = None\n");
    write("numpy/__init__.py", "");
    let sources = folder.join("sources");
    std::fs::create_dir(&sources).unwrap();
    let module = "import sys\ndef make():\n    raise RuntimeError(sys.path[0])\n";
    std::fs::write(sources.join("edited.py"), module).unwrap();
    write("__editable__.edited-0.1.pth", &format!("{}\n", sources.display()));
    // The module was imported, and the packages are before the system's.
    let first = packages.canonicalize().unwrap();
    let expected = format!("edited:make cannot be made: RuntimeError: {}", first.display());
    assert_eq!(said(&folder, "edited:make"), expected);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn another_python_is_named() {
    let (folder, _) = folder_with_venv("other-python", "3.0");
    let other = said(&folder, "CartPole-v1");
    assert!(other.contains(&format!("built for Python {}", built_for())), "{other}");
    std::fs::remove_dir_all(folder).unwrap();
}
