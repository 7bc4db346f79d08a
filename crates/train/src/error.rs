//! What can go wrong while training.

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
    /// A file or folder of the run.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The loss or its gradient is not a number any more.
    #[error(
        "update {step}: the {what} is {value}; the batch's indices are in {}; {}. Try a lower \
         learning rate, or look at that data.",
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
        /// Step of the newest checkpoint there is.
        last: Option<u64>,
    },
    /// A file of a checkpoint does not say what it must.
    #[error("{}: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A run that has not come to its first checkpoint.
    #[error("there is no checkpoint in {} yet; `overtone resume` trains on", path.display())]
    NoCheckpoint {
        /// The folder of the run's checkpoints.
        path: PathBuf,
    },
    /// A checkpoint that cannot be written.
    #[error("update {step} could not be saved; {}", go_on(*last))]
    Save {
        /// Its step.
        step: u64,
        /// Step of the newest checkpoint there is.
        last: Option<u64>,
        /// What failed.
        source: Box<TrainError>,
    },
    /// The best checkpoint of a run that has none.
    #[error(
        "no loss on held-out episodes tells which checkpoint in {} is the best: that takes \
         train.held_out above 0, and an algorithm that learns recorded actions (errors of values \
         cannot be compared between checkpoints)",
        path.display()
    )]
    NoBest {
        /// The folder of the run's checkpoints.
        path: PathBuf,
    },
    /// A configuration that describes no training.
    #[error("train.{key} = {got}: {expected}")]
    Config {
        /// The key.
        key: &'static str,
        /// Its value.
        got: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Two processes would write one run.
    #[error("another process is training in {}; wait for it, or stop it", run.display())]
    Locked {
        /// The run's folder.
        run: PathBuf,
    },
    /// Nothing keeps two processes from writing one run.
    #[error(
        "the file system of {} has no locks, which keep two processes out of one run; choose a \
         folder on another with runs=",
        run.display()
    )]
    NoLocks {
        /// The run's folder.
        run: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process that shares the run cannot be reached any more.
    #[error("{what}; {}", whole(*last))]
    Lost {
        /// Which, and what is known of it.
        what: String,
        /// Step of the newest checkpoint there is.
        last: Option<u64>,
    },
    /// A process that shares the run could not go on, and says itself why.
    #[error("process {rank} of {n} could not go on, and says why; all have ended")]
    Elsewhere {
        /// Its rank.
        rank: usize,
        /// Number of processes.
        n: usize,
    },
    /// Processes that share a run do not hold the same weights, or data, any more.
    #[error(
        "update {step}: the weights or the data of process {rank} are not those of process 0 \
         (other machines or programs?); go on from a checkpoint with fewer processes"
    )]
    Differ {
        /// The step after which it was found.
        step: u64,
        /// The first that differs from process 0.
        rank: usize,
    },
    /// A run that is not there.
    #[error("{what}; `overtone train` makes a run")]
    NoRun {
        /// What was looked for and where.
        what: String,
    },
}

impl TrainError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// What is left when a checkpoint cannot be written.
fn go_on(last: Option<u64>) -> String {
    match last {
        Some(_) => format!("{}, and `overtone resume` goes on from it", whole(last)),
        None => format!("{}, and `overtone resume` begins again", whole(last)),
    }
}

fn whole(last: Option<u64>) -> String {
    match last {
        Some(step) => format!("the checkpoint of update {step} is whole"),
        None => "there is no checkpoint yet".to_owned(),
    }
}
