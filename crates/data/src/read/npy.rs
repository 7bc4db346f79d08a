//! Streaming reader of gzipped NumPy arrays (`.npy` inside `.gz`).
//!
//! Only the requested bytes are inflated, and no allocation is sized by a header's claims: memory
//! grows with the bytes that arrive. Pickled arrays are refused.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{DataError, Fault};

/// NumPy writes headers of a few hundred bytes and refuses to read longer ones than this.
const MAX_HEADER: usize = 10_000;
/// Compressed bytes per read; also the size of the inflate buffer of typed columns.
const CHUNK: usize = 128 * 1024;

/// An element type of the arrays read here.
pub trait Element: Sized + Copy {
    /// The dtype as NumPy writes it.
    const DTYPE: &'static str;
    /// Bytes per element.
    const SIZE: usize;
    /// From `SIZE` little-endian bytes.
    fn from_le(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($type:ty: $dtype:literal),*) => {$(
        impl Element for $type {
            const DTYPE: &'static str = $dtype;
            const SIZE: usize = size_of::<$type>();
            fn from_le(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                Self::from_le_bytes(raw)
            }
        }
    )*};
}
element!(u8: "|u1", i32: "<i4", i64: "<i8", f32: "<f4");

/// One gzipped `.npy` array, read front to back.
pub struct NpyStream {
    path: PathBuf,
    stream: MultiGzDecoder<BufReader<File>>,
    dtype: String,
    shape: Vec<usize>,
    read: u64,
}

