//! Errors about missing requirements. Each case uses a child process, because Python's path is global
//! to a process.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use overtone_env::Suite;
use overtone_gymnasium::Gymnasium;

/// Variable of the child process: the name of the task.
const CHILD: &str = "OVERTONE_GYMNASIUM_CHILD";

/// The code of the child process.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    let Some(name) = std::env::var_os(CHILD) else { return };
    match Gymnasium.task(&name.to_string_lossy()) {
        Ok(task) => println!("result: {}", task.id()),
        Err(error) => {
            println!("result: {}", error.source().map_or(error.to_string(), ToString::to_string));
        }
    }
}

/// The result of querying a task in `folder`.
fn result(folder: &Path, task: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .current_dir(folder)
        .env_remove("VIRTUAL_ENV")
        .env(CHILD, task)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("result: ")).map(|(_, result)| result);
    line.unwrap_or_else(|| panic!("the child printed no result: {text}")).to_owned()
}

/// A new directory with a virtual environment for Python `version`.
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
fn without_gymnasium_the_error_names_the_setup() {
    let (folder, packages) = folder_with_venv("none", &built_for());
    let missing = result(&folder, "CartPole-v1");
    assert!(missing.starts_with("Gymnasium is not installed in"), "{missing}");
    assert!(missing.contains("run `just setup`"), "{missing}");
    std::fs::create_dir(packages.join("gymnasium")).unwrap();
    std::fs::write(packages.join("gymnasium/__init__.py"), "__version__ = '0.29.1'\n").unwrap();
    let other = result(&folder, "CartPole-v1");
    assert!(other.starts_with("Gymnasium 0.29.1 is installed, version 1 is needed"), "{other}");
    std::fs::remove_dir_all(folder.join(".venv")).unwrap();
    let no_venv = result(&folder, "CartPole-v1");
    assert!(no_venv.starts_with("no `.venv` in this directory or above"), "{no_venv}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn editable_packages_are_found() {
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
    // The module was imported, and its packages come before the system's packages.
    let first = packages.canonicalize().unwrap();
    let expected = format!("cannot create edited:make: RuntimeError: {}", first.display());
    assert_eq!(result(&folder, "edited:make"), expected);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_error_names_another_version_of_python() {
    let (folder, _) = folder_with_venv("other-python", "3.0");
    let other = result(&folder, "CartPole-v1");
    assert!(other.contains(&format!("built for Python {}", built_for())), "{other}");
    std::fs::remove_dir_all(folder).unwrap();
}
