//! The embedded Python of suites that need it: finding the project's packages, and importing them
//! in one thread at a time.
//!
//! Packages are searched in `VIRTUAL_ENV`, then in `.venv` of the current directory and its
//! parents. A Python that has imported Overtone itself keeps its own packages.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use overtone_env::virtual_envs;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

/// The extension module; if it is imported, Overtone runs inside of Python.
const EXTENSION: &str = "overtone._overtone";

/// An error of finding the project's packages.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// All virtual environments have another Python than the one linked.
    #[error(
        "this program was built for Python {built}, and `{venv}` has another. Run `just setup`, \
         then `cargo clean --release -p pyo3-build-config -p pyo3-ffi -p pyo3`, and build again"
    )]
    OtherPython {
        /// Version the program was linked with, such as `3.11`.
        built: String,
        /// The virtual environment.
        venv: PathBuf,
    },
    /// Python itself failed.
    #[error("cannot set Python's path: {0}")]
    Python(#[from] PyErr),
}

/// Puts the packages of a virtual environment on Python's path, and returns it: the first with the
/// directory `wanted`, else the first of this Python, else `None`. Python code then prints to
/// standard error.
///
/// # Errors
/// When every virtual environment has another Python.
pub fn add_packages(py: Python<'_>, wanted: &str) -> Result<Option<PathBuf>, PackagesError> {
    let sys = py.import("sys")?;
    if sys.getattr("modules")?.contains(EXTENSION)? {
        return Ok(Some(sys.getattr("prefix")?.extract()?));
    }
    // Output of modules and environments is not output of the program.
    sys.setattr("stdout", sys.getattr("stderr")?)?;
    let version = py.version_info();
    let built = format!("{}.{}", version.major, version.minor);
    let packages_of = |venv: &Path| venv.join(format!("lib/python{built}/site-packages"));
    let venvs = virtual_envs();
    let with_it = venvs.iter().find(|venv| packages_of(venv).join(wanted).is_dir());
    let with_packages = || venvs.iter().find(|venv| packages_of(venv).is_dir());
    let Some(venv) = with_it.or_else(with_packages) else {
        return match venvs.into_iter().next() {
            Some(venv) => Err(PackagesError::OtherPython { built, venv }),
            None => Ok(None),
        };
    };
    importing(py, || put_first(py, &packages_of(venv)))?;
    Ok(Some(venv.clone()))
}

/// Puts the packages of the directory `packages` before the system's, as in the virtual environment
/// itself.
///
/// The directory alone is not enough: editable packages are elsewhere, and named in the directory's
/// `.pth` files, which only Python's `site` reads.
fn put_first(py: Python<'_>, packages: &Path) -> PyResult<()> {
    // As text: Python skips path objects here.
    let packages = packages.to_string_lossy().into_owned();
    let path = py.import("sys")?.getattr("path")?.cast_into::<PyList>()?;
    if path.contains(&packages)? {
        return Ok(());
    }
    let before = path.get_slice(0, path.len());
    py.import("site")?.call_method1("addsitedir", (&packages,))?;
    let first = PyList::empty(py);
    for entry in path.get_slice(0, path.len()) {
        if !before.contains(&entry)? {
            first.append(entry)?;
        }
    }
    path.set_slice(0, path.len(), &first.add(before)?)
}

/// Runs `import` while no other thread imports packages. Two threads that import modules of a cycle
/// would each see an incomplete module.
pub fn importing<T>(py: Python<'_>, import: impl FnOnce() -> T) -> T {
    static IMPORTING: Mutex<()> = Mutex::new(());
    // Waits without the interpreter's lock, which the other thread needs.
    let _lock = IMPORTING.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    import()
}

/// Lets Python find modules of the current directory, after all others.
///
/// # Errors
/// When Python itself fails.
pub fn add_current_folder(py: Python<'_>) -> Result<(), PackagesError> {
    let path = py.import("sys")?.getattr("path")?;
    let here = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    // Not while another thread finds packages, which would mistake the directory for one of its
    // own.
    importing(py, || {
        if !path.contains(&here)? {
            path.call_method1("append", (&here,))?;
        }
        Ok(())
    })
}
