//! Metrics of a run: CSV files and TensorBoard's event files.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use crate::{error::TrainError, events::Events, observer::StepReport, setting::Setting};

/// Writer of a run's metrics.
#[derive(Debug)]
pub struct Metrics {
    training: Csv,
    /// Present if episodes are held out.
    held_out: Option<Csv>,
    /// Opened with its first row.
    measured: Option<Csv>,
    run_dir: PathBuf,
    events: Events,
}

/// A CSV file with the step in its first column, open for appending.
#[derive(Debug)]
struct Csv {
    path: PathBuf,
    file: fs::File,
    /// Its last row at the time of opening.
    last: String,
}

impl Csv {
    /// Opens or creates the file at `path`. Rows after `step` are dropped, because these steps are
    /// repeated.
    fn open(path: PathBuf, header: &str, step: u64) -> Result<Self, TrainError> {
        let kept = match fs::read(&path) {
            // A damaged row does not affect the other rows.
            Ok(bytes) => rows_until(&String::from_utf8_lossy(&bytes), step),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(TrainError::io(&path)(error)),
        };
        let last = kept.lines().next_back().unwrap_or_default().to_owned();
        let rows = header.to_owned() + &kept;
        overtone_files::replace(&path, rows.as_bytes()).map_err(TrainError::io(&path))?;
        let file =
            fs::OpenOptions::new().append(true).open(&path).map_err(TrainError::io(&path))?;
        Ok(Self { path, file, last })
    }

    fn add(&mut self, row: &str) -> Result<(), TrainError> {
        self.file.write_all(row.as_bytes()).map_err(TrainError::io(&self.path))
    }

    fn sync(&self) -> Result<(), TrainError> {
        self.file.sync_data().map_err(TrainError::io(&self.path))
    }
}

/// Losses on held-out episodes.
const HELD_OUT: &str = "held_out.csv";

/// Figures of evaluated checkpoints.
const MEASURED: &str = "checkpoints.csv";
const MEASURED_HEADER: &str = "step,seconds,figure,value\n";

/// The names of the columns; `figures` are the algorithm's own.
fn header(figures: &[&str]) -> String {
    let figures: String = figures.iter().map(|name| format!("{name},")).collect();
    format!(
        "step,tokens,loss,{figures}learning_rate,grad_norm,timesteps_per_s,waited_share,seconds\n"
    )
}

