//! The arrays of a D4RL or Minari file, read as far as they can be.

use hdf5::types::{FloatSize, TypeDescriptor};
use overtone_core::Outcome;

use crate::columns::{Columns, Seen as Recorded};
use crate::dataset::Acted;
use crate::error::DataError;
use crate::findings::Findings;
use crate::read::hdf5_file::{Hdf5File, Matrix};
use crate::read::hdf5_layout::Layout;

/// The task's end and the step limit's, as D4RL names them.
const D4RL_FLAGS: [&str; 2] = ["terminals", "timeouts"];
/// As Minari names them.
const MINARI_FLAGS: [&str; 2] = ["terminations", "truncations"];

/// Arrays of one length, of a D4RL file or of one of Minari's episodes; `None` is one that
/// cannot be read or does not fit the others.
pub(crate) struct Arrays {
    /// Name of the episode's group and a `/`; empty in a D4RL file.
    pub prefix: String,
    /// Names of the two flags.
    flags: [&'static str; 2],
    /// `[steps, width]`, what each action was chosen on.
    pub observations: Option<Matrix>,
    /// `[steps, width]`, where each action led.
    pub next_observations: Option<Matrix>,
    /// `[steps, width]`; of width 1 where they are of a list.
    pub actions: Option<Matrix>,
    /// Whether the actions are of a list.
    pub chosen: bool,
    /// `[steps]`
    pub rewards: Option<Vec<f32>>,
    /// `[steps]`, the task's end.
    pub terminals: Option<Vec<bool>>,
    /// `[steps]`, the step limit's.
    pub timeouts: Option<Vec<bool>>,
    /// Other arrays of numbers, none of which is trained on: name, width, numbers.
    pub others: Vec<(String, usize, Vec<f32>)>,
}

impl Arrays {
    /// Reads a D4RL file's.
    pub fn of_d4rl(file: &Hdf5File, findings: &mut Findings) -> Self {
        let mut arrays = Self::read(file, String::new(), D4RL_FLAGS, findings);
        if file.has("timeouts") {
            arrays.timeouts = kept(file.flags("timeouts"), findings);
        } else {
            findings.error(
                "no-timeouts",
                "timeouts",
                "a flag where a step limit ended an episode",
                "no such array, as in D4RL's versions 0 and 1",
                "Fetch version 2 (…-v2.hdf5): without it such episodes run into the next.",
            );
        }
        if file.has("next_observations") {
            arrays.next_observations = kept(file.any_matrix("next_observations"), findings);
        }
        for name in file.names_in("infos") {
            let name = format!("infos/{name}");
            // What is neither a column nor a matrix is left alone: nothing needs it.
            if let Ok(matrix) = file.any_matrix(&name) {
                arrays.others.push((name, matrix.width, matrix.values));
            } else if let Ok(column) = file.any_column(&name) {
                arrays.others.push((name, 1, column));
            }
        }
        let steps = arrays.observations.as_ref().map(|matrix| matrix.rows);
        arrays.fit(steps, steps, "observations", findings);
        arrays
    }

    /// Reads those of Minari's episode `episode`, whose observations have one row more.
    pub fn of_minari(file: &Hdf5File, episode: &str, findings: &mut Findings) -> Self {
        let mut arrays = Self::read(file, format!("{episode}/"), MINARI_FLAGS, findings);
        arrays.timeouts = kept(file.flags(&format!("{episode}/{}", MINARI_FLAGS[1])), findings);
        let steps = arrays.actions.as_ref().map(|matrix| matrix.rows);
        arrays.fit(steps, steps.map(|steps| steps + 1), "actions", findings);
        arrays
    }

    /// Those of a recording in memory; frames are left out.
    pub fn of_columns(columns: &Columns) -> Self {
        let rows = columns.n_transitions();
        let observations = match &columns.observations {
            Recorded::Vectors { width, values } => {
                Some(Matrix { values: values.clone(), rows, width: *width })
            }
            Recorded::Frames { .. } => None,
        };
        let actions = match &columns.actions {
            Acted::Continuous { width, values } => {
                Some(Matrix { values: values.clone(), rows, width: *width })
            }
            Acted::Discrete { values, .. } => {
                let values = values.iter().map(|&action| f32::from(action)).collect();
                Some(Matrix { values, rows, width: 1 })
            }
        };
        let mut terminals = vec![false; rows];
        let mut timeouts = vec![false; rows];
        for (episode, _) in
            columns.episodes.iter().zip(&columns.finished).filter(|(_, done)| **done)
        {
            let flags = match episode.outcome {
                Outcome::Terminated => &mut terminals,
                Outcome::Truncated => &mut timeouts,
            };
            flags[episode.end() - 1] = true;
        }
        Self {
            observations,
            next_observations: None,
            actions,
            chosen: matches!(columns.actions, Acted::Discrete { .. }),
            rewards: Some(columns.rewards.clone()),
            terminals: Some(terminals),
            timeouts: Some(timeouts),
            others: Vec::new(),
            flags: D4RL_FLAGS,
            prefix: String::new(),
        }
    }

