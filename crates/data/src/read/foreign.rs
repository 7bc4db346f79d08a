//! [`Foreign`]: files of other programs that are not read, by name, and the way out.
//!
//! A file is recognised by its first bytes or by the names of its arrays, a folder by its contents.
//! The readers handle everything else.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::{DataError, Fault};
use crate::read::npz;
use crate::read::run_folder::RunFolder;
use crate::read::source::Source;
use crate::read::zip::{Archive, MAGIC};
use crate::recording::{Reader, Recording};

/// Whatever another program wrote.
pub(crate) struct Foreign;

/// The kind of a file or a folder, in words that `is not read` may follow, and advice.
pub(super) type Known = (String, String);

/// The table of kinds.
static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let kinds = include_str!("foreign.toml");
    toml::from_str(kinds).unwrap_or_else(|error| panic!("the table of other programs: {error}"))
});

/// Kinds of files, zip archives, folders, and files by the names of their arrays; the first that
/// fits counts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kinds {
    file: Vec<Kind>,
    archive: Vec<Kind>,
    folder: Vec<Kind>,
    /// Files of arrays in groups.
    nested: Vec<Kind>,
    /// Files of arrays, none under the names that are read.
    arrays: Vec<Kind>,
}

/// A kind, by its signs; one is enough.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Kind {
    /// First bytes, a character each; or how an array's name begins.
    begins: Vec<String>,
    /// First words, in small letters.
    says: Vec<String>,
    /// Ends of the name.
    ends: Vec<String>,
    /// A sign that [`Head::is`] knows.
    is: String,
    /// Files or arrays in it: all of one of these lists.
    has: Vec<Vec<String>>,
    /// A group that it must have as well, and how the name of an array in it begins.
    within: Option<[String; 2]>,
    what: String,
    /// Advice, with `{arrays}` for the end of most.
    way_out: String,
}

impl Kind {
    /// Whether one of its lists is there.
    fn is_listed(&self, has: impl Fn(&str) -> bool) -> bool {
        self.has.iter().any(|all| all.iter().all(|name| has(name)))
    }

    fn known(&self) -> Known {
        (self.what.clone(), self.way_out.replace("{arrays}", ARRAYS))
    }
}

/// The end of most ways out.
const ARRAYS: &str = "give its arrays to `overtone.from_arrays` (observations, actions, rewards, \
                      terminations, truncations)";

impl Reader for Foreign {
    fn name(&self) -> &'static str {
        "another program's"
    }

    fn reads(&self, path: &Path) -> bool {
        known(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let (what, way_out) = known(path)
            .unwrap_or_else(|| ("a file that changes".into(), "wait until it is complete".into()));
        Err(Fault::Unread { what, way_out }.at(path))
    }
}

fn known(path: &Path) -> Option<Known> {
    match path.is_dir() {
        true => of_folder(path),
        false => of_file(path),
    }
}

/// Bytes of a file's beginning that are looked at.
const HEAD: usize = 512;
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// A file, as far as it is looked at.
struct Head {
    bytes: Vec<u8>,
    text: String,
    name: String,
    ending: String,
}

impl Head {
    fn of(path: &Path) -> Option<Self> {
        let mut bytes = Vec::with_capacity(HEAD);
        File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim_start().to_lowercase();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(Self { bytes, text, name, ending: ending_of(path) })
    }

    fn fits(&self, kind: &Kind) -> bool {
        let begins = |with: &String| {
            let mut bytes = self.bytes.iter();
            with.chars().all(|c| bytes.next().is_some_and(|&byte| char::from(byte) == c))
        };
        kind.begins.iter().any(begins)
            || kind.says.iter().any(|words| self.text.starts_with(words))
            || kind.ends.contains(&self.ending)
            || self.is(&kind.is)
    }

    fn is(&self, sign: &str) -> bool {
        let bytes = &self.bytes[..];
        match sign {
            "empty" => bytes.is_empty(),
            "pickle" => matches!(bytes, [0x80, 2..=5, ..]),
            "log" => {
                bytes.starts_with(b"\x1f\x8b")
                    && (self.name.starts_with("$store$") || self.name.contains("_ckpt."))
            }
            "tar" => bytes.get(257..262) == Some(b"ustar"),
            "arrow" => bytes.starts_with(b"\xff\xff\xff\xff") && self.ending == "arrow",
            "tfrecord" => is_tfrecord(bytes),
            "safetensors" => is_safetensors(bytes),
            _ => false,
        }
    }
}

