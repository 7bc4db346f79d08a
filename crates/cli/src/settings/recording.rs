//! Which recording was given by its place, whatever becomes of it.

use std::path::Path;

use anyhow::Result;
use overtone_core::{ObservationSpace, Task};
use overtone_data::{MinariId, read::reader_as};

use overtone_agents::AlgorithmKind;

use super::{Choices, Profile, RunConfig, defaults};
use crate::{keys, suites::Data};

impl RunConfig {
    /// The recording, where its place was given and not a name that is looked up.
    pub fn recording(&self) -> Option<Data> {
        given(&self.dataset, &self.data.path, &self.data.layout)
    }

    /// Whether what is trained on is a log of frames, of which transitions are drawn.
    pub fn is_log(&self) -> bool {
        let is_of = |task| is_log(task, &self.dataset, self.recording().as_ref());
        self.task().is_ok_and(is_of)
    }

    /// Whether one of the recordings of `task` in a folder is asked for by name, and not the one
    /// that is meant unless somebody says otherwise.
    ///
    /// # Errors
    /// When the defaults cannot be read.
    pub fn names_dataset(&self, task: &Task) -> Result<bool> {
        let is_name = matches!(task.observations, ObservationSpace::Vectors { .. })
            && !self.data.path.as_os_str().is_empty()
            && matches!(MinariId::of(&self.dataset), Ok(None))
            && !is_path(&self.dataset);
        let usual = Choices::usual(AlgorithmKind::DecisionTransformer, Profile::Quick);
        Ok(is_name && self.dataset != defaults(task, &usual)?.dataset)
    }
}

/// Whether a dataset's name is the path of a file or folder.
pub fn is_path(name: &str) -> bool {
    let endings = [".hdf5", ".h5", ".npz"];
    name.contains('/') || endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether a recording of `task` called `dataset`, or the one `given`, is a log of frames.
fn is_log(task: &Task, dataset: &str, given: Option<&Data>) -> bool {
    let reader = given.and_then(|data| reader_as(&data.path, &data.layout).ok());
    let is_of_arrays = || reader.map(|reader| !reader.is_log());
    let is_minari = || !matches!(MinariId::of(dataset), Ok(None));
    matches!(task.observations, ObservationSpace::Pixels { .. })
        && !is_of_arrays().unwrap_or_else(is_minari)
}

/// The recording that these words (each `key=value`) give.
pub(super) fn of_words(words: &[String]) -> Option<Data> {
    let text = |key: &str| keys::last(words, key).unwrap_or_default();
    given(text("dataset"), Path::new(text("data.path")), text("data.layout"))
}

fn given(dataset: &str, path: &Path, layout: &str) -> Option<Data> {
    let path = match MinariId::of(dataset) {
        _ if !path.as_os_str().is_empty() => path.to_path_buf(),
        // Whoever needs one that is not there says so.
        Ok(Some(id)) => id.find().ok()?,
        Ok(None) if is_path(dataset) => dataset.into(),
        Ok(None) | Err(_) => return None,
    };
    Some(Data { path, layout: layout.into() })
}
