//! Whether a dataset is of a task's spaces.

use overtone_core::{ActionSpace, ObservationSpace};

use crate::dataset::{Acted, Dataset, Observed};
use crate::error::DataError;

impl Dataset {
    /// Refuses a dataset whose observations or actions are not those of the task `name`.
    ///
    /// # Errors
    /// [`DataError::Inconsistent`], which says what there is and what there should be.
    pub fn check_spaces(
        &self,
        name: &str,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), DataError> {
        let (seen, seen_fit) = match (self.observations(), observations) {
            (Observed::Vectors { width, .. }, ObservationSpace::Vectors { width: wanted }) => {
                (format!("have {width} numbers"), width == wanted)
            }
            (Observed::Vectors { width, .. }, ObservationSpace::Pixels { .. }) => {
                (format!("have {width} numbers"), false)
            }
            (Observed::Frames(frames), space) => {
                let [height, width] = frames.shape();
                let shape = vec![frames.stack(), height, width];
                let fit = matches!(space, ObservationSpace::Pixels { shape: s } if *s == shape);
                (format!("are frames of {shape:?}"), fit)
            }
        };
        let (done, done_fit) = match (self.actions(), actions) {
            (Acted::Continuous { width, .. }, ActionSpace::Continuous { low, .. }) => {
                (width.to_string(), *width == low.len())
            }
            (Acted::Continuous { width, .. }, ActionSpace::Discrete { .. }) => {
                (width.to_string(), false)
            }
            (Acted::Discrete { n_actions, .. }, ActionSpace::Discrete { names }) => {
                (format!("one of {n_actions}"), *n_actions <= names.len())
            }
            (Acted::Discrete { n_actions, .. }, ActionSpace::Continuous { .. }) => {
                (format!("one of {n_actions}"), false)
            }
        };
        if seen_fit && done_fit {
            return Ok(());
        }
        let wanted = match observations {
            ObservationSpace::Vectors { width } => format!("have {width}"),
            ObservationSpace::Pixels { shape } => format!("are frames of {shape:?}"),
        };
        let acts = match actions {
            ActionSpace::Discrete { names } => format!("one of {}", names.len()),
            ActionSpace::Continuous { low, .. } => low.len().to_string(),
        };
        Err(DataError::Inconsistent {
            path: self.path().to_path_buf(),
            reason: format!(
                "its observations {seen} and its actions {done}, but those of {name} {wanted} and \
                 {acts}: it is another task's"
            ),
        })
    }
}
