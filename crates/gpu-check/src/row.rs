//! [`Row`]: a line of the table.

use std::fmt;

/// A comparison or a measurement.
#[derive(Default)]
pub struct Row {
    pub what: String,
    /// Whether the check passed; absent for measurements.
    pub passed: Option<bool>,
    /// The value, or the median of several values.
    pub value: Option<f64>,
    /// The smallest and the largest value.
    pub range: Option<[f64; 2]>,
    pub unit: &'static str,
    pub note: String,
}

impl Row {
    /// The row of a part that cannot run here.
    pub fn skipped(why: &str) -> Vec<Self> {
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

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |x: f64| match x.abs() {
            0.0 => "0".to_owned(),
            size if size < 1e-2 => format!("{x:.1e}"),
            size if size < 100.0 => format!("{x:.2}"),
            _ => format!("{x:.0}"),
        };
        let value = self.value.map(short).unwrap_or_default();
        let range = self.range.map_or_else(String::new, |[least, largest]| {
            format!(" ({}–{})", short(least), short(largest))
        });
        let verdict = match self.passed {
            None => "",
            Some(true) => "ok",
            Some(false) => "FAILED",
        };
        let (unit, note) = (self.unit, self.note.replace('\n', " "));
        write!(f, "{} | {value}{range} {unit} | {verdict} | {note} |", self.what)
    }
}
