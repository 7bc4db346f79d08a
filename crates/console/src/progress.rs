//! Progress bars; without a terminal, a line every 10 seconds instead.

use std::{
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::host;

/// Interval of progress lines.
pub const EVERY: Duration = Duration::from_secs(10);

/// Interval of checks of a hidden bar.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Seconds as `8 s`, `3 min` or `2.5 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A progress line: work done, rate, remaining time.
fn line(what: &str, unit: &str, [from, done, of]: [u64; 3], seconds: f64, message: &str) -> String {
    let rate = done.saturating_sub(from) as f64 / seconds.max(1e-9);
    let mut line = format!("{what}: {done}/{of}{unit} after {}", duration(seconds));
    if rate > 0.0 {
        let left = of.saturating_sub(done) as f64 / rate;
        line += &format!(", {}/s, {} left", figures(rate), duration(left));
    }
    match message {
        "" => line,
        message => format!("{line}, {message}"),
    }
}

/// A rate with two or three digits.
fn figures(rate: f64) -> String {
    match rate {
        r if r < 1.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// Prints the progress of `bar` every 10 seconds without a terminal, until it is finished or
/// dropped.
fn with_lines(bar: ProgressBar, what: &'static str, unit: &'static str) -> ProgressBar {
    if !bar.is_hidden() || host::has_reader() || host::is_quiet() {
        return bar;
    }
    let (weak, began, from) = (bar.downgrade(), Instant::now(), bar.position());
    thread::spawn(move || {
        let mut printed = began;
        loop {
            thread::sleep(CHECK_INTERVAL);
            let Some(bar) = weak.upgrade().filter(|bar| !bar.is_finished()) else { return };
            if printed.elapsed() < EVERY {
                continue;
            }
            printed = Instant::now();
            let counts = [from, bar.position(), bar.length().unwrap_or(0)];
            let message = bar.message();
            say!("{}", line(what, unit, counts, began.elapsed().as_secs_f64(), &message));
        }
    });
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if host::has_reader() || host::is_quiet() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        return bar;
    }
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
        .with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.1}/s", state.per_sec());
        });
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// A bar over bytes; `hidden` without any work.
pub fn bytes(what: &'static str, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let template = "{prefix} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    with_lines(styled(ProgressBar::new(0).with_prefix(what), template), what, " bytes")
}

/// A bar over bytes of a download that starts at `there`; its message has the rate.
pub fn download(there: u64, total: u64) -> ProgressBar {
    let bar = styled(ProgressBar::new(total), "downloading {bar:30} {msg}");
    bar.set_position(there);
    with_lines(bar, "downloading", " bytes")
}

/// A bar over optimizer steps that starts at `done`.
pub fn steps(done: u64, total: u64) -> ProgressBar {
    let template = "training {bar:30} {pos}/{len} updates {rate}, {eta} left, {msg}";
    let bar = styled(ProgressBar::new(total), template);
    bar.set_position(done);
    bar.reset_eta();
    bar
}

/// A bar over episodes.
pub fn episodes(total: usize) -> ProgressBar {
    let template = "evaluating {bar:30} {pos}/{len} episodes, {elapsed} so far, {msg}";
    with_lines(styled(ProgressBar::new(total as u64), template), "evaluating", " episodes")
}

/// A bar over recorded transitions.
pub fn recording(total: usize) -> ProgressBar {
    let template = "recording {bar:30} {pos}/{len} transitions, {rate}, {eta} left";
    with_lines(styled(ProgressBar::new(total as u64), template), "recording", " transitions")
}

/// A bar over the parts of an experiment.
pub fn parts(what: &'static str, total: usize) -> ProgressBar {
    let template = "{prefix} {bar:30} {pos}/{len}, {elapsed} so far, {eta} left";
    with_lines(styled(ProgressBar::new(total as u64).with_prefix(what), template), what, "")
}

/// Progress lines only, for the parts of work that prints its own lines.
pub fn lines(what: &'static str, total: usize) -> ProgressBar {
    let bar = ProgressBar::hidden();
    bar.set_length(total as u64);
    with_lines(bar, what, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_time_left() {
        // 6 in 12 s are 0.5 per second; 14 are left.
        let text = line("playing", " episodes", [0, 6, 20], 12.0, "3 live");
        assert_eq!(text, "playing: 6/20 episodes after 12 s, 0.50/s, 28 s left, 3 live");
        assert_eq!(line("parts", "", [0, 0, 2], 100.0, ""), "parts: 0/2 after 2 min");
        // Earlier work does not count for the rate.
        let text = line("training", "", [100, 150, 1000], 10.0, "");
        assert_eq!(text, "training: 150/1000 after 10 s, 5.0/s, 3 min left");
    }
}
