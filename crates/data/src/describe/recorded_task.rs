//! [`RecordedTask`]: the task of a recording, as the recording itself describes it.

use std::path::Path;

use overtone_core::Simulation;

use crate::describe::minari_id::RecordedEnv;
use crate::error::DataError;
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_paths::find_file;
use crate::read::minari_spaces::Description;

/// A recording's facts about its task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTask {
    /// The task's id, such as `gymnasium/CartPole-v1`, in a recording of our own.
    pub task: Option<String>,
    /// How it was simulated, in a recording of our own.
    pub simulation: Option<Simulation>,
    /// The environment of Gymnasium's, in any recording of Minari's form.
    pub env: Option<RecordedEnv>,
    /// `env_spec` as it is written.
    pub env_spec: Option<String>,
}

impl RecordedTask {
    /// The facts in the description of the recording at `path`: the file's own, else the one next
    /// to it if it belongs to this file. Empty without a description.
    ///
    /// # Errors
    /// When a description is there and cannot be read.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        let is_hdf5 = path.extension().is_some_and(|ending| ending == "hdf5" || ending == "h5");
        let file = match path.is_dir() {
            true => find_file(path).ok(),
            false => (is_hdf5 && path.is_file()).then(|| path.to_path_buf()),
        };
        let found = match file {
            Some(file) => Some(Description::of(&Hdf5File::open(&file)?)?),
            // A folder without a readable HDF5 file may hold the description alone.
            None => Description::in_folder(path)?,
        };
        let Description { env_spec, overtone, .. } = found.unwrap_or_default().1;
        let (task, simulation) =
            overtone.map_or((None, None), |own| (Some(own.task), own.simulation));
        // A document in a string, which may hold numbers that are not valid JSON.
        let env = env_spec.as_deref().and_then(|spec| serde_json::from_str(spec).ok());
        Ok(Self { task, simulation, env, env_spec })
    }
}
