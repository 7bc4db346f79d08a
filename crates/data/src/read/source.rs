//! [`Source`]: arrays by name, in any kind of file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::advice::{BEYOND, ONE_A_ROW, own_name};
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

/// Whether array `name` exists with a shape that `fits`. Another array counts as not read.
pub(crate) fn has_shape(
    source: &dyn Source,
    name: &str,
    fits: impl FnOnce(&[usize]) -> bool,
) -> bool {
    let has_it = source.has(name) && source.shape(name).is_ok_and(|shape| fits(&shape));
    if !has_it {
        source.claims().read.borrow_mut().remove(name);
    }
    has_it
}

/// Maximum number of names in an error.
pub(crate) const NAMES_SHOWN: usize = 12;

/// Bytes allocated for a file so far: many names may lead to one array.
#[derive(Debug)]
pub(crate) struct Claims {
    /// The file's size.
    pub bytes: u64,
    claimed: Cell<u64>,
    /// Names of the arrays that were read.
    read: RefCell<BTreeSet<String>>,
    /// Values that `f32` cannot distinguish.
    pub rounding: Rounding,
}

impl Claims {
    /// None yet, of a file of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            claimed: Cell::new(0),
            read: RefCell::default(),
            rounding: Rounding::default(),
        }
    }

    /// Notes that array `name` is read.
    pub fn note_read(&self, name: &str) {
        let mut read = self.read.borrow_mut();
        if !read.contains(name) {
            read.insert(name.to_owned());
        }
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

/// Names of the arrays in a file, or in an episode whose names have a prefix, that were not read;
/// the arrays in `infos` one by one.
pub(crate) fn unread_arrays(source: &dyn Source, prefix: &str) -> BTreeSet<String> {
    let read = source.claims().read.borrow();
    let is_read = |name: &str| {
        let group = format!("{name}/");
        let next = read.range(group.clone()..).next();
        read.contains(name) || next.is_some_and(|next| next.starts_with(&group))
    };
    let names = match prefix.trim_end_matches('/') {
        "" => source.listed(),
        group => source.parts(group).unwrap_or_default(),
    };
    let each = |name: String| match source.parts(&format!("{prefix}{name}")) {
        Some(parts) if name == "infos" => {
            parts.into_iter().map(|part| format!("{name}/{part}")).collect()
        }
        _ => vec![name],
    };
    let names = names.into_iter().flat_map(each);
    names.filter(|name| !is_read(&format!("{prefix}{name}"))).collect()
}

/// Array `name` of flags: booleans, or numbers that are all 0 or 1; `[rows]` or `[rows, 1]`.
///
/// # Errors
/// If it is missing, has another shape or type, or holds another number.
pub(crate) fn flags(source: &dyn Source, name: &str) -> Result<Vec<bool>, DataError> {
    if let [rows, columns] = source.shape(name)?[..]
        && columns > 1
        && rows > 1
        && let Some(way_out) = two_axes(source, rows, columns)?
    {
        let what = format!("`{name}`, flags of shape [{rows}, {columns}],");
        return Err(unread(source, what, way_out));
    }
    check_column(source, name)?;
    all_flags(source, name)
}

/// The way out of flags in `rows` and `columns` that are not whole episodes in rows: padded
/// episodes, or steps of several environments.
fn two_axes(source: &dyn Source, rows: usize, columns: usize) -> Result<Option<String>, DataError> {
    let mut ends = vec![false; rows * columns];
    for name in END_FLAGS.into_iter().filter(|name| source.has(name)) {
        if source.shape(name)? == [rows, columns] {
            let flags = all_flags(source, name)?;
            ends.iter_mut().zip(flags).for_each(|(end, flag)| *end |= flag);
        }
    }
    let each = || ends.chunks_exact(columns);
    if each().all(|row| !row[..columns - 1].contains(&true)) {
        return Ok(None);
    }
    // Of a padded episode all flags from its end on may be set.
    let ends_once = |row: &[bool]| {
        let n_set = row.iter().filter(|&&flag| flag).count();
        n_set == 1 || (n_set > 0 && row.is_sorted())
    };
    Ok(Some(if each().all(ends_once) {
        format!(
            "if rows are episodes that are padded to {columns} steps, save the real steps of every \
             array, `observations[mask]`"
        )
    } else {
        "put the environments first in every array, `observations.swapaxes(0, 1)` if the axes are \
         [time, environment]; then save them one after the other, `numpy.concatenate(observations)`, \
         and set a timeout in each environment's last row"
            .into()
    }))
}

fn all_flags(source: &dyn Source, name: &str) -> Result<Vec<bool>, DataError> {
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
    let own_name = own_name(name);
    let way_out = match shape.as_slice() {
        [_, .., last] if *last == expected => format!("transpose it, `{own_name}.T`"),
        _ if name.ends_with("/observations") => {
            "save one observation more than actions, the last being where the last action led, or \
             save the steps as .npz, which needs none"
                .into()
        }
        _ if got == expected + 1 && own_name.starts_with("obs") => {
            format!("leave out the row that the last action led to, `{own_name}[:-1]`")
        }
        _ if got > expected && own_name.starts_with("obs") => {
            "leave out the rows that the last action of each episode led to".into()
        }
        _ => "save one row a step in each array".into(),
    };
    let (path, dataset, other) = (path(source), name.into(), other.into());
    Err(Fault::DatasetLength { dataset, got, expected, other, way_out }.at(path))
}

/// The number of steps that most of `arrays` have, each a name and its steps, and the first array that
/// has it. Between equally frequent numbers, the earlier array decides.
pub(crate) fn usual_steps<'a>(arrays: &[(&'a str, usize)]) -> Option<(usize, &'a str)> {
    let n_alike = |steps: usize| arrays.iter().filter(|(_, other)| *other == steps).count();
    let usual = arrays.iter().rev().max_by_key(|(_, steps)| n_alike(*steps))?;
    Some((usual.1, usual.0))
}

/// Refuses the first of `arrays`, each a name and its rows, that has not as many rows as most.
///
/// # Errors
/// `Fault::DatasetLength`.
pub(crate) fn same_rows(source: &dyn Source, arrays: &[(&str, usize)]) -> Result<(), DataError> {
    let Some((rows, other)) = usual_steps(arrays) else { return Ok(()) };
    arrays.iter().try_for_each(|&(name, got)| same(source, name, got, rows, other))
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
/// Names of flags that mark an episode's end and its reason.
const END_FLAGS: [&str; 6] =
    ["terminals", "timeouts", "terminations", "truncations", "terminated", "truncated"];
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
