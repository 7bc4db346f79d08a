//! Tables in Parquet files, and LeRobot's folders of them.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Outcome;
use overtone_data::read::{open_as, reader_as};
use overtone_data::{
    ActionColumn, Columns, DataError, Form, ObservationColumn, Recording, TableColumns,
};
use overtone_testkit::sentences;

use crate::tables::columns;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A copy, so that errors name a folder of the test.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Path::new(name).file_name().unwrap());
    fs::copy(fixture(name), &path).unwrap();
    (folder, path)
}

fn read(path: &Path, columns: &TableColumns) -> Result<Columns, DataError> {
    match open_as(path, &Form { columns: columns.clone(), ..Form::default() })? {
        Recording::Columns(columns) => Ok(columns),
        Recording::ReplayLog(_) => panic!("a log of frames"),
    }
}

/// The file of pandas holds what `log.csv` of the other tests does.
#[test]
fn a_file_of_pandas_is_a_table() {
    let path = fixture("table.parquet");
    let table = read(&path, &columns()).unwrap();
    let seen = vec![20.5, 0.0, 21.0, 1.0, 19.0, 0.0];
    assert_eq!(table.observations, ObservationColumn::Vectors { width: 2, values: seen });
    assert_eq!(table.actions, ActionColumn::Discrete { n_actions: 3, values: vec![1, 2, 0] });
    assert_eq!(table.rewards, [1.5, -0.25, 2.0]);
    let episodes: Vec<_> = table.episodes.iter().map(|of| (of.start, of.length)).collect();
    assert_eq!(episodes, [(0, 2), (2, 1)]);
    let unread: Vec<&str> = table.stored.unread.iter().map(String::as_str).collect();
    assert_eq!(unread, ["level", "pose", "raw", "seen"]);
    let form = Form { columns: columns(), ..Form::default() };
    assert_eq!(reader_as(&path, &form).unwrap().name(), "table");

    // Lists are several columns; whole numbers with a point stay real ones.
    let lists =
        TableColumns { observation: "pose,hour".into(), action: "level".into(), ..columns() };
    let table = read(&path, &lists).unwrap();
    let seen = vec![0.5, 1.0, 0.0, 0.25, 2.0, 1.0, -1.0, 0.1, 0.0];
    assert_eq!(table.observations, ObservationColumn::Vectors { width: 3, values: seen });
    let values = vec![1.0, 0.0, 2.0];
    assert_eq!(table.actions, ActionColumn::Continuous { width: 1, values });
    let one = TableColumns { observation: "pose.1".into(), ..lists };
    let seen = vec![1.0, 2.0, 0.1];
    let expected = ObservationColumn::Vectors { width: 1, values: seen };
    assert_eq!(read(&path, &one).unwrap().observations, expected);
}

#[test]
fn a_parquet_file_is_refused_with_its_row() {
    let refused = |name: &str, columns: &TableColumns| {
        let (_folder, path) = copied(name);
        sentences::check(&read(&path, columns).unwrap_err().to_string());
    };
    refused("table.parquet", &TableColumns::default());
    refused("table.parquet", &TableColumns { observation: "seen".into(), ..columns() });
    refused("table.parquet", &TableColumns { observation: "raw".into(), ..columns() });
    refused("table.parquet", &TableColumns { observation: "poses".into(), ..columns() });
    refused("zstd.parquet", &columns());
    refused("refused/empty_cell.parquet", &columns());
    refused("refused/ragged.parquet", &TableColumns { observation: "pose".into(), ..columns() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    let bytes = fs::read(fixture("table.parquet")).unwrap();
    for damaged in [&b"temp,valve\n1,2\n"[..], b"PAR1", &bytes[..bytes.len() / 2]] {
        fs::write(&path, damaged).unwrap();
        sentences::check(&read(&path, &columns()).unwrap_err().to_string());
    }
    // Without its ending.
    let path = folder.path().join("log");
    fs::write(&path, &bytes).unwrap();
    sentences::check(&read(&path, &columns()).unwrap_err().to_string());
}

/// Any byte may be another one: the file is read or refused.
#[test]
fn damaged_bytes_are_read_or_refused() {
    let bytes = fs::read(fixture("table.parquet")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    let lists = TableColumns { observation: "pose,temp".into(), ..columns() };
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        refused += usize::from(read(&path, &lists).is_err());
    }
    assert!(refused > bytes.len() / 20, "{refused}");
}

/// A folder as LeRobot writes it, with `files` of data; its description says `info`.
fn lerobot(files: &[(&str, &str)], info: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("meta")).unwrap();
    fs::write(folder.path().join("meta/info.json"), info).unwrap();
    for (name, from) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(fixture(from), path).unwrap();
    }
    folder
}

