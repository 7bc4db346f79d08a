//! [`Initial`]: the weights of another run, with which a run begins.

use std::{fs, path::Path};

use crate::{
    checkpoint::{self, Began, Checkpoint},
    error::TrainError,
    run_dir::{RunDir, write_synced},
};

/// The folder in a run that holds the checkpoint it began with, so that the run needs the other
/// one no longer.
const FOLDER: &str = "init";

/// A checkpoint whose networks a run begins with. Optimizers, schedule and counters begin anew.
#[derive(Clone, Debug)]
pub struct Initial {
    /// Where the weights are.
    pub checkpoint: Checkpoint,
    /// The run that they are from, as a person named it.
    pub run: String,
}

impl Initial {
    /// What checkpoints say of it.
    ///
    /// # Errors
    /// When the file of the weights cannot be read.
    pub fn began(&self) -> Result<Began, TrainError> {
        let sha256 = self.checkpoint.weights_sha256()?;
        Ok(Began { run: self.run.clone(), step: self.checkpoint.state.step, sha256 })
    }

    /// Copies the checkpoint into the folder of the run that begins with it.
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

    /// What a run keeps of the checkpoint that it began with, `run` being where it was from.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn kept_in(folder: &Path, run: &str) -> Result<Self, TrainError> {
        let checkpoint = Checkpoint::open(&folder.join(FOLDER))?;
        Ok(Self { checkpoint, run: run.to_owned() })
    }
}
