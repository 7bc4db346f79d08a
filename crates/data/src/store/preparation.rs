//! The cost of preparing a dataset, known before a large file is read.

use std::fmt;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, atomic::AtomicBool};

use overtone_core::picture::FRAME;
use sha2::{Digest, Sha256};

use crate::describe::origin::Origin;
use crate::disk::{SPARE, free_near};
use crate::error::{DataError, Fault};
use crate::hex::hex;
use crate::read::replay_log::ReplayLog;
use crate::read::run_folder::Column;
use crate::sample::counts::Counts;
use crate::sample::dataset::Dataset;
use crate::store::frames::FrameStore;
use crate::store::layout::{STORE_FILE, StoreLayout};
use crate::store::manifest::{FORMAT, StoreManifest};
use crate::store::selection::{Selected, Selection};
use crate::store::shard::memory_bytes;

/// Bytes inflated per second and thread, with a margin: 600 to 900 MB/s were measured.
const INFLATE_RATE: f64 = 500e6;

/// A selection of a log, and the cost of converting it to a frame store.
#[derive(Clone, Debug)]
pub struct Preparation {
    /// Path of the finished file.
    pub store: PathBuf,
    /// Whether it exists already.
    pub ready: bool,
    /// Rows of the dataset.
    pub rows: usize,
    /// Episodes of the dataset.
    pub episodes: usize,
    /// Size of the finished file, in bytes.
    pub disk_bytes: u64,
    /// Maximum memory of the conversion, in bytes; little of the finished file is held, and frames
    /// are read as they are needed.
    pub memory_bytes: u64,
    /// Bytes the conversion will inflate.
    pub inflate_bytes: u64,
    /// Expected seconds of the conversion on an otherwise idle machine.
    pub seconds: f64,
    /// Stops a running conversion when set.
    pub stop: Arc<AtomicBool>,
    pub(super) log: ReplayLog,
    pub(super) selected: Selected,
    /// Indices of the files that are read, ascending.
    pub(super) files: Vec<usize>,
    /// Without its content hash, which only the conversion knows.
    pub(super) manifest: StoreManifest,
}

impl Preparation {
    /// Draws `selection` with `seed` from `log`; the converted dataset is stored below the folder
    /// `cache`.
    ///
    /// # Errors
    /// If rewards are not clipped, the selection is empty or a file cannot be read.
    pub fn new(
        log: ReplayLog,
        origin: Origin,
        selection: Selection,
        seed: u64,
        cache: &Path,
    ) -> Result<Self, DataError> {
        let outside = log.counts.rewards_outside;
        if outside > 0 {
            return Err(Fault::Inconsistent(format!(
                "{outside} of its rewards lie outside [-1, 1], and an agent is played with \
                     clipped ones: clip them to [-1, 1], or returns mean something else while \
                     training (`data lint` says where)"
            ))
            .at(&log.folder.folder));
        }
        let selected = selection.draw(&log, seed)?;
        let mut last_slot = vec![0; log.files.len()];
        let ranges = selected.episodes.iter().flat_map(|episode| &episode.slots);
        for range in ranges.chain(&selected.padding_checks) {
            last_slot[range.file] = last_slot[range.file].max(range.slot + range.length);
        }
        let files: Vec<usize> = (0..log.files.len()).filter(|&file| last_slot[file] > 0).collect();
        let inflate_bytes = last_slot.iter().map(|&slots| (slots * FRAME) as u64).sum();
        let rows = selected.n_rows();
        let episodes = selected.episodes.len();
        let threads = rayon::current_num_threads().min(files.len()).max(1);
        let manifest = StoreManifest {
            format: FORMAT,
            game: log.folder.game.clone(),
            run: log.folder.run.clone(),
            n_actions: n_actions(&log, &origin),
            origin,
            selection,
            seed,
            selection_hash: selected.hash.clone(),
            content_hash: String::new(),
            counts: Counts {
                rows,
                padding_rows: selected.episodes.iter().map(|episode| episode.padding).sum(),
                episodes,
                ..Counts::default()
            },
        };
        let store = cache
            .join(format!(
                "{}-{selection}-{}",
                log.folder.game,
                &fingerprint(&log, &manifest)?[..16]
            ))
            .join(STORE_FILE);
        Ok(Self {
            ready: store.is_file(),
            store,
            rows,
            episodes,
            disk_bytes: StoreLayout { rows, episodes }.data_bytes() + 65_536,
            memory_bytes: memory_bytes(
                rayon::current_num_threads(),
                files.len(),
                log.capacity,
                episodes,
            ),
            inflate_bytes,
            seconds: inflate_bytes as f64 / INFLATE_RATE / threads as f64,
            stop: Arc::default(),
            log,
            selected,
            files,
            manifest,
        })
    }

