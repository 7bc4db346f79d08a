//! [`Initial`]: initial weights from another run.

use std::{fs, path::Path};

use crate::{
    checkpoint::{self, Checkpoint, InitSource},
    error::TrainError,
    run_dir::{RunDir, write_synced},
};

/// Directory in a run for the checkpoint of its initial weights, so that the run no longer depends
/// on the other run.
const FOLDER: &str = "init";

/// A checkpoint from which a run's networks are initialised. Optimizers, schedule and counters
/// start from scratch.
#[derive(Clone, Debug)]
pub struct Initial {
    /// The checkpoint with the weights.
    pub checkpoint: Checkpoint,
    /// The source run, as the user named it.
    pub run: String,
}

impl Initial {
    /// The description that checkpoints store.
    ///
    /// # Errors
    /// When the file of the weights cannot be read.
    pub fn source(&self) -> Result<InitSource, TrainError> {
        let sha256 = self.checkpoint.weights_sha256()?;
        Ok(InitSource { run: self.run.clone(), step: self.checkpoint.state.step, sha256 })
    }

    /// Copies the checkpoint into the directory of the run that it initialises.
    ///
    /// # Errors
    /// When a file is damaged, or cannot be written.
    pub fn keep_in(&self, run: &RunDir) -> Result<(), TrainError> {
        let folder = run.path().join(FOLDER);
        self.checkpoint.exported()?;
        fs::create_dir_all(&folder).map_err(TrainError::io(&folder))?;
        for name in checkpoint::FILES {
            let (from, to) = (self.checkpoint.path.join(name), folder.join(name));
            if from.exists() {
                let bytes = fs::read(&from).map_err(TrainError::io(&from))?;
                write_synced(&to, &bytes)?;
            }
        }
        Ok(())
    }

    /// The run's copy of the checkpoint of its initial weights. `run`: the source run.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn kept_in(folder: &Path, run: &str) -> Result<Self, TrainError> {
        let checkpoint = Checkpoint::open(&folder.join(FOLDER))?;
        Ok(Self { checkpoint, run: run.to_owned() })
    }
}
