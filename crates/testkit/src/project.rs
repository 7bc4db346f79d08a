//! The folder of the project.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "the helpers of tests are tests too"
)]

use std::path::{Path, PathBuf};

/// The project's folder.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
