//! [`Hdf5File`]: arrays of an HDF5 file, read as what they are expected to be.
//!
//! Whatever a file says about an array is checked before memory is taken for it, and every
//! error names the array. The C library's own error printing is switched off by the bindings.
//!
//! HDF5 has ways to take an array from elsewhere: links to other files, and arrays whose
//! numbers lie in other files. No recording needs them, and with them a file could have any
//! other file read as if it were data. They are refused, and so are links to names within the
//! file, behind which such a link may lie.

mod before;
mod filters;
mod locked;
mod stream_lengths;

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use hdf5::plist::dataset_create::Layout;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor, VarLenArray, VarLenUnicode};
use hdf5::{Dataset, Group, IndexType, IterationOrder, LinkType};

use crate::columns::not_finite;
use crate::error::DataError;
use crate::read::source::{Claims, EachStream, Kind, Source, allowed, missing, singles};

/// Most rows of an array: row numbers are stored in 32 bits.
const MAX_ROWS: usize = u32::MAX as usize;
/// Most numbers of a row.
const MAX_WIDTH: usize = 1 << 16;
/// Most numbers of a row of several axes: four pictures of 640 by 480 pixels in colour.
const MAX_PICTURE: usize = 4 * 640 * 480 * 3;
/// The most bytes of an attribute that is read as a text.
const MAX_TEXT: usize = 4 << 20;

/// An HDF5 file that is open for reading.
#[derive(Debug)]
pub(crate) struct Hdf5File {
    path: PathBuf,
    file: hdf5::File,
    /// Whether bytes with rows and columns are numbers, and not pictures.
    numbers: bool,
    /// What was made of it so far; its size, which what it says of itself cannot exceed.
    claims: Claims,
    /// What is against reading streams of it, once that was looked at.
    stream_refusal: OnceCell<Option<&'static str>>,
}

/// Rows of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    /// `[rows, width]`
    pub values: Vec<f32>,
    /// Number of rows.
    pub rows: usize,
    /// Numbers of a row.
    pub width: usize,
}

