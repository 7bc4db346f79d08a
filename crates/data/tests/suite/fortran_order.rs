//! Arrays in Fortran order read as the same arrays in C order, to the bit.

use std::fs;

use overtone_data::{Columns, Expected, check, read};
use overtone_testkit::dopamine::{npy, npy_with_dict};

use crate::own_arrays::zip;

const ROWS: usize = 5;

/// An array of whole numbers from 0 on in C order, or of the same numbers in Fortran order.
fn array(
    descr: &str,
    shape: &[usize],
    in_fortran_order: bool,
    bytes: fn(u8) -> Vec<u8>,
) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let c_order: Vec<u8> = (0..count as u8).collect();
    if !in_fortran_order {
        return npy(descr, shape, &c_order.into_iter().flat_map(bytes).collect::<Vec<_>>());
    }
    // The k-th element in Fortran order: its indices, the first one changing fastest.
    let element = |k: usize| {
        let (mut rest, mut position) = (k, 0);
        for (axis, &length) in shape.iter().enumerate() {
            let stride: usize = shape[axis + 1..].iter().product();
            position += rest % length * stride;
            rest /= length;
        }
        c_order[position]
    };
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let dict =
        format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': ({},), }}", axes.join(", "));
    npy_with_dict(&dict, &(0..count).map(element).flat_map(bytes).collect::<Vec<_>>())
}

/// The recording with these observations and actions.
fn recording(observations: Vec<u8>, actions: Vec<u8>) -> Columns {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    let rewards: Vec<u8> = (0..ROWS).flat_map(|row| (row as f32).to_le_bytes()).collect();
    let files = [
        ("observations", observations),
        ("actions", actions),
        ("rewards", npy("<f4", &[ROWS], &rewards)),
        ("terminals", npy("|b1", &[ROWS], &[0, 0, 0, 0, 1])),
        ("timeouts", npy("|b1", &[ROWS], &[0; ROWS])),
    ];
    fs::write(&path, zip(&files)).unwrap();
    assert!(check(&path, &Expected::default()).unwrap().inspection.is_ok());
    Columns { path: "own.npz".into(), ..read::columns(&path).unwrap() }
}

#[track_caller]
fn reads_alike(descr: &str, shape: &[usize], bytes: fn(u8) -> Vec<u8>) {
    let both = [false, true].map(|in_fortran_order| {
        let actions = array("<f8", &[ROWS, 2], in_fortran_order, |x| {
            (f64::from(x) / 7.0).to_le_bytes().to_vec()
        });
        recording(array(descr, shape, in_fortran_order, bytes), actions)
    });
    assert_eq!(both[0], both[1], "{descr} {shape:?}");
}

#[test]
fn every_type_and_rank_reads_as_in_c_order() {
    reads_alike("<f4", &[ROWS, 3], |x| (f32::from(x) * 0.1).to_le_bytes().to_vec());
    reads_alike(">f8", &[ROWS, 3, 2], |x| (f64::from(x) * 0.1).to_be_bytes().to_vec());
    reads_alike("<f2", &[ROWS, 2, 1, 3], |x| vec![x, 0x3c]);
    reads_alike("<i8", &[ROWS, 4], |x| i64::from(x).to_le_bytes().to_vec());
    reads_alike("<u2", &[ROWS, 4], |x| u16::from(x).to_le_bytes().to_vec());
    reads_alike("|b1", &[ROWS, 6], |x| vec![u8::from(x % 3 == 0)]);
    reads_alike("|i1", &[ROWS, 6], |x| vec![x]);
    // Pictures: rows of bytes with axes.
    reads_alike("|u1", &[ROWS, 4, 6], |x| vec![x]);
    reads_alike("|u1", &[ROWS, 2, 5, 3], |x| vec![x]);
}
