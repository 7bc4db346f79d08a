//! HDF5's filters that are not compiled in: their names, and where the library looks for them.

use std::ffi::{c_int, c_uint};
use std::sync::Once;

use hdf5::Dataset;

/// Filters that people compress recordings with, by the number that the HDF Group gave them.
const NAMES: [(i32, &str); 16] = [
    (4, "SZIP"),
    (307, "bzip2"),
    (32_000, "LZF"),
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

/// The first filter of `dataset` that is neither compiled in nor found as a plugin: its number, and
/// its name where that is known.
pub(super) fn unavailable(dataset: &Dataset) -> Option<String> {
    let id = dataset.filters().iter().find(|filter| !filter.is_available())?.id();
    let name = NAMES.iter().find(|(known, _)| *known == id);
    Some(name.map_or_else(|| id.to_string(), |(_, name)| format!("{id} ({name})")))
}

// Not in the bindings. HDF5's `herr_t` is an `int`, below 0 for an error.
unsafe extern "C" {
    fn H5PLsize(num_paths: *mut c_uint) -> c_int;
    fn H5PLremove(index: c_uint) -> c_int;
}

/// Without `HDF5_PLUGIN_PATH` the library looks for plugins in a directory that was chosen when it
/// was compiled, maybe on another machine: whoever can write there would decide which code a file
/// loads. It looks nowhere instead.
pub(super) fn forget_built_in_directory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("HDF5_PLUGIN_PATH").is_none() {
            while directories() > 0 && remove_first() {}
        }
    });
}

/// How many directories the library looks for plugins in.
fn directories() -> c_uint {
    let mut n = 0;
    // SAFETY: the library writes one number, and its lock is held.
    let result = hdf5::sync::sync(|| unsafe { H5PLsize(&raw mut n) });
    if result < 0 { 0 } else { n }
}

/// Takes the first of these directories away; whether that worked.
fn remove_first() -> bool {
    // SAFETY: there is one, and the library's lock is held.
    hdf5::sync::sync(|| unsafe { H5PLremove(0) }) >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directory_is_built_in() {
        if std::env::var_os("HDF5_PLUGIN_PATH").is_none() {
            forget_built_in_directory();
            assert_eq!(directories(), 0);
        }
    }
}