impl Hdf5File {
    /// Opens a file.
    ///
    /// # Errors
    /// [`DataError::Missing`], [`DataError::NotHdf5`], [`DataError::Locked`] while another program
    /// writes it, or [`DataError::Hdf5`] when it is cut short or damaged, or links to elsewhere.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        // Asked of the system first, which says better why a file cannot be opened.
        let missing = || DataError::open(path, "name an HDF5 file that is there");
        let file = fs::File::open(path).map_err(missing())?;
        let metadata = file.metadata().map_err(missing())?;
        let refusal = before::refusal_of(&file, &metadata).map_err(DataError::io(path, "map"))?;
        if let Some(reason) = refusal {
            return Err(DataError::Hdf5 {
                path: path.to_path_buf(),
                what: "it".into(),
                reason: reason.into(),
            });
        }
        let claims = Claims::new(metadata.len());
        filters::forget_built_in_directory();
        let (path, file) = (path.to_path_buf(), locked::open(path)?);
        let opened = Self { path, file, numbers: false, claims, stream_refusal: OnceCell::new() };
        opened.check_links("", &opened.file)?;
        Ok(opened)
    }

    /// The same, whose bytes with rows and columns are `numbers`, and not pictures.
    pub fn showing_numbers(self, numbers: bool) -> Self {
        Self { numbers, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is an array or a group of this name.
    pub fn has(&self, name: &str) -> bool {
        self.file.link_exists(name)
    }

    /// Names of the arrays and groups at the top, in no meaningful order.
    ///
    /// # Errors
    /// [`DataError::Hdf5`] when they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, DataError> {
        self.file.member_names().map_err(|error| self.unreadable("its list of arrays", &error))
    }

    /// The attribute `name` of the file itself, where there is one and it is a whole number.
    pub fn attribute(&self, name: &str) -> Option<i64> {
        self.file.attr(name).ok()?.read_scalar().ok()
    }

    /// Shape of array `name`, which is not read.
    ///
    /// # Errors
    /// When there is no such array.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>, DataError> {
        let shape = self.dataset(name)?.space().map(|space| space.shape());
        shape.map_err(|error| self.unreadable(&format!("`{name}`"), &error))
    }

    /// Type of the elements of array `name`, which is not read.
    ///
    /// # Errors
    /// When there is no such array, or its elements are of a type unknown here.
    pub fn element(&self, name: &str) -> Result<TypeDescriptor, DataError> {
        self.element_of(name, &self.dataset(name)?)
    }

    fn element_of(&self, name: &str, dataset: &Dataset) -> Result<TypeDescriptor, DataError> {
        let of_type = dataset.dtype().map_err(|error| self.unreadable(name, &error))?;
        of_type.to_descriptor().map_err(|error| match error.to_string() {
            // The machine's longest.
            reason if reason.contains("float") => DataError::Unread {
                path: self.path.clone(),
                what: format!("`{name}` (float{})", 8 * of_type.size()),
                way_out: "save it as float32, `.astype(\"float32\")`".into(),
            },
            reason => self.wrong_type(name, reason, "numbers or booleans"),
        })
    }

    /// Names of the arrays and groups in group `group`; none where there is no such group.
    pub fn names_in(&self, group: &str) -> Vec<String> {
        let group = self.file.group(group);
        group.and_then(|group| group.member_names()).unwrap_or_default()
    }

    /// Array `name` of numbers (`f32`, `f64` or integers), `[rows, width]`, finite or not.
    ///
    /// # Errors
    /// When it is not there, or of another shape or type.
    pub fn matrix(&self, name: &str) -> Result<Matrix, DataError> {
        let shape = self.shape(name)?;
        let &[rows, width] = shape.as_slice() else {
            return Err(self.wrong_shape(name, &shape, "[rows, width]"));
        };
        if width == 0 {
            return Err(self.wrong_shape(name, &shape, "[rows, width], at least one wide"));
        }
        Ok(Matrix { values: self.numbers(name)?, rows, width })
    }

    /// Whether array `name` holds one whole number a row, `[rows]` or `[rows, 1]`: an action of a
    /// list.
    pub fn is_chosen(&self, name: &str) -> bool {
        let whole =
            |element| matches!(element, TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_));
        self.shape(name).is_ok_and(|shape| matches!(shape.as_slice(), [_] | [_, 1]))
            && self.element(name).is_ok_and(whole)
    }

    /// The error for an array of another shape.
    pub fn wrong_shape(&self, name: &str, got: &[usize], expected: &str) -> DataError {
        DataError::DatasetShape {
            path: self.path.clone(),
            dataset: name.into(),
            got: got.to_vec(),
            expected: expected.into(),
        }
    }

    fn dataset(&self, name: &str) -> Result<Dataset, DataError> {
        if !self.has(name) {
            return Err(missing(self, name, ""));
        }
        self.check_way(name)?;
        let unreadable = |error| self.unreadable(&format!("`{name}`"), &error);
        let dataset = match self.file.dataset(name) {
            Ok(dataset) => dataset,
            Err(_) if self.file.group(name).is_ok() => {
                return Err(self.wrong_type(name, "a group of arrays".into(), "one array"));
            }
            Err(error) => return Err(unreadable(error)),
        };
        let holds_streams =
            |of: hdf5::Datatype| of.to_descriptor().map_or(true, |of| has_streams(&of));
        if dataset.dtype().map_or(true, holds_streams) {
            self.check_streams()?;
        }
        let made = dataset.create_plist().map_err(unreadable)?;
        let elsewhere = made.get_layout().map_err(unreadable)? == Layout::Virtual
            || !made.get_external().map_err(unreadable)?.is_empty();
        if elsewhere {
            return Err(self.led_out(name, "whose numbers lie in another file"));
        }
        Ok(dataset)
    }

    /// Refuses `name` where a group on the way to it has names that stand for something elsewhere.
    fn check_way(&self, name: &str) -> Result<(), DataError> {
        for (at, _) in name.match_indices('/') {
            let group = &name[..at];
            let unreadable = |error| self.unreadable(&format!("`{group}`"), &error);
            self.check_links(&format!("{group}/"), &self.file.group(group).map_err(unreadable)?)?;
        }
        Ok(())
    }

    /// Refuses names in `group` that stand for something elsewhere; `prefix` is the group's own
    /// name with a `/`.
    fn check_links(&self, prefix: &str, group: &Group) -> Result<(), DataError> {
        let elsewhere = group.find_link(IndexType::Name, IterationOrder::Native, |name, link| {
            Ok((link.link_type != LinkType::Hard).then(|| format!("{prefix}{name}")))
        });
        match elsewhere {
            Ok(None) => Ok(()),
            Ok(Some(name)) => Err(self.led_out(&name, "a link to elsewhere")),
            Err(error) => Err(self.unreadable("its list of arrays", &error)),
        }
    }

    /// Refuses a file whose heaps of streams the library may not see.
    fn check_streams(&self) -> Result<(), DataError> {
        let refusal = match self.stream_refusal.get() {
            Some(refusal) => *refusal,
            None => {
                let refusal =
                    before::stream_refusal(&self.path).map_err(DataError::io(&self.path, "map"))?;
                *self.stream_refusal.get_or_init(|| refusal)
            }
        };
        match refusal {
            None => Ok(()),
            Some(reason) => Err(DataError::Hdf5 {
                path: self.path.clone(),
                what: "it".into(),
                reason: reason.into(),
            }),
        }
    }

    fn led_out(&self, name: &str, what: &str) -> DataError {
        DataError::Unread {
            path: self.path.clone(),
            what: format!("`{name}`, {what},"),
            way_out: "copy the array itself into the file".into(),
        }
    }

    fn numbers(&self, name: &str) -> Result<Vec<f32>, DataError> {
        let dataset = self.dataset(name)?;
        Ok(match self.check_claim(name, &dataset)? {
            TypeDescriptor::Float(FloatSize::U4) => self.read(name, &dataset)?,
            TypeDescriptor::Float(_) | TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => {
                let doubles = self.read::<f64>(name, &dataset)?;
                let width = dataset.shape().iter().skip(1).product();
                singles(self, name, doubles, width)?
            }
            other => return Err(self.wrong_type(name, other.to_string(), "real numbers")),
        })
    }

    /// Refuses numbers that are not finite.
    ///
    /// # Errors
    /// [`DataError::DatasetValue`], which says where the first one is.
    pub fn check_finite(&self, name: &str, values: &[f32], width: usize) -> Result<(), DataError> {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(DataError::DatasetValue {
                path: self.path.clone(),
                dataset: name.into(),
                row: at / width,
                what: not_finite(values[at], at % width),
            });
        }
        Ok(())
    }

    /// Refuses an array that is larger than any log, or holds much more than is stored for it;
    /// gives the type of its elements.
    fn check_claim(&self, name: &str, dataset: &Dataset) -> Result<TypeDescriptor, DataError> {
        let shape = dataset.shape();
        let rows = shape.first().copied().unwrap_or(1);
        let width = shape.iter().skip(1).fold(1usize, |n, &axis| n.saturating_mul(axis));
        let most = if shape.len() > 2 { MAX_PICTURE } else { MAX_WIDTH };
        if rows > MAX_ROWS || width > most {
            let expected = format!("at most [{MAX_ROWS}, {most}]");
            return Err(self.wrong_shape(name, &shape, &expected));
        }
        let descriptor = self.element_of(name, dataset)?;
        let bytes_of = |axes: &[usize]| {
            let elements = axes.iter().fold(1, |n: u64, &axis| n.saturating_mul(axis as u64));
            elements.saturating_mul(descriptor.size() as u64)
        };
        let refused = |claimed, stored| {
            let (path, dataset) = (self.path.clone(), name.into());
            Err(DataError::DatasetClaim { path, dataset, claimed, stored })
        };
        // Pieces say how long they are: together no longer than the file.
        let (stored, file) = (dataset.storage_size(), self.claims.bytes);
        if stored > file {
            return refused(stored, file);
        }
        // A chunk is held whole while it is read, whatever the array's shape is.
        let chunk = dataset.chunk().map_or(0, |chunk| bytes_of(&chunk));
        let claimed = bytes_of(&shape).max(chunk);
        // Zeros that were never written take no room; no larger than the file they are no bomb.
        if claimed > allowed(stored).max(file) {
            return refused(claimed, stored);
        }
        self.claim(name, claimed)?;
        Ok(descriptor)
    }

    /// The attribute `name` of the file itself, where there is one and it is a short text.
    pub fn text(&self, name: &str) -> Option<String> {
        let attribute = self.file.attr(name).ok()?;
        if attribute.ndim() == 0 {
            // As h5py writes a text. It lies in a heap of the file, and is no longer than that.
            let text = attribute.read_scalar::<VarLenUnicode>().ok()?;
            let bytes = text.as_bytes();
            return String::from_utf8(bytes.to_vec()).ok().filter(|text| text.len() <= MAX_TEXT);
        }
        let is_small = attribute.shape().first().is_some_and(|&n| n <= MAX_TEXT);
        if attribute.ndim() != 1 || !is_small {
            return None;
        }
        String::from_utf8(attribute.read_raw::<u8>().ok()?).ok()
    }

    fn read<T: hdf5::H5Type>(&self, name: &str, dataset: &Dataset) -> Result<Vec<T>, DataError> {
        dataset.read_raw().map_err(|error| self.undecoded(name, dataset, &error))
    }

    /// The error for an array that the library cannot read, maybe for want of a filter.
    fn undecoded(&self, name: &str, dataset: &Dataset, error: &hdf5::Error) -> DataError {
        match filters::unavailable(dataset) {
            None => self.unreadable(&format!("`{name}`"), error),
            Some(filter) => DataError::Unread {
                path: self.path.clone(),
                what: format!("`{name}`, which HDF5's filter {filter} compresses,"),
                way_out: "name a directory with its plugin in HDF5_PLUGIN_PATH (Python has one: \
                          `hdf5plugin.PLUGIN_PATH`), or rewrite the file with `h5repack -f GZIP=4 \
                          IN OUT`"
                    .into(),
            },
        }
    }

    fn unreadable(&self, what: &str, error: &hdf5::Error) -> DataError {
        DataError::Hdf5 { path: self.path.clone(), what: what.into(), reason: error.to_string() }
    }

    fn wrong_type(&self, name: &str, got: String, expected: &'static str) -> DataError {
        DataError::DatasetType { path: self.path.clone(), dataset: name.into(), got, expected }
    }
}

