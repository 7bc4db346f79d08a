//! robomimic's files: a group `data/demo_<number>` for each demonstration, with a group `obs` of named
//! parts. An observation is the parts that are vectors, in the order of their names, or those that
//! `data.columns.observation` names, in its order. Pictures are not read.
//!
//! `dones` are 1 where the task is solved or the demonstration ends: in the last row the task ends,
//! and at an earlier one values stop (as robomimic's own agents do).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};

use crate::error::{DataError, Fault};
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::form::TableColumns;
use crate::read::hdf5_file::{Hdf5File, Matrix};
use crate::read::hdf5_paths::find_file;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::recording::{Reader, Recording};
use crate::read::solved::end_solved;
use crate::read::source::{Source, column, flags, missing, same};
use crate::read::stored::Stored;

/// The group of all demonstrations.
const DATA: &str = "data";

/// robomimic's format.
pub(crate) struct Robomimic {
    /// Its `observation` are the parts that the user named.
    pub columns: Option<TableColumns>,
}

/// All demonstrations so far.
#[derive(Default)]
struct Demos {
    /// `[rows, width]`
    observations: Vec<f32>,
    width: usize,
    /// `[episodes, width]`, where the last actions led; `None` if a demonstration does not say it.
    last: Option<Vec<f32>>,
    /// `[rows, acted]`
    actions: Vec<f32>,
    acted: usize,
    rewards: Vec<f32>,
    dones: Vec<bool>,
    episodes: Vec<Episode>,
}

impl Robomimic {
    /// Names of the parts of an observation: those that the user named, or all that are vectors.
    fn parts(&self, file: &Hdf5File, demo: &str) -> Result<Vec<String>, DataError> {
        let group = format!("{demo}/obs");
        let listed = file.parts(&group).unwrap_or_default();
        let named = self.columns.as_ref().map_or("", |columns| &columns.observation);
        let only = TableColumns { observation: named.into(), ..TableColumns::default() };
        if self.columns.as_ref().is_some_and(|columns| *columns != only) {
            let reason = "only data.columns.observation has an effect on a robomimic file, whose \
                          other arrays have fixed names";
            return Err(Fault::Inconsistent(reason.into()).at(file.path()));
        }
        if !named.is_empty() {
            let parts: Vec<String> = named.split(',').map(|name| name.trim().to_owned()).collect();
            return match parts.iter().find(|part| !listed.contains(part)) {
                Some(part) => {
                    let name = format!("{group}/{part}");
                    Err(missing(file, &name, &format!("one of {}", listed.join(", "))))
                }
                None => Ok(parts),
            };
        }
        let is_vector = |part: &String| {
            let name = format!("{group}/{part}");
            file.holds_numbers(&name) && file.shape(&name).is_ok_and(|shape| shape.len() == 2)
        };
        let parts: Vec<String> = listed.iter().filter(|part| is_vector(part)).cloned().collect();
        if parts.is_empty() {
            let what = match listed.is_empty() {
                true => "a robomimic file without observations (`obs`)".into(),
                false => format!("a robomimic file with pictures alone ({})", listed.join(", ")),
            };
            let way_out = "make them from its states with robomimic's `dataset_states_to_obs.py`, \
                           with vectors";
            return Err(Fault::Unread { what, way_out: way_out.into() }.at(file.path()));
        }
        Ok(parts)
    }

    fn read(&self, path: &Path) -> Result<(Columns, Option<ObservationColumn>), DataError> {
        let file = Hdf5File::open(&self.place(path)?)?;
        let names = demos(&file);
        let first = format!("{DATA}/{}", names.first().map_or("demo_0", String::as_str));
        let parts = self.parts(&file, &first)?;
        let mut demos = Demos { last: Some(Vec::new()), ..Demos::default() };
        for name in &names {
            demos.add(&file, &format!("{DATA}/{name}"), &parts)?;
        }
        let rows = demos.rewards.len();
        if let Some(total) = file.attribute_of(DATA, "total").filter(|&total| total != rows as i64)
        {
            let reason =
                format!("its `total` says {total} rows, and its demonstrations hold {rows}");
            return Err(Fault::Inconsistent(reason).at(file.path()));
        }
        let stops = end_solved(&mut demos.episodes, demos.dones);
        let optional = OptionalArrays { stops, ..OptionalArrays::default() };
        let seen = |values| ObservationColumn::Vectors { width: demos.width, values };
        let mut columns = Columns {
            path: file.path().to_path_buf(),
            format: self.name(),
            optional,
            stored: Stored {
                flagged: true,
                unread: unread(&file, &first, &parts),
                ..Stored::default()
            },
            ..Columns::new(
                seen(demos.observations),
                ActionColumn::Continuous { width: demos.acted, values: demos.actions },
                demos.rewards,
                demos.episodes,
            )
        };
        columns.odd.push(format!("an observation is {}", parts.join(", ")));
        columns.odd.extend(file.claims().rounding.sentences());
        columns.check()?;
        Ok((columns, demos.last.map(seen)))
    }
}

