//! Objects of a global heap: the bytes of a row of an array of streams (HDF5 File Format
//! Specification, III.E and IV.B). `hdf5-pure` reads only the objects of strings.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a row: a length of 4 bytes, the address of a heap, and an index of 4 bytes.
pub(super) const ROW: usize = 16;
/// Bytes in front of a heap's objects, and in front of an object's bytes.
const HEADER: usize = 16;

/// The heaps of one file.
pub(super) struct Heaps<'a> {
    file: &'a File,
    bytes: u64,
    /// Position of the file's address 0.
    base: u64,
    /// The heap that was read last, and its position: rows after each other often share one.
    last: (u64, Vec<u8>),
}

impl<'a> Heaps<'a> {
    /// The heaps of a file of `bytes`, whose addresses count from `base`.
    pub fn new(file: &'a File, bytes: u64, base: u64) -> Self {
        Self { file, bytes, base, last: (u64::MAX, Vec::new()) }
    }

    /// The bytes that a row of an array leads to.
    ///
    /// # Errors
    /// When the row leads to no heap of this file, or to no object in it.
    pub fn object(&mut self, row: &[u8]) -> io::Result<&[u8]> {
        let length = number(row, 0, 4) as usize;
        if length == 0 {
            return Ok(&[]);
        }
        let at = number(row, 4, 8).checked_add(self.base).ok_or_else(damaged)?;
        if at != self.last.0 {
            self.last = (at, self.heap(at)?);
        }
        let (index, heap) = (number(row, 12, 4), &self.last.1);
        let mut place = HEADER;
        while let Some(header) = heap.get(place..place + HEADER) {
            let size = usize::try_from(number(header, 8, 8)).map_err(|_| damaged())?;
            let begin = place + HEADER;
            let next = size.checked_next_multiple_of(8).and_then(|size| begin.checked_add(size));
            match number(header, 0, 2) {
                0 => break,
                here if here == index && length <= size => {
                    return heap.get(begin..begin + length).ok_or_else(damaged);
                }
                _ => place = next.ok_or_else(damaged)?,
            }
        }
        Err(damaged())
    }

    fn heap(&mut self, at: u64) -> io::Result<Vec<u8>> {
        let mut header = [0; HEADER];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut header)?;
        let size = number(&header, 8, 8);
        if !header.starts_with(b"GCOL") || size > self.bytes {
            return Err(damaged());
        }
        let mut heap = Vec::with_capacity(size as usize);
        self.file.seek(SeekFrom::Start(at))?;
        self.file.take(size).read_to_end(&mut heap)?;
        Ok(heap)
    }
}

/// The little-endian number of `width` bytes at `place`.
fn number(bytes: &[u8], place: usize, width: usize) -> u64 {
    bytes[place..place + width].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a row leads to no object of a heap")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap with objects of these indices and bytes, at position 8 of a file.
    fn file(objects: &[(u16, &[u8])]) -> Vec<u8> {
        let mut heap = Vec::new();
        for (index, bytes) in objects {
            heap.extend([&index.to_le_bytes()[..], &[0; 6]].concat());
            heap.extend((bytes.len() as u64).to_le_bytes());
            heap.extend(*bytes);
            heap.resize(heap.len().next_multiple_of(8), 0);
        }
        let size = (HEADER + heap.len()) as u64;
        [&[7; 8][..], b"GCOL\x01\0\0\0", &size.to_le_bytes(), &heap].concat()
    }

    #[track_caller]
    fn check(file: &[u8], row: (u32, u64, u32), expected: Option<&[u8]>) {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, file).unwrap();
        let opened = File::open(path.path()).unwrap();
        let mut heaps = Heaps::new(&opened, file.len() as u64, 0);
        let (length, heap, index) = row;
        let row = [&length.to_le_bytes()[..], &heap.to_le_bytes(), &index.to_le_bytes()].concat();
        assert_eq!(heaps.object(&row).ok(), expected);
    }

    #[test]
    fn rows_lead_to_objects() {
        let sound = file(&[(1, b"abc"), (3, b"0123456789")]);
        check(&sound, (3, 8, 1), Some(b"abc"));
        check(&sound, (10, 8, 3), Some(b"0123456789"));
        // An empty row leads nowhere.
        check(&sound, (0, 0, 0), Some(b""));
        for (length, heap, index) in
            [(4, 8, 1), (10, 8, 2), (3, 16, 1), (3, 1 << 40, 1), (3, u64::MAX, 1), (u32::MAX, 8, 3)]
        {
            check(&sound, (length, heap, index), None);
        }
    }

    #[test]
    fn heaps_that_claim_more_than_the_file() {
        let sound = file(&[(1, b"abc"), (3, b"0123456789")]);
        let changed = |place: usize, number: u64| {
            let mut bytes = sound.clone();
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        check(&changed(16, 1 << 40), (10, 8, 3), None);
        // The first object's size: past the heap, and what wraps around when it is rounded up.
        for size in [1 << 40, u64::MAX - 7, u64::MAX] {
            check(&changed(32, size), (10, 8, 3), None);
        }
    }
}
