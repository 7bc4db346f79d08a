//! Estimates of returns from a recording as text: one table for the program and for report pages.

use overtone_core::judgement::{Check, Judged, Judgement, Method, ReturnEstimate, Verdict};
use overtone_core::{Interval, decimal};
use overtone_eval::table::{Table, or_dash};

/// A row for each acting mode: its deciding estimate, the checks' figures and the answer.
pub fn table(judgement: &Judgement) -> Table {
    Table::of(
        &judgement.policies,
        &[
            ("mode", &|judged| judgement.label(&judged.mode)),
            ("estimate", &|judged| {
                let deciding = judged.deciding();
                or_dash(deciding.map(|estimate| with_interval(estimate.value, estimate.interval)))
            }),
            ("difference from recorded", &|judged| {
                or_dash(judged.deciding().and_then(|estimate| estimate.difference).map(interval))
            }),
            ("episodes in effect", &|judged| {
                let overlap = judged.overlap.as_ref();
                or_dash(overlap.and_then(|overlap| overlap.effective.last()).copied().map(short))
            }),
            ("uncovered steps", &|judged| {
                or_dash(judged.uncovered.map(|share| format!("{:.1} %", 100.0 * share)))
            }),
            ("answer", &|judged| judged.verdict.to_string()),
        ],
    )
}

/// The answer in one sentence: of the mode with the highest estimate among those that are better
/// than the recording, otherwise of the first mode. `None` without modes.
pub fn answer(judgement: &Judgement) -> Option<String> {
    let value =
        |judged: &Judged| judged.deciding().map_or(f64::NEG_INFINITY, |estimate| estimate.value);
    let is_better = |judged: &&Judged| judged.verdict == Verdict::BetterThanRecorded;
    let better = judgement.policies.iter().filter(is_better);
    let picked = better.max_by(|a, b| value(a).total_cmp(&value(b)));
    let picked = picked.or_else(|| judgement.policies.first())?;
    let mode = judgement.label(&picked.mode);
    let estimate =
        picked.deciding().map(|estimate| with_interval(estimate.value, estimate.interval));
    let recorded = with_interval(judgement.recording.mean_return, judgement.recording.interval);
    let compared = match &picked.verdict {
        Verdict::BetterThanRecorded => "better",
        Verdict::WorseThanRecorded => "worse",
        Verdict::CannotTell { reasons } => {
            let reasons: Vec<String> = reasons.iter().map(Check::to_string).collect();
            return Some(format!(
                "Cannot tell whether this agent is better than the recording, {recorded} (mode \
                 {mode}; failed checks: {}). Nothing was played.",
                reasons.join(", ")
            ));
        }
    };
    Some(format!(
        "Estimated {compared} than the recording: {} against {recorded} (mode {mode}). An estimate, \
         not a score.",
        or_dash(estimate)
    ))
}

/// The methods of the deciding estimates, each once and with its [`scope`].
pub fn methods(judgement: &Judgement) -> String {
    let deciding = judgement.policies.iter().filter_map(Judged::deciding);
    let mut names: Vec<String> = Vec::new();
    for ReturnEstimate { method, .. } in deciding {
        let name = format!("{}, {}", method.name(), scope(*method));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "none".into() } else { names.join("; ") }
}

/// The level of the intervals in words, such as `95 %`; with the reason if modes differ in it.
pub fn level(judgement: &Judgement) -> String {
    let percent = |level: f64| format!("{} %", (1000.0 * level).round() / 10.0);
    let highest =
        judgement.policies.iter().map(|judged| judged.level).fold(judgement.level, f64::max);
    let together = percent(judgement.level);
    if highest > judgement.level {
        let highest = percent(highest);
        format!("up to {highest}, so that the answers of all modes together hold at {together}")
    } else {
        together
    }
}

/// The part of an episode whose rewards an estimate counts. Importance weights have no other steps
/// than the recorded ones, and fitted Q-evaluation continues an episode that was cut.
pub fn scope(method: Method) -> &'static str {
    match method {
        Method::FittedQ => "as if no episode had been cut early",
        Method::Pdis | Method::Wpdis | Method::Wdr => RECORDED_STEPS,
    }
}

/// The part of an episode whose rewards the recorded mean return counts.
pub const RECORDED_STEPS: &str = "up to the last recorded step";

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
        // Click rates are some tenths of a percent.
        size if size > 0.0 && size < 0.01 => 5,
        size if size > 0.0 && size < 0.1 => 4,
        _ => 3,
    };
    decimal(value, digits)
}
