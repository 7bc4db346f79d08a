//! [`Source`]: arrays by name, in any kind of file, and the observations and actions in them.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use overtone_core::Picture;
use overtone_core::picture::{SIDE, STACK};

use crate::columns::{ActionColumn, ObservationColumn};
use crate::error::advice::{BEYOND, ONE_A_ROW};
use crate::error::{DataError, Fault};
use crate::read::jpeg::decoded;
use crate::read::rounding::Rounding;
use crate::spaces::Space;
use crate::stored::{PictureCounter, Pictures, Stored};

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

/// Maximum depth of nested groups: a file's group may lead to itself.
const MOST_NESTED: usize = 32;

/// The contents of an array of observations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    /// Numbers.
    Numbers {
        /// `[rows, width]`
        values: Vec<f32>,
        rows: usize,
        width: usize,
    },
    /// The newest frame of each row.
    Frames {
        /// `[rows, SIDE, SIDE]`
        pixels: Vec<u8>,
        rows: usize,
        /// The original element type and shape.
        pictures: Pictures,
    },
}

impl Shown {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers { rows, .. } | Self::Frames { rows, .. } => *rows,
        }
    }

    /// How they are stored in array `name`, of space `space`; rows of `flagged` recordings end
    /// episodes.
    pub fn stored(
        &self,
        source: &dyn Source,
        name: &str,
        space: Option<&Space>,
        flagged: bool,
    ) -> Stored {
        // A group of arrays has no axes. If the user declared bytes as numbers, axes do not count.
        let axes = source.shape(name).ok().filter(|_| !source.shows_numbers()).unwrap_or_default();
        Stored {
            axes: axes.get(1..).unwrap_or_default().to_vec(),
            observations_described: space.is_some() || source.shows_numbers(),
            flagged,
            pictures: match self {
                Self::Numbers { .. } => Pictures::default(),
                Self::Frames { pictures, .. } => *pictures,
            },
            ..Stored::default()
        }
    }

    /// The same data in a recording's form.
    pub fn seen(self) -> ObservationColumn {
        match self {
            Self::Numbers { values, width, .. } => ObservationColumn::Vectors { width, values },
            Self::Frames { pixels, .. } => {
                ObservationColumn::Frames { pixels, shape: [SIDE, SIDE], stack: STACK }
            }
        }
    }
}

/// The observations in array or group `name` as agents see them. They are numbers (the parts of a
/// group are concatenated in the order of their names) or, for bytes with rows and columns,
/// pictures ([`Picture`]).
///
/// # Errors
/// If they do not fit the space `space`, or have a space that is not supported.
pub(crate) fn observed(
    source: &dyn Source,
    name: &str,
    space: Option<&Space>,
) -> Result<Shown, DataError> {
    if name.matches('/').count() > MOST_NESTED {
        let way_out = "record fewer groups in each other".into();
        return Err(unread(source, format!("`{name}`, a group in itself,"), way_out));
    }
    let parts: Vec<(String, Option<&Space>)> = match (space, source.parts(name)) {
        (Some(Space::Other(space)), _) => {
            let way_out = "give numbers or pictures in its place".into();
            return Err(unread(source, format!("`{name}`, a {space} space,"), way_out));
        }
        (Some(Space::Dict(parts)), _) => {
            parts.iter().map(|(key, part)| (format!("{name}/{key}"), Some(part))).collect()
        }
        (Some(Space::Tuple(parts)), _) => {
            let numbered = parts.iter().enumerate();
            numbered.map(|(at, part)| (format!("{name}/_index_{at}"), Some(part))).collect()
        }
        (Some(space), _) => return one(source, name, Some(space)),
        (None, None) => return one(source, name, None),
        (None, Some(mut names)) => {
            // In a tuple the tenth follows the ninth.
            let number = |name: &String| name.strip_prefix("_index_")?.parse::<u64>().ok();
            names.sort_by_cached_key(|name| (number(name), name.clone()));
            names.into_iter().map(|part| (format!("{name}/{part}"), None)).collect()
        }
    };
    let mut shown = Vec::with_capacity(parts.len());
    for (part, space) in &parts {
        shown.push(observed(source, part, *space)?);
    }
    match shown.len() {
        0 => {
            Err(wrong_type(source, name, "a group of arrays that is empty", "an array, or several"))
        }
        1 => Ok(shown.remove(0)),
        _ => side_by_side(source, &parts, &shown),
    }
}

