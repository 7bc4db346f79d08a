//! A replay log of any length, made by playing recorded episodes over and over.
//!
//! Its pictures come from the recording, and gzip looks back 32 KB, less than five frames: so it
//! compresses, and is inflated, as a recording of that length.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::dopamine::{FRAME, npy, write_gz};

/// Whole episodes in the order of a ring's adds, the padding before each included.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    frames: Vec<u8>,
    actions: Vec<i32>,
    rewards: Vec<f32>,
    terminals: Vec<u8>,
}

impl Recording {
    /// Adds three slots of padding and a finished episode.
    ///
    /// # Shapes
    /// - `frames`: `[steps, 84, 84]`
    /// - `actions`, `rewards`: `[steps]`
    pub fn push(&mut self, frames: &[u8], actions: &[u8], rewards: &[f32]) {
        assert_eq!(frames.len(), actions.len() * FRAME);
        self.frames.resize(self.frames.len() + 3 * FRAME, 0);
        self.frames.extend(frames);
        self.actions.extend([0; 3]);
        self.actions.extend(actions.iter().map(|&action| i32::from(action)));
        self.rewards.extend([0.0; 3]);
        self.rewards.extend(rewards);
        self.terminals.resize(self.actions.len(), 0);
        *self.terminals.last_mut().unwrap() = 1;
    }

    /// Writes `files` files of `capacity` slots into `<root>/<game>/1/replay_logs`, on all
    /// cores, and gives the game's folder. Add `a` of the log is slot `a` of the recording
    /// without end.
    ///
    /// Each file is saved before the last slot of its pass is written, so that slot holds the
    /// add before the file's first. (Dopamine does not save inside padding; here it is.)
    pub fn write(&self, root: &Path, game: &str, capacity: usize, files: u32) -> PathBuf {
        let folder = root.join(game).join("1/replay_logs");
        fs::create_dir_all(&folder).unwrap();
        let next = AtomicU32::new(0);
        let work = || {
            loop {
                let file = next.fetch_add(1, Ordering::Relaxed);
                if file >= files {
                    return;
                }
                self.write_file(&folder, capacity, file);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        root.join(game)
    }

    fn write_file(&self, folder: &Path, capacity: usize, file: u32) {
        let start = file as usize * capacity;
        // For each slot its place in the recording; nothing was ever in the first stale slot.
        let adds = (start..start + capacity - 1).map(Some).chain([start.checked_sub(1)]);
        let places: Vec<Option<usize>> =
            adds.map(|add| add.map(|add| add % self.actions.len())).collect();
        let path = |name: &str| folder.join(format!("{name}_ckpt.{file}.gz"));

        // Python's default level, which Dopamine's files were written with.
        let gz = File::create(path("$store$_observation")).unwrap();
        let mut gz = GzEncoder::new(gz, Compression::best());
        gz.write_all(&npy("|u1", &[capacity, 84, 84], &[])).unwrap();
        for place in &places {
            let frame = place.map(|place| &self.frames[place * FRAME..][..FRAME]);
            gz.write_all(frame.unwrap_or(&[0; FRAME])).unwrap();
        }
        gz.finish().unwrap();

        let column = |bytes: &dyn Fn(Option<usize>) -> Vec<u8>| -> Vec<u8> {
            places.iter().flat_map(|&place| bytes(place)).collect()
        };
        let actions =
            column(&|place| place.map_or(0, |at| self.actions[at]).to_le_bytes().to_vec());
        let rewards =
            column(&|place| place.map_or(0.0, |at| self.rewards[at]).to_le_bytes().to_vec());
        let terminals = column(&|place| vec![place.map_or(0, |at| self.terminals[at])]);
        write_gz(&path("$store$_action"), &npy("<i4", &[capacity], &actions));
        write_gz(&path("$store$_reward"), &npy("<f4", &[capacity], &rewards));
        write_gz(&path("$store$_terminal"), &npy("|u1", &[capacity], &terminals));

        let (add_count, n) = ((start + capacity - 1) as i64, capacity as i64);
        write_gz(&path("add_count"), &npy("<i8", &[], &add_count.to_le_bytes()));
        let invalid: Vec<u8> =
            (0..5).flat_map(|i| ((add_count - 1 + i) % n).to_le_bytes()).collect();
        write_gz(&path("invalid_range"), &npy("<i8", &[5], &invalid));
    }
}
