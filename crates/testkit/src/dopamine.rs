//! A small writer of replay logs that follows Dopamine's ring buffer step by step: what the
//! tests read is what it would have saved.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Pixels of a frame.
pub const FRAME: usize = 84 * 84;

/// Bytes of a `.npy` array of version 1.0.
pub fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let shape = match shape {
        [one] => format!("({one},)"),
        axes => format!("({})", axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    npy_with_dict(&dict, data)
}

/// As [`npy`], with a header of one's own.
pub fn npy_with_dict(dict: &str, data: &[u8]) -> Vec<u8> {
    let mut header = dict.as_bytes().to_vec();
    header.resize((10 + header.len() + 1).next_multiple_of(64) - 11, b' ');
    header.push(b'\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

/// Writes `bytes` to a gzip file.
pub fn write_gz(path: &Path, bytes: &[u8]) {
    let mut gz = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap();
}

/// One slot of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// Every pixel of its frame.
    pub pixel: u8,
    /// Its action.
    pub action: i32,
    /// Its reward.
    pub reward: f32,
    /// 1 at an episode's last step.
    pub terminal: u8,
}

/// An episode that was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Add number of its first step.
    pub first: u64,
    /// Its steps in order; the last is terminal.
    pub steps: Vec<Slot>,
}

/// The logged ring buffer, writing a file each time the cursor comes to the last slot.
pub struct Recorder {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The ring as it is now.
    pub ring: Vec<Slot>,
    /// Slots written so far, padding included.
    pub add_count: u64,
    /// Files saved so far.
    pub files: u32,
    /// Adds each file holds that were written before it, `(number, add_count)`.
    pub saved: Vec<(u32, u64)>,
    /// The episodes recorded.
    pub episodes: Vec<Recorded>,
}

impl Recorder {
    /// Records into `<root>/<game>/1/replay_logs`.
    pub fn new(root: &Path, game: &str, capacity: usize) -> Self {
        let folder = root.join(game).join("1/replay_logs");
        fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            ring: vec![Slot::default(); capacity],
            add_count: 0,
            files: 0,
            saved: Vec::new(),
            episodes: Vec::new(),
        }
    }

    fn write(&mut self, slot: Slot) {
        let cursor = (self.add_count % self.ring.len() as u64) as usize;
        self.ring[cursor] = slot;
        self.add_count += 1;
    }

    /// Records an episode of `length` steps whose contents follow from their add numbers.
    pub fn episode(&mut self, length: usize) {
        for _ in 0..3 {
            self.write(Slot::default());
        }
        let first = self.add_count;
        let mut steps = Vec::new();
        for step in 0..length {
            let add = self.add_count;
            let slot = Slot {
                pixel: pixel_of(add),
                action: (add % 7) as i32,
                reward: (add % 3) as f32 - 1.0,
                terminal: u8::from(step + 1 == length),
            };
            steps.push(slot);
            self.write(slot);
            if self.add_count % self.ring.len() as u64 == self.ring.len() as u64 - 1 {
                self.save();
            }
        }
        self.episodes.push(Recorded { first, steps });
    }

    /// Saves the whole ring, as Dopamine does.
    pub fn save(&mut self) {
        let (k, n) = (self.files, self.ring.len());
        self.files += 1;
        self.saved.push((k, self.add_count));
        let column =
            |f: &dyn Fn(&Slot) -> Vec<u8>| -> Vec<u8> { self.ring.iter().flat_map(f).collect() };
        let path = |name: &str| self.folder.join(format!("{name}_ckpt.{k}.gz"));
        let frames = column(&|slot| vec![slot.pixel; FRAME]);
        write_gz(&path("$store$_observation"), &npy("|u1", &[n, 84, 84], &frames));
        let actions = column(&|slot| slot.action.to_le_bytes().to_vec());
        write_gz(&path("$store$_action"), &npy("<i4", &[n], &actions));
        let rewards = column(&|slot| slot.reward.to_le_bytes().to_vec());
        write_gz(&path("$store$_reward"), &npy("<f4", &[n], &rewards));
        let terminals = column(&|slot| vec![slot.terminal]);
        write_gz(&path("$store$_terminal"), &npy("|u1", &[n], &terminals));
        let count = (self.add_count as i64).to_le_bytes();
        write_gz(&path("add_count"), &npy("<i8", &[], &count));
        let cursor = self.add_count as i64;
        let invalid: Vec<u8> =
            (0..5).flat_map(|i| (cursor - 1 + i).rem_euclid(n as i64).to_le_bytes()).collect();
        write_gz(&path("invalid_range"), &npy("<i8", &[5], &invalid));
    }

    /// The game's folder.
    pub fn game(&self) -> &Path {
        self.folder.parent().and_then(Path::parent).unwrap()
    }
}

/// Every pixel of the frame of add number `add`; never 0, so that it differs from padding.
pub fn pixel_of(add: u64) -> u8 {
    (add % 251) as u8 + 1
}
