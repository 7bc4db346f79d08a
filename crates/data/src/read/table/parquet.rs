//! Tables in Parquet files. A list in each cell, as of a robot's joints, is several columns.

use std::cell::Cell;
use std::fmt::{Display, Write};
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::{Heads, Rows, refuse};
use crate::error::{DataError, Fault};
use crate::read::foreign::ending_of;

/// Most numbers of a list.
const MOST_LISTED: usize = 1 << 16;

/// A Parquet file.
pub(crate) struct ParquetFile {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    heads: Heads,
}

/// The contents of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A number or a word.
    One,
    /// A list of them.
    List,
    /// Anything else: bytes, structures.
    Other,
}

impl ParquetFile {
    /// Opens a file and looks at its first row.
    ///
    /// # Errors
    /// When it is not a Parquet file, damaged, or compressed in another way than with Snappy.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file = File::open(path).map_err(DataError::io(path, "open"))?;
        guarded(path, || {
            let reader = SerializedFileReader::new(file).map_err(|error| damaged(path, &error))?;
            let mut file = Self { path: path.to_path_buf(), reader, heads: Heads::default() };
            file.check_compression()?;
            file.heads = file.find_heads()?;
            Ok(file)
        })
    }

    /// The names of its columns, and of the parts of its lists.
    pub fn heads(&self) -> Heads {
        self.heads.clone()
    }

    /// # Errors
    /// `Fault::Unread` if its numbers are compressed in another way than with Snappy.
    fn check_compression(&self) -> Result<(), DataError> {
        let groups = self.reader.metadata().row_groups();
        let columns = groups.iter().flat_map(|group| group.columns());
        let is_read = |with| matches!(with, Compression::UNCOMPRESSED | Compression::SNAPPY);
        let Some(other) = columns.map(|column| column.compression()).find(|with| !is_read(*with))
        else {
            return Ok(());
        };
        let name = other.to_string();
        let name = name.split('(').next().unwrap_or_default();
        Err(Fault::Unread {
            what: format!("a Parquet file compressed with {name}"),
            way_out: "write it with compression=\"snappy\" (pandas: `to_parquet`, polars: \
                      `write_parquet`)"
                .into(),
        }
        .at(&self.path))
    }

    fn find_heads(&self) -> Result<Heads, DataError> {
        let schema = self.reader.metadata().file_metadata().schema_descr().root_schema_ptr();
        let mut heads = Heads::default();
        let is_list = |field: &Type| holds(field) == Holds::List;
        let has_lists = schema.get_fields().iter().any(|field| is_list(field));
        let first = if has_lists { self.rows(is_list)?.next() } else { None };
        let first = first.transpose().map_err(|error| damaged(&self.path, &error))?;
        for field in schema.get_fields() {
            let name = field.name().to_owned();
            match holds(field) {
                Holds::One => {
                    heads.names.push(name.clone());
                    heads.fields.push(name);
                }
                Holds::List => {
                    let mut here = first.iter().flat_map(|row| row.get_column_iter());
                    let width = match here.find(|(of, _)| **of == name) {
                        Some((_, Field::ListInternal(list))) => list.elements().len(),
                        _ => 0,
                    };
                    if width > MOST_LISTED {
                        let reason = format!("its `{name}` has lists of {width} numbers");
                        return Err(refuse(&self.path, reason));
                    }
                    heads.names.extend((0..width).map(|at| format!("{name}.{at}")));
                    heads.fields.extend(vec![name; width]);
                }
                Holds::Other => heads.others.push(name),
            }
        }
        Ok(heads)
    }

    /// The rows, with the fields that are `wanted`.
    fn rows(&self, wanted: impl Fn(&Type) -> bool) -> Result<RowIter<'_>, DataError> {
        let damaged = |error: ParquetError| damaged(&self.path, &error);
        let schema = self.reader.metadata().file_metadata().schema_descr().root_schema_ptr();
        let fields = schema.get_fields().iter().filter(|field| wanted(field)).map(Arc::clone);
        let wanted = Type::group_type_builder(schema.name()).with_fields(fields.collect());
        self.reader.get_row_iter(Some(wanted.build().map_err(damaged)?)).map_err(damaged)
    }

    /// Adds every row to `rows`, which knows the places of the columns; returns how many.
    ///
    /// # Errors
    /// A cell that the column cannot hold.
    pub fn add_to(&self, rows: &mut Rows) -> Result<usize, DataError> {
        guarded(&self.path, || self.add_each_to(rows))
    }

    fn add_each_to(&self, rows: &mut Rows) -> Result<usize, DataError> {
        let read = rows.places().read();
        let fields = &self.heads.fields;
        let is_read = |name: &str| read.iter().any(|&at| fields[at] == name);
        let mut cells = vec![String::new(); fields.len()];
        let mut n = 0;
        for row in self.rows(|field| holds(field) != Holds::Other && is_read(field.name()))? {
            let row = row.map_err(|error| damaged(&self.path, &error))?;
            let refuse = |reason| refuse(&self.path, format!("row {n}: {reason}"));
            for (name, field) in row.get_column_iter() {
                let places = fields.iter().enumerate().filter(|(_, of)| *of == name);
                let mut places = places.map(|(at, _)| at).peekable();
                let one = std::slice::from_ref(field);
                let here = match field {
                    Field::ListInternal(list) => list.elements(),
                    _ => one,
                };
                let is_list = matches!(field, Field::ListInternal(_));
                let width = places.clone().count();
                if is_list && here.len() != width {
                    return Err(refuse(format!(
                        "its `{name}` has {} numbers, and {width} in the first row",
                        here.len()
                    )));
                }
                if !is_list && width > 1 {
                    return Err(refuse(format!("its `{name}` is empty: fill it")));
                }
                for element in here {
                    if let Some(at) = places.next() {
                        write_cell(&mut cells[at], element);
                    }
                }
            }
            rows.add(&|at| cells[at].trim()).map_err(refuse)?;
            n += 1;
        }
        Ok(n)
    }
}

