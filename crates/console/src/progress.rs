//! Progress bars.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::host;

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
    styled(ProgressBar::new(0).with_prefix(what), template)
}

/// A bar over bytes of which some are there; what is said of them is its message's.
pub fn download(there: u64, total: u64) -> ProgressBar {
    let bar = styled(ProgressBar::new(total), "downloading {bar:30} {msg}");
    bar.set_position(there);
    bar
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
    styled(ProgressBar::new(total as u64), template)
}

/// A bar over recorded transitions.
pub fn recording(total: usize) -> ProgressBar {
    let template = "recording {bar:30} {pos}/{len} transitions, {rate}, {eta} left";
    styled(ProgressBar::new(total as u64), template)
}

/// A bar over the parts of an experiment.
pub fn parts(what: &'static str, total: usize) -> ProgressBar {
    let template = "{prefix} {bar:30} {pos}/{len}, {elapsed} so far, {eta} left";
    styled(ProgressBar::new(total as u64).with_prefix(what), template)
}
