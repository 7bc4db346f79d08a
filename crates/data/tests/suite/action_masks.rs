//! Masks of actions: read from each format, in hashes, mixtures and batches, written, and refused
//! where they do not fit the recorded actions.

use std::ops::ControlFlow::Continue;
use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::write::write_columns;
use overtone_data::{
    ActionMasks, Batch, BatchOptions, Columns, DataError, Dataset, DatasetOptions, Expected,
    Lookahead, Sampling, Subset, check,
};
use overtone_testkit::{Hdf5File, check_error};

use crate::log_probs::npz;
use crate::own_arrays::f4;
use crate::robots::{d4rl, minari, replace};
use crate::writing::about;

/// The columns of a small file with these arrays more. Its actions are 0 and 3, in one episode.
fn with(arrays: &[(&'static str, &[usize], &[f32])]) -> Result<Columns, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let arrays: Vec<_> =
        arrays.iter().map(|&(name, shape, flags)| (name, f4(shape, flags))).collect();
    columns(&npz(folder.path(), &arrays))
}

const ONE: [f32; 8] = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];

fn masked(flags: &[f32]) -> Result<Columns, DataError> {
    with(&[("action_mask", &[2, flags.len() / 2], flags)])
}

fn data(columns: &Columns) -> Dataset {
    Dataset::of(columns.clone(), &DatasetOptions::default()).unwrap()
}

fn allowed(flags: &[f32]) -> Vec<bool> {
    flags.iter().map(|&flag| flag == 1.0).collect()
}

#[test]
fn a_file_has_them_under_two_names() {
    let columns = masked(&ONE).unwrap();
    let masks = ActionMasks { n_actions: 4, allowed: allowed(&ONE) };
    assert_eq!(columns.optional.action_masks, Some(masks.clone()));
    let other = with(&[("admissible_actions", &[2, 4], &ONE)]).unwrap();
    assert_eq!(other.optional, columns.optional);
    let (masked_data, plain) = (data(&columns), data(&with(&[]).unwrap()));
    assert_ne!(masked_data.content_hash(), plain.content_hash());
    assert_eq!(masked_data.allowed_at(1), Some(&masks.allowed[4..]));
    assert!(!plain.has_action_masks() && plain.allowed_at(1).is_none());
    // Not every action need have been chosen.
    let wider = masked(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]).unwrap();
    assert_eq!(wider.actions.size(), 5);
}

#[test]
fn a_row_of_zeros_at_an_episodes_end_is_unused() {
    let columns = masked(&[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
    assert_eq!(data(&columns).allowed_at(1), None);
    let error = masked(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 0, .. }, .. });
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let error = masked(&[1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 1, .. }, .. });
    let error = masked(&[1.0, 0.5, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 0, .. }, .. });
    let error = masked(&[1.0; 6]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::Inconsistent(_), .. });
    let error = with(&[("action_mask", &[2], &[1.0, 1.0])]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetShape { .. }, .. });
    let error = with(&[("action_mask", &[3, 4], &[1.0; 12])]).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetLength { .. }, .. });
    let both: [(_, &[usize], &[f32]); 2] =
        [("action_mask", &[2, 4], &ONE), ("admissible_actions", &[2, 4], &ONE)];
    check_error!(with(&both).unwrap_err(), DataError::At { fault: Fault::Inconsistent(_), .. });
    // Continuous actions.
    let (_dir, path) = d4rl(".t");
    replace(&path, "action_mask", &[1.0f32; 8], 4);
    let error = columns(&path).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::Inconsistent(_), .. });
}

/// Every action is allowed in a recording without masks.
#[test]
fn a_mixture_has_the_masks_of_its_parts() {
    let parts = vec![with(&[]).unwrap(), masked(&ONE).unwrap()];
    let both = data(&Columns::concat(parts, &[]).unwrap());
    let rows: Vec<&[bool]> = (0..4).map(|row| both.allowed_at(row).unwrap()).collect();
    let of_masked = allowed(&ONE);
    let (ones, masked) = ([true; 4], [&of_masked[..4], &of_masked[4..]]);
    let expected = [&ones[..], &ones[..]];
    assert!(rows == [expected, masked].concat() || rows == [masked, expected].concat(), "{rows:?}");
}

#[test]
fn batches_have_the_masks_of_their_steps() {
    let data = data(&masked(&ONE).unwrap());
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 2, 1).unwrap();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(&data, &mut sampler, 8, &options).unwrap();
    let [first, last] = [allowed(&ONE[..4]), allowed(&ONE[4..])];
    let all = vec![true; 4];
    let next = &batch.transitions.as_ref().unwrap().next_allowed_actions;
    for (at, &row) in batch.last_indices.iter().enumerate() {
        // A window that ends in the first row is padded; no row follows the last one.
        let (here, later) = match row {
            0 => ([&all[..], &first].concat(), [&all[..], &last].concat()),
            _ => ([&first[..], &last].concat(), [&last[..], &all].concat()),
        };
        assert_eq!(batch.allowed_actions[at * 8..][..8], here);
        assert_eq!(next[at * 8..][..8], later);
    }
}

#[test]
fn written_masks_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let log = masked(&ONE).unwrap();
    let width = log.observations.width();
    let task = Task::own("written", ObservationSpace::Vectors { width }, ActionSpace::numbered(4));
    let to = folder.path().join("masked.hdf5");
    write_columns(&log, None, &to, about(&task), &mut |_| Continue(())).unwrap();
    assert_eq!(columns(&to).unwrap().optional, log.optional);
}

fn put(path: &Path, group: &str, mask: &[f32]) {
    Hdf5File::edit(path).group(group).put("action_mask", mask, 3);
}

/// Minari's own infos have one row more, for the observation after the last action.
#[test]
fn a_file_of_minari_has_them_in_its_infos() {
    let (_dir, path) = minari(".t .t");
    for episode in 0..2 {
        replace(&path, &format!("episode_{episode}/actions"), &[0i64, 1], 0);
    }
    put(&path, "episode_1/infos", &[1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    let data = Dataset::of(columns(&path).unwrap(), &DatasetOptions::default()).unwrap();
    assert_eq!(data.actions().size(), 3);
    let rows: Vec<Option<&[bool]>> = (0..4).map(|row| data.allowed_at(row)).collect();
    let ones = Some(&[true; 3][..]);
    let masked = [Some(&[true, false, true][..]), Some(&[false, true, true][..])];
    assert_eq!(rows, [[ones, ones], masked].concat());
    put(&path, "episode_1/infos", &[1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    let error = columns(&path).unwrap_err();
    check_error!(error, DataError::At { fault: Fault::DatasetValue { row: 1, .. }, .. });
    assert!(check(&path, &Expected::default()).unwrap().inspection.is_err());
}