/// Whether a file's name ends like a Parquet file's.
pub(crate) fn is_parquet(path: &Path) -> bool {
    ending_of(path) == "parquet"
}

/// The contents of a column's cells.
fn holds(field: &Type) -> Holds {
    if field.is_primitive() {
        let about = field.get_basic_info();
        let is_text = about.logical_type_ref() == Some(&LogicalType::String)
            || about.converted_type() == ConvertedType::UTF8;
        let is_bytes = matches!(
            field.get_physical_type(),
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY
        );
        return if is_bytes && !is_text { Holds::Other } else { Holds::One };
    }
    // A list is a group with a group that is repeated, whose only field is the element.
    match field.get_fields() {
        [inner] if field.get_basic_info().converted_type() == ConvertedType::LIST => {
            match inner.is_group().then(|| inner.get_fields()) {
                Some([element]) if element.is_primitive() && holds(element) == Holds::One => {
                    Holds::List
                }
                _ => Holds::Other,
            }
        }
        _ => Holds::Other,
    }
}

/// A cell as a text table has it. Real numbers keep their point, so 1.0 stays different from 1.
fn write_cell(cell: &mut String, field: &Field) {
    cell.clear();
    let written = match field {
        Field::Null => Ok(()),
        Field::Float(number) => write!(cell, "{number:?}"),
        Field::Double(number) => write!(cell, "{number:?}"),
        Field::Float16(number) => write!(cell, "{:?}", number.to_f32()),
        Field::Str(text) => {
            cell.push_str(text);
            Ok(())
        }
        other => write!(cell, "{other}"),
    };
    debug_assert!(written.is_ok(), "a text grows");
}

fn damaged(path: &Path, error: &dyn Display) -> DataError {
    refuse(path, format!("it is not a Parquet file, or damaged ({error}): fetch or write it again"))
}

thread_local! {
    /// Whether a panic of this thread becomes an error, and is not printed.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Result of `work`; the crate `parquet` panics at some damaged files, which is an error here.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                others(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    result.unwrap_or_else(|_| Err(damaged(path, &"its pages cannot be decoded")))
}
