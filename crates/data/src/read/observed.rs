//! The observations in an array, as agents see them.

use overtone_core::Picture;
use overtone_core::picture::{FRAME, SIDE, STACK};

use crate::error::DataError;
use crate::read::column::ObservationColumn;
use crate::read::jpeg::decoded;
use crate::read::source::{Kind, Source, same, unread, wrong_shape, wrong_type, wrong_value};
use crate::read::spaces::Space;
use crate::read::stored::{PictureCounter, Pictures, Stored};

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
            Self::Frames { pixels, .. } => ObservationColumn::Frames { pixels },
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
    let is_bits = matches!(space, Some(Space::MultiBinary { .. }));
    let one_hots = space.filter(|_| !is_bits).and_then(Space::wholes);
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
        [] | [0, ..] => {
            // A list in each cell is not a column of numbers.
            source.kind(name)?;
            Err(wrong_shape(source, name, &shape, "[rows, width], at least one wide"))
        }
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
        pixels.chunks_exact(FRAME).for_each(|frame| counter.add(frame, frame));
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
        source.claim(name, (rows as u64).saturating_mul(FRAME as u64))?;
        let (stack, pixels) = (vec![0; STACK * FRAME], Vec::with_capacity(rows * FRAME));
        Ok(Self { picture, stack, pixels, counter: PictureCounter::default() })
    }

    fn push(&mut self, image: &[u8]) {
        self.picture.show(image, true, &mut self.stack);
        let frame = &self.stack[(STACK - 1) * FRAME..];
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
pub(super) fn indices(
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
