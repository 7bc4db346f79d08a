//! Whether a recording is of a task's spaces.

use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace, Task};

use crate::columns::{ActionColumn, Columns, ObservationColumn};
use crate::dataset::{Dataset, StoredObservations};
use crate::error::DataError;

impl Dataset {
    /// Refuses a dataset whose observations or actions are not those of `task`.
    ///
    /// # Errors
    /// [`DataError::Inconsistent`], which says what there is and what there should be.
    pub fn check_spaces(&self, task: &Task) -> Result<(), DataError> {
        let seen = match self.observations() {
            StoredObservations::Vectors { width, .. } => {
                ObservationSpace::Vectors { width: *width }
            }
            StoredObservations::Frames(frames) => pixels(frames.stack(), frames.shape()),
        };
        check(self.path(), &seen, self.actions(), task)
    }
}

impl Columns {
    /// As [`Dataset::check_spaces`].
    ///
    /// # Errors
    /// As there.
    pub fn check_spaces(&self, task: &Task) -> Result<(), DataError> {
        let seen = match self.observations {
            ObservationColumn::Vectors { width, .. } => ObservationSpace::Vectors { width },
            ObservationColumn::Frames { shape, stack, .. } => pixels(stack, shape),
        };
        check(&self.path, &seen, &self.actions, task)
    }
}

fn pixels(stack: usize, [height, width]: [usize; 2]) -> ObservationSpace {
    ObservationSpace::Pixels { shape: vec![stack, height, width] }
}

fn check(
    path: &Path,
    seen: &ObservationSpace,
    done: &ActionColumn,
    task: &Task,
) -> Result<(), DataError> {
    let Task { title, observations, actions, .. } = task;
    let n = done.size();
    // Nothing is made of a number that a file claims.
    let action_fits = match (done, actions) {
        (ActionColumn::Continuous { .. }, ActionSpace::Continuous { low, .. }) => n == low.len(),
        // Not every action need have been chosen.
        (ActionColumn::Discrete { .. }, ActionSpace::Discrete { names }) => n <= names.len(),
        _ => false,
    };
    if seen == observations && action_fits {
        return Ok(());
    }
    Err(DataError::Inconsistent {
        path: path.to_path_buf(),
        reason: format!(
            "its observations {} and its actions {}, but those of {title} {} and {}: it is another \
             task's",
            shown(seen),
            chosen(matches!(done, ActionColumn::Discrete { .. }), n),
            shown(observations),
            chosen(matches!(actions, ActionSpace::Discrete { .. }), actions.size())
        ),
    })
}

fn shown(space: &ObservationSpace) -> String {
    match space {
        ObservationSpace::Vectors { width } => format!("have {width} numbers"),
        ObservationSpace::Pixels { shape } => format!("are frames of {shape:?}"),
    }
}

fn chosen(is_list: bool, n: usize) -> String {
    if is_list { format!("are one of {n}") } else { format!("have {n} numbers") }
}