/// `fixtures/lerobot` was written by LeRobot itself.
#[test]
fn a_dataset_of_lerobot_has_its_own_names() {
    let robot = read(&fixture("lerobot"), &TableColumns::default()).unwrap();
    assert_eq!(robot.format, "LeRobot");
    let seen = vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5];
    assert_eq!(robot.observations, ObservationColumn::Vectors { width: 2, values: seen });
    let values = vec![0.0, -0.0, 0.125, -0.125, 0.25, -0.25, 0.375, -0.375, 0.5, -0.5];
    assert_eq!(robot.actions, ActionColumn::Continuous { width: 2, values });
    assert_eq!(robot.rewards, [0.0, 1.0, 0.0, 1.0, 0.0]);
    let ends: Vec<_> = robot.episodes.iter().map(|of| (of.start, of.length, of.outcome)).collect();
    assert_eq!(ends, [(0, 2, Outcome::Terminated), (2, 3, Outcome::Truncated)]);
    // The second episode is solved on the way, and lost again.
    assert_eq!(robot.optional.stops, Some(vec![false, false, false, true, false]));
    assert!(robot.stored.unread.contains("observation.images.top"), "{:?}", robot.stored.unread);

    let named = TableColumns { termination: "next.done".into(), ..TableColumns::default() };
    let robot = read(&fixture("lerobot"), &named).unwrap();
    assert!(robot.episodes.iter().all(|episode| episode.outcome == Outcome::Terminated));
    assert_eq!(robot.optional.stops, None);
}

#[test]
fn a_dataset_of_lerobot_that_lacks_something() {
    const FILE: (&str, &str) =
        ("data/chunk-000/file-000.parquet", "lerobot/data/chunk-000/file-000.parquet");
    let info = |frames: usize, more: &str| {
        let features = ["observation.state", "action", "episode_index"]
            .map(|name| format!("\"{name}\": {{\"dtype\": \"float32\"}}"))
            .join(", ");
        format!(
            "{{\"codebase_version\": \"v3.0\", \"total_frames\": {frames}, \"total_episodes\": 2, \
             \"features\": {{{features}{more}}}}}"
        )
    };
    let none = TableColumns::default();
    // Demonstrations without a reward.
    let folder = lerobot(&[FILE], &info(5, ""));
    let robot = read(folder.path(), &none).unwrap();
    assert_eq!((robot.rewards, robot.odd.len()), (vec![0.0; 5], 1));
    let refused = |folder: &tempfile::TempDir| {
        sentences::check(&read(folder.path(), &none).unwrap_err().to_string());
    };
    // A file is missing, or all of them; the description is another.
    refused(&lerobot(&[FILE], &info(9, "")));
    let empty = lerobot(&[], &info(5, ""));
    fs::create_dir(empty.path().join("data")).unwrap();
    refused(&empty);
    refused(&lerobot(&[FILE], "{}"));
    refused(&lerobot(&[FILE], &info(5, "").replace("v3.0", "v1.6")));
    refused(&lerobot(&[FILE], &info(5, "").replace("observation.state", "observation.image")));
    let two = [FILE, ("data/chunk-000/file-001.parquet", "table.parquet")];
    refused(&lerobot(&two, &info(5, "")));
}
