//! [`Source`]: arrays by name, in any kind of file.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::columns::{Columns, ObservationColumn};
use crate::error::advice::{BEYOND, ONE_A_ROW};
use crate::error::{DataError, Fault};
use crate::read::rounding::Rounding;

/// The element type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Booleans.
    Flag,
    /// Whole numbers from 0 to 255.
    Byte,
    /// Other whole numbers.
    Whole,
    /// Real numbers.
    Real,
}

/// A callback for each stream of bytes, which receives the stream's row too.
pub(crate) type EachStream<'a> = dyn FnMut(usize, &[u8]) -> Result<(), DataError> + 'a;

/// Arrays by name. Claims of a file about an array are checked before memory is allocated.
pub(crate) trait Source {
    /// The file.
    fn path(&self) -> &Path;

    /// Whether an array or a group has this name.
    fn has(&self, name: &str) -> bool;

    /// Names of the arrays in group `name`; `None` if it is not a group.
    fn parts(&self, name: &str) -> Option<Vec<String>>;

    /// Names of the arrays and groups at the top.
    fn listed(&self) -> Vec<String>;

    /// A hint for a missing array, the available ones: `it has actions, rewards`.
    fn what_it_has(&self) -> String {
        let names = self.listed();
        let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
        match names.len().saturating_sub(NAMES_SHOWN) {
            _ if names.is_empty() => "it is empty".into(),
            0 => format!("it has {shown}"),
            more => format!("it has {shown} and {more} more"),
        }
    }

    /// The shape of an array.
    fn shape(&self, name: &str) -> Result<Vec<usize>, DataError>;

    /// The element type.
    fn kind(&self, name: &str) -> Result<Kind, DataError>;

    /// All elements of an array of numbers.
    fn reals(&self, name: &str) -> Result<Vec<f32>, DataError>;

    /// All elements of an array of whole numbers or flags.
    fn wholes(&self, name: &str) -> Result<Vec<i64>, DataError>;

    /// All elements of an array of bytes.
    fn bytes(&self, name: &str) -> Result<Vec<u8>, DataError>;

    /// Streams of bytes, one a row, each given to `each` with its row; a `rows`-long array of
    /// streams of any length, or of bytes with a row for each. A source without such arrays
    /// refuses.
    fn streams(&self, name: &str, _each: &mut EachStream<'_>) -> Result<(), DataError> {
        Err(Fault::DatasetType {
            dataset: name.into(),
            got: "JPEG".into(),
            expected: "plain pictures",
        }
        .at(self.path()))
    }

    /// The rows of an array of bytes, `[rows, size]`; each is passed to `each` with its number.
    fn rows(&self, name: &str, size: usize, each: &mut EachStream<'_>) -> Result<(), DataError> {
        let bytes = self.bytes(name)?;
        bytes.chunks_exact(size).enumerate().try_for_each(|(row, bytes)| each(row, bytes))
    }

    /// Whether bytes with rows and columns are numbers, and not pictures.
    fn shows_numbers(&self) -> bool;

    /// The memory used for the file so far.
    fn claims(&self) -> &Claims;

    /// Refuses to allocate so many bytes for an array, in addition to earlier allocations, if the
    /// file is too small for them.
    fn claim(&self, name: &str, bytes: u64) -> Result<(), DataError> {
        let Claims { bytes: stored, claimed, .. } = self.claims();
        claimed.set(claimed.get().saturating_add(bytes));
        if claimed.get() <= allowed(*stored) {
            return Ok(());
        }
        let (path, dataset) = (self.path().to_path_buf(), name.into());
        Err(Fault::DatasetClaim { dataset, claimed: claimed.get(), stored: *stored }.at(path))
    }
}

/// Maximum number of names in an error.
pub(crate) const NAMES_SHOWN: usize = 12;

/// Bytes allocated for a file so far: many names may lead to one array.
#[derive(Debug)]
pub(crate) struct Claims {
    /// The file's size.
    pub bytes: u64,
    claimed: Cell<u64>,
    /// Values that `f32` cannot distinguish.
    pub rounding: Rounding,
}

impl Claims {
    /// None yet, of a file of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, claimed: Cell::new(0), rounding: Rounding::default() }
    }
}

/// Maximum size of an array, as a multiple of its stored bytes, and of all arrays together, as a
/// multiple of the file's bytes. Deflate reaches 1032.
const MOST_COMPRESSED: u64 = 4096;
/// Bytes that are allowed even if none are stored.
const ALWAYS_ALLOWED: u64 = 1 << 20;

