//! A test's own program as a child process, for state that is global to a process: Python's path, a
//! loaded library, the current directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// Variable of the child process: the argument of its test.
const CHILD: &str = "OVERTONE_TEST_CHILD";

/// The argument of the running child process; `None` in any other process.
pub fn argument() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// The rest of the line `result: ` that the ignored test `child` prints in `folder` with `argument`.
/// `prepare` changes its environment variables.
#[track_caller]
pub fn result(folder: &Path, argument: &str, prepare: impl FnOnce(&mut Command)) -> String {
    let program = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(program);
    command
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .current_dir(folder)
        .env_remove("VIRTUAL_ENV")
        .env(CHILD, argument);
    prepare(&mut command);
    let output = command.output().unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("result: ")).map(|(_, result)| result);
    line.unwrap_or_else(|| panic!("the child printed no result: {text}")).to_owned()
}

/// A new directory with a virtual environment for Python `version`, and its packages.
pub fn folder_with_venv(version: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let packages = folder.path().join(format!(".venv/lib/python{version}/site-packages"));
    let marker = folder.path().join(".venv/pyvenv.cfg");
    let written = fs::create_dir_all(&packages).and_then(|()| fs::write(marker, ""));
    written.unwrap_or_else(|error| panic!("{error}"));
    (folder, packages)
}
