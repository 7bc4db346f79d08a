//! Logs of the DQN Replay Dataset's form, as Dopamine writes them: a folder of gzip files for
//! each run, with the frames in the order of the replay buffer ([`super::replay_log`]).

use std::path::Path;

use crate::error::DataError;
use crate::read::replay_log::ReplayLog;
use crate::recording::{Reader, Recording};

/// The format of the DQN Replay Dataset.
pub(crate) struct DqnReplay;

impl Reader for DqnReplay {
    fn name(&self) -> &'static str {
        "DQN replay"
    }

    fn reads(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        ReplayLog::open(path).map(Recording::ReplayLog)
    }
}
