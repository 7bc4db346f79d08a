//! `overtone data`.

use std::path::Path;

use anyhow::Result;

/// `overtone data inspect PATH [--json]`.
pub fn inspect(path: &Path, json: bool) -> Result<()> {
    let inspection = overtone_data::inspect(path)?;
    if json {
        say!("{}", serde_json::to_string_pretty(&inspection)?);
    } else {
        say!("{inspection}");
    }
    Ok(())
}