impl NpyStream {
    /// Opens the file and reads the array's header.
    ///
    /// # Errors
    /// When the file is missing, is not gzip, or its header is not a plain C-order array's.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file =
            File::open(path).map_err(DataError::open(path, "the run's files are incomplete"))?;
        let stream = MultiGzDecoder::new(BufReader::with_capacity(CHUNK, file));
        let mut npy = Self {
            path: path.to_path_buf(),
            stream,
            dtype: String::new(),
            shape: Vec::new(),
            read: 0,
        };
        let header = npy.read_header()?;
        (npy.dtype, npy.shape) = (header.descr, header.shape);
        Ok(npy)
    }

    /// The array's shape in its header.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Checks the element type and the shape; `None` accepts any length along an axis.
    ///
    /// # Errors
    /// `Fault::Dtype`, `Fault::Shape`, or a size beyond any address space.
    pub fn expect<T: Element>(&self, shape: &[Option<usize>]) -> Result<(), DataError> {
        // One-byte types may be written with any byte-order mark.
        let same =
            self.dtype == T::DTYPE || (T::SIZE == 1 && self.dtype.get(1..) == T::DTYPE.get(1..));
        if !same {
            return Err(Fault::Dtype { got: self.dtype.clone(), expected: T::DTYPE }.at(&self.path));
        }
        let fits = self.shape.len() == shape.len()
            && self.shape.iter().zip(shape).all(|(&got, want)| want.is_none_or(|want| want == got));
        if !fits {
            let axes: Vec<_> = shape
                .iter()
                .map(|axis| axis.map_or_else(|| "any".to_owned(), |axis| axis.to_string()))
                .collect();
            return Err(Fault::Shape {
                got: self.shape.clone(),
                expected: format!("[{}]", axes.join(", ")),
            }
            .at(&self.path));
        }
        if self.array_bytes(T::SIZE).is_none() {
            return Err(self.header_error("its size overflows"));
        }
        Ok(())
    }

    /// Fills `out` with the next bytes of the array.
    ///
    /// # Errors
    /// `Fault::Truncated` or `Fault::Gzip`.
    pub fn read_exact(&mut self, out: &mut [u8]) -> Result<(), DataError> {
        let mut filled = 0;
        while filled < out.len() {
            match self.stream.read(&mut out[filled..]) {
                Ok(0) => {
                    return Err(self.truncated());
                }
                Ok(n) => {
                    filled += n;
                    self.read += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.stream_error(error)),
            }
        }
        Ok(())
    }

    /// Reads a one-dimensional array to its end, giving each element and its position to
    /// `each`, and checks that nothing follows.
    ///
    /// # Errors
    /// Any of the reader's, or the first error of `each`.
    pub fn for_each<T: Element>(
        mut self,
        mut each: impl FnMut(usize, T) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let n = self.shape.iter().product::<usize>();
        let mut buffer = vec![0; CHUNK];
        let mut at = 0;
        while at < n {
            let count = (n - at).min(CHUNK / T::SIZE);
            let bytes = &mut buffer[..count * T::SIZE];
            self.read_exact(bytes)?;
            for (i, element) in bytes.chunks_exact(T::SIZE).enumerate() {
                each(at + i, T::from_le(element))?;
            }
            at += count;
        }
        self.finish()
    }

    /// If the array was read to its end, checks that the stream ends here, its checksum included.
    ///
    /// # Errors
    /// `Fault::TrailingData`, or a damaged end of the stream.
    pub fn finish(mut self) -> Result<(), DataError> {
        if self.read < self.array_bytes(self.element_bytes()).unwrap_or(u64::MAX) {
            return Ok(());
        }
        loop {
            match self.stream.read(&mut [0; 1]) {
                Ok(0) => return Ok(()),
                Ok(_) => return Err(Fault::TrailingData.at(&self.path)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.stream_error(error)),
            }
        }
    }

    fn array_bytes(&self, element: usize) -> Option<u64> {
        self.shape.iter().try_fold(element as u64, |bytes, &axis| bytes.checked_mul(axis as u64))
    }

    /// Bytes of an element with this dtype.
    fn element_bytes(&self) -> usize {
        self.dtype.get(2..).and_then(|digits| digits.parse().ok()).unwrap_or(1)
    }

    fn truncated(&self) -> DataError {
        let expected = self.array_bytes(self.element_bytes()).unwrap_or(u64::MAX);
        Fault::Truncated { got: self.read, expected }.at(&self.path)
    }

    fn stream_error(&self, error: io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof if self.shape.is_empty() && self.dtype.is_empty() => {
                self.header_error("the file ends inside its header; fetch or copy it again")
            }
            io::ErrorKind::UnexpectedEof => self.truncated(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                Fault::Gzip(error.to_string()).at(&self.path)
            }
            _ => DataError::Io { path: self.path.clone(), doing: "read", source: error },
        }
    }

    fn header_error(&self, reason: impl Into<String>) -> DataError {
        Fault::NpyHeader(reason.into()).at(&self.path)
    }

    fn read_header(&mut self) -> Result<Header, DataError> {
        let path = self.path.clone();
        let mut take = |n: usize| -> Result<Vec<u8>, DataError> {
            let mut bytes = vec![0; n];
            match self.stream.read_exact(&mut bytes) {
                Ok(()) => Ok(bytes),
                Err(error) => Err(self.stream_error(error)),
            }
        };
        let wrong = |reason| Fault::NpyHeader(reason).at(&path);
        let header = Header::read(&mut take, &wrong, (&path, "it"))?;
        if header.fortran_order && header.shape.len() > 1 {
            let what = "it, which is stored in Fortran order,".into();
            let way_out = "save what numpy.ascontiguousarray makes of it".into();
            return Err(Fault::Unread { what, way_out }.at(&path));
        }
        Ok(header)
    }
}

/// The bytes of an array's dictionary, from what `take` gives of the array's beginning.
///
/// # Errors
/// Errors of `take`, and `wrong` if the header is not one that is read.
fn header_bytes(
    take: &mut dyn FnMut(usize) -> Result<Vec<u8>, DataError>,
    wrong: &dyn Fn(String) -> DataError,
) -> Result<Vec<u8>, DataError> {
    let magic = take(8)?;
    if magic[..6] != *b"\x93NUMPY" {
        return Err(wrong("it does not begin with NumPy's magic bytes".into()));
    }
    let length = match (magic[6], magic[7]) {
        (1, 0) => {
            let bytes = take(2)?;
            usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
        }
        (2 | 3, 0) => {
            let bytes = take(4)?;
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
        }
        (major, minor) => {
            return Err(wrong(format!(
                "its format version is {major}.{minor}, and 1.0, 2.0 and 3.0 are read"
            )));
        }
    };
    if length > MAX_HEADER {
        return Err(wrong(format!(
            "its header claims {length} bytes, more than the {MAX_HEADER} allowed"
        )));
    }
    take(length)
}

