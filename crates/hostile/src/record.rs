//! [`Record`]: what became of a target's inputs, in a file that outlives the process.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What may not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The reader panicked.
    Panic,
    /// It took more memory than the target's limit.
    Memory,
    /// It ended the process.
    Crash,
    /// It said nothing for too long.
    Hang,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::Memory => "memory",
            Self::Crash => "crash",
            Self::Hang => "hang",
        })
    }
}

/// Counts of inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the input at work, or one past the last.
    pub next: u64,
    /// Read without an error.
    pub accepted: u64,
    /// Refused with an error.
    pub refused: u64,
    /// That panicked.
    pub panics: u64,
    /// That took more memory than the target's limit.
    pub memory: u64,
    /// The most bytes held for one input.
    pub largest: u64,
    /// Microseconds of the slowest input.
    pub slowest: u64,
}

impl Record {
    const NUMBERS: usize = 7;

    fn numbers(self) -> [u64; Self::NUMBERS] {
        let Self { next, accepted, refused, panics, memory, largest, slowest } = self;
        [next, accepted, refused, panics, memory, largest, slowest]
    }

    /// Writes it at the start of `file`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(self, file: &File) -> io::Result<()> {
        file.write_all_at(self.numbers().map(u64::to_le_bytes).as_flattened(), 0)
    }

    /// Reads what was written last; nothing where nothing was.
    pub fn read(path: &Path) -> Self {
        let mut bytes = [[0; 8]; Self::NUMBERS];
        let read =
            File::open(path).and_then(|file| file.read_exact_at(bytes.as_flattened_mut(), 0));
        if read.is_err() {
            return Self::default();
        }
        let [next, accepted, refused, panics, memory, largest, slowest] =
            bytes.map(u64::from_le_bytes);
        Self { next, accepted, refused, panics, memory, largest, slowest }
    }

    /// Both together; `next` is that of `other`.
    pub fn joined(self, other: Self) -> Self {
        Self {
            next: other.next,
            accepted: self.accepted + other.accepted,
            refused: self.refused + other.refused,
            panics: self.panics + other.panics,
            memory: self.memory + other.memory,
            largest: self.largest.max(other.largest),
            slowest: self.slowest.max(other.slowest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        assert_eq!(Record::read(&path), Record::default());
        let record = Record {
            next: 9,
            accepted: 1,
            refused: 2,
            panics: 3,
            memory: 4,
            largest: 5,
            slowest: u64::MAX,
        };
        record.write(&File::create(&path).unwrap()).unwrap();
        assert_eq!(Record::read(&path), record);
        let more = Record { next: 4, largest: 7, ..Record::default() };
        assert_eq!(record.joined(more), Record { next: 4, largest: 7, ..record });
    }
}
