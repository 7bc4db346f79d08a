//! The few bytes that an HDF5 file begins with, looked at before the C library does.
//!
//! Superblocks of versions 0 and 1 (HDF5 File Format Specification, II.A) may name a *driver
//! information block*: how the storage drivers `multi` and `family` spread one file over several.
//! The library takes as much memory for it as it claims, up to 4 GiB, and writes to all of it,
//! even where the file is shorter. No recording is spread so, and one that says it is, is refused.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// Bytes that are looked at: the signature, the fixed fields, and four addresses.
const LENGTH: usize = 64;

/// Whether the superblock of `file`, which has so many bytes, names a driver information block.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn asks_for_a_driver(file: &File, bytes: u64) -> io::Result<bool> {
    // It is at 0, or after a block of the user's of 512 bytes or a power of two times as many.
    let places = std::iter::once(0).chain((9..63).map(|power| 1u64 << power));
    for place in places.take_while(|&place| place < bytes) {
        let mut head = [0; LENGTH];
        let n = (bytes - place).min(LENGTH as u64) as usize;
        file.read_exact_at(&mut head[..n], place)?;
        if head[..n].starts_with(&SIGNATURE) {
            return Ok(names_a_driver(&head[..n]));
        }
    }
    Ok(false)
}

fn names_a_driver(head: &[u8]) -> bool {
    // Version 1 has four bytes more before its addresses. Later versions have no such block.
    let addresses = match head.get(8) {
        Some(0) => 24,
        Some(1) => 28,
        _ => return false,
    };
    let width = usize::from(head.get(13).copied().unwrap_or(0));
    // Base, free space and end come first; all ones mean that there is none.
    let first = addresses + 3 * width;
    head.get(first..first + width).is_some_and(|address| address.iter().any(|&byte| byte != 0xff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_seen_wherever_the_superblock_is() {
        let sound = include_bytes!("../../tests/fixtures/doubles.hdf5");
        assert_eq!((&sound[..8], sound[8], sound[13]), (&SIGNATURE[..], 0, 8), "version 0");
        let mut asking = sound.to_vec();
        asking[49] = 0;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let asks = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            asks_for_a_driver(&File::open(&path).unwrap(), bytes.len() as u64).unwrap()
        };
        for user_block in [0, 512, 1024] {
            let after = |bytes: &[u8]| [&vec![0; user_block], bytes].concat();
            assert!(!asks(&after(sound)), "{user_block}");
            assert!(asks(&after(&asking)), "{user_block}");
        }
        for short in [&b""[..], &SIGNATURE, &asking[..40], b"not HDF5"] {
            assert!(!asks(short));
        }
        let odd_width = [&asking[..13], &[200], &asking[14..]].concat();
        assert!(!asks(&odd_width), "addresses beyond what is looked at: the library refuses them");
    }
}
