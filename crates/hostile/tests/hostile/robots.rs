//! Readers of D4RL's and Minari's files, and of descriptions of datasets.

use std::{
    fs,
    path::{Component, Path},
};

use anyhow::Result;
use overtone_data::{
    Dataset, DatasetCard, DatasetOptions, Expected, Form, Fragment, MinariId, RecordedTask, Space,
    TableColumns, check, read,
};

use crate::targets::{MIB, Seed, Target};

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "hdf5",
            // D4RL's, Minari's, d3rlpy's and robomimic's files: `read::columns`, `Dataset::of`, `check`.
            gzip: false,
            share: 25,
            // `hdf5_file` allows 4096 times the file's bytes, and a mebibyte.
            limit: |bytes| 64 * MIB + 4096 * bytes,
            prepare: |_| Ok(recordings()),
            read: read_recording,
        },
        Target {
            name: "npz",
            // Arrays in .npz files: `read::columns`, `open_as` OGBench, `check`.
            gzip: false,
            share: 25,
            // `npz` allows 4096 times the file's bytes, and a mebibyte; columns are copied once.
            limit: |bytes| 64 * MIB + 2 * 4096 * bytes,
            prepare: |_| Ok(arrays()),
            read: read_arrays,
        },
        Target {
            name: "tables",
            // Text and Parquet files: `read::open_as`.
            gzip: false,
            share: 10,
            limit: |bytes| 64 * MIB + 4096 * bytes,
            prepare: |_| Ok(tables()),
            read: read_table,
        },
        Target {
            name: "spaces",
            // Minari's metadata.json: `RecordedTask::of`, `Space::parse`.
            gzip: false,
            share: 10,
            limit: |bytes| MIB + 1024 * bytes,
            prepare: |_| Ok(descriptions()),
            read: read_description,
        },
        Target {
            name: "card",
            // Descriptions of datasets: `DatasetCard::load`, `remote`.
            gzip: false,
            share: 80,
            limit: |bytes| MIB + 256 * bytes,
            prepare: |_| Ok(cards()),
            read: read_card,
        },
        Target {
            name: "minari",
            // Lists of Minari's hub: `MinariId::listed`.
            gzip: false,
            share: 10,
            limit: |bytes| MIB + 256 * bytes,
            prepare: |_| Ok(minari()),
            read: read_minari,
        },
    ]
}

fn recordings() -> Vec<Seed> {
    // Written by h5py: with gzip and with LZF, of doubles and big-endian numbers, in Minari's
    // layout.
    [
        &include_bytes!("../../../data/tests/fixtures/gzip.hdf5")[..],
        include_bytes!("../../../data/tests/fixtures/lzf.hdf5"),
        include_bytes!("../../../data/tests/fixtures/doubles.hdf5"),
        include_bytes!("../../../data/tests/fixtures/minari.hdf5"),
        include_bytes!("../../../data/tests/fixtures/d3rlpy.h5"),
        include_bytes!("../../../data/tests/fixtures/robomimic.hdf5"),
        // Its pictures are JPEG.
        include_bytes!("../../../data/tests/fixtures/jpeg/alone.hdf5"),
    ]
    .map(|bytes| Seed::new("robot.hdf5", bytes))
    .into()
}

fn read_recording(path: &Path) -> Result<()> {
    // Whatever is wrong is a finding, so this may not fail.
    let check = check(path, &Expected::default())?;
    let log = read::columns(path);
    // Both readers accept or refuse the same files.
    assert_eq!(log.is_ok(), check.inspection.is_ok(), "{}", check.report);
    assert!(log.is_ok() || check.report.exit_code() == 2, "{}", check.report);
    let log = log?;
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    Dataset::of(log, &options)?;
    Ok(())
}

fn arrays() -> Vec<Seed> {
    // Written by NumPy: stored and deflated, big-endian, pictures, and OGBench's.
    [
        &include_bytes!("../../../data/tests/fixtures/stored.npz")[..],
        include_bytes!("../../../data/tests/fixtures/deflated.npz"),
        include_bytes!("../../../data/tests/fixtures/wide.npz"),
        include_bytes!("../../../data/tests/fixtures/list.npz"),
        include_bytes!("../../../data/tests/fixtures/pictures.npz"),
    ]
    .map(|bytes| Seed::new("own.npz", bytes))
    .into()
}

