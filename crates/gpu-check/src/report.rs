//! The report: a table for people, and JSON.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use overtone_console::errors;
use serde::Serialize;

/// One line of the table.
#[derive(Debug, Default, Serialize)]
pub struct Row {
    pub what: String,
    /// Whether the check passed; absent for measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The value, or the median of several values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The smallest and the largest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub unit: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Row {
    /// The row of a part that cannot run here.
    pub fn skipped(why: impl Into<String>) -> Vec<Self> {
        vec![Self { what: "skipped".into(), note: why.into(), ..Self::default() }]
    }

    /// A difference and its tolerance.
    pub fn compared(what: String, difference: f64, tolerance: f64) -> Self {
        Self {
            what,
            // NaN does not pass.
            passed: Some(difference <= tolerance),
            value: Some(difference),
            note: format!("at most {tolerance:.0e}"),
            ..Self::default()
        }
    }

    /// Several measurements of the same quantity.
    pub fn measured(what: String, unit: &'static str, values: &[f64], note: String) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            what,
            value: sorted.get(sorted.len() / 2).copied(),
            range: sorted.first().zip(sorted.last()).map(|(&least, &largest)| [least, largest]),
            unit,
            note,
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize)]
struct Part {
    name: &'static str,
    seconds: f64,
    rows: Vec<Row>,
}

/// The results so far. They are written to disk after every part.
#[derive(Debug, Serialize)]
pub struct Report {
    version: &'static str,
    device: String,
    size: &'static str,
    parts: Vec<Part>,
    #[serde(skip)]
    out: PathBuf,
}

impl Report {
    /// An empty report.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: PathBuf, device: &str, size: &'static str) -> Result<Self> {
        let version = env!("CARGO_PKG_VERSION");
        let report = Self { version, device: device.to_owned(), size, parts: Vec::new(), out };
        report.write()?;
        Ok(report)
    }

    /// Runs one part. Errors and panics become failed rows. GPU libraries panic if a compiler is
    /// missing or a kernel cannot run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn part(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<Vec<Row>>,
    ) -> Result<()> {
        say!("{name} …");
        let started = Instant::now();
        let failed = |what: &str, note| {
            vec![Row { what: what.into(), passed: Some(false), note, ..Row::default() }]
        };
        let rows = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => failed("error", errors::sentence(&error)),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).into()));
                failed("panic", words.unwrap_or_default())
            }
        };
        self.parts.push(Part { name, seconds: started.elapsed().as_secs_f64(), rows });
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&self.out, text + "\n")
            .with_context(|| format!("cannot write out={}", self.out.display()))
    }

    /// Prints the table.
    ///
    /// # Errors
    /// When a check failed.
    pub fn finish(&self) -> Result<()> {
        say!("\n{}, size {}\n", self.device, self.size);
        say!("| part | | | | |\n| --- | --- | ---: | --- | --- |");
        for part in &self.parts {
            for (i, row) in part.rows.iter().enumerate() {
                let name = match i {
                    0 => format!("{} ({:.0} s)", part.name, part.seconds),
                    _ => String::new(),
                };
                let verdict = match row.passed {
                    None => "",
                    Some(true) => "ok",
                    Some(false) => "FAILED",
                };
                let note = row.note.replace('\n', " ");
                say!("| {name} | {} | {} | {verdict} | {note} |", row.what, numbers(row));
            }
        }
        say!("\nnumbers: {}", self.out.display());
        let rows = || self.parts.iter().flat_map(|part| &part.rows);
        let n_failed = rows().filter(|row| row.passed == Some(false)).count();
        match rows().filter(|row| row.passed.is_some()).count() {
            n if n_failed > 0 => {
                bail!("{n_failed} of {n} checks on {} failed; see the table", self.device)
            }
            0 => say!("no checks were run: each part was skipped or only measured"),
            n => say!("all {n} checks passed"),
        }
        Ok(())
    }
}

fn numbers(row: &Row) -> String {
    let short = |x: f64| match x.abs() {
        0.0 => "0".to_owned(),
        size if size < 1e-2 => format!("{x:.1e}"),
        size if size < 100.0 => format!("{x:.2}"),
        _ => format!("{x:.0}"),
    };
    match (row.value, row.range) {
        (Some(value), Some([least, largest])) => {
            format!("{} ({}–{}) {}", short(value), short(least), short(largest), row.unit)
        }
        (Some(value), None) => format!("{} {}", short(value), row.unit).trim_end().to_owned(),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rows: impl FnOnce() -> Result<Vec<Row>>) -> (Result<()>, serde_json::Value) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("check.json");
        let mut report = Report::new(out.clone(), "cpu", "tiny").unwrap();
        report.part("a part", rows).unwrap();
        let text = std::fs::read_to_string(out).unwrap();
        (report.finish(), serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn failures_are_errors_and_on_disk() {
        let (ends, json) = report(|| Ok(vec![Row::compared("far".into(), 2.0, 1.0)]));
        assert!(ends.unwrap_err().to_string().contains("1 of 1 checks on cpu failed"));
        assert_eq!(json["parts"][0]["rows"][0]["passed"], false);
        let (ends, _) = report(|| Ok(vec![Row::compared("no number".into(), f64::NAN, 1.0)]));
        assert!(ends.is_err());
        let (ends, json) = report(|| anyhow::bail!("no file"));
        assert!(ends.is_err());
        assert_eq!(json["parts"][0]["rows"][0]["note"], "no file");
        let (ends, json) = report(|| panic!("no compiler"));
        assert!(ends.is_err());
        assert_eq!(json["parts"][0]["rows"][0]["note"], "no compiler");
    }

    #[test]
    fn passed_and_skipped_parts_are_not_errors() {
        let (ends, json) = report(|| {
            let mut rows = Row::skipped("no data");
            rows.push(Row::measured("time".into(), "ms", &[3.0, 1.0, 2.0], String::new()));
            rows.push(Row::compared("near".into(), 0.5, 1.0));
            Ok(rows)
        });
        ends.unwrap();
        assert_eq!(json["parts"][0]["rows"][1]["value"], 2.0);
        assert_eq!(json["parts"][0]["rows"][1]["range"], serde_json::json!([1.0, 3.0]));
    }
}