/// Reads a whole one-dimensional or scalar array of at most `limit` elements.
///
/// # Errors
/// As [`NpyStream`], and when there are more elements than `limit`.
pub fn read_small<T: Element>(path: &Path, limit: usize) -> Result<Vec<T>, DataError> {
    let npy = NpyStream::open(path)?;
    let shape: Vec<_> = npy.shape().iter().map(|_| None).collect();
    npy.expect::<T>(&shape)?;
    let n = npy.shape().iter().product::<usize>();
    if shape.len() > 1 || n > limit {
        return Err(Fault::Shape {
            got: npy.shape().to_vec(),
            expected: format!("at most {limit} elements"),
        }
        .at(path));
    }
    let mut values = Vec::new();
    npy.for_each(|_, value| {
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// The error for an array with several fields.
const RECORDS: &str = "whose elements are records";

/// The dictionary NumPy writes before an array.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// The type of the elements, such as `<f4`.
    pub descr: String,
    /// Whether the first axis changes fastest.
    pub fortran_order: bool,
    /// Length of each axis.
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads the header of a plain array, from what `take` gives of its beginning.
    /// `file` is where it is and `array` its name in messages.
    ///
    /// # Errors
    /// Errors of `take`, and `wrong` if it is not a header of such an array.
    pub fn read(
        take: &mut dyn FnMut(usize) -> Result<Vec<u8>, DataError>,
        wrong: &dyn Fn(String) -> DataError,
        (file, array): (&Path, &str),
    ) -> Result<Self, DataError> {
        let header = header_bytes(take, wrong)?;
        let unread = |what: &str, way_out: &str| {
            Fault::Unread { what: format!("{array}, {what},"), way_out: way_out.into() }.at(file)
        };
        let header = Self::parse(&header).map_err(|reason| match reason {
            RECORDS => unread(RECORDS, "save each field as an array of its own"),
            reason => wrong(reason.into()),
        })?;
        if header.descr.contains('O') {
            let (path, array, dtype) = (file.to_path_buf(), array.into(), header.descr);
            return Err(Fault::Pickled { array, dtype }.at(path));
        }
        Ok(header)
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    ///
    /// # Errors
    /// The defect.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        const MALFORMED: &str = "its header is not a dictionary of descr, fortran_order and shape";
        let text = str::from_utf8(bytes).map_err(|_| MALFORMED)?;
        let Dictionary { descr, fortran_order, shape } =
            serde_json::from_str(&as_json(text)).map_err(|_| MALFORMED)?;
        // A structured dtype is written as a list of fields.
        let Value::String(descr) = descr else { return Err(RECORDS) };
        if shape.len() > 8 {
            return Err("it has more than 8 dimensions");
        }
        shape
            .iter()
            .try_fold(16usize, |product, &axis| product.checked_mul(axis))
            .ok_or("its size overflows")?;
        Ok(Self { descr, fortran_order, shape })
    }
}

/// A header's dictionary as JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dictionary {
    descr: Value,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// A Python literal as JSON: no string in any NumPy header holds a quote or an escape.
fn as_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            ',' if text[at + 1..].trim_start().starts_with([')', ']', '}']) => {}
            // Python 2 wrote `3L`.
            'L' if text[..at].ends_with(|before: char| before.is_ascii_digit()) => {}
            '\'' => json.push('"'),
            '(' => json.push('['),
            ')' => json.push(']'),
            c => json.push(c),
        }
    }
    json.replace("True", "true").replace("False", "false")
}
