//! Whether a recording is of a task's spaces.

use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace, Task};

use crate::error::{DataError, Fault};
use crate::read::column::ActionColumn;
use crate::read::columns::Columns;
use crate::sample::dataset::{Dataset, StoredObservations};

impl Dataset {
    /// Refuses a dataset whose observations or actions do not fit `task`.
    ///
    /// # Errors
    /// `Fault::Inconsistent`, which says what there is and what there should be.
    pub fn check_spaces(&self, task: &Task) -> Result<(), DataError> {
        let seen = match self.observations() {
            StoredObservations::Vectors { width, .. } => {
                ObservationSpace::Vectors { width: *width }
            }
            StoredObservations::Frames(_) => ObservationSpace::frames(),
        };
        check(self.path(), &seen, self.actions(), task)
    }
}

impl Columns {
    /// The recording for an agent of `task`: combinations of actions as one index, and as many
    /// discrete actions as the task has, also if the largest ones were never recorded.
    ///
    /// # Errors
    /// When the recording has other spaces than the task.
    pub fn fitted_to(mut self, task: &Task) -> Result<Self, DataError> {
        self.list_actions(task)?;
        self.check_spaces(task)?;
        if let ActionColumn::Discrete { n_actions, .. } = &mut self.actions {
            *n_actions = task.actions.size();
        }
        Ok(self)
    }

    /// As [`Dataset::check_spaces`].
    ///
    /// # Errors
    /// As there.
    pub fn check_spaces(&self, task: &Task) -> Result<(), DataError> {
        check(&self.path, &self.observations.space(), &self.actions, task)
    }
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
    let is_list = matches!(done, ActionColumn::Discrete { .. });
    let wants_list = matches!(actions, ActionSpace::Discrete { .. });
    let are_numbers = |space: &ObservationSpace| matches!(space, ObservationSpace::Vectors { .. });
    let way_out = match (done, seen, observations) {
        _ if !action_fits
            && seen != observations
            && are_numbers(seen)
            && are_numbers(observations) =>
        {
            "it is another task's"
        }
        (ActionColumn::Continuous { values, .. }, ..)
            if wants_list && values.iter().all(|value| value.fract() == 0.0) =>
        {
            "they are whole numbers: save them as integers, one a row, if they are discrete"
        }
        (ActionColumn::Discrete { values, .. }, ..) if wants_list && seen == observations => {
            let largest = values.iter().max().map_or(0, |&action| usize::from(action));
            match (largest < actions.size(), values.contains(&0)) {
                (true, _) => "its n_actions is too large: correct it, or leave it out",
                (false, false) if largest == actions.size() => {
                    "its actions count from 1: subtract 1"
                }
                (false, _) => {
                    "number the actions from 0, as the task counts them, or correct the task"
                }
            }
        }
        (ActionColumn::Discrete { .. }, ..) if !wants_list => {
            "save them as real numbers, [rows, width], if they are continuous"
        }
        (_, ObservationSpace::Vectors { .. }, ObservationSpace::Pixels { .. }) if action_fits => {
            "say data.layout=numbers if bytes are codes and not pictures, or save pictures as bytes \
             with rows and columns"
        }
        (_, ObservationSpace::Pixels { .. }, ObservationSpace::Vectors { .. }) if action_fits => {
            "say data.layout=numbers if bytes are numbers and not pictures"
        }
        _ => "it is another task's",
    };
    Err(Fault::Inconsistent(format!(
        "its observations {} and its actions {}, but in {title} they {} and {}: {way_out}",
        shown(seen),
        chosen(is_list, n),
        shown(observations),
        chosen(wants_list, actions.size())
    ))
    .at(path))
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
