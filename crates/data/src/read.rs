//! The file formats that are read, one file each, and the list of them.

pub(crate) mod acted;
pub mod action_masks;
pub(crate) mod array_names;
pub mod column;
pub mod columns;
mod d3rlpy;
mod d4rl;
mod dqn_replay;
pub(crate) mod foreign;
pub mod form;
pub(crate) mod hdf5_arrays;
pub(crate) mod hdf5_file;
pub(crate) mod hdf5_layout;
pub(crate) mod hdf5_paths;
mod jpeg;
mod lerobot;
pub(crate) mod log_probs;
mod minari;
pub(crate) mod minari_spaces;
mod next_observations;
pub mod npy;
pub mod npz;
mod observed;
pub mod optional_arrays;
pub mod read_frames;
pub mod recording;
pub mod replay_log;
mod robomimic;
mod rounding;
pub mod run_folder;
mod solved;
pub(crate) mod source;
pub mod spaces;
pub(crate) mod stored;
pub(crate) mod table;
mod wrapped;
pub(crate) mod zip;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use overtone_core::names::{nearest, plain};

use crate::error::{DataError, Fault};
use crate::read::column::ObservationColumn;
use crate::read::columns::Columns;
use crate::read::foreign::Foreign;
use crate::read::form::{Form, TableColumns};
use crate::read::lerobot::LeRobot;
use crate::read::recording::{Reader, Recording};
use crate::read::robomimic::Robomimic;
use crate::read::table::Table;

/// Every format; the first one that says it reads a path does. A new one has a line here.
pub static READERS: [&dyn Reader; 8] = [
    &npz::Npz { numbers: false },
    &LeRobot { columns: None },
    &minari::Minari { numbers: false },
    &d3rlpy::D3rlpy { numbers: false },
    &Robomimic { columns: None },
    &Table { columns: None },
    &d4rl::D4rl { numbers: false },
    &dqn_replay::DqnReplay,
];

/// Formats that a file does not declare: they are read only if the user names them.
pub const NAMED: [&dyn Reader; 1] = [&npz::Ogbench];

/// The layout of any format whose bytes with rows and columns are numbers, and not pictures.
pub const NUMBERS: &str = "numbers";

/// Most names of a folder that a missing file is compared with.
const MOST_NAMES: usize = 1000;

/// Every format with columns that the user named in this process.
static WITH_COLUMNS: Mutex<BTreeMap<(&str, TableColumns), &'static dyn Reader>> =
    Mutex::new(BTreeMap::new());

/// The format that the file or folder at `path` is to be read as.
///
/// # Errors
/// [`DataError::Missing`] when nothing is there, `Fault::NoLog` when no format is for it.
pub fn reader_of(path: &Path) -> Result<&'static dyn Reader, DataError> {
    if !path.try_exists().map_err(DataError::io(path, "open"))? {
        let hint = match near(path) {
            Some(other) => format!("did you mean {}?", other.display()),
            None => "give an .npz file of NumPy, an HDF5 file of D4RL or Minari, a table (.csv, \
                     .parquet), or the folder of a DQN-replay game"
                .into(),
        };
        return Err(DataError::missing(path, hint));
    }
    // Another program's file is named before a reader reports it as a damaged file of ours.
    if Foreign.reads(path) {
        return Ok(&Foreign);
    }
    READERS.into_iter().find(|reader| reader.reads(path)).ok_or_else(|| {
        Fault::NoLog(format!("none of the known formats ({})", names().join(", "))).at(path)
    })
}

/// The file or folder whose name is most similar to that of `path`, which is not there.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let entries = fs::read_dir(folder).ok()?.take(MOST_NAMES);
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(&names, path.file_name()?.to_str()?).map(|name| path.with_file_name(name))
}

/// The format that `form` names, in any spelling, for the file or folder at `path`; without a name as
/// [`reader_of`].
///
/// # Errors
/// As [`reader_of`], and [`DataError::UnknownName`] for a name that no format has.
pub fn reader_as(path: &Path, form: &Form) -> Result<&'static dyn Reader, DataError> {
    let Form { layout, columns } = form;
    let reader = reader_of(path);
    if let Ok(reader) = &reader
        && !columns.is_empty()
        && let Some(named) = reader.with_columns(columns)
    {
        let mut known = WITH_COLUMNS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (reader.name(), columns.clone());
        return Ok(*known.entry(key).or_insert_with(|| Box::leak(named)));
    }
    let is_other = reader.as_ref().is_ok_and(|reader| reader.name() == Foreign.name());
    let is_absent = matches!(reader, Err(DataError::Missing { .. } | DataError::Io { .. }));
    if layout.is_empty() || is_other || is_absent {
        return reader;
    }
    if plain(layout) == NUMBERS {
        let reader = reader?;
        return reader.as_numbers().ok_or_else(|| {
            Fault::NoLog(format!(
                "{}, whose observations are pictures and not {NUMBERS}",
                reader.name()
            ))
            .at(path)
        });
    }
    let all = || READERS.into_iter().chain(NAMED);
    let known: Vec<&str> = all().map(Reader::name).chain([NUMBERS]).collect();
    let named = all().find(|reader| plain(reader.name()) == plain(layout));
    named.ok_or_else(|| DataError::unknown("layout", layout, &known))
}

/// Whether a user names the columns of the file or folder at `path`, which need not be there.
pub fn takes_columns(path: &Path) -> bool {
    let named =
        |reader: &'static dyn Reader| reader.with_columns(&TableColumns::default()).is_some();
    table::is_named(path) || reader_of(path).is_ok_and(named)
}

/// Reads the recording at `path`, whatever its format is.
///
/// # Errors
/// As [`reader_of`], and anything wrong with the files; see [`DataError`].
pub fn open(path: &Path) -> Result<Recording, DataError> {
    reader_of(path)?.open(path)
}

/// Reads the recording at `path` as `form` says, as [`reader_as`] finds it.
///
/// # Errors
/// As [`reader_as`], and anything wrong with the files; see [`DataError`].
pub fn open_as(path: &Path, form: &Form) -> Result<Recording, DataError> {
    reader_as(path, form)?.open(path)
}

/// As [`open_as`], with where the last action of each episode led, `[episodes]`, where the format
/// holds that: what comes after the steps that are trained on.
///
/// # Errors
/// As [`open_as`].
pub fn open_with_last(
    path: &Path,
    form: &Form,
) -> Result<(Recording, Option<ObservationColumn>), DataError> {
    reader_as(path, form)?.open_with_last(path)
}

/// Reads the recording at `path` into memory.
///
/// # Errors
/// As [`open`], and `Fault::NoLog` when it is a log of frames, which is converted instead.
pub fn columns(path: &Path) -> Result<Columns, DataError> {
    match open(path)? {
        Recording::Columns(columns) => Ok(columns),
        Recording::ReplayLog(_) => {
            Err(Fault::NoLog("a log of frames, which is converted and not read into memory".into())
                .at(path))
        }
    }
}

fn names() -> Vec<&'static str> {
    READERS.iter().map(|reader| reader.name()).collect()
}