/// Whether elements of this type, or parts of them, lie in heaps.
fn has_streams(element: &TypeDescriptor) -> bool {
    match element {
        TypeDescriptor::Integer(_)
        | TypeDescriptor::Unsigned(_)
        | TypeDescriptor::Float(_)
        | TypeDescriptor::Boolean
        | TypeDescriptor::Enum(_)
        | TypeDescriptor::FixedAscii(_)
        | TypeDescriptor::FixedUnicode(_) => false,
        TypeDescriptor::FixedArray(of, _) => has_streams(of),
        TypeDescriptor::Compound(of) => of.fields.iter().any(|field| has_streams(&field.ty)),
        _ => true,
    }
}

impl Source for Hdf5File {
    fn path(&self) -> &Path {
        &self.path
    }

    fn has(&self, name: &str) -> bool {
        Self::has(self, name)
    }

    fn parts(&self, name: &str) -> Option<Vec<String>> {
        // What leads elsewhere is refused when it is read as an array.
        self.check_way(name).ok()?;
        self.has(name).then(|| self.file.group(name).ok()?.member_names().ok()).flatten()
    }

    fn listed(&self) -> Vec<String> {
        self.file.member_names().unwrap_or_default()
    }

    fn shape(&self, name: &str) -> Result<Vec<usize>, DataError> {
        Self::shape(self, name)
    }

