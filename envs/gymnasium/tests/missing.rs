//! Errors about missing requirements. Each case uses a child process, because Python's path is global
//! to a process.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::path::Path;

use overtone_env::Suite;
use overtone_gymnasium::Gymnasium;
use overtone_testkit::child::{self, folder_with_venv};

/// The code of the child process; its argument is the name of the task.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    let Some(name) = child::argument() else { return };
    match Gymnasium.task(&name) {
        Ok(task) => println!("result: {}", task.id()),
        Err(error) => {
            println!("result: {}", error.source().map_or(error.to_string(), ToString::to_string));
        }
    }
}

/// The result of querying a task in `folder`.
fn result(folder: &Path, task: &str) -> String {
    child::result(folder, task, |_| {})
}

fn built_for() -> String {
    pyo3::Python::attach(|py| {
        let version = py.version_info();
        format!("{}.{}", version.major, version.minor)
    })
}

#[test]
fn without_gymnasium_the_error_names_the_setup() {
    let (folder, packages) = folder_with_venv(&built_for());
    let missing = result(folder.path(), "CartPole-v1");
    assert!(missing.starts_with("Gymnasium is not installed in"), "{missing}");
    assert!(missing.contains("run `just setup`"), "{missing}");
    std::fs::create_dir(packages.join("gymnasium")).unwrap();
    std::fs::write(packages.join("gymnasium/__init__.py"), "__version__ = '0.29.1'\n").unwrap();
    let other = result(folder.path(), "CartPole-v1");
    assert!(other.starts_with("Gymnasium 0.29.1 is installed, version 1 is needed"), "{other}");
    std::fs::remove_dir_all(folder.path().join(".venv")).unwrap();
    let no_venv = result(folder.path(), "CartPole-v1");
    assert!(no_venv.starts_with("no `.venv` in this directory or above"), "{no_venv}");
}

#[test]
fn editable_packages_are_found() {
    let (folder, packages) = folder_with_venv(&built_for());
    let write = |name: &str, text: &str| {
        let file = packages.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("gymnasium/__init__.py", "__version__ = '1.4.0'\nregistry = {}\nspaces = None\n");
    write("numpy/__init__.py", "");
    let sources = folder.path().join("sources");
    std::fs::create_dir(&sources).unwrap();
    let module = "import sys\ndef make():\n    raise RuntimeError(sys.path[0])\n";
    std::fs::write(sources.join("edited.py"), module).unwrap();
    write("__editable__.edited-0.1.pth", &format!("{}\n", sources.display()));
    // The module was imported, and its packages come before the system's packages.
    let first = packages.canonicalize().unwrap();
    let expected = format!("cannot create edited:make: RuntimeError: {}", first.display());
    assert_eq!(result(folder.path(), "edited:make"), expected);
}

#[test]
fn the_error_names_another_version_of_python() {
    let (folder, _) = folder_with_venv("3.0");
    let other = result(folder.path(), "CartPole-v1");
    assert!(other.contains(&format!("built for Python {}", built_for())), "{other}");
}