/// Maximum number of bytes that so many stored bytes may become.
pub(crate) fn allowed(stored: u64) -> u64 {
    stored.saturating_mul(MOST_COMPRESSED).saturating_add(ALWAYS_ALLOWED)
}

/// Maximum relative distance between a number of the next observation and of the row after it:
/// rounding, if one of them was kept as a double.
const ROUNDING: f32 = 1e-5;

/// Whether the observation after a step differs from the observation of the next row. Non-finite
/// values are reported elsewhere.
pub(crate) fn differ(led: &[f32], after: &[f32]) -> bool {
    let far =
        |(a, b): (&f32, &f32)| (a - b).abs() > ROUNDING * (1.0 + a.abs()) && (a - b).is_finite();
    led.iter().zip(after).any(far)
}

/// A sentence about the steps whose next observation, in array `next`, is not the observation of the
/// next row although their episode continues, if there are any.
///
/// # Errors
/// When the array cannot be read.
pub(crate) fn leads_elsewhere(
    source: &dyn Source,
    next: &str,
    columns: &Columns,
) -> Result<Option<String>, DataError> {
    let ObservationColumn::Vectors { width, values } = &columns.observations else {
        return Ok(None);
    };
    if source.shape(next)? != [columns.n_transitions(), *width] {
        return Ok(None);
    }
    let led = source.reals(next)?;
    let row = |at: usize| at * width..(at + 1) * width;
    let goes_on = columns.episodes.iter().flat_map(|episode| episode.start..episode.end() - 1);
    let count = goes_on.filter(|&at| differ(&led[row(at)], &values[row(at + 1)])).count();
    let what = "steps whose next_observations are not the next row's observations (rows must be in \
                the order in which they happened, and what a step led to is read from the row after \
                it)";
    Ok((count > 0).then(|| format!("{what}: {count}")))
}

/// Array `name` of flags: booleans, or numbers that are all 0 or 1; `[rows]` or `[rows, 1]`.
///
/// # Errors
/// If it is missing, has another shape or type, or holds another number.
pub(crate) fn flags(source: &dyn Source, name: &str) -> Result<Vec<bool>, DataError> {
    check_column(source, name)?;
    let numbers: Vec<f64> = match source.kind(name)? {
        Kind::Real => source.reals(name)?.into_iter().map(f64::from).collect(),
        _ => source.wholes(name)?.into_iter().map(|whole| whole as f64).collect(),
    };
    let flag = |(row, &number): (usize, &f64)| match number {
        0.0 => Ok(false),
        1.0 => Ok(true),
        _ => Err(wrong_value(source, name, row, format!("{number}, expected 0 or 1"))),
    };
    numbers.iter().enumerate().map(flag).collect()
}

/// Array `name` of one number a row, `[rows]` or `[rows, 1]`.
///
/// # Errors
/// If it is missing, or has another shape or type.
pub(crate) fn column(source: &dyn Source, name: &str) -> Result<Vec<f32>, DataError> {
    check_column(source, name)?;
    source.reals(name)
}

fn check_column(source: &dyn Source, name: &str) -> Result<(), DataError> {
    let shape = source.shape(name)?;
    match shape.as_slice() {
        [_] | [_, 1] => Ok(()),
        _ => Err(wrong_shape(source, name, &shape, ONE_A_ROW)),
    }
}

/// Refuses array `name` of `got` rows where `other` has `expected`.
///
/// # Errors
/// `Fault::DatasetLength`.
pub(crate) fn same(
    source: &dyn Source,
    name: &str,
    got: usize,
    expected: usize,
    other: &str,
) -> Result<(), DataError> {
    if got == expected {
        return Ok(());
    }
    let shape = source.shape(name).unwrap_or_default();
    let way_out = match shape.as_slice() {
        [_, last] if *last == expected => format!("transpose it, `{name}.T`"),
        _ if got == expected + 1 => {
            format!("leave out the row that the last action led to, `{name}[:-1]`")
        }
        _ if got > expected && name.starts_with("obs") => {
            "leave out the rows that the last action of each episode led to".into()
        }
        _ => "save one row a step in each array".into(),
    };
    let (path, dataset, other) = (path(source), name.into(), other.into());
    Err(Fault::DatasetLength { dataset, got, expected, other, way_out }.at(path))
}

