//! [`Hdf5File`]: arrays of an HDF5 file, read as what they are expected to be.
//!
//! `hdf5-pure` reads the file, without C. Claims of the file about an array are compared with
//! its size before memory is allocated, and every error names the array.
//!
//! HDF5 has ways to take an array from elsewhere. `hdf5-pure` passes over links to other files and
//! to names within the file, so that an array behind one is missing; an array whose numbers lie in
//! another file is refused.

mod element;
mod heap;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};

use half::f16;
use hdf5_pure::{
    AttrValue, ChunkCacheConfig, Dataset, Datatype, DatatypeByteOrder, Error, File,
    FileAccessProperties, FormatError, Group, Layout,
};

use self::element::{described, is_stream};
use self::heap::Heaps;
use crate::error::advice::not_finite;
use crate::error::{DataError, Fault};
use crate::read::hdf5_paths::is_named_hdf5;
use crate::read::source::{
    Claims, EachStream, Kind, Source, allowed, missing, singles, unread, wrong_shape, wrong_type,
    wrong_value,
};
use crate::read::wrapped::unsigned_max;

/// Most rows of an array: row numbers are stored in 32 bits.
const MAX_ROWS: usize = u32::MAX as usize;
/// Most numbers of a row.
const MAX_WIDTH: usize = 1 << 16;
/// Most numbers of a row of several axes: four pictures of 640 by 480 pixels in colour.
const MAX_PICTURE: usize = 4 * 640 * 480 * 3;
/// Bytes of rows that are read together.
const AT_ONCE: usize = 4 << 20;

/// Filters that people compress recordings with and that are not read, by the number that the HDF
/// Group gave them.
const FILTERS: [(u16, &str); 16] = [
    (4, "SZIP"),
    (5, "N-bit"),
    (307, "bzip2"),
    (32_001, "Blosc"),
    (32_004, "LZ4"),
    (32_008, "bitshuffle"),
    (32_013, "ZFP"),
    (32_015, "Zstandard"),
    (32_017, "SZ"),
    (32_018, "FCIDECOMP"),
    (32_019, "JPEG"),
    (32_023, "Granular BitRound"),
    (32_024, "SZ3"),
    (32_026, "Blosc2"),
    (32_028, "SPERR"),
    (32_029, "HTJ2K"),
];

/// An HDF5 file that is open for reading.
#[derive(Debug)]
pub(crate) struct Hdf5File {
    path: PathBuf,
    /// The file itself, with a lock against programs that would write it.
    file: fs::File,
    /// The arrays and groups at the top, which may be tens of thousands.
    top: BTreeMap<String, Member>,
    attributes: HashMap<String, AttrValue>,
    /// Position of the file's address 0.
    base: u64,
    /// Whether bytes with rows and columns are numbers, and not pictures.
    numbers: bool,
    /// The memory used for it so far, and its size, which no claim in the file can exceed.
    claims: Claims,
}