fn ending_of(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn of_file(path: &Path) -> Option<Known> {
    let head = Head::of(path)?;
    if head.bytes.starts_with(HDF5) && head.ending != "npz" {
        return None;
    }
    if head.bytes.starts_with(MAGIC) && head.ending != "mat" {
        return of_archive(path);
    }
    KINDS.file.iter().find(|kind| head.fits(kind)).map(Kind::known)
}

/// A zip archive that holds other files than arrays.
fn of_archive(path: &Path) -> Option<Known> {
    let archive = Archive::open(path).ok()?;
    let has = |ending: &str| archive.entries().iter().any(|entry| entry.name.ends_with(ending));
    let known = KINDS.archive.iter().find(|kind| kind.is_listed(has));
    let is_other = !archive.entries().is_empty() && !has(".npy");
    let other = || ("a zip archive".into(), "unpack it and name what is in it".into());
    known.map(Kind::known).or_else(|| is_other.then(other))
}

/// Whether a file begins as a record of TensorFlow's: the length of its first record, and the masked
/// CRC-32C of that.
fn is_tfrecord(head: &[u8]) -> bool {
    let (Some(length), Some(sum)) = (head.get(..8), head.get(8..12)) else { return false };
    let masked = crc32c::crc32c(length).rotate_right(15).wrapping_add(0xa282_ead8);
    sum == masked.to_le_bytes()
}

/// Whether a file begins with the length of a JSON header, and the header.
fn is_safetensors(head: &[u8]) -> bool {
    head.get(8) == Some(&b'{') && head[4..8] == [0; 4]
}

/// The kind of a folder that does not hold a log.
fn of_folder(folder: &Path) -> Option<Known> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let has = |name: &str| folder.join(name).exists();
    let ends_in =
        |path: &Path, endings: &[&str]| path.is_file() && endings.contains(&&*ending_of(path));
    if paths.iter().any(|path| ends_in(path, &["hdf5", "h5"])) || has("data/main_data.hdf5") {
        return None;
    }
    if let Some(kind) = KINDS.folder.iter().find(|kind| kind.is_listed(has)) {
        return Some(kind.known());
    }
    let arrays: Vec<&PathBuf> = paths.iter().filter(|path| ends_in(path, &["npz"])).collect();
    if let [first, ..] = arrays[..] {
        let files = format!("a folder of .npz files ({} of them)", arrays.len());
        if let Some((what, way_out)) = npz::other_s(first) {
            return Some((format!("{files}, each {what}"), way_out));
        }
        let shown =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Some((
            files,
            format!(
                "give one of them (…/{}), or join them in Python: `numpy.savez(\"all.npz\", **{{k: \
                 numpy.concatenate([f[k] for f in files]) for k in files[0]}})`",
                shown(first)
            ),
        ));
    }
    if RunFolder::find(folder).is_ok() {
        return None;
    }
    let first =
        paths.iter().filter(|path| path.is_file()).find_map(|path| Some((path, of_file(path)?)));
    let (path, (what, way_out)) = first?;
    // Whatever else lies about in a folder says nothing of it.
    let is_data =
        ends_in(path, &["pkl", "pickle", "pt", "mat", "parquet", "arrow", "csv", "tfrecord"])
            || path.file_name()?.to_string_lossy().contains(".tfrecord");
    let name = path.file_name()?.to_string_lossy().into_owned();
    is_data.then(|| (format!("a folder with {} ({name}),", what.trim_end_matches(',')), way_out))
}

/// The error for a file whose arrays have the names of another library's.
pub(crate) fn by_names(source: &dyn Source) -> Option<DataError> {
    let (what, way_out) = named(source)?;
    Some(Fault::Unread { what, way_out }.at(source.path()))
}

/// The kind of the file with these arrays and advice, if another library wrote it.
pub(super) fn named(source: &dyn Source) -> Option<Known> {
    let within = |[group, begin]: &[String; 2]| {
        let parts = source.parts(group).unwrap_or_default();
        parts.iter().any(|part| part.starts_with(begin))
    };
    let begins = |begin: &String| source.listed().iter().any(|name| name.starts_with(begin));
    let fits = |kind: &&Kind| {
        (kind.is_listed(|name| source.has(name)) || kind.begins.iter().any(begins))
            && kind.within.as_ref().is_none_or(within)
    };
    let all = |names: &[&str]| names.iter().all(|name| source.has(name));
    let is_own = all(&["observations"]) || all(&["obs", "acts", "dones"]);
    let others = KINDS.arrays.iter().filter(|_| !is_own);
    KINDS.nested.iter().chain(others).find(fits).map(Kind::known)
}
