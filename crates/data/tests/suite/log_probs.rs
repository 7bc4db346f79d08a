//! Log-probabilities of recorded actions: read from each format, written, selected with their rows,
//! and refused where they are impossible.

use std::fs;
use std::ops::ControlFlow::Continue;
use std::path::Path;

use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, Task};
use overtone_data::error::Fault;
use overtone_data::read::{self, columns};
use overtone_data::write::write_columns;
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, Expected, Form, Fragment,
    MinariWriter, ObservationColumn, Recording, WrittenEpisode,
};
use overtone_testkit::dopamine::npy;
use overtone_testkit::{Hdf5File, check_error, sentences};

use crate::own_arrays::{f4, sound, zip};
use crate::robots::{d4rl, minari};
use crate::starter::datasets;
use crate::writing::about;

/// A log-probability that tells rows apart.
fn log_prob(row: usize) -> f32 {
    -0.25 - row as f32 / 8.0
}

fn log_probs(rows: usize) -> Vec<f32> {
    (0..rows).map(log_prob).collect()
}

/// Reads a file, which a check must refuse too.
fn read_checked(path: &Path) -> Result<Columns, DataError> {
    let check = overtone_data::check(path, &Expected::default()).unwrap();
    let log = columns(path);
    assert_eq!(check.inspection.is_ok(), log.is_ok(), "{}", check.report);
    if log.is_err() {
        let with_advice = |finding: &overtone_data::Finding| !finding.advice.is_empty();
        assert!(check.report.findings.iter().any(with_advice), "{}", check.report);
    }
    log
}

