//! [`Target`]: a reader, sound files for it, and how much memory it may take.

use std::path::Path;

use anyhow::Result;

use crate::{atari, lab, robots, runs};

/// A sound file that is damaged.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Its path below the target's folder. Files of one name, in whatever folder, are of one
    /// kind, and pieces of one may be put into another.
    pub file: String,
    /// The contents; before compression, if the target [compresses](Target::gzip).
    pub bytes: Vec<u8>,
}

impl Seed {
    pub fn new(file: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { file: file.into(), bytes: bytes.into() }
    }
}

/// A reader under test.
pub struct Target {
    /// In a word.
    pub name: &'static str,
    /// Whether inputs are compressed after they were damaged: damaged gzip files are refused
    /// by their checksum, and what reads their contents would see none.
    pub gzip: bool,
    /// Its part of the inputs of all targets, in thousandths: the slower, the fewer.
    pub share: u64,
    /// The most bytes that reading an input of so many bytes may take.
    pub limit: fn(u64) -> u64,
    /// Writes the sound files that the reader needs next to the damaged one into an empty folder,
    /// and returns the files to damage.
    pub prepare: fn(&Path) -> Result<Vec<Seed>>,
    /// Reads the file at this path, or the recording or run that it is a part of.
    pub read: fn(&Path) -> Result<()>,
}

/// A mebibyte.
pub const MIB: u64 = 1 << 20;

/// Every target, the inner formats first.
pub fn targets() -> Vec<Target> {
    let mut all = atari::targets();
    all.extend(robots::targets());
    all.extend(runs::targets());
    all.extend(lab::targets());
    all
}
