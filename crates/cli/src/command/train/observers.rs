//! Observers of training: progress on the terminal, and evaluations during training.

use std::time::Instant;

use indicatif::ProgressBar;
use overtone_console::progress;
use overtone_train::{Checkpoint, Finished, Observer, StepReport};

use crate::{
    command::evaluate::{Curve, Due},
    host, interrupt,
};

/// The observer of process 0, which prints.
pub struct Printer<'a> {
    /// The progress bar.
    pub bar: ProgressBar,
    /// Step of the next line without a terminal for the bar.
    next_line: u64,
    /// Time of the last line.
    printed: Instant,
    /// The first update of this process and its end. It may take much longer than the others: a GPU
    /// compiles kernels.
    first: Option<(u64, Instant)>,
    /// Evaluations during training.
    pub curve: Option<Curve<'a>>,
}

impl<'a> Printer<'a> {
    /// A printer for updates `done` to `total`.
    pub fn new(done: u64, total: u64, curve: Option<Curve<'a>>) -> Self {
        let now = Instant::now();
        let (bar, next_line) = (progress::steps(done, total), done + (total / 10).max(1));
        Self { bar, next_line, printed: now, first: None, curve }
    }
}

impl Observer for Printer<'_> {
    fn stepped(&mut self, step: u64, loss: f64) {
        self.bar.set_message(format!("loss {loss:.3}"));
        self.bar.set_position(step);
        let n_updates = self.bar.length().unwrap_or(step);
        let (first, began) = *self.first.get_or_insert_with(|| (step, Instant::now()));
        if self.bar.is_hidden() && self.printed.elapsed() >= progress::EVERY && step < n_updates {
            self.printed = Instant::now();
            let rate = (step - first) as f64 / began.elapsed().as_secs_f64().max(1e-9);
            let left = progress::duration((n_updates - step) as f64 / rate);
            let pace = match step > first {
                true => format!(", {rate:.1} updates/s, {left} left"),
                false => String::new(),
            };
            say!("update {step}/{n_updates}: loss {loss:.3}{pace}");
        }
    }

    fn logged(&mut self, report: &StepReport) {
        host::logged(report);
        if self.bar.is_hidden() && report.step >= self.next_line.min(report.n_updates) {
            self.next_line = report.step + (report.n_updates / 10).max(1);
            self.printed = Instant::now();
            let figures = report
                .figures
                .iter()
                .filter(|(_, figure)| !figure.is_nan())
                .map(|(name, figure)| format!(", {} {figure:.3}", name.replace('_', " ")));
            say!(
                "update {}/{}: loss {:.3}{}, {:.0} timesteps/s",
                report.step,
                report.n_updates,
                report.loss,
                figures.collect::<String>(),
                report.timesteps_per_s
            );
        }
    }

    fn recorded(&mut self, _step: u64, error: Option<&str>) {
        if let Some(error) = error {
            self.bar.suspend(|| {
                warn!("warning: updates are not recorded on the GPU, and are slower: {error}");
            });
        }
    }

    fn wants(&self, step: u64) -> bool {
        self.curve.as_ref().is_some_and(|curve| curve.is_at(step))
    }

    fn saved(&mut self, checkpoint: &Checkpoint) {
        if let (true, Some(loss)) = (self.bar.is_hidden(), checkpoint.state.held_out) {
            say!("update {}: held-out loss {loss:.4}", checkpoint.state.step);
        }
    }

    /// A failed evaluation is a gap in the curve and does not stop training. An interrupted one is
    /// repeated when the run resumes.
    fn measured(&mut self, checkpoint: &Checkpoint) -> Option<Vec<(String, f64)>> {
        let Some(curve) = &self.curve else { return Some(Vec::new()) };
        self.bar.suspend(|| match curve.play(checkpoint) {
            Ok((figures, line)) => {
                if !line.is_empty() {
                    say!("{line}");
                }
                Some(figures)
            }
            Err(error) if interrupt::is_stop(&error) => None,
            Err(error) => {
                let step = checkpoint.state.step;
                warn!("warning: update {step} was not evaluated: {error:#}");
                Some(Vec::new())
            }
        })
    }
}

/// Observer for ranks other than 0: prints nothing.
pub struct SilentObserver {
    /// The updates after which process 0 may evaluate.
    pub due: Option<Due>,
}

impl Observer for SilentObserver {
    fn wants(&self, step: u64) -> bool {
        self.due.is_some_and(|due| due.is_at(step))
    }
}

/// Prints the summary of a finished training.
pub fn print_finished(finished: &Finished) {
    let waiting_percent = 100.0 * finished.waited / finished.seconds.max(1e-9);
    say!(
        "trained for {:.0} s, {waiting_percent:.1} % of it waiting for data; checkpoint {}",
        finished.seconds,
        finished.checkpoint.path.display()
    );
    if let Some(best) = &finished.checkpoint.state.best {
        say!(
            "lowest held-out loss {:.4} after update {} (to evaluate it, use evaluate rollouts \
             checkpoint=best)",
            best.loss,
            best.step
        );
    }
}