/// Parts of an observation in one row.
fn side_by_side(
    source: &dyn Source,
    parts: &[(String, Option<&Space>)],
    shown: &[Shown],
) -> Result<Shown, DataError> {
    let rows = shown[0].rows();
    let mut matrices = Vec::with_capacity(shown.len());
    for ((name, _), part) in parts.iter().zip(shown) {
        match part {
            Shown::Frames { .. } => {
                let what = format!("`{name}`, a picture next to other parts,");
                return Err(unread(source, what, "record one of them alone".into()));
            }
            Shown::Numbers { values, rows: here, width } => {
                same(source, name, *here, rows, &parts[0].0)?;
                matrices.push((values, *width));
            }
        }
    }
    let width = matrices.iter().map(|(_, width)| width).sum();
    let mut values = Vec::with_capacity(matrices.iter().map(|(values, _)| values.len()).sum());
    for row in 0..rows {
        for (part, width) in &matrices {
            values.extend_from_slice(&part[row * width..(row + 1) * width]);
        }
    }
    Ok(Shown::Numbers { values, rows, width })
}

/// The observations in array `name` as agents see them, as [`observed`].
///
/// # Errors
/// As [`observed`], and when it is a group.
pub(crate) fn one(
    source: &dyn Source,
    name: &str,
    space: Option<&Space>,
) -> Result<Shown, DataError> {
    let shape = source.shape(name)?;
    let Some((&rows, axes)) = shape.split_first() else {
        return Err(wrong_shape(source, name, &shape, "[rows, width]"));
    };
    let one_hots = match space {
        Some(Space::Discrete { n, start }) => Some((vec![*n], vec![*start])),
        Some(Space::MultiDiscrete { sizes, starts }) => Some((sizes.clone(), starts.clone())),
        _ => None,
    };
    if let Some((sizes, starts)) = one_hots {
        return ones_and_zeros(source, name, rows, &sizes, &starts);
    }
    if let Some(Space::Box { shape: wanted, dtype, .. }) = space
        && wanted.as_slice() != axes
    {
        // Rows of bytes: Minari's pictures are JPEG unless the user declared something else.
        if dtype == "uint8" && wanted.len() >= 2 && axes.len() <= 1 {
            return streamed(source, name, rows, wanted);
        }
        let wanted: Vec<String> = wanted.iter().map(usize::to_string).collect();
        let expected = format!("[rows, {}], as its space", wanted.join(", "));
        return Err(wrong_shape(source, name, &shape, &expected));
    }
    let width = axes.iter().product();
    if let Some(Space::MultiBinary { n }) = space
        && *n != width
    {
        return Err(wrong_shape(source, name, &shape, &format!("[rows, {n}], as its space")));
    }
    // A space of one number without an axis describes that itself.
    let is_one = matches!(space, Some(Space::Box { shape, .. }) if shape.is_empty());
    match axes {
        [] if is_one => Ok(Shown::Numbers { values: source.reals(name)?, rows, width: 1 }),
        [] | [0, ..] => Err(wrong_shape(source, name, &shape, "[rows, width], at least one wide")),
        [_, _, ..] if source.kind(name)? == Kind::Byte && !source.shows_numbers() => {
            frames(source, name, rows, axes)
        }
        _ if width == 0 => Err(wrong_shape(source, name, &shape, "[rows, width]")),
        _ => Ok(Shown::Numbers { values: source.reals(name)?, rows, width }),
    }
}

/// Pictures of shape `axes` that are stored as JPEG, as agents see them.
fn streamed(
    source: &dyn Source,
    name: &str,
    rows: usize,
    axes: &[usize],
) -> Result<Shown, DataError> {
    if source.shows_numbers() {
        let way_out = "record them with jpeg_encoding=False, as JPEG changes them".into();
        return Err(unread(source, format!("`{name}`, JPEG pictures that are numbers,"), way_out));
    }
    let expected = "[height, width], with 3 colours last or none";
    let picture = Picture::of(axes).map_err(|_| wrong_shape(source, name, axes, expected))?;
    let mut seen = AsSeen::new(source, name, rows, picture)?;
    source.streams(name, &mut |row, bytes| {
        let image =
            decoded(bytes, axes).map_err(|reason| wrong_value(source, name, row, reason))?;
        seen.push(&image);
        Ok(())
    })?;
    Ok(seen.shown(rows))
}

