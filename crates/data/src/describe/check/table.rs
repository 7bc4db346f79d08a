//! Names and values as a table, for people.

use std::fmt;

/// A table of names and values.
pub(super) fn write_table(
    f: &mut fmt::Formatter<'_>,
    rows: &[(impl AsRef<str>, String)],
) -> fmt::Result {
    let lines = rows.iter().map(|(name, value)| format!("{:<14} {value}", name.as_ref()));
    f.write_str(&lines.collect::<Vec<_>>().join("\n"))
}
