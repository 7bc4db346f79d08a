//! Optional arrays (masks and weights): read from each format, in hashes and mixtures, written, and
//! refused where they are impossible.

use std::ops::ControlFlow::Continue;

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::write::write_columns;
use overtone_data::{
    Batch, BatchOptions, Columns, DataError, Dataset, DatasetOptions, Expected, Fragment, Sampling,
    Subset, check,
};
use overtone_testkit::{check_error, sentences};

use crate::log_probs::{npz, put};
use crate::own_arrays::f4;
use crate::robots::{d4rl, minari};
use crate::writing::about;

/// The columns of a small file with one more array.
fn with(name: &'static str, array: Vec<u8>) -> Result<Columns, DataError> {
    let folder = tempfile::tempdir().unwrap();
    columns(&npz(folder.path(), &[(name, array)]))
}

fn data(columns: &Columns) -> Dataset {
    Dataset::of(columns.clone(), &DatasetOptions::default()).unwrap()
}

/// The columns of the small file without such arrays, and its number of rows.
fn plain() -> (Columns, usize) {
    let folder = tempfile::tempdir().unwrap();
    let plain = columns(&npz(folder.path(), &[])).unwrap();
    let rows = plain.rewards.len();
    (plain, rows)
}

/// `[rows]` ones, but `number` in row 1.
fn ones_but(number: f32, rows: usize) -> Vec<f32> {
    (0..rows).map(|row| if row == 1 { number } else { 1.0 }).collect()
}

#[test]
fn ones_change_nothing() {
    let (plain, rows) = plain();
    for name in ["masks", "weights"] {
        let ones = with(name, f4(&[rows, 1], &vec![1.0; rows])).unwrap();
        assert_eq!(ones.optional, plain.optional);
        assert_eq!(data(&ones).content_hash(), data(&plain).content_hash());
        let zero = with(name, f4(&[rows], &ones_but(0.0, rows))).unwrap();
        assert_ne!(data(&zero).content_hash(), data(&plain).content_hash());
    }
}

/// A recording without masks stops nowhere, and the weights of one without are 1.
#[test]
fn mixtures_have_the_arrays_of_their_parts() {
    let (plain, rows) = plain();
    let stopped = with("masks", f4(&[rows], &ones_but(0.0, rows))).unwrap();
    assert_eq!((0..rows).position(|row| data(&stopped).stops_at(row)), Some(1));
    let both = Columns::concat(vec![plain.clone(), stopped], &[]).unwrap();
    let expected: Vec<bool> = (0..2 * rows).map(|row| row == rows + 1).collect();
    assert_eq!(both.optional.stops, Some(expected));

    let weighted = with("weights", f4(&[rows], &ones_but(2.5, rows))).unwrap();
    let parts = [plain, weighted.clone()];
    let both = Columns::concat(parts.to_vec(), &[]).unwrap().optional.weights.unwrap();
    let turned: Vec<f32> = both.iter().copied().cycle().skip(rows).take(2 * rows).collect();
    let expected = [vec![1.0; rows], ones_but(2.5, rows)].concat();
    assert!(both == expected || turned == expected, "{both:?}");
    assert_eq!(data(&weighted).step_weights(), weighted.optional.weights.as_deref());
}

#[test]
fn batches_have_the_weights_of_their_steps() {
    let (plain, rows) = plain();
    let weights: Vec<f32> = (0..rows).map(|row| row as f32 / 4.0).collect();
    let mut weighted = plain.clone();
    weighted.optional.weights = Some(weights.clone());
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    for (columns, is_weighted) in [(plain, false), (weighted, true)] {
        let data = Dataset::of(columns, &options).unwrap();
        let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 2, 1).unwrap();
        let mut batch = Batch::default();
        batch.fill(&data, &mut sampler, 8, &BatchOptions::default()).unwrap();
        if !is_weighted {
            assert!(batch.step_weights.is_empty());
            continue;
        }
        for (window, &last) in batch.step_weights.chunks(2).zip(&batch.last_indices) {
            assert_eq!(window[1], weights[last as usize]);
        }
    }
}