/// Pictures as agents see them.
fn frames(
    source: &dyn Source,
    name: &str,
    rows: usize,
    axes: &[usize],
) -> Result<Shown, DataError> {
    let picture = Picture::of(axes).map_err(|expected| {
        let shape: Vec<usize> = [rows].iter().chain(axes).copied().collect();
        wrong_shape(source, name, &shape, &format!("rows of {expected}"))
    })?;
    if axes == [SIDE, SIDE] {
        let pixels = source.bytes(name)?;
        let mut counter = PictureCounter::default();
        pixels.chunks_exact(SIDE * SIDE).for_each(|frame| counter.add(frame, frame));
        return Ok(Shown::Frames { pixels, rows, pictures: counter.counts() });
    }
    let size = picture.size();
    let mut seen = AsSeen::new(source, name, rows, picture)?;
    source.rows(name, size, &mut |_, image| {
        seen.push(image);
        Ok(())
    })?;
    Ok(seen.shown(rows))
}

/// Pictures, one after the other, each as the newest frame that an agent sees of it.
struct AsSeen {
    picture: Picture,
    stack: Vec<u8>,
    pixels: Vec<u8>,
    counter: PictureCounter,
}

impl AsSeen {
    /// Has room for `rows` pictures, which `source` must have claimed.
    fn new(
        source: &dyn Source,
        name: &str,
        rows: usize,
        picture: Picture,
    ) -> Result<Self, DataError> {
        const FRAME: usize = SIDE * SIDE;
        source.claim(name, (rows as u64).saturating_mul(FRAME as u64))?;
        let (stack, pixels) = (vec![0; STACK * FRAME], Vec::with_capacity(rows * FRAME));
        Ok(Self { picture, stack, pixels, counter: PictureCounter::default() })
    }

    fn push(&mut self, image: &[u8]) {
        self.picture.show(image, true, &mut self.stack);
        let frame = &self.stack[(STACK - 1) * SIDE * SIDE..];
        self.counter.add(self.picture.newest(image).unwrap_or(frame), frame);
        self.pixels.extend_from_slice(frame);
    }

    /// All pictures.
    fn shown(self, rows: usize) -> Shown {
        Shown::Frames { pixels: self.pixels, rows, pictures: self.counter.counts() }
    }
}

/// Whole numbers as ones and zeros, as an environment of that space shows them.
fn ones_and_zeros(
    source: &dyn Source,
    name: &str,
    rows: usize,
    sizes: &[usize],
    starts: &[i64],
) -> Result<Shown, DataError> {
    let width = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
    source.claim(name, (rows as u64).saturating_mul(width as u64).saturating_mul(4))?;
    let indices = indices(source, name, rows, sizes, starts)?;
    let mut values = vec![0.0; rows * width];
    for (row, indices) in indices.chunks_exact(sizes.len()).enumerate() {
        let mut first = row * width;
        for (&index, &size) in indices.iter().zip(sizes) {
            values[first + index] = 1.0;
            first += size;
        }
    }
    Ok(Shown::Numbers { values, rows, width })
}

/// `[rows, sizes.len()]` whole numbers, each counted from its start and below its size.
fn indices(
    source: &dyn Source,
    name: &str,
    rows: usize,
    sizes: &[usize],
    starts: &[i64],
) -> Result<Vec<usize>, DataError> {
    let wholes = source.wholes(name)?;
    if Some(wholes.len()) != rows.checked_mul(sizes.len()) {
        let expected = format!("[rows, {}], as its space", sizes.len());
        return Err(wrong_shape(source, name, &source.shape(name)?, &expected));
    }
    let index = |(at, &whole): (usize, &i64)| {
        let (size, start) = (sizes[at % sizes.len()], starts[at % sizes.len()]);
        let from_start = whole.checked_sub(start).and_then(|index| usize::try_from(index).ok());
        from_start.filter(|&index| index < size).ok_or_else(|| {
            let what = format!("{whole}, expected one of {size} numbers from {start} on");
            wrong_value(source, name, at / sizes.len(), what)
        })
    };
    wholes.iter().enumerate().map(index).collect()
}

