//! Masks: read from own arrays, in hashes and mixtures, and refused where they mean nothing.

use std::ops::ControlFlow::Continue;

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::write::write_columns;
use overtone_data::{Columns, DataError, Dataset, DatasetOptions, Expected, check};
use overtone_testkit::check_error;

use crate::log_probs::{npz, put};
use crate::own_arrays::f4;
use crate::robots::d4rl;
use crate::writing::about;

/// The columns of a small file with these masks.
fn with(masks: Vec<u8>) -> Result<Columns, DataError> {
    let folder = tempfile::tempdir().unwrap();
    columns(&npz(folder.path(), &[("masks", masks)]))
}

#[test]
fn masks_of_one_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plain = columns(&npz(folder.path(), &[])).unwrap();
    let rows = plain.rewards.len();
    let ones = with(f4(&[rows], &vec![1.0; rows])).unwrap();
    assert_eq!(ones.stops, None);
    let of = |columns: &Columns| Dataset::of(columns.clone(), &DatasetOptions::default()).unwrap();
    let hash = of(&plain).content_hash().to_owned();
    assert_eq!(of(&ones).content_hash(), hash);
    let mut masks = vec![1.0; rows];
    masks[1] = 0.0;
    let stopped = with(f4(&[rows], &masks)).unwrap();
    let data = of(&stopped);
    assert_eq!((0..rows).map(|row| data.stops_at(row)).position(|stops| stops), Some(1));
    assert_ne!(data.content_hash(), hash);
    // A recording without masks stops nowhere.
    let both = Columns::concat(vec![plain, stopped], &[]).unwrap();
    let expected: Vec<bool> = (0..2 * rows).map(|row| row == rows + 1).collect();
    assert_eq!(both.stops, Some(expected));
}

#[test]
fn impossible_masks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows = columns(&npz(folder.path(), &[])).unwrap().rewards.len();
    let mut masks = vec![1.0; rows];
    masks[1] = 0.5;
    let error = with(f4(&[rows], &masks)).unwrap_err();
    assert!(matches!(&error, DataError::At { fault: Fault::DatasetValue { row: 1, .. }, .. }));
    assert!(error.to_string().contains("0.5, expected 0 (the task is solved) or 1"), "{error}");
    let error = with(f4(&[3], &[1.0; 3])).unwrap_err();
    assert!(matches!(&error, DataError::At { fault: Fault::DatasetLength { .. }, .. }), "{error}");
    masks[1] = 0.0;
    let stopped = with(f4(&[rows], &masks)).unwrap();
    let width = stopped.observations.width();
    let task = Task::own("masked", ObservationSpace::Vectors { width }, ActionSpace::numbered(4));
    let about = about(&task);
    let to = folder.path().join("written.hdf5");
    let error = write_columns(&stopped, None, &to, about, &mut |_| Continue(())).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::Inconsistent(_), .. });
}

#[test]
fn a_file_of_d4rl_has_masks() {
    let (_dir, path) = d4rl("..t..l.");
    let mut masks = [1.0; 7];
    put(&path, "masks", &masks);
    assert_eq!(columns(&path).unwrap().stops, None);
    masks[4] = 0.0;
    put(&path, "masks", &masks);
    let stops = columns(&path).unwrap().stops.unwrap();
    assert_eq!(stops, [false, false, false, false, true, false, false]);
    let report = check(&path, &Expected::default()).unwrap().report;
    assert!(report.findings.iter().all(|finding| finding.code != "not-read"), "{report}");
    masks[4] = 2.0;
    put(&path, "masks", &masks);
    let error = columns(&path).unwrap_err();
    assert!(matches!(&error, DataError::At { fault: Fault::DatasetValue { row: 4, .. }, .. }));
    assert!(check(&path, &Expected::default()).unwrap().inspection.is_err());
}