    fn kind(&self, name: &str) -> Result<Kind, DataError> {
        Ok(match self.element(name)? {
            TypeDescriptor::Boolean => Kind::Flag,
            TypeDescriptor::Unsigned(IntSize::U1) => Kind::Byte,
            TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => Kind::Whole,
            TypeDescriptor::Float(_) => Kind::Real,
            other => return Err(self.wrong_type(name, other.to_string(), "numbers or booleans")),
        })
    }

    fn reals(&self, name: &str) -> Result<Vec<f32>, DataError> {
        self.numbers(name)
    }

    fn wholes(&self, name: &str) -> Result<Vec<i64>, DataError> {
        let dataset = self.dataset(name)?;
        match self.check_claim(name, &dataset)? {
            TypeDescriptor::Boolean | TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => {
                self.read(name, &dataset)
            }
            other => Err(self.wrong_type(name, other.to_string(), "whole numbers")),
        }
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, DataError> {
        let dataset = self.dataset(name)?;
        match self.check_claim(name, &dataset)? {
            TypeDescriptor::Unsigned(IntSize::U1) => self.read(name, &dataset),
            other => Err(self.wrong_type(name, other.to_string(), "bytes")),
        }
    }

    fn streams(&self, name: &str, each: &mut EachStream<'_>) -> Result<(), DataError> {
        let dataset = self.dataset(name)?;
        let rows = dataset.shape().first().copied().unwrap_or(0);
        let undecoded = |error: hdf5::Error| self.undecoded(name, &dataset, &error);
        match self.check_claim(name, &dataset)? {
            // Equally long ones are rows of a matrix.
            TypeDescriptor::Unsigned(IntSize::U1) if dataset.ndim() == 2 => {
                let width = dataset.shape()[1].max(1);
                let bytes: Vec<u8> = self.read(name, &dataset)?;
                bytes.chunks(width).enumerate().try_for_each(|(row, bytes)| each(row, bytes))
            }
            TypeDescriptor::VarLenArray(of) if *of == TypeDescriptor::Unsigned(IntSize::U1) => {
                let longest = stream_lengths::longest(&self.path, &dataset)
                    .map_err(DataError::io(&self.path, "read"))?;
                if longest > self.claims.bytes {
                    let (path, dataset) = (self.path.clone(), name.into());
                    let (claimed, stored) = (longest, self.claims.bytes);
                    return Err(DataError::DatasetClaim { path, dataset, claimed, stored });
                }
                for row in 0..rows {
                    // One at a time: many rows may lead to the same bytes.
                    let read = dataset.read_slice_1d::<VarLenArray<u8>, _>(row..row + 1);
                    let read = read.map_err(undecoded)?;
                    let Some(bytes) = read.first() else { continue };
                    self.claim(name, bytes.len() as u64)?;
                    each(row, bytes)?;
                }
                Ok(())
            }
            other => Err(self.wrong_type(name, other.to_string(), "pictures")),
        }
    }

    fn shows_numbers(&self) -> bool {
        self.numbers
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }
}
