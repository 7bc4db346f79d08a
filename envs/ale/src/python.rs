//! ale-py and its ROMs in the embedded Python.

use std::env;
use std::path::PathBuf;

use overtone_interpreter::{add_packages, importing};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{ALE_PY_VERSION, AleError, Game};

/// A function that converts a [`PyErr`].
pub(crate) fn failed(doing: &'static str) -> impl FnOnce(PyErr) -> AleError {
    move |error| AleError::Emulator { doing, message: error.to_string() }
}

/// Imports and checks ale-py.
///
/// # Errors
/// When ale-py is missing or has another version.
pub(crate) fn ale_py(py: Python<'_>) -> Result<Bound<'_, PyModule>, AleError> {
    let venv = add_packages(py, "ale_py")?;
    let module = importing(py, || py.import("ale_py")).map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyModuleNotFoundError>(py)
            && error.to_string().contains("'ale_py'")
        {
            venv.map_or(AleError::NoPackages, |venv| AleError::NoAle { venv })
        } else {
            AleError::NoVectorInterface { message: error.to_string() }
        }
    })?;
    let got: String = module
        .getattr("__version__")
        .and_then(|version| version.extract())
        .map_err(failed("reading ale-py's version"))?;
    if got != ALE_PY_VERSION {
        return Err(AleError::AleVersion { got });
    }
    // If gymnasium is missing, ale-py omits the class and hides the reason.
    if !module.hasattr("ALEVectorInterface").map_err(failed("looking into ale-py"))? {
        let message = match py.import("gymnasium") {
            Err(error) => error.to_string(),
            Ok(_) => "ale-py was built without it".into(),
        };
        return Err(AleError::NoVectorInterface { message });
    }
    Ok(module)
}

/// A verified ROM of a game.
pub(crate) struct Rom {
    game: &'static Game,
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl Rom {
    /// Finds and verifies the ROM of `game`.
    ///
    /// # Errors
    /// When ale-py or the ROM is missing or has another version.
    pub(crate) fn find(game: &'static Game) -> Result<Self, AleError> {
        Python::attach(|py| {
            let module = ale_py(py)?;
            let folder = match env::var_os("ALE_ROMS_DIR") {
                Some(folder) => PathBuf::from(folder),
                None => {
                    let file: PathBuf = module
                        .getattr("__file__")
                        .and_then(|file| file.extract())
                        .map_err(failed("looking for ale-py's ROMs"))?;
                    file.with_file_name("roms")
                }
            };
            let path = folder.join(&game.task.name).with_extension("bin");
            let Ok(bytes) = std::fs::read(&path) else {
                return Err(AleError::NoRom { game: game.title(), path });
            };
            let got: String = py
                .import("hashlib")
                .and_then(|hashlib| hashlib.call_method1("md5", (PyBytes::new(py, &bytes),)))
                .and_then(|hash| hash.call_method0("hexdigest"))
                .and_then(|hash| hash.extract())
                .map_err(failed("hashing the ROM"))?;
            if got != game.rom_md5 {
                let expected = &game.rom_md5;
                return Err(AleError::OtherRom { game: game.title(), path, got, expected });
            }
            Ok(Self { game, path, bytes })
        })
    }

    /// Checks that the ROM file has not changed. Loading a missing or invalid ROM would end the
    /// whole process.
    ///
    /// # Errors
    /// When the file is missing or has changed.
    pub(crate) fn check(&self) -> Result<(), AleError> {
        let (game, path) = (self.game.title(), self.path.clone());
        match std::fs::read(&self.path) {
            Ok(bytes) if bytes == self.bytes => Ok(()),
            Ok(_) => Err(AleError::ChangedRom { game, path }),
            Err(_) => Err(AleError::NoRom { game, path }),
        }
    }
}

/// Checks an emulator's action set: an action index must have the same meaning as in the data.
pub(crate) fn check_actions(
    game: &'static Game,
    actions: &Bound<'_, PyAny>,
) -> Result<(), AleError> {
    let ids = || -> PyResult<Vec<usize>> {
        actions.try_iter()?.map(|action| action?.getattr("value")?.extract()).collect()
    };
    let got = ids().map_err(failed("reading the action set"))?;
    if got != game.action_ids {
        let (got, expected) = (format!("{got:?}"), format!("{:?}", game.action_ids));
        return Err(AleError::OtherActions { game: game.title(), got, expected });
    }
    Ok(())
}