/// The target of a name in a file.
#[derive(Clone, Debug)]
enum Member {
    Array(Dataset),
    Group(Group),
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
    /// [`DataError::Missing`], `Fault::NotHdf5`, `Fault::UnknownFormat` if its name does not
    /// promise HDF5 either, `Fault::Locked` while another program writes it, `Fault::LeftOpen` if
    /// one has not closed it, or `Fault::Hdf5` when it is cut short or damaged.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let missing = || DataError::open(path, "name an HDF5 file that is there");
        let opened = fs::File::open(path).map_err(missing())?;
        let bytes = opened.metadata().map_err(missing())?.len();
        // As HDF5's own library locks a file; where a disk has no locks, none can be held.
        if matches!(opened.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return Err(Fault::Locked.at(path));
        }
        let damaged = |reason: String| Fault::Hdf5 { what: "it".into(), reason }.at(path);
        // Each array is read once.
        let once = FileAccessProperties::new().with_chunk_cache(ChunkCacheConfig::disabled());
        let file = File::open_streaming_with_options(path, once).map_err(|error| match error {
            Error::Io(error) => missing()(error),
            Error::Format(FormatError::SignatureNotFound) if is_named_hdf5(path) => {
                Fault::NotHdf5.at(path)
            }
            Error::Format(FormatError::SignatureNotFound) => Fault::UnknownFormat.at(path),
            Error::FileMarkedInUse(_) => Fault::LeftOpen.at(path),
            error => refusal(path, "it", error),
        })?;
        let superblock = file.superblock();
        let end = superblock.eof_address;
        if end > bytes {
            return Err(damaged(format!("it ends after {bytes} of {end} bytes")));
        }
        if (superblock.offset_size, superblock.length_size) != (8, 8) {
            return Err(damaged("its addresses are not of 8 bytes".into()));
        }
        let list = |what: &'static str| move |error| refusal(path, what, error);
        Ok(Self {
            path: path.to_path_buf(),
            file: opened,
            top: members(&file.root()).map_err(list("its list of arrays"))?,
            attributes: file.root().attrs().map_err(list("its list of attributes"))?,
            base: superblock.base_address.get(),
            numbers: false,
            claims: Claims::new(bytes),
        })
    }

    /// The same, whose bytes with rows and columns are `numbers`, and not pictures.
    pub fn showing_numbers(self, numbers: bool) -> Self {
        Self { numbers, ..self }
    }

    /// The attribute `name` of the file itself, if any and it is a whole number.
    pub fn attribute(&self, name: &str) -> Option<i64> {
        self.attributes.get(name)?.as_i64()
    }

    /// The attribute `name` of a group, if any and it is a whole number.
    pub fn attribute_of(&self, group: &str, name: &str) -> Option<i64> {
        let Ok(Some(Member::Group(group))) = self.find(group) else { return None };
        group.attrs().ok()?.get(name)?.as_i64()
    }

    /// The attribute `name` of the file itself, if any and it is a text: as h5py writes
    /// it, or as bytes.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.attributes.get(name)? {
            AttrValue::U8Array(bytes) => String::from_utf8(bytes.clone()).ok(),
            text => text.as_str().map(str::to_owned),
        }
    }

    /// The name of the type of array `name`'s elements, as NumPy has it.
    ///
    /// # Errors
    /// If the array does not exist.
    pub fn element(&self, name: &str) -> Result<String, DataError> {
        let datatype = self.dataset(name)?.datatype();
        Ok(described(&datatype.map_err(|error| self.unreadable(name, error))?).1)
    }

    /// Whether array `name` is there and its elements are numbers or booleans.
    pub fn holds_numbers(&self, name: &str) -> bool {
        self.kind(name).is_ok()
    }

    /// Array `name` of numbers (`f32`, `f64` or integers), `[rows, width]`, finite or not.
    ///
    /// # Errors
    /// When it is not there, or of another shape or type.
    pub fn matrix(&self, name: &str) -> Result<Matrix, DataError> {
        let shape = self.shape(name)?;
        match shape[..] {
            [rows, width] if width > 0 => Ok(Matrix { values: self.reals(name)?, rows, width }),
            _ => Err(wrong_shape(self, name, &shape, "[rows, width], at least one wide")),
        }
    }

    /// Whether array `name` holds one whole number a row, `[rows]` or `[rows, 1]`: an action of a
    /// list.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.shape(name).is_ok_and(|shape| matches!(shape[..], [_] | [_, 1]))
            && self.kind(name).is_ok_and(|kind| matches!(kind, Kind::Byte | Kind::Whole))
    }

    /// Refuses numbers that are not finite.
    ///
    /// # Errors
    /// `Fault::DatasetValue`, which says where the first one is.
    pub fn check_finite(&self, name: &str, values: &[f32], width: usize) -> Result<(), DataError> {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let what = not_finite(values[at], at % width);
            return Err(wrong_value(self, name, at / width, what));
        }
        Ok(())
    }

    /// The array or group `name`, if any.
    fn find(&self, name: &str) -> Result<Option<Member>, DataError> {
        let Some((first, rest)) = name.split_once('/') else {
            return Ok(self.top.get(name).cloned());
        };
        let Some(Member::Group(group)) = self.top.get(first) else { return Ok(None) };
        let member = match group.dataset(rest) {
            Err(Error::NotADataset(_)) => group.group(rest).map(Member::Group),
            found => found.map(Member::Array),
        };
        match member {
            Ok(member) => Ok(Some(member)),
            Err(Error::Format(FormatError::PathNotFound(_))) => Ok(None),
            Err(error) => Err(self.unreadable(name, error)),
        }
    }

    fn dataset(&self, name: &str) -> Result<Dataset, DataError> {
        match self.find(name)? {
            Some(Member::Array(dataset)) => {
                self.claims.note_read(name);
                Ok(dataset)
            }
            Some(Member::Group(_)) => Err(wrong_type(self, name, "a group of arrays", "one array")),
            None => Err(missing(self, name, "")),
        }
    }

    /// Refuses an array that is larger than any log, or holds much more than is stored for it;
    /// gives the array and the type of its elements.
    fn claimed(&self, name: &str) -> Result<(Dataset, Datatype, Vec<usize>), DataError> {
        let dataset = self.dataset(name)?;
        let shape = self.shape_of(name, &dataset)?;
        let unreadable = |error| self.unreadable(name, error);
        let rows = shape.first().copied().unwrap_or(1);
        let width = shape.iter().skip(1).fold(1usize, |n, &axis| n.saturating_mul(axis));
        let most = if shape.len() > 2 { MAX_PICTURE } else { MAX_WIDTH };
        if rows > MAX_ROWS || width > most {
            let expected = format!("at most [{MAX_ROWS}, {most}]");
            return Err(wrong_shape(self, name, &shape, &expected));
        }
        let datatype = dataset.datatype().map_err(unreadable)?;
        let size = u64::from(datatype.type_size());
        let product =
            |axes: &mut dyn Iterator<Item = u64>| axes.fold(size, |n, axis| n.saturating_mul(axis));
        // A chunk is held whole while it is read, whatever the array's shape is.
        let (stored, chunk) = match dataset.layout().map_err(unreadable)? {
            Layout::Compact { size } | Layout::Contiguous { address: Some(_), size } => (size, 0),
            Layout::Chunked { chunk_shape, .. } => {
                let chunks = dataset.chunks().map_err(unreadable)?;
                let bytes = chunks.iter().map(|chunk| chunk.storage_size);
                (bytes.fold(0, u64::saturating_add), product(&mut chunk_shape.into_iter()))
            }
            _ => (0, 0),
        };
        let claimed = product(&mut shape.iter().map(|&axis| axis as u64)).max(chunk);
        let file = self.claims.bytes;
        // Pieces say how long they are: together no longer than the file. Zeros that were never
        // written take no room; up to the file's size they are harmless.
        let refused = match (stored > file, claimed > allowed(stored).max(file)) {
            (true, _) => Some((stored, file)),
            (_, true) => Some((claimed, stored)),
            _ => None,
        };
        if let Some((claimed, stored)) = refused {
            let (path, dataset) = (self.path.clone(), name.into());
            return Err(Fault::DatasetClaim { dataset, claimed, stored }.at(path));
        }
        self.claim(name, claimed)?;
        Ok((dataset, datatype, shape))
    }

    /// Array `name` of bytes, some rows after the other.
    fn pieces(
        &self,
        name: &str,
        each: &mut dyn FnMut(&[u8]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let (dataset, datatype, shape) = self.claimed(name)?;
        let (kind, got) = described(&datatype);
        if kind != Some(Kind::Byte) {
            return Err(wrong_type(self, name, &got, "bytes"));
        }
        let unreadable = |error| self.unreadable(name, error);
        let chunk = dataset.chunk_shape().map_err(unreadable)?;
        // Whole chunks, so that each is decompressed once.
        let band = chunk.and_then(|chunk| chunk.first().copied()).unwrap_or(1).max(1);
        let row = shape.iter().skip(1).product::<usize>().max(1);
        let step = (AT_ONCE / row) as u64 / band * band;
        let rows = shape.first().map_or(1, |&rows| rows as u64);
        for start in (0..rows).step_by(step.max(band) as usize) {
            each(&dataset.read_u8_rows(start, step.max(band)).map_err(unreadable)?)?;
        }
        Ok(())
    }

    fn shape_of(&self, name: &str, dataset: &Dataset) -> Result<Vec<usize>, DataError> {
        let shape = dataset.shape().map_err(|error| self.unreadable(name, error))?;
        let axis = |axis| usize::try_from(axis).unwrap_or(usize::MAX);
        Ok(shape.into_iter().map(axis).collect())
    }

    /// The kind of elements of type `datatype`.
    fn kind_of(&self, name: &str, datatype: &Datatype) -> Result<Kind, DataError> {
        let (kind, got) = described(datatype);
        // The machine's longest.
        if matches!(datatype, Datatype::FloatingPoint { .. }) && kind.is_none() {
            let way_out = "save it as float32, `.astype(\"float32\")`".into();
            return Err(unread(self, format!("`{name}` ({got})"), way_out));
        }
        kind.ok_or_else(|| wrong_type(self, name, &got, "numbers or booleans"))
    }

    fn unreadable(&self, name: &str, error: Error) -> DataError {
        refusal(&self.path, &format!("`{name}`"), error)
    }
}

