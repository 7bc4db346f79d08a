//! Progress bars. Where no terminal shows them, a line every 10 seconds in their place.

use std::{
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::host;

/// How long nothing may be said.
pub const EVERY: Duration = Duration::from_secs(10);

/// How often a bar that is not shown is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Seconds as `8 s`, `3 min` or `2.5 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// What a line says of a bar after so many seconds: what is done, how fast, how long the rest takes.
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

/// Two or three figures of a rate.
fn figures(rate: f64) -> String {
    match rate {
        r if r < 1.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// Says every 10 seconds how far `bar` is, until it is finished or dropped, where
/// no terminal shows it.
fn told(bar: ProgressBar, what: &'static str, unit: &'static str) -> ProgressBar {
    if !bar.is_hidden() || host::is_lent() || host::is_quiet() {
        return bar;
    }
    let (weak, began, from) = (bar.downgrade(), Instant::now(), bar.position());
    thread::spawn(move || {
        let mut said = began;
        loop {
            thread::sleep(LOOK);
            let Some(bar) = weak.upgrade().filter(|bar| !bar.is_finished()) else { return };
            if said.elapsed() < EVERY {
                continue;
            }
            said = Instant::now();
            let counts = [from, bar.position(), bar.length().unwrap_or(0)];
            let message = bar.message();
            say!("{}", line(what, unit, counts, began.elapsed().as_secs_f64(), &message));
        }
    });
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if host::is_lent() || host::is_quiet() {
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

/// A bar over bytes; hidden when there is nothing to do.
pub fn bytes(what: &'static str, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let template = "{prefix} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    told(styled(ProgressBar::new(0).with_prefix(what), template), what, " bytes")
}

/// A bar over bytes of which some are there; what is said of them is its message's.
pub fn download(there: u64, total: u64) -> ProgressBar {
    let bar = styled(ProgressBar::new(total), "downloading {bar:30} {msg}");
    bar.set_position(there);
    told(bar, "downloading", " bytes")
}

/// A bar over optimizer steps that already stands at `done`.
pub fn steps(done: u64, total: u64) -> ProgressBar {
    let template = "training {bar:30} {pos}/{len} updates {rate}, {eta} left, {msg}";
    let bar = styled(ProgressBar::new(total), template);
    bar.set_position(done);
    bar.reset_eta();
    bar
}

/// A bar over episodes.
pub fn episodes(total: usize) -> ProgressBar {
    let template = "playing {bar:30} {pos}/{len} episodes, {elapsed} so far, {msg}";
    told(styled(ProgressBar::new(total as u64), template), "playing", " episodes")
}

/// A bar over recorded transitions.
pub fn recording(total: usize) -> ProgressBar {
    let template = "recording {bar:30} {pos}/{len} transitions, {rate}, {eta} left";
    told(styled(ProgressBar::new(total as u64), template), "recording", " transitions")
}

/// A bar over the parts of an experiment.
pub fn parts(what: &'static str, total: usize) -> ProgressBar {
    let template = "{prefix} {bar:30} {pos}/{len}, {elapsed} so far, {eta} left";
    told(styled(ProgressBar::new(total as u64).with_prefix(what), template), what, "")
}

/// Lines alone, about the parts of a piece of work that says more of itself.
pub fn lines(what: &'static str, total: usize) -> ProgressBar {
    let bar = ProgressBar::hidden();
    bar.set_length(total as u64);
    told(bar, what, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_rate_and_time_left() {
        // 6 in 12 s are half of one a second; 14 are left.
        let told = line("playing", " episodes", [0, 6, 20], 12.0, "3 live");
        assert_eq!(told, "playing: 6/20 episodes after 12 s, 0.50/s, 28 s left, 3 live");
        assert_eq!(line("parts", "", [0, 0, 2], 100.0, ""), "parts: 0/2 after 2 min");
        // What was there before is no rate.
        let told = line("training", "", [100, 150, 1000], 10.0, "");
        assert_eq!(told, "training: 150/1000 after 10 s, 5.0/s, 3 min left");
    }
}
