//! The embedded Python, for suites that play in it: finding the project's packages, and importing
//! them in one thread at a time.
//!
//! They are looked for in `VIRTUAL_ENV`, then in `.venv` under the current folder and its
//! parents. A Python that has imported Overtone itself has its own packages, and is left alone.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use overtone_env::virtual_envs;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

/// The module whose import says that Overtone runs inside of Python, not Python inside of it.
const EXTENSION: &str = "overtone._overtone";

/// Why the project's packages cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// There are virtual environments, of another Python than the one linked.
    #[error(
        "this program was built for Python {built}, and `{venv}` holds another: run `just setup`, \
         then `cargo clean --release -p pyo3-build-config -p pyo3-ffi -p pyo3` and build again"
    )]
    OtherPython {
        /// Version the program was linked with, such as `3.11`.
        built: String,
        /// The virtual environment.
        venv: PathBuf,
    },
    /// Python itself failed.
    #[error("setting Python's path failed: {0}")]
    Python(#[from] PyErr),
}

/// Puts the project's packages on Python's path, those of the first virtual environment that has
/// the folder `wanted` among them. The answer is that virtual environment; else the first of this
/// Python; `None` where there is none at all. From here on Python code prints to standard error.
///
/// # Errors
/// When every virtual environment is of another Python.
pub fn add_packages(py: Python<'_>, wanted: &str) -> Result<Option<PathBuf>, PackagesError> {
    let sys = py.import("sys")?;
    if sys.getattr("modules")?.contains(EXTENSION)? {
        return Ok(Some(sys.getattr("prefix")?.extract()?));
    }
    // What modules and environments print is not what the program says.
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

/// Puts the packages of the folder `packages` before the system's, as in the virtual environment
/// itself.
///
/// Its name alone would not do: packages that are installed as editable are elsewhere, and named
/// in the folder's `.pth` files, which only Python's `site` reads.
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

/// Does what imports packages, while no other thread does: two threads that import modules which
/// need one another each see the other's half done.
pub fn importing<T>(py: Python<'_>, import: impl FnOnce() -> T) -> T {
    static IMPORTING: Mutex<()> = Mutex::new(());
    // Waits without the interpreter's lock, which the other thread needs.
    let _lock = IMPORTING.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    import()
}

/// Lets Python find modules of the current folder, after all others.
///
/// # Errors
/// When Python itself fails.
pub fn add_current_folder(py: Python<'_>) -> Result<(), PackagesError> {
    let path = py.import("sys")?.getattr("path")?;
    let here = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    // Not while another thread finds packages: it would take the folder for one of theirs.
    importing(py, || {
        if !path.contains(&here)? {
            path.call_method1("append", (&here,))?;
        }
        Ok(())
    })
}