    /// Reads what both have.
    fn read(
        file: &Hdf5File,
        prefix: String,
        flags: [&'static str; 2],
        findings: &mut Findings,
    ) -> Self {
        let named = |name: &str| format!("{prefix}{name}");
        let chosen = file.is_chosen(&named("actions"));
        let actions = if chosen {
            let read = file.any_column(&named("actions"));
            read.map(|values| Matrix { rows: values.len(), values, width: 1 })
        } else {
            file.any_matrix(&named("actions"))
        };
        Self {
            observations: kept(file.any_matrix(&named("observations")), findings),
            next_observations: None,
            actions: kept(actions, findings),
            chosen,
            rewards: kept(file.any_column(&named("rewards")), findings),
            terminals: kept(file.flags(&named(flags[0])), findings),
            timeouts: None,
            others: Vec::new(),
            flags,
            prefix,
        }
    }

    /// Whether all that is trained on could be read.
    pub fn whole(&self) -> bool {
        let flags = self.terminals.is_some() && self.timeouts.is_some();
        flags && self.observations.is_some() && self.actions.is_some() && self.rewards.is_some()
    }

    /// Where row `row` is, in words.
    pub fn place(&self, row: usize) -> String {
        match self.prefix.trim_end_matches('/') {
            "" => format!("row {row}"),
            episode => format!("{episode}, row {row}"),
        }
    }

    /// Number of steps, where an array says it.
    pub fn steps(&self) -> Option<usize> {
        let flags = || self.terminals.as_ref().map(Vec::len);
        self.actions.as_ref().map(|matrix| matrix.rows).or_else(flags)
    }

    /// Drops arrays that have not `steps` rows (observations: `observed`), as `other` says.
    fn fit(
        &mut self,
        steps: Option<usize>,
        observed: Option<usize>,
        other: &str,
        findings: &mut Findings,
    ) {
        let (Some(steps), Some(observed)) = (steps, observed) else { return };
        let prefix = &self.prefix;
        let mut fits = |name: &str, got: usize, expected: usize| {
            if got == expected {
                return true;
            }
            findings.error(
                "wrong-length",
                &format!("{prefix}{name}"),
                format!("{expected} rows, because of `{prefix}{other}`"),
                format!("{got} rows"),
                "Fetch or copy the file again: its arrays do not belong together.",
            );
            false
        };
        self.observations.take_if(|matrix| !fits("observations", matrix.rows, observed));
        self.next_observations.take_if(|matrix| !fits("next_observations", matrix.rows, steps));
        self.actions.take_if(|matrix| !fits("actions", matrix.rows, steps));
        self.rewards.take_if(|column| !fits("rewards", column.len(), steps));
        self.terminals.take_if(|flags| !fits(self.flags[0], flags.len(), steps));
        self.timeouts.take_if(|flags| !fits(self.flags[1], flags.len(), steps));
    }
}

/// Tells of forms that are read, and are not D4RL's: types and shapes of the arrays that
/// `prefix` leads to.
pub(crate) fn forms(file: &Hdf5File, prefix: &str, format: Layout, findings: &mut Findings) {
    for name in ["observations", "actions", "rewards"] {
        let name = format!("{prefix}{name}");
        let Ok(element) = file.element(&name) else { continue };
        // Minari's rewards are doubles.
        let usual = format == Layout::Minari && name.ends_with("rewards")
            || name.ends_with("actions") && file.is_chosen(&name);
        if element != TypeDescriptor::Float(FloatSize::U4) && !usual {
            findings.note(
                "not-float32",
                &name,
                "float32",
                element.to_string(),
                "Nothing need be done: it is rounded to float32 when it is read.",
            );
        }
    }
    let flags = match format {
        Layout::D4rl => D4RL_FLAGS,
        Layout::Minari => MINARI_FLAGS,
    };
    for name in [&["rewards"], &flags[..]].concat() {
        let name = format!("{prefix}{name}");
        if let Ok(shape) = file.shape(&name)
            && shape.len() == 2
            && shape[1] == 1
        {
            findings.note(
                "column-shape",
                &name,
                "one dimension",
                format!("shape {shape:?}"),
                "Nothing need be done here; other readers may broadcast it by mistake.",
            );
        }
    }
}

fn kept<T>(read: Result<T, DataError>, findings: &mut Findings) -> Option<T> {
    read.map_err(|error| findings.refused(&error)).ok()
}
