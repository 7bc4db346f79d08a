//! Errors of training.

use std::path::PathBuf;

use overtone_data::DataError;
use overtone_model::ModelError;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Model or weights do not fit.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An input or output error of a file or directory of the run.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The loss or its gradient is not finite.
    #[error(
        "update {step}: the {what} is {value}; the batch's indices are in {}; {}. Try a lower \
         learning rate, or check that data.",
        indices.display(),
        whole(*last)
    )]
    NonFinite {
        /// The step that failed.
        step: u64,
        /// `loss` or `gradient norm`.
        what: &'static str,
        /// Its value.
        value: f64,
        /// File with the dataset indices of the batch.
        indices: PathBuf,
        /// Step of the newest existing checkpoint.
        last: Option<u64>,
    },
    /// A checkpoint with an invalid file.
    #[error("{}: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The reason why it is invalid.
        reason: String,
    },
    /// A run before its first checkpoint.
    #[error("{} does not contain a checkpoint yet. Use `overtone resume` to train", path.display())]
    NoCheckpoint {
        /// The directory of the run's checkpoints.
        path: PathBuf,
    },
    /// A checkpoint that cannot be written.
    #[error("update {step} could not be saved; {}", resume_hint(*last))]
    Save {
        /// Its step.
        step: u64,
        /// Step of the newest existing checkpoint.
        last: Option<u64>,
        /// The error.
        source: Box<TrainError>,
    },
    /// The best checkpoint of a run without one.
    #[error(
        "no held-out loss selects the best checkpoint in {}: the selection needs train.held_out \
         above 0, and an algorithm that learns recorded actions (errors of values cannot be \
         compared between checkpoints)",
        path.display()
    )]
    NoBest {
        /// The directory of the run's checkpoints.
        path: PathBuf,
    },
    /// An invalid configuration.
    #[error("train.{key} = {got}: {expected}")]
    Config {
        /// The key.
        key: &'static str,
        /// Its value.
        got: String,
        /// The valid values.
        expected: &'static str,
    },
    /// Two processes that would write to one run.
    #[error("another process is training in {}. Wait for it, or stop it", run.display())]
    Locked {
        /// The run's directory.
        run: PathBuf,
    },
    /// A file system without the locks that keep two processes from writing to one run.
    #[error(
        "the file system of {} has no locks, so two processes could write to one run. Choose a \
         directory on another file system with runs=",
        run.display()
    )]
    NoLocks {
        /// The run's directory.
        run: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A process of the run cannot be reached any more.
    #[error("{what}; {}", whole(*last))]
    Lost {
        /// The process, and the known details.
        what: String,
        /// Step of the newest existing checkpoint.
        last: Option<u64>,
    },
    /// A process of the run failed and printed its own error.
    #[error("process {rank} of {n} failed (see its error); all processes were stopped")]
    Elsewhere {
        /// Its rank.
        rank: usize,
        /// Number of processes.
        n: usize,
    },
    /// Processes of a run whose weights or data differ.
    #[error(
        "update {step}: process {rank} has other weights or data than process 0 (other machines or \
         programs?). Resume from a checkpoint with fewer processes"
    )]
    Differ {
        /// The step after which the difference was found.
        step: u64,
        /// The first rank that differs from process 0.
        rank: usize,
    },
    /// A run that does not exist.
    #[error("{what}; `overtone train` creates a run")]
    NoRun {
        /// The requested run and the searched places.
        what: String,
    },
}

impl TrainError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// The checkpoint that is left when a new one cannot be written.
fn resume_hint(last: Option<u64>) -> String {
    match last {
        Some(_) => format!("{}, and `overtone resume` resumes from it", whole(last)),
        None => format!("{}, and `overtone resume` starts over", whole(last)),
    }
}

fn whole(last: Option<u64>) -> String {
    match last {
        Some(step) => format!("the checkpoint of update {step} is intact"),
        None => "no checkpoint exists yet".to_owned(),
    }
}
