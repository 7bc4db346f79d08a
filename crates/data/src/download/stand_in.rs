//! Answers of a server that are not the file: a page, a pointer, nothing, or another format.

use std::path::Path;

use crate::read::foreign::{self, HDF5, ending_of};
use crate::read::zip;

/// How a file with this ending begins, anywhere in its first bytes for HDF5, and the format's name.
const FORMATS: [(&str, &[u8], &str); 5] = [
    ("hdf5", HDF5, "HDF5"),
    ("h5", HDF5, "HDF5"),
    ("npz", zip::MAGIC, "zip"),
    ("gz", b"\x1f\x8b", "gzip"),
    ("json", b"{", "JSON"),
];

/// The content of an answer that begins with `head`, if it is not the file that the name of `path`
/// promises.
pub(super) fn stand_in(path: &Path, head: &[u8]) -> Option<String> {
    if let Some((what, _)) = foreign::stand_in(head) {
        return Some(what.into());
    }
    let ending = ending_of(path);
    let (_, signature, format) = FORMATS.iter().find(|(known, ..)| *known == ending)?;
    let begins = match *signature {
        // A block of the user's own may stand before it.
        HDF5 => head.windows(HDF5.len()).any(|bytes| bytes == HDF5),
        _ => head.trim_ascii_start().starts_with(signature),
    };
    (!begins).then(|| format!("bytes that are not {format}"))
}
