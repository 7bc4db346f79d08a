//! Readers of DQN-replay logs and of the store they are converted into.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use overtone_data::error::Fault;
use overtone_data::read::npy::{Element, NpyStream};
use overtone_data::{
    DataError, Dataset, Expected, Origin, Preparation, ReadFrames, ReplayLog, Selection, check,
};
use overtone_testkit::dopamine::{Recorder, npy, write_gz};

use crate::targets::{MIB, Seed, Target};

/// Slots of the recorded files, and lengths of the episodes: with these no file is left out
/// because it would be saved inside padding.
const CAPACITY: usize = 12;
const LENGTHS: [usize; 3] = [8, 5, 6];

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "npy",
            // Arrays in sound gzip files: `npy::NpyStream`.
            gzip: true,
            share: 225,
            // Deflate makes at most 1032 bytes of one; half of it may be copied as it grows.
            limit: |bytes| MIB + 2 * 1032 * bytes,
            prepare: |_| Ok(arrays()),
            read: read_array,
        },
        Target {
            name: "gzip",
            // Gzip files of arrays: `npy::NpyStream`.
            gzip: false,
            share: 250,
            limit: |bytes| MIB + 2 * 1032 * bytes,
            prepare: gzip_files,
            read: read_array,
        },
        Target {
            name: "log",
            // A column of a run's log: `ReplayLog::open`, `check`.
            gzip: true,
            share: 20,
            limit: |bytes| 16 * MIB + 2 * 1032 * bytes,
            prepare: log,
            read: |path| {
                let folder = folder_of(path)?;
                // Whatever is wrong is a finding, so this may not fail.
                let expected = Expected { frames: ReadFrames::Always, ..Expected::default() };
                let sound = check(folder, &expected)?.inspection.is_ok();
                let log = ReplayLog::open(folder);
                assert!(log.is_ok() || !sound, "a log that is refused is sound to `check`");
                log?;
                Ok(())
            },
        },
        Target {
            name: "conversion",
            // A column of a run's log: `Preparation::ensure`, `Dataset::verify`.
            gzip: true,
            share: 10,
            limit: |bytes| 32 * MIB + 2 * 1032 * bytes,
            prepare: log,
            read: convert,
        },
        Target {
            name: "store",
            // A converted log: `Dataset::open_store`, `verify`.
            gzip: false,
            share: 40,
            // The header's text as a tree; small columns twice.
            limit: |bytes| 4 * MIB + 16 * bytes,
            prepare: store,
            read: |path| Ok(Dataset::open_store(path)?.verify()?),
        },
    ]
}

/// Arrays of each type that is read, and of each number of axes.
fn arrays() -> Vec<Seed> {
    let bytes: Vec<u8> = (0..=255).collect();
    let floats: Vec<u8> = (0..300u16).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    [
        npy("<i4", &[64], &bytes),
        npy("<f4", &[300], &floats),
        npy("|u1", &[2, 4, 8], &bytes[..64]),
        npy("<i8", &[], &bytes[..8]),
        npy("<i8", &[5], &bytes[..40]),
        npy("<f4", &[0], &[]),
    ]
    .map(|bytes| Seed::new("array.gz", bytes))
    .into()
}

fn gzip_files(folder: &Path) -> Result<Vec<Seed>> {
    let path = folder.join("seed.gz");
    let mut seeds = Vec::new();
    for array in arrays() {
        write_gz(&path, &array.bytes);
        seeds.push(Seed::new("array.gz", fs::read(&path)?));
    }
    fs::remove_file(path)?;
    Ok(seeds)
}

/// Reads an array of whatever type it has.
fn read_array(path: &Path) -> Result<()> {
    let refused = [as_type::<u8>(path), as_type::<i32>(path), as_type::<i64>(path)];
    for result in refused.into_iter().chain([as_type::<f32>(path)]) {
        match result {
            Err(DataError::At { fault: Fault::Dtype { .. }, .. }) => {}
            result => return Ok(result?),
        }
    }
    anyhow::bail!("of another type")
}

fn as_type<T: Element>(path: &Path) -> Result<(), DataError> {
    let stream = NpyStream::open(path)?;
    let shape: Vec<_> = stream.shape().iter().map(|_| None).collect();
    stream.expect::<T>(&shape)?;
    stream.for_each::<T>(|_, _| Ok(()))
}

fn record(folder: &Path) -> Recorder {
    let mut recorder = Recorder::new(folder, "Pong", CAPACITY);
    for length in LENGTHS {
        recorder.episode(length);
    }
    recorder.save();
    recorder
}

/// A run of three small files, with every column damaged.
fn log(folder: &Path) -> Result<Vec<Seed>> {
    let recorder = record(folder);
    let mut seeds = Vec::new();
    for entry in fs::read_dir(&recorder.folder)? {
        let path = entry?.path();
        let mut bytes = Vec::new();
        GzDecoder::new(fs::File::open(&path)?).read_to_end(&mut bytes)?;
        let file = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        seeds.push(Seed::new(file, bytes));
    }
    seeds.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(seeds)
}

/// The game's folder of a log's file.
fn folder_of(path: &Path) -> Result<&Path> {
    path.ancestors().nth(3).context("no game's folder")
}

/// Converts whole episodes of at least `steps` steps.
fn plan(game: &Path, cache: &Path, steps: usize) -> Result<Preparation> {
    let log = ReplayLog::open(game)?;
    Ok(Preparation::new(log, Origin::other(), Selection::uniform(steps), 1, cache)?)
}

fn convert(path: &Path) -> Result<()> {
    let game = folder_of(path)?;
    let cache = game.with_file_name("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let plan = plan(game, &cache, 100)?;
    ensure!(plan.store.starts_with(&cache), "a store outside of the cache");
    Ok(plan.ensure(&mut |_, _| {})?.verify()?)
}

fn store(folder: &Path) -> Result<Vec<Seed>> {
    let beside = tempfile::tempdir()?;
    let recorder = record(beside.path());
    let plan = plan(recorder.game(), beside.path(), 1)?;
    let path: PathBuf = plan.ensure(&mut |_, _| {})?.path().to_path_buf();
    let name = path.file_name().context("a store without a name")?.to_string_lossy();
    fs::create_dir_all(folder)?;
    Ok(vec![Seed::new(name, fs::read(&path)?)])
}