impl Metrics {
    /// Opens the metrics of the run in `run_dir`, with columns for `figures`, and a file for
    /// held-out episodes if there are any. Rows after `step` are dropped, because these steps are
    /// repeated.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn open(
        run_dir: &Path,
        step: u64,
        figures: &[&str],
        holds_out: bool,
    ) -> Result<Self, TrainError> {
        let training = Csv::open(run_dir.join("metrics.csv"), &header(figures), step)?;
        let held_out = if holds_out {
            Some(Csv::open(run_dir.join(HELD_OUT), "step,loss\n", step)?)
        } else {
            None
        };
        let mut events = Events::create(run_dir)?;
        events.restart_after(step);
        let path = run_dir.join(MEASURED);
        let measured =
            if path.exists() { Some(Csv::open(path, MEASURED_HEADER, step)?) } else { None };
        Ok(Self { training, held_out, measured, run_dir: run_dir.to_owned(), events })
    }

    /// Whether the metrics had figures of the checkpoint after `step` when they were opened.
    pub fn has_measured(&self, step: u64) -> bool {
        self.measured.as_ref().is_some_and(|csv| step_of(&csv.last) == Some(step))
    }

    /// Seconds of training up to the last row, at the time of opening.
    pub fn seconds(&self) -> f64 {
        let seconds = self.training.last.rsplit(',').next().and_then(|cell| cell.parse().ok());
        seconds.filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0).unwrap_or(0.0)
    }

    /// Waits until all rows and points are on disk. It is called before a checkpoint is written, so
    /// that the rows of its steps exist.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn sync(&self) -> Result<(), TrainError> {
        let others = [&self.held_out, &self.measured];
        for csv in others.into_iter().flatten().chain([&self.training]) {
            csv.sync()?;
        }
        self.events.sync()
    }

    /// Writes figures of the checkpoint after `step`, by name; `seconds` is its training time.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn log_measured(
        &mut self,
        step: u64,
        seconds: f64,
        figures: &[(String, f64)],
    ) -> Result<(), TrainError> {
        if figures.is_empty() {
            return Ok(());
        }
        let csv = match &mut self.measured {
            Some(csv) => csv,
            csv @ None => {
                csv.insert(Csv::open(self.run_dir.join(MEASURED), MEASURED_HEADER, step)?)
            }
        };
        // One write, so that a run killed in the meantime has all rows of a checkpoint or none.
        let rows =
            figures.iter().map(|(name, figure)| format!("{step},{seconds:.2},{name},{figure}\n"));
        csv.add(&rows.collect::<String>())?;
        for (name, figure) in figures {
            self.events.scalar(name, *figure as f32, step);
        }
        self.events.flush()
    }

    /// Writes one row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn log(&mut self, report: &StepReport) -> Result<(), TrainError> {
        let r = report;
        let figures: String = r.figures.iter().map(|(_, figure)| format!("{figure},")).collect();
        let row = format!(
            "{},{},{},{figures}{:e},{},{:.1},{:.4},{:.2}\n",
            r.step,
            r.tokens,
            r.loss,
            r.learning_rate,
            r.grad_norm,
            r.timesteps_per_s,
            r.waited_share,
            r.seconds
        );
        self.training.add(&row)?;
        // A figure that none of the steps has is not a point.
        for (name, figure) in r.figures.iter().filter(|(_, figure)| !figure.is_nan()) {
            self.events.scalar(&format!("train/{name}"), *figure as f32, r.step);
        }
        for (tag, value) in [
            ("train/loss", r.loss),
            ("train/lr", r.learning_rate),
            ("train/grad_norm", r.grad_norm),
            ("perf/timesteps_per_s", r.timesteps_per_s),
            ("perf/waited_share", r.waited_share),
        ] {
            self.events.scalar(tag, value as f32, r.step);
        }
        self.events.flush()
    }

    /// Writes the loss on held-out episodes after `step`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn log_held_out(&mut self, step: u64, loss: f64) -> Result<(), TrainError> {
        if let Some(csv) = &mut self.held_out {
            csv.add(&format!("{step},{loss}\n"))?;
        }
        self.events.scalar("held_out/loss", loss as f32, step);
        self.events.flush()
    }
}

/// Writes an evaluation's scores at `step`, next to the training curves: the name of each curve, the
/// score, and a description of the acting mode.
///
/// # Errors
/// When the file cannot be written.
pub fn write_scores(
    run_dir: &Path,
    step: u64,
    scores: &[(String, f64, String)],
) -> Result<(), TrainError> {
    let mut events = Events::create(run_dir)?;
    for (name, score, description) in scores {
        events.described(name, *score as f32, step, description);
    }
    events.ended();
    events.flush()
}

/// Writes a run's settings for TensorBoard's tab HParams. Call it before training, because
/// TensorBoard reads a directory's files in the order of their creation.
///
/// # Errors
/// When the file cannot be written.
pub fn write_settings(run_dir: &Path, settings: &[(String, Setting)]) -> Result<(), TrainError> {
    let mut events = Events::create(run_dir)?;
    events.settings(settings);
    events.flush()
}

/// The rows of steps up to `step`, without the header. An incomplete last row is dropped.
fn rows_until(text: &str, step: u64) -> String {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let rows = whole.split_inclusive('\n').skip(1);
    rows.filter(|row| step_of(row).is_some_and(|of_row| of_row <= step)).collect()
}

/// The step at the start of a row.
fn step_of(row: &str) -> Option<u64> {
    row.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_after_the_checkpoint_and_half_rows_are_dropped() {
        let text = format!("{}1,a\n2,b\n3,c\n4,d", header(&["accuracy"]));
        assert_eq!(rows_until(&text, 2), "1,a\n2,b\n");
        assert_eq!(rows_until(&text, 9), "1,a\n2,b\n3,c\n");
        assert_eq!(rows_until("", 9), "");
    }

    #[test]
    fn a_damaged_row_does_not_affect_other_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.csv");
        fs::write(&path, b"step,loss\n1,a\n2,\xff\xfe\n\xff,b\n3,c\n").unwrap();
        Metrics::open(dir.path(), 3, &[], false).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, header(&[]) + "1,a\n2,\u{fffd}\u{fffd}\n3,c\n");
        // An unreadable file is not treated as empty and overwritten.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Metrics::open(dir.path(), 3, &[], false).is_err());
    }
}
