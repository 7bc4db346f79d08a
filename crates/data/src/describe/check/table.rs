//! Names and values as a table, for people.

use std::fmt;

/// A table of names and values, and under it what is odd.
pub(super) fn write_table(
    f: &mut fmt::Formatter<'_>,
    rows: &[(impl AsRef<str>, String)],
    odd: &[String],
) -> fmt::Result {
    for (name, value) in rows {
        writeln!(f, "{:<14} {value}", name.as_ref())?;
    }
    if odd.is_empty() {
        return write!(f, "{:<14} nothing", "odd");
    }
    let lines: Vec<_> = odd.iter().map(|line| format!("{:<14} {line}", "odd")).collect();
    f.write_str(&lines.join("\n"))
}