impl Demos {
    /// Adds the demonstration in the group `demo`.
    fn add(&mut self, file: &Hdf5File, demo: &str, parts: &[String]) -> Result<(), DataError> {
        let name = format!("{demo}/actions");
        let actions = file.matrix(&name)?;
        let (start, rows) = (self.rewards.len(), actions.rows);
        if rows == 0 {
            return Err(Fault::Inconsistent(format!("`{demo}` has no step")).at(file.path()));
        }
        self.acted = in_line(file, &name, self.acted, &actions)?;
        self.actions.extend_from_slice(&actions.values);
        let group = format!("{demo}/obs");
        let seen = side_by_side(file, &group, parts, rows)?;
        self.width = in_line(file, &group, self.width, &seen)?;
        self.observations.extend_from_slice(&seen.values);
        let next = format!("{demo}/next_obs");
        self.last = match (self.last.take(), file.has(&next)) {
            (Some(mut last), true) => {
                let next = side_by_side(file, &next, parts, rows)?;
                last.extend_from_slice(&next.values[next.values.len() - next.width..]);
                Some(last)
            }
            _ => None,
        };
        let name = format!("{demo}/rewards");
        let rewards = column(file, &name)?;
        same(file, &name, rewards.len(), rows, "actions")?;
        self.rewards.extend(rewards);
        let name = format!("{demo}/dones");
        let dones = flags(file, &name)?;
        same(file, &name, dones.len(), rows, "actions")?;
        self.dones.extend(dones);
        self.episodes.push(Episode { start, length: rows, outcome: Outcome::Truncated });
        Ok(())
    }
}

/// The width of all matrices so far, of which `more` is one; 0 if it is the first.
fn in_line(file: &Hdf5File, name: &str, width: usize, more: &Matrix) -> Result<usize, DataError> {
    file.check_finite(name, &more.values, more.width)?;
    match width {
        0 => Ok(more.width),
        _ if width == more.width => Ok(width),
        _ => {
            let reason = format!(
                "`{name}` has rows of {} numbers, and the first demonstration {width}",
                more.width
            );
            Err(Fault::Inconsistent(reason).at(file.path()))
        }
    }
}

/// The parts of a group of observations in one matrix.
fn side_by_side(
    file: &Hdf5File,
    group: &str,
    parts: &[String],
    rows: usize,
) -> Result<Matrix, DataError> {
    let mut matrices = Vec::with_capacity(parts.len());
    for part in parts {
        let name = format!("{group}/{part}");
        let matrix = file.matrix(&name)?;
        same(file, &name, matrix.rows, rows, "actions")?;
        matrices.push(matrix);
    }
    let width = matrices.iter().map(|matrix| matrix.width).sum();
    let mut values = Vec::with_capacity(rows * width);
    for row in 0..rows {
        for Matrix { values: part, width, .. } in &matrices {
            values.extend_from_slice(&part[row * width..(row + 1) * width]);
        }
    }
    Ok(Matrix { values, rows, width })
}

/// Names of the demonstrations, in the order of their numbers.
fn demos(file: &Hdf5File) -> Vec<String> {
    let number = |name: &str| name.strip_prefix("demo_")?.parse::<u64>().ok();
    let listed = file.parts(DATA).unwrap_or_default();
    let mut numbered: Vec<(u64, String)> =
        listed.into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort_unstable();
    numbered.into_iter().map(|(_, name)| name).collect()
}

/// Names of the arrays of a demonstration, and of the file, that are not read.
fn unread(file: &Hdf5File, demo: &str, parts: &[String]) -> BTreeSet<String> {
    let read = ["obs", "next_obs", "actions", "rewards", "dones"];
    let arrays = file.parts(demo).unwrap_or_default();
    let arrays = arrays.into_iter().filter(|name| !read.contains(&name.as_str()));
    let seen = file.parts(&format!("{demo}/obs")).unwrap_or_default();
    let seen = seen.into_iter().filter(|part| !parts.contains(part));
    let top = file.listed().into_iter().filter(|name| name != DATA);
    arrays.chain(seen.map(|part| format!("obs/{part}"))).chain(top).collect()
}

impl Reader for Robomimic {
    fn name(&self) -> &'static str {
        "robomimic"
    }

    fn reads(&self, path: &Path) -> bool {
        find_file(path)
            .and_then(|file| Hdf5File::open(&file))
            .is_ok_and(|file| !demos(&file).is_empty())
    }

    fn with_columns(&self, columns: &TableColumns) -> Option<Box<dyn Reader>> {
        Some(Box::new(Self { columns: Some(columns.clone()) }))
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        find_file(path)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(Recording::Columns(self.read(path)?.0))
    }

    fn open_with_last(
        &self,
        path: &Path,
    ) -> Result<(Recording, Option<ObservationColumn>), DataError> {
        let (columns, last) = self.read(path)?;
        Ok((Recording::Columns(columns), last))
    }
}