/// The maximum number of combinations of several integers that are read as discrete actions.
const MOST_COMBINATIONS: usize = 4096;

/// The actions in array `name`: discrete if it holds one whole number a row, else numbers. Several
/// whole numbers become one discrete action for each combination; the last number changes fastest.
///
/// # Errors
/// If they do not fit the space `space`, or have a space that is not supported.
pub(crate) fn acted(
    source: &dyn Source,
    name: &str,
    space: Option<&Space>,
) -> Result<ActionColumn, DataError> {
    if let (Some(Space::Dict(_) | Space::Tuple(_)), _) | (None, Some(_)) =
        (space, source.parts(name))
    {
        let way_out = "record one array of actions".into();
        return Err(unread(source, format!("`{name}`, actions of several parts,"), way_out));
    }
    let shape = source.shape(name)?;
    let rows = shape.first().copied().unwrap_or(0);
    match space {
        Some(Space::Other(space)) => {
            let way_out = "record discrete or continuous actions".into();
            Err(unread(source, format!("`{name}`, a {space} space,"), way_out))
        }
        Some(Space::Discrete { n, start }) => {
            chosen(source, name, rows, &[*n], &[*start]).map(|values| listed(*n, values))
        }
        Some(Space::MultiDiscrete { sizes, starts }) => {
            let n = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
            let Some(n) = n.filter(|&n| n <= MOST_COMBINATIONS) else {
                let what = format!("`{name}`, {} numbers with too many combinations,", sizes.len());
                let way_out = format!("at most {MOST_COMBINATIONS} are read as discrete actions");
                return Err(unread(source, what, way_out));
            };
            chosen(source, name, rows, sizes, starts).map(|values| listed(n, values))
        }
        Some(Space::MultiBinary { n }) if *n <= MOST_COMBINATIONS.ilog2() as usize => {
            chosen(source, name, rows, &vec![2; *n], &vec![0; *n])
                .map(|values| listed(1 << n, values))
        }
        Some(Space::MultiBinary { n }) => {
            let what = format!("`{name}`, {n} bits with too many combinations,");
            let way_out = format!("at most {MOST_COMBINATIONS} are read as discrete actions");
            Err(unread(source, what, way_out))
        }
        Some(Space::Dict(_) | Space::Tuple(_) | Space::Box { .. }) | None => {
            let is_list = matches!(shape.as_slice(), [_] | [_, 1])
                && !matches!(space, Some(Space::Box { .. }))
                && source.kind(name)? != Kind::Real;
            if is_list {
                let most = usize::from(u16::MAX);
                let values = chosen(source, name, rows, &[most], &[0])?;
                let n = values.iter().max().map_or(0, |&last| usize::from(last) + 1);
                return Ok(listed(n, values));
            }
            let is_one = matches!(space, Some(Space::Box { shape, .. }) if shape.is_empty());
            let width: usize = shape.iter().skip(1).product();
            if (shape.len() < 2 && !(is_one && shape.len() == 1)) || width == 0 {
                let expected = "[rows, width], or [rows] of whole numbers for discrete actions";
                return Err(wrong_shape(source, name, &shape, expected));
            }
            Ok(ActionColumn::Continuous { width, values: source.reals(name)? })
        }
    }
}

fn listed(n_actions: usize, values: Vec<u16>) -> ActionColumn {
    ActionColumn::Discrete { n_actions, values }
}

/// The index of each row's numbers among their combinations.
fn chosen(
    source: &dyn Source,
    name: &str,
    rows: usize,
    sizes: &[usize],
    starts: &[i64],
) -> Result<Vec<u16>, DataError> {
    let indices = indices(source, name, rows, sizes, starts)?;
    let place = |indices: &[usize]| {
        indices.iter().zip(sizes).fold(0, |place, (&index, &size)| place * size + index)
    };
    let places = indices.chunks_exact(sizes.len()).map(place).enumerate();
    let action = |(row, place)| {
        u16::try_from(place).ok().filter(|&action| action < u16::MAX).ok_or_else(|| {
            wrong_value(source, name, row, format!("{place}, expected an action of a list"))
        })
    };
    places.map(action).collect()
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
/// [`DataError::DatasetLength`].
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