fn read_arrays(path: &Path) -> Result<()> {
    let check = check(path, &Expected::default())?;
    let log = read::columns(path);
    assert_eq!(log.is_ok(), check.inspection.is_ok(), "{}", check.report);
    // The same bytes as OGBench's: most lack nothing that it needs.
    let _ = read::open_as(path, &Form::of("ogbench"));
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    Dataset::of(log?, &options)?;
    Ok(())
}

fn tables() -> Vec<Seed> {
    let text = "session,hour,temp,valve,profit\na,0,20.5,open,1.5\na,1,21,shut,-2\nb,0,1,half,2\n";
    vec![
        Seed::new("log.csv", text),
        // Written by pandas, with lists.
        Seed::new("log.parquet", &include_bytes!("../../../data/tests/fixtures/table.parquet")[..]),
    ]
}

fn read_table(path: &Path) -> Result<()> {
    let columns = TableColumns {
        episode: "session".into(),
        observation: "temp,hour".into(),
        action: "valve".into(),
        reward: "profit".into(),
        ..TableColumns::default()
    };
    let lists =
        TableColumns { observation: "pose".into(), action: "level".into(), ..columns.clone() };
    let read = |columns| read::open_as(path, &Form { columns, ..Form::default() });
    let _ = read(lists);
    read(columns)?;
    Ok(())
}

fn descriptions() -> Vec<Seed> {
    let space = br#"{"type": "Dict", "subspaces": {"a": {"type": "Tuple", "subspaces": [
        {"type": "Discrete", "n": 3, "start": -1}, {"type": "MultiBinary", "n": [2, 3]}]},
        "b": {"type": "MultiDiscrete", "nvec": [[2, 3]], "start": [[0, 0]]},
        "c": {"type": "Box", "dtype": "float32", "shape": [2], "low": [-Infinity, NaN]}}}"#;
    let minari = include_bytes!(
        "../../../cli/tests/fixtures/minari/mujoco/hopper/tiny-v0/data/metadata.json"
    );
    vec![Seed::new("space.json", &space[..]), Seed::new("metadata.json", &minari[..])]
}

fn read_description(path: &Path) -> Result<()> {
    if path.ends_with("metadata.json") {
        RecordedTask::of(path.parent().unwrap_or(path))?;
        return Ok(());
    }
    let text = fs::read_to_string(path)?;
    Space::parse(&text).map(drop).map_err(anyhow::Error::msg)
}

fn cards() -> Vec<Seed> {
    [
        &include_bytes!("../../../../datasets/dqn-replay.toml")[..],
        include_bytes!("../../../../datasets/d4rl.toml"),
        include_bytes!("../../../../datasets/starter-seaquest.toml"),
        include_bytes!("../../../../datasets/starter-mujoco.toml"),
    ]
    .map(|bytes| Seed::new("card.toml", bytes))
    .into()
}

/// Reads a description; every file that would be fetched or read must lie below its folder.
///
/// # Panics
/// When one does not: that is the fault.
fn read_card(path: &Path) -> Result<()> {
    let card = DatasetCard::load(path)?;
    let any = ["Seaquest".to_owned()];
    let tasks = if card.tasks.is_empty() { &any[..] } else { &card.tasks };
    let pairs = tasks.iter().flat_map(|task| card.datasets.iter().map(move |name| (task, name)));
    let remotes = pairs.map(|(task, dataset)| {
        below(&card.place(task, dataset));
        card.remote(task, dataset, &[0, 1])
    });
    for remote in remotes.flatten() {
        remote.files.iter().for_each(|file| below(&file.path));
    }
    Ok(())
}

/// # Panics
/// When a path leads out of its folder.
fn below(path: &Path) {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    assert!(plain, "{} leads elsewhere", path.display());
}

fn minari() -> Vec<Seed> {
    let list = r#"[{"type":"directory","oid":"0","size":0,"path":"hopper/tiny-v0/data"},
        {"type":"file","oid":"1","size":9,"path":"hopper/tiny-v0/data/metadata.json"},
        {"type":"file","oid":"2","size":9,"path":"hopper/tiny-v0/data/main_data.hdf5","lfs":{
        "oid":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","size":9}}]"#;
    vec![Seed::new("list.json", list)]
}

/// Reads a list; every file that would be fetched must lie below its folder.
///
/// # Panics
/// When one does not: that is the fault.
fn read_minari(path: &Path) -> Result<()> {
    let Some(id) = MinariId::of("minari:mujoco/hopper/tiny-v0")? else { return Ok(()) };
    let remote = id.listed("https://huggingface.co", &fs::read_to_string(path)?)?;
    remote.files.iter().for_each(|file| below(&file.path));
    Ok(())
}