/// The error for what `hdf5-pure` cannot read.
fn refusal(path: &Path, what: &str, error: Error) -> DataError {
    let (what, way_out) = match error {
        Error::Format(FormatError::UnsupportedFilter(id)) => {
            let known = FILTERS.iter().find(|(known, _)| *known == id);
            let filter = known.map_or(String::new(), |(_, name)| format!(" ({name})"));
            (
                format!("{what}, which HDF5's filter {id}{filter} compresses,"),
                "rewrite the file with `h5repack -f GZIP=4 IN OUT`, or in Python: open it with \
                 `h5py` and `hdf5plugin`, and write each array with `compression=\"gzip\"`",
            )
        }
        Error::Format(
            FormatError::UnsupportedExternalStorage | FormatError::UnsupportedVirtualLayout,
        ) => (
            format!("{what}, whose numbers lie in another file,"),
            "copy the array itself into the file",
        ),
        // A link within the file, in an old form of group, has no address.
        Error::Format(FormatError::OffsetOverflow { offset: u64::MAX, .. }) => {
            (format!("{what}, with a link to elsewhere,"), "copy the array itself into the file")
        }
        Error::Format(FormatError::InvalidLayoutVersion(version)) => (
            format!("{what}, in a form of HDF5 2.0 (layout {version}),"),
            "write the file again with `h5py.File(…, libver=(\"earliest\", \"v114\"))`",
        ),
        error => {
            let (what, reason) = (what.into(), error.to_string());
            return Fault::Hdf5 { what, reason }.at(path);
        }
    };
    Fault::Unread { what, way_out: way_out.into() }.at(path)
}

