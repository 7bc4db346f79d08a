//! `_overtone`: the extension module behind the Python package `overtone`.
//!
//! It contains the whole program, which Python calls with words as a shell does, and policies that
//! act step by step. Types, documentation and Python code are in `python/overtone`.

use pyo3::prelude::*;

mod agents;
mod dataset;
mod pictures;
mod program;
mod selection;

/// The native part of the package `overtone`.
#[pymodule]
fn _overtone(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(program::main, module)?)?;
    module.add_function(wrap_pyfunction!(program::run, module)?)?;
    module.add_function(wrap_pyfunction!(program::check_settings, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::content_hash, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::behavior_log_probs, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::find, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::warnings, module)?)?;
    module.add_function(wrap_pyfunction!(pictures::frames, module)?)?;
    module.add_function(wrap_pyfunction!(selection::budget_curve, module)?)?;
    module.add_class::<agents::Agents>()?;
    module.add("OvertoneWarning", module.py().get_type::<program::OvertoneWarning>())?;
    module.add("OvertoneError", module.py().get_type::<program::OvertoneError>())
}