    /// The log the selection was drawn from.
    pub fn log(&self) -> &ReplayLog {
        &self.log
    }

    /// Whether `dataset` holds the drawn transitions.
    pub(super) fn made(&self, dataset: &Dataset) -> bool {
        let manifest = dataset.frames().and_then(FrameStore::manifest);
        manifest.is_some_and(|manifest| manifest.selection_hash == self.selected.hash)
    }

    /// Refuses a dataset that the disk cannot hold.
    ///
    /// # Errors
    /// `Fault::DiskFull`, or the free disk space cannot be read.
    pub fn check_disk(&self) -> Result<(), DataError> {
        let Some((folder, free)) = free_near(&self.store)? else { return Ok(()) };
        let needed = self.disk_bytes + SPARE;
        if free < needed {
            return Err(Fault::DiskFull { needed, free }.at(folder));
        }
        Ok(())
    }
}

/// The action set's size if known, else one more than the largest action logged (as the reference
/// counts its vocabulary).
fn n_actions(log: &ReplayLog, origin: &Origin) -> usize {
    let logged = log.counts.actions.iter().rposition(|&count| count > 0).map_or(1, |last| last + 1);
    origin.n_actions.map_or(logged, |known| known.max(logged))
}

/// A hash of the source files' names, sizes and gzip checksums and of the drawn slots: equal
/// hashes, equal converted datasets. Reading whole files for this would take minutes in a published
/// set.
fn fingerprint(log: &ReplayLog, manifest: &StoreManifest) -> Result<String, DataError> {
    let mut hash = Sha256::new();
    for file in &log.files {
        for column in Column::ALL {
            let path = log.folder.column(column, file.number);
            let mut source = fs::File::open(&path).map_err(DataError::io(&path, "open"))?;
            let bytes = source.metadata().map_err(DataError::io(&path, "open"))?.len();
            // A gzip file ends with the CRC-32 and the length of its content.
            let mut trailer = [0; 8];
            source
                .seek(SeekFrom::Start(bytes.saturating_sub(8)))
                .and_then(|_| source.read_exact(&mut trailer))
                .map_err(DataError::io(&path, "read"))?;
            hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
            hash.update(bytes.to_le_bytes());
            hash.update(trailer);
        }
        hash.update(file.add_count.to_le_bytes());
    }
    // The hash of the selection includes the drawn slots, whichever seed drew them.
    let StoreManifest { format, game, run, origin, n_actions, selection_hash, .. } = manifest;
    let facts = serde_json::json!([format, game, run, origin, n_actions, selection_hash]);
    hash.update(facts.to_string());
    Ok(hex(&hash.finalize()))
}

impl fmt::Display for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes.div_ceil(1_000_000);
        write!(f, "{} rows of {} episodes", self.rows, self.episodes)?;
        if self.ready {
            return write!(f, ", converted already: {}", self.store.display());
        }
        write!(
            f,
            ", to be converted once: {} MB on disk, {} MB of memory, about {} s",
            mb(self.disk_bytes),
            mb(self.memory_bytes),
            self.seconds.ceil()
        )
    }
}
