//! The embedded Python: Gymnasium, and the helper that creates and steps its environments.

use std::ffi::CString;
use std::path::PathBuf;

use overtone_core::{ActionSpace, ObservationSpace};
use overtone_interpreter::{add_current_folder, add_packages, importing};
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use serde::Deserialize;

use crate::{GYMNASIUM_VERSION, GymnasiumError, TaskName};

/// A function that converts a [`PyErr`].
pub(crate) fn failed(doing: &'static str) -> impl FnOnce(PyErr) -> GymnasiumError {
    move |error| GymnasiumError::Failed { doing, message: error.to_string() }
}

/// Imports and checks Gymnasium, and loads the helper.
///
/// # Errors
/// When Gymnasium is missing or has another version.
pub(crate) fn helper(py: Python<'_>) -> Result<Bound<'_, PyModule>, GymnasiumError> {
    static HELPER: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    if let Some(helper) = HELPER.get(py) {
        return Ok(helper.bind(py).clone());
    }
    let venv = add_packages(py, "gymnasium")?;
    add_current_folder(py)?;
    let gymnasium = importing(py, || py.import("gymnasium")).map_err(|error| {
        let missing = error.is_instance_of::<PyModuleNotFoundError>(py);
        match (venv, missing && error.to_string().contains("'gymnasium'")) {
            (Some(venv), true) => GymnasiumError::NoGymnasium { venv },
            (None, true) => GymnasiumError::NoPackages,
            _ => failed("importing it")(error),
        }
    })?;
    let got = version(&gymnasium)?;
    if got.split('.').next() != Some(GYMNASIUM_VERSION) {
        return Err(GymnasiumError::Version { got });
    }
    let code = CString::new(include_str!("helper.py")).map_err(|error| GymnasiumError::Failed {
        doing: "reading the helper",
        message: error.to_string(),
    })?;
    let name = c"overtone_gymnasium";
    // The helper is loaded only once, because a second copy would have another import lock.
    let load = || match HELPER.get(py) {
        Some(helper) => Ok(helper.bind(py).clone()),
        None => {
            let helper = PyModule::from_code(py, &code, c"overtone_gymnasium.py", name)?;
            Ok(HELPER.get_or_init(py, || helper.unbind()).bind(py).clone())
        }
    };
    importing(py, load).map_err(failed("loading the helper"))
}

fn version(gymnasium: &Bound<'_, PyModule>) -> Result<String, GymnasiumError> {
    let version = gymnasium.getattr("__version__").and_then(|version| version.extract());
    version.map_err(failed("reading its version"))
}

/// Gymnasium's version.
///
/// # Errors
/// When Gymnasium is missing.
pub(crate) fn gymnasium_version() -> Result<String, GymnasiumError> {
    Python::attach(|py| {
        helper(py)?;
        version(&py.import("gymnasium").map_err(failed("importing it"))?)
    })
}

/// Result of the search for a name.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Resolved {
    /// The environment's id in Gymnasium.
    Name(String),
    /// The known ids, if the name is not found.
    Known(Vec<String>),
}

/// Finds the environment's id in Gymnasium, for any spelling and without the version.
///
/// # Errors
/// When Gymnasium is missing, or the module before a colon cannot be imported.
pub(crate) fn resolve(name: &TaskName) -> Result<Resolved, GymnasiumError> {
    Python::attach(|py| {
        let answer = helper(py)?.call_method1("resolve", (&name.id,));
        let answer = answer.map_err(|error| creation_error(py, name, &error))?;
        read(&answer, "looking a name up")
    })
}

/// The spaces and other properties of an environment, as reported by the helper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Described {
    pub observations: ObservationSpace,
    pub actions: ActionSpace,
    /// Gymnasium's limit of actions in an episode.
    pub max_steps: Option<u32>,
    pub render_modes: Vec<String>,
    /// Actions per second.
    pub fps: f64,
    /// Gymnasium's `EnvSpec` as JSON, if serializable.
    pub spec: Option<String>,
}

/// Creates an environment and describes it.
///
/// # Errors
/// When the environment cannot be created or a space is not supported.
pub(crate) fn describe(name: &TaskName) -> Result<Described, GymnasiumError> {
    Python::attach(|py| {
        let options = options(py, name)?;
        let answer = helper(py)?.call_method1("describe", (&name.id, options));
        let answer = answer.map_err(|error| creation_error(py, name, &error))?;
        read(&answer, "describing an environment")
    })
}

/// The keyword arguments as a Python dict.
///
/// # Errors
/// When Python fails.
pub(crate) fn options<'py>(
    py: Python<'py>,
    name: &TaskName,
) -> Result<Bound<'py, PyDict>, GymnasiumError> {
    let json = py.import("json").and_then(|json| {
        Ok(json.call_method1("loads", (name.options_as_json(),))?.cast_into::<PyDict>()?)
    });
    json.map_err(failed("reading keyword arguments"))
}

/// The error for an exception during the creation of an environment.
pub(crate) fn creation_error(py: Python<'_>, name: &TaskName, error: &PyErr) -> GymnasiumError {
    let task = name.to_string();
    let [kind, message] = raised(py, error);
    match kind.as_str() {
        "Unsuitable" => GymnasiumError::Unsuitable { task, reason: message },
        "DependencyNotInstalled" | "ModuleNotFoundError" => {
            let venv = overtone_env::virtual_envs().into_iter().next();
            let venv = venv.unwrap_or_else(|| PathBuf::from(".venv"));
            GymnasiumError::Package { task, message, venv }
        }
        kind => GymnasiumError::Make { task, message: format!("{kind}: {message}") },
    }
}

/// The class and the message of an exception, without line breaks.
pub(crate) fn raised(py: Python<'_>, error: &PyErr) -> [String; 2] {
    let kind = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
    [kind, one_line(&error.value(py).to_string())]
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read<T: for<'de> Deserialize<'de>>(
    answer: &Bound<'_, PyAny>,
    doing: &'static str,
) -> Result<T, GymnasiumError> {
    let text: String = answer.extract().map_err(failed(doing))?;
    serde_json::from_str(&text)
        .map_err(|error| GymnasiumError::Failed { doing, message: format!("{error}: {text}") })
}