#[track_caller]
fn refused(path: &Path) {
    let error = read_checked(path).unwrap_err().to_string();
    sentences::check(&error);
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(error.contains(file) && error.contains("log_probs"), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

pub fn npz(dir: &Path, more: &[(&'static str, Vec<u8>)]) -> std::path::PathBuf {
    let mut files = sound();
    files.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    files.extend_from_slice(more);
    let path = dir.join("own.npz");
    fs::write(&path, zip(&files)).unwrap();
    path
}

#[test]
fn the_clinic_has_them_and_a_written_file_keeps_them() {
    let log = columns(&datasets().join("starter/own/clinic_doctor.npz")).unwrap();
    let all = log.behavior_log_probs.clone().unwrap();
    // NumPy's first and last numbers of the file.
    assert_eq!((all.len(), all[0], all[4459]), (4460, -1.2974789, -0.8194351));
    // Hashes are of what training reads.
    let options = DatasetOptions::default();
    let without = Columns { behavior_log_probs: None, ..log.clone() };
    let data = Dataset::of(log.clone(), &options).unwrap();
    assert_eq!(data.behavior_log_probs(), Some(&all[..]));
    let other = Dataset::of(without.clone(), &options).unwrap();
    assert_eq!((other.behavior_log_probs(), other.content_hash()), (None, data.content_hash()));
    let dir = tempfile::tempdir().unwrap();
    let ObservationColumn::Vectors { width, .. } = log.observations else { panic!() };
    let task = Task::own("clinic", ObservationSpace::Vectors { width }, ActionSpace::numbered(4));
    let written = |log: &Columns, name: &str| {
        let about = about(&task);
        let to = dir.path().join(name);
        let written = write_columns(log, None, &to, about, &mut |_| Continue(())).unwrap();
        (written.content_hash, read_checked(&to).unwrap().behavior_log_probs)
    };
    let (hash, again) = written(&log, "with.hdf5");
    assert_eq!(again, Some(all));
    assert_eq!(written(&without, "without.hdf5"), (hash, None));
}

#[test]
fn a_file_of_d4rl_has_them() {
    for name in ["infos/action_log_probs", "behavior_log_probs"] {
        let (_dir, path) = d4rl("..t..l.");
        put(&path, name, &log_probs(7));
        let log = read_checked(&path).unwrap();
        assert_eq!(log.behavior_log_probs, Some(log_probs(7)), "{name}");
        // A density may exceed 1.
        put(&path, name, &[1.5; 7]);
        assert_eq!(read_checked(&path).unwrap().behavior_log_probs, Some(vec![1.5; 7]));
    }
    let (_dir, path) = d4rl("..t..l.");
    assert_eq!(read_checked(&path).unwrap().behavior_log_probs, None);
}

#[test]
fn every_episode_of_minari_must_have_them() {
    let (_dir, path) = minari("..t .l");
    put(&path, "episode_0/infos/action_log_probs", &log_probs(3));
    let log = read_checked(&path).unwrap();
    assert_eq!(log.behavior_log_probs, None);
    let told = "log-probabilities of actions, not read: 1 of 2 episodes have one for each step";
    assert_eq!(log.odd, [told]);
    let check = overtone_data::check(&path, &Expected::default()).unwrap();
    assert!(check.report.to_string().contains(told), "{}", check.report);
    put(&path, "episode_1/infos/behavior_log_probs", &[-3.0, -4.0]);
    let log = read_checked(&path).unwrap();
    let all = [log_probs(3), vec![-3.0, -4.0]].concat();
    assert_eq!((log.behavior_log_probs, log.odd.len()), (Some(all), 0));
    // Minari's own infos have a row more; other shapes are of something else.
    put(&path, "episode_1/infos/behavior_log_probs", &[-3.0, -4.0, -5.0]);
    let log = read_checked(&path).unwrap();
    assert_eq!((log.behavior_log_probs, log.odd.len()), (None, 1));
}

#[test]
fn the_last_row_of_ogbench_has_no_log_prob() {
    let dir = tempfile::tempdir().unwrap();
    // Trajectories of 3 and 2 rows; the last row of each has no action.
    let path = dir.path().join("maze.npz");
    let files = [
        ("observations", f4(&[5, 1], &[0.0; 5])),
        ("actions", npy("|u1", &[5], &[0, 1, 0, 1, 0])),
        ("terminals", npy("|b1", &[5], &[0, 0, 1, 0, 1])),
        ("behavior_log_probs", f4(&[5], &[-0.5, -1.0, f32::NAN, -2.0, f32::NAN])),
    ];
    fs::write(&path, zip(&files)).unwrap();
    let Recording::Columns(log) = read::open_as(&path, &Form::of("ogbench")).unwrap() else {
        panic!()
    };
    assert_eq!(log.behavior_log_probs, Some(vec![-0.5, -1.0, -2.0]));
}

#[test]
fn impossible_arrays_are_refused() {
    // Discrete actions in `.npz`.
    let dir = tempfile::tempdir().unwrap();
    let with =
        |values: &[f32]| npz(dir.path(), &[("behavior_log_probs", f4(&[values.len()], values))]);
    assert_eq!(
        read_checked(&with(&[-0.5, 0.0])).unwrap().behavior_log_probs,
        Some(vec![-0.5, 0.0])
    );
    for values in [
        &[-0.5][..],
        &[-0.5, f32::NAN],
        &[f32::INFINITY, -0.5],
        &[-0.5, f32::NEG_INFINITY],
        &[-0.5, 0.25],
    ] {
        refused(&with(values));
    }
    let several = f4(&[2, 4], &[-1.5; 8]);
    refused(&npz(dir.path(), &[("behavior_log_probs", several)]));
    // Continuous actions in HDF5.
    for name in ["infos/action_log_probs", "behavior_log_probs"] {
        let (_dir, path) = d4rl("..t..l.");
        put(&path, name, &[-0.5; 8]);
        refused(&path);
        // Nothing computes with densities.
        put(&path, name, &[f32::NEG_INFINITY; 7]);
        assert_eq!(read_checked(&path).unwrap().behavior_log_probs.unwrap().len(), 7);
    }
    let (_dir, path) = d4rl("..t..l.");
    put(&path, "infos/action_log_probs", &log_probs(7));
    put(&path, "behavior_log_probs", &log_probs(7));
    refused(&path);
}

/// Episodes of 3, 2 and 2 steps with the returns 6, 9 and 13; the last one is not finished.
fn in_memory() -> Columns {
    let episode = |start, length| Episode { start, length, outcome: Outcome::Truncated };
    let mut columns = Columns::new(
        ObservationColumn::Vectors { width: 1, values: (0..7).map(|row| row as f32).collect() },
        ActionColumn::Discrete { n_actions: 2, values: vec![0, 1, 0, 1, 0, 1, 0] },
        vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        vec![episode(0, 3), episode(3, 2), episode(5, 2)],
    );
    columns.finished[2] = false;
    columns.behavior_log_probs = Some(log_probs(7));
    columns
}

#[test]
fn a_selection_keeps_them_with_their_rows() {
    let rows = |fragment, top_percent| {
        let options = DatasetOptions { fragment, top_percent, ..DatasetOptions::default() };
        let data = Dataset::of(in_memory(), &options).unwrap();
        let kept: Vec<usize> = data.rewards().iter().map(|&reward| reward as usize - 1).collect();
        let expected: Vec<f32> = kept.iter().map(|&row| log_prob(row)).collect();
        assert_eq!(data.behavior_log_probs(), Some(&expected[..]));
        kept
    };
    assert_eq!(rows(Fragment::Keep, 100.0), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(rows(Fragment::Drop, 100.0), [0, 1, 2, 3, 4]);
    assert_eq!(rows(Fragment::Drop, 50.0), [3, 4]);
    // 2 of 7 steps: the best finished episode.
    assert_eq!(rows(Fragment::Keep, 30.0), [3, 4]);
}

#[test]
fn columns_in_memory_are_checked() {
    let refused = |change: &dyn Fn(&mut Vec<f32>)| {
        let mut columns = in_memory();
        change(columns.behavior_log_probs.as_mut().unwrap());
        columns.check().unwrap_err()
    };
    in_memory().check().unwrap();
    let error = refused(&|all| all.truncate(6));
    check_error!(error, DataError::At { fault: Fault::DatasetLength { got: 6, .. }, .. });
    let error = refused(&|all| all[4] = 0.5);
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 4, .. }, .. });
    let error = refused(&|all| all[6] = f32::NAN);
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 6, .. }, .. });
    // A writer refuses an episode whose log-probabilities are not one for each step.
    let dir = tempfile::tempdir().unwrap();
    let task = Task::own("tiny", ObservationSpace::Vectors { width: 1 }, ActionSpace::numbered(2));
    let about = about(&task);
    let mut writer = MinariWriter::create(&dir.path().join("tiny.hdf5"), about).unwrap();
    let episode = WrittenEpisode {
        observations: ObservationColumn::Vectors { width: 1, values: vec![0.0; 3] },
        actions: ActionColumn::Discrete { n_actions: 2, values: vec![0, 1] },
        rewards: vec![0.0; 2],
        behavior_log_probs: Some(vec![-0.5]),
        optional: Default::default(),
        outcome: Some(Outcome::Terminated),
        seed: None,
    };
    let error = writer.episode(&episode).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::Inconsistent(_), .. });
}

pub fn put(path: &Path, name: &str, values: &[f32]) {
    let file = Hdf5File::edit(path);
    match name.rsplit_once('/') {
        Some((group, name)) => file.group(group).put(name, values, 0),
        None => file.put(name, values, 0),
    }
}