/// Other names of an array of a recording, for each name that is read.
const OTHER_NAMES: [(&str, &[&str]); 7] = [
    ("observations", &["obs", "observation", "states", "state", "features", "images", "image"]),
    ("actions", &["acts", "act", "action"]),
    ("rewards", &["rews", "rew", "reward"]),
    ("terminals", &["terminated", "terminal", "terminations", "termination"]),
    ("timeouts", &["truncated", "timeout", "truncations", "truncation"]),
    ("terminations", &["terminated", "terminals", "terminal"]),
    ("truncations", &["truncated", "timeouts", "timeout"]),
];
/// Names of flags that mark an episode's end but not its reason.
const DONE: [&str; 2] = ["dones", "done"];

/// The error for a missing array `name`; `needed` is its purpose, or empty.
pub(crate) fn missing(source: &dyn Source, name: &str, needed: &str) -> DataError {
    let (group, own) = name.rsplit_once('/').unwrap_or(("", name));
    let there =
        if group.is_empty() { source.listed() } else { source.parts(group).unwrap_or_default() };
    let others = OTHER_NAMES.iter().find(|(read, _)| *read == own).map_or(&[][..], |(_, all)| *all);
    let is_it = |there: &&String| {
        let there = there.to_lowercase();
        there == own || others.contains(&&*there)
    };
    let is_flag = ["terminals", "timeouts", "terminations", "truncations"].contains(&own);
    let way_out = match (
        there.iter().find(is_it),
        there.iter().find(|name| DONE.contains(&&***name)),
    ) {
        (Some(other), _) => format!("save `{other}` under the name `{own}`"),
        (None, Some(done)) if is_flag => format!(
            "`{done}` does not say why an episode ended: save `terminals`, 1 where the task ended \
             it, and `timeouts`, 1 where a step limit did"
        ),
        _ if own == "timeouts" || own == "truncations" => {
            format!("save `{own}`, zeros alone where no limit ended an episode")
        }
        _ if group.is_empty() => format!("save the array under the name `{own}`"),
        _ => format!("save the array as `{name}`, or fetch the file again"),
    };
    let has = match needed {
        "" => source.what_it_has(),
        needed => format!("{}; it needs {needed}", source.what_it_has()),
    };
    Fault::MissingDataset { dataset: name.into(), hint: has, way_out }.at(path(source))
}

/// Array `name` of doubles, rows of `width`, as `f32`; values that it cannot distinguish are noted.
///
/// # Errors
/// For the first number beyond `f32`.
pub(crate) fn singles(
    source: &dyn Source,
    name: &str,
    doubles: Vec<f64>,
    width: usize,
) -> Result<Vec<f32>, DataError> {
    let is_beyond = |number: &f64| number.is_finite() && (*number as f32).is_infinite();
    if let Some(at) = doubles.iter().position(is_beyond) {
        let (row, place, number) = (at / width.max(1), at % width.max(1), doubles[at]);
        let what = format!("{number:e} at place {place}, {BEYOND}: divide the array by a constant");
        return Err(wrong_value(source, name, row, what));
    }
    source.claims().rounding.note(name, &doubles, width);
    Ok(doubles.into_iter().map(|number| number as f32).collect())
}

/// The error for an array of another type.
pub(crate) fn wrong_type(
    source: &dyn Source,
    name: &str,
    got: &str,
    expected: &'static str,
) -> DataError {
    Fault::DatasetType { dataset: name.into(), got: got.into(), expected }.at(path(source))
}

/// The error for an array of another shape.
pub(crate) fn wrong_shape(
    source: &dyn Source,
    name: &str,
    got: &[usize],
    expected: &str,
) -> DataError {
    Fault::DatasetShape { dataset: name.into(), got: got.to_vec(), expected: expected.into() }
        .at(path(source))
}

/// The error for an impossible value.
pub(crate) fn wrong_value(source: &dyn Source, name: &str, row: usize, what: String) -> DataError {
    Fault::DatasetValue { dataset: name.into(), row, what }.at(path(source))
}

/// The error for an unsupported form, with advice.
pub(crate) fn unread(source: &dyn Source, what: String, way_out: String) -> DataError {
    Fault::Unread { what, way_out }.at(path(source))
}

fn path(source: &dyn Source) -> PathBuf {
    source.path().to_path_buf()
}
