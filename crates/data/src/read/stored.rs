//! [`Stored`]: how a recording's arrays are stored, beyond their numbers.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How the arrays of a recording are stored: what a doubt about their meaning is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// Axes of an observation in its file, `[7, 7, 3]`; empty if unknown.
    pub axes: Vec<usize>,
    /// Whether the file describes the space of its observations.
    pub observations_described: bool,
    /// Whether the file describes the space of its actions.
    pub actions_described: bool,
    /// The names of discrete actions, where the file has words for them.
    pub action_names: Option<Vec<String>>,
    /// Whether flags in its rows say where episodes end.
    pub flagged: bool,
    /// `[rows]`, whether the next observation of a row, which the file holds, is not the next row's
    /// observation; empty if unknown.
    pub breaks: Vec<bool>,
    /// Rows with the flags of both ends, which are taken as the task's.
    pub doubled: Vec<usize>,
    /// Names of the arrays that are not read.
    pub unread: BTreeSet<String>,
    /// Whether it has no rewards, and all were taken as 0.
    pub without_rewards: bool,
    /// The original form of pictures before they became frames.
    pub pictures: Pictures,
}

/// Pictures as they are stored, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// How many were looked at.
    pub rows: usize,
    /// The largest byte.
    pub largest: u8,
    /// Different ones among the first rows.
    pub distinct: usize,
    /// Different frames that became of these.
    pub distinct_frames: usize,
}

impl Stored {
    /// The same of a recording whose first part is `self` and whose last part is `last`.
    #[must_use]
    pub fn and(mut self, last: Self) -> Self {
        self.unread.extend(last.unread);
        self.doubled.extend(last.doubled);
        let pictures = self.pictures.and(last.pictures);
        Self { pictures, unread: self.unread, doubled: self.doubled, ..last }
    }
}

impl Pictures {
    /// Counts of two parts of a recording.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            largest: self.largest.max(other.largest),
            distinct: self.distinct + other.distinct,
            distinct_frames: self.distinct_frames + other.distinct_frames,
        }
    }
}

/// Rows whose pictures are compared.
const COMPARED: usize = 2048;

/// [`Pictures`] to be.
#[derive(Default)]
pub(crate) struct PictureCounter {
    rows: usize,
    largest: u8,
    /// The frame that became of each picture, by hashes.
    frames: HashMap<u64, u64>,
}

impl PictureCounter {
    /// Adds a picture and the frame that became of it.
    pub fn add(&mut self, picture: &[u8], frame: &[u8]) {
        self.rows += 1;
        self.largest = picture.iter().fold(self.largest, |largest, &byte| largest.max(byte));
        if self.rows <= COMPARED {
            self.frames.insert(hash(picture), hash(frame));
        }
    }

    /// The counts.
    pub fn counts(&self) -> Pictures {
        let mut frames: Vec<u64> = self.frames.values().copied().collect();
        frames.sort_unstable();
        frames.dedup();
        Pictures {
            rows: self.rows,
            largest: self.largest,
            distinct: self.frames.len(),
            distinct_frames: frames.len(),
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
