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
        let seen = match self.observations() {
            Observed::Vectors { width, .. } => ObservationSpace::Vectors { width: *width },
            Observed::Frames(frames) => {
                let [height, width] = frames.shape();
                ObservationSpace::Pixels { shape: vec![frames.stack(), height, width] }
            }
        };
        let (done, n) = (self.actions(), self.actions().size());
        let (acted, action_fits) = match done {
            Acted::Continuous { .. } => (ActionSpace::unit(n), n == actions.size()),
            // Not every action need have been chosen.
            Acted::Discrete { .. } => (ActionSpace::numbered(n), n <= actions.size()),
        };
        let same_kind = std::mem::discriminant(&acted) == std::mem::discriminant(actions);
        if seen == *observations && same_kind && action_fits {
            return Ok(());
        }
        Err(DataError::Inconsistent {
            path: self.path().to_path_buf(),
            reason: format!(
                "its observations {} and its actions {}, but those of {name} {} and {}: it is \
                 another task's",
                shown(&seen),
                chosen(&acted),
                shown(observations),
                chosen(actions)
            ),
        })
    }
}

fn shown(space: &ObservationSpace) -> String {
    match space {
        ObservationSpace::Vectors { width } => format!("have {width} numbers"),
        ObservationSpace::Pixels { shape } => format!("are frames of {shape:?}"),
    }
}

fn chosen(space: &ActionSpace) -> String {
    match space {
        ActionSpace::Discrete { names } => format!("are one of {}", names.len()),
        ActionSpace::Continuous { low, .. } => format!("have {} numbers", low.len()),
    }
}
