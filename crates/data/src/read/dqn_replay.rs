//! Logs of the DQN Replay Dataset's form, as Dopamine writes them: a folder of gzip files for
//! each run, with the frames in the order of the replay buffer ([`super::replay_log`]).

use std::path::{Path, PathBuf};

use crate::describe::check::inspection::Inspection;
use crate::describe::check::replay;
use crate::describe::findings::Findings;
use crate::error::DataError;
use crate::read::recording::{Reader, Recording};
use crate::read::replay_log::ReplayLog;
use crate::read::run_folder::RunFolder;

/// The format of the DQN Replay Dataset.
pub(crate) struct DqnReplay;

impl Reader for DqnReplay {
    fn name(&self) -> &'static str {
        "DQN replay"
    }

    fn reads(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        Ok(RunFolder::find(path)?.folder)
    }

    /// The game, as its folder is named.
    fn task(&self, path: &Path) -> Option<String> {
        RunFolder::find(path).ok().map(|run| run.game)
    }

    fn is_log(&self) -> bool {
        true
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        ReplayLog::open(path).map(Recording::ReplayLog)
    }

    fn check(&self, path: &Path, findings: &mut Findings<'_>) -> Result<Inspection, DataError> {
        replay::check(path, findings)
    }
}
