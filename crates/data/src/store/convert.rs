//! Converting a selection of a log into one memory-mappable file with every frame once.
//!
//! The file is ordinary safetensors, so it opens in any language:
//!
//! | tensor | type and shape |
//! | --- | --- |
//! | `episode_starts`, `episode_lengths` | i64 `[episodes]`, in rows |
//! | `rewards` | f32 `[rows]`, clipped to [-1, 1] |
//! | `episode_outcomes` | u8 `[episodes]`: 0 terminated, 1 truncated |
//! | `actions` | u8 `[rows]` |
//! | `frames` | u8 `[rows, 84, 84]` |
//!
//! with the [`StoreManifest`] as JSON under `manifest` in its metadata. A stack of four frames is
//! four rows, so nothing is stored twice.
//!
//! Conversion inflates each shard once, as many shards at a time as there are cores, and only
//! up to the last slot needed. A gzip stream cannot be split; where there are fewer shards
//! than cores, one thread inflates a shard and another hashes and writes. Frames are inflated
//! into chunks and written from there straight to their place; no shard is ever held whole.
//!
//! It writes under a temporary name next to the final one, flushes, and renames: a conversion
//! killed at any instant leaves no file under the final name, and the next one removes its
//! leftovers. A lock on the temporary file distinguishes a leftover from another running process.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use overtone_core::{Episode, Outcome};
use rayon::prelude::*;

use crate::error::{DataError, Fault};
use crate::read::replay_log::Ending;
use crate::sample::dataset::Dataset;
use crate::store::content_hash::RowHashes;
use crate::store::layout::{HASH_TO_COME, MANIFEST_FILE, StoreLayout, episode_table};
use crate::store::manifest::StoreManifest;
use crate::store::preparation::Preparation;
use crate::store::selection::SelectedEpisode;
use crate::store::shard::{ShardWriter, pieces_of, stopped};
use crate::store::temporary::{Temporary, remove_leftovers};

impl Preparation {
    /// Opens the dataset, converting it first if it is not ready or is damaged, after a check of
    /// the free disk space. `progress` receives the bytes done and the bytes to do.
    ///
    /// # Errors
    /// If the disk is too small, a source file is damaged, writing fails, or it is stopped.
    pub fn ensure(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Dataset, DataError> {
        let found = Dataset::open_store(&self.store)
            .and_then(|dataset| dataset.check_untouched().map(|()| dataset));
        match found {
            Ok(dataset) if self.made(&dataset) => return Ok(dataset),
            // Missing, damaged, changed, or of another version: it is made (again).
            Ok(_)
            | Err(DataError::Missing { .. } | DataError::At { fault: Fault::Store(_), .. }) => {}
            Err(error) => return Err(error),
        }
        self.check_disk()?;
        Dataset::open_store(&convert(self, progress)?)
    }
}

/// Converts as `plan` says; returns the path of the finished file, which gets its name when it is
/// complete. If several processes run at once, each converts, and the last one's file stays.
/// `progress` receives the bytes inflated and the bytes to inflate.
fn convert(plan: &Preparation, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf, DataError> {
    let folder = plan.store.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(DataError::io(folder, "create"))?;
    remove_leftovers(folder)?;
    let temporary = Temporary::create(folder)?;

    let (log, selected) = (&plan.log, &plan.selected);
    let layout = StoreLayout { rows: selected.n_rows(), episodes: selected.episodes.len() };
    let mut manifest = plan.manifest.clone();
    manifest.content_hash = HASH_TO_COME.into();
    let header_error = |error: serde_json::Error| Fault::Store(error.to_string()).at(&plan.store);
    let data = layout.header(&manifest).map_err(header_error)?.len() as u64;
    let write_error = || DataError::io(&temporary.path, "write");
    temporary.file.set_len(data + layout.data_bytes()).map_err(write_error())?;

    let episode = |chosen: &SelectedEpisode| Episode {
        start: chosen.rows.start,
        length: chosen.rows.len(),
        outcome: outcome(chosen.ending),
    };
    let table = episode_table(&selected.episodes.iter().map(episode).collect::<Vec<_>>());
    for (name, bytes) in &table {
        let at = data + layout.offset(name);
        temporary.file.write_all_at(bytes, at).map_err(write_error())?;
    }
    let overlapped = plan.files.len() < rayon::current_num_threads();
    let writer = ShardWriter {
        log,
        temporary: &temporary,
        layout: &layout,
        data,
        overlapped,
        stop: &plan.stop,
    };
    let rows = all_shards(plan, &writer, progress)?;

    manifest.content_hash = rows.finish(table.iter().map(|(_, bytes)| bytes.as_slice()));
    let header = layout.header(&manifest).map_err(header_error)?;
    assert_eq!(header.len() as u64, data, "the hash to come had the length of a hash");
    temporary.file.write_all_at(&header, 0).map_err(write_error())?;
    temporary.file.sync_all().map_err(write_error())?;
    write_manifest(folder, &manifest)?;
    temporary.rename(&plan.store)?;
    Ok(plan.store.clone())
}

/// An episode that the step limit cut is finished, and also truncated.
fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::GameOver => Outcome::Terminated,
        Ending::StepLimit | Ending::Cut => Outcome::Truncated,
    }
}

/// Runs all shards on the thread pool while this thread reports progress.
fn all_shards(
    plan: &Preparation,
    writer: &ShardWriter<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RowHashes, DataError> {
    let done = AtomicU64::new(0);
    let (finished, wait) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let rows = plan
                .files
                .par_iter()
                .map(|&file| writer.shard(file, pieces_of(&plan.selected, file), &done))
                .try_reduce(RowHashes::default, |one, other| Ok(one.plus(other)));
            // The receiver lives until this thread has ended.
            let _ = finished.send(rows);
        });
        loop {
            let report = wait.recv_timeout(Duration::from_millis(100));
            progress(done.load(Ordering::Relaxed), plan.inflate_bytes);
            match report {
                Ok(rows) => return rows,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(stopped());
                }
            }
        }
    })
}

fn write_manifest(folder: &Path, manifest: &StoreManifest) -> Result<(), DataError> {
    let path = folder.join(MANIFEST_FILE);
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| Fault::Store(error.to_string()).at(&path))?;
    let temporary = Temporary::create(folder)?;
    (&temporary.file)
        .write_all(text.as_bytes())
        .and_then(|()| temporary.file.sync_all())
        .map_err(DataError::io(&temporary.path, "write"))?;
    temporary.rename(&path)
}
