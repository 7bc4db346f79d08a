//! Estimates of returns from a recording as text: one table for the program and for report pages.

use overtone_core::Interval;
use overtone_core::judgement::{Judged, Judgement, ReturnEstimate};
use overtone_eval::summary::fixed;
use overtone_eval::table::Table;

/// A row for each acting mode: its deciding estimate, the checks' figures and the answer.
pub fn table(judgement: &Judgement) -> Table {
    let mut table = Table::new(&[
        "mode",
        "estimate",
        "difference from recorded",
        "episodes in effect",
        "uncovered steps",
        "answer",
    ]);
    for judged in &judgement.policies {
        let deciding = judged.deciding();
        let effective = judged.overlap.as_ref().and_then(|overlap| overlap.effective.last());
        let uncovered = judged.uncovered.map(|share| format!("{:.1} %", 100.0 * share));
        let cells = [
            deciding.map(|estimate| with_interval(estimate.value, estimate.interval)),
            deciding.and_then(|estimate| estimate.difference).map(interval),
            effective.map(|size| short(*size)),
            uncovered,
        ];
        let mut row = vec![judgement.label(&judged.mode)];
        row.extend(cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
        row.push(judged.verdict.to_string());
        table.row(row);
    }
    table
}

/// The methods of the deciding estimates, each once.
pub fn methods(judgement: &Judgement) -> String {
    let deciding = judgement.policies.iter().filter_map(Judged::deciding);
    let mut names: Vec<&str> = Vec::new();
    for ReturnEstimate { method, .. } in deciding {
        if !names.contains(&method.name()) {
            names.push(method.name());
        }
    }
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// `value [low, high]`, or the value alone without an interval.
pub fn with_interval(value: f64, ends: Option<Interval>) -> String {
    match ends {
        Some(ends) => format!("{} {}", short(value), interval(ends)),
        None => short(value),
    }
}

fn interval(Interval { low, high }: Interval) -> String {
    format!("[{}, {}]", short(low), short(high))
}

/// A number with about four digits.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    fixed(value, digits)
}