/// Whoever inspects a file sees which of its arrays are read, and what they hold.
#[test]
fn an_inspection_names_them() {
    let (_, rows) = plain();
    let folder = tempfile::tempdir().unwrap();
    let shown = |arrays: &[(&'static str, Vec<u8>)]| {
        let inspection =
            check(&npz(folder.path(), arrays), &Expected::default()).unwrap().inspection;
        inspection.unwrap().to_string()
    };
    assert!(!shown(&[]).contains("weights"));
    let text = shown(&[
        ("masks", f4(&[rows], &ones_but(0.0, rows))),
        ("weights", f4(&[rows], &ones_but(0.0, rows))),
        ("action_mask", f4(&[rows, 5], &vec![1.0; 5 * rows])),
    ]);
    for (name, words) in [
        ("masks", "0 at 1 step: values stop there"),
        ("weights", "mean 0.5000 ± 0.5000 (std), min 0.0000, max 1.0000"),
        ("action_mask", "5.0 of 5 actions allowed on average"),
    ] {
        let line = format!("{name:<14} {words}");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn impossible_arrays_are_refused() {
    let (_, rows) = plain();
    for (name, number) in
        [("masks", 0.5), ("weights", -0.5), ("weights", f32::NAN), ("weights", f32::INFINITY)]
    {
        let error = with(name, f4(&[rows], &ones_but(number, rows))).unwrap_err();
        check_error!(&error, DataError::At { fault: Fault::DatasetValue { row: 1, .. }, .. });
    }
    for name in ["masks", "weights"] {
        let error = with(name, f4(&[1], &[1.0; 1])).unwrap_err();
        check_error!(&error, DataError::At { fault: Fault::DatasetLength { .. }, .. });
    }
    let zeros = with("weights", f4(&[rows], &vec![0.0; rows])).unwrap();
    let error = Dataset::of(zeros, &DatasetOptions::default()).unwrap_err();
    check_error!(&error, DataError::At { fault: Fault::NothingSelected(_), .. });
    let (mut columns, _) = plain();
    columns.optional.weights = Some(ones_but(f32::NAN, rows));
    check_error!(
        columns.check().unwrap_err(),
        DataError::At { fault: Fault::DatasetValue { .. }, .. }
    );
    columns.optional.weights = Some(vec![1.0]);
    check_error!(columns.check().unwrap_err(), DataError::At { fault: Fault::Inconsistent(_), .. });
}

#[test]
fn written_arrays_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut columns_, rows) = plain();
    columns_.optional.stops = Some((0..rows).map(|row| row == 1).collect());
    columns_.optional.weights = Some(ones_but(2.5, rows));
    let width = columns_.observations.width();
    let task = Task::own("written", ObservationSpace::Vectors { width }, ActionSpace::numbered(4));
    let written = |log: &Columns, name: &str| {
        let to = folder.path().join(name);
        let written = write_columns(log, None, &to, about(&task), &mut |_| Continue(())).unwrap();
        (written.content_hash, columns(&to).unwrap().optional)
    };
    let (hash, optional) = written(&columns_, "with.hdf5");
    assert_eq!(optional, columns_.optional);
    columns_.optional.weights = None;
    assert_ne!(written(&columns_, "without.hdf5").0, hash);
}

#[test]
fn a_file_of_d4rl_has_them() {
    let (_dir, path) = d4rl("..t..l.");
    let mut masks = [1.0; 7];
    put(&path, "masks", &masks);
    assert_eq!(columns(&path).unwrap().optional.stops, None);
    masks[4] = 0.0;
    put(&path, "masks", &masks);
    put(&path, "weights", &[0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
    let optional = columns(&path).unwrap().optional;
    assert_eq!(optional.stops.unwrap(), [false, false, false, false, true, false, false]);
    assert_eq!(optional.weights.unwrap(), [0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
    let report = check(&path, &Expected::default()).unwrap().report;
    assert!(report.findings.iter().all(|finding| finding.code != "not-read"), "{report}");
    masks[4] = 2.0;
    put(&path, "masks", &masks);
    let error = columns(&path).unwrap_err();
    assert!(matches!(&error, DataError::At { fault: Fault::DatasetValue { row: 4, .. }, .. }));
    assert!(check(&path, &Expected::default()).unwrap().inspection.is_err());
}

/// Minari's `infos` may hold anything: another shape is not read. Its own have one row more.
#[test]
fn a_file_of_minari_has_them_in_its_infos() {
    let (_dir, path) = minari("..t .l");
    put(&path, "episode_1/infos/weights", &[0.0, 2.0]);
    put(&path, "episode_0/infos/masks", &[1.0, 0.0, 1.0]);
    let optional = columns(&path).unwrap().optional;
    assert_eq!(optional.weights.unwrap(), [1.0, 1.0, 1.0, 0.0, 2.0]);
    assert_eq!(optional.stops.unwrap(), [false, true, false, false, false]);
    put(&path, "episode_1/infos/weights", &[0.0, 2.0, 2.0]);
    assert_eq!(columns(&path).unwrap().optional.weights, None);
    let report = check(&path, &Expected::default()).unwrap().report;
    assert!(report.findings.iter().any(|finding| finding.code == "not-read"), "{report}");
    put(&path, "episode_1/infos/weights", &[1.0, -2.0]);
    sentences::check(&columns(&path).unwrap_err().to_string());
    assert!(check(&path, &Expected::default()).unwrap().inspection.is_err());
}