/// The arrays and groups in a group.
fn members(group: &Group) -> Result<BTreeMap<String, Member>, Error> {
    let arrays = group.iter_datasets()?.map(|(name, array)| (name, Member::Array(array)));
    let groups = group.iter_groups()?.map(|(name, group)| (name, Member::Group(group)));
    Ok(arrays.chain(groups).collect())
}

impl Source for Hdf5File {
    fn path(&self) -> &Path {
        &self.path
    }

    fn has(&self, name: &str) -> bool {
        matches!(self.find(name), Ok(Some(_)))
    }

    fn parts(&self, name: &str) -> Option<Vec<String>> {
        let Ok(Some(Member::Group(group))) = self.find(name) else { return None };
        Some(members(&group).ok()?.into_keys().collect())
    }

    fn listed(&self) -> Vec<String> {
        self.top.keys().cloned().collect()
    }

    fn shape(&self, name: &str) -> Result<Vec<usize>, DataError> {
        self.shape_of(name, &self.dataset(name)?)
    }

    fn kind(&self, name: &str) -> Result<Kind, DataError> {
        let datatype = self.dataset(name)?.datatype();
        self.kind_of(name, &datatype.map_err(|error| self.unreadable(name, error))?)
    }

    fn reals(&self, name: &str) -> Result<Vec<f32>, DataError> {
        let (dataset, datatype, shape) = self.claimed(name)?;
        let kind = self.kind_of(name, &datatype)?;
        let unreadable = |error| self.unreadable(name, error);
        let doubles = match (kind, &datatype) {
            (Kind::Flag, _) => return Err(wrong_type(self, name, "bool", "real numbers")),
            (_, Datatype::FloatingPoint { size: 4, .. }) => {
                return dataset.read_f32().map_err(unreadable);
            }
            (_, Datatype::FloatingPoint { size: 2, byte_order, .. }) => {
                let from_bytes = match byte_order {
                    DatatypeByteOrder::BigEndian => f16::from_be_bytes,
                    _ => f16::from_le_bytes,
                };
                let raw = dataset.read_raw().map_err(unreadable)?;
                raw.chunks_exact(2).map(|pair| from_bytes([pair[0], pair[1]]).to_f64()).collect()
            }
            _ => dataset.read_f64().map_err(unreadable)?,
        };
        let width = shape.iter().skip(1).product();
        let values = singles(self, name, doubles, width)?;
        if let Datatype::FixedPoint { layout, size, .. } = &datatype
            && !layout.signed
        {
            let largest = unsigned_max(*size as usize);
            self.claims.rounding.note_unsigned(name, &values, width, largest);
        }
        Ok(values)
    }

    fn wholes(&self, name: &str) -> Result<Vec<i64>, DataError> {
        let (dataset, datatype, _) = self.claimed(name)?;
        match self.kind_of(name, &datatype)? {
            Kind::Real => Err(wrong_type(self, name, &described(&datatype).1, "whole numbers")),
            _ => dataset.read_i64().map_err(|error| self.unreadable(name, error)),
        }
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, DataError> {
        let mut all = Vec::new();
        self.pieces(name, &mut |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }

    fn rows(&self, name: &str, size: usize, each: &mut EachStream<'_>) -> Result<(), DataError> {
        let mut row = 0;
        self.pieces(name, &mut |bytes| {
            bytes.chunks_exact(size.max(1)).try_for_each(|bytes| {
                row += 1;
                each(row - 1, bytes)
            })
        })
    }

    fn streams(&self, name: &str, each: &mut EachStream<'_>) -> Result<(), DataError> {
        let (dataset, datatype, shape) = self.claimed(name)?;
        if shape.len() == 2 && described(&datatype).0 == Some(Kind::Byte) {
            // Equally long ones are rows of a matrix.
            return self.rows(name, shape[1], each);
        }
        if !is_stream(&datatype) {
            return Err(wrong_type(self, name, &described(&datatype).1, "pictures"));
        }
        let rows = dataset.read_raw().map_err(|error| self.unreadable(name, error))?;
        let mut heaps = Heaps::new(&self.file, self.claims.bytes, self.base);
        for (row, reference) in rows.chunks_exact(heap::ROW).enumerate() {
            let bytes = heaps.object(reference).map_err(|error| {
                Fault::Hdf5 { what: format!("row {row} of `{name}`"), reason: error.to_string() }
                    .at(&self.path)
            })?;
            // Many rows may lead to the same bytes.
            self.claim(name, bytes.len() as u64)?;
            each(row, bytes)?;
        }
        Ok(())
    }

    fn shows_numbers(&self) -> bool {
        self.numbers
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }
}
