//! [`read_array`]: the numbers of a `.npy` file.

use std::fs;
use std::path::Path;

use super::element::Element;
use super::fortran::Positions;
use crate::error::{DataError, Fault};
use crate::read::npy::Header;

/// The shape of the array in a `.npy` file, and its numbers in C order.
///
/// # Errors
/// When the file is missing, damaged, or does not hold numbers.
pub fn read_array(path: &Path) -> Result<(Vec<usize>, Vec<f64>), DataError> {
    let bytes = fs::read(path).map_err(DataError::open(path, "name an array of numpy.save"))?;
    let wrong = |reason: String| Fault::Npy(reason).at(path);
    let mut rest = &bytes[..];
    let mut take = |n: usize| {
        let (taken, after) = rest.split_at_checked(n).ok_or_else(|| wrong("it is cut".into()))?;
        rest = after;
        Ok(taken.to_vec())
    };
    let header = Header::read(&mut take, &wrong, (path, "the array"))?;
    let Header { descr, shape, fortran_order } = header;
    let Some(element) = Element::of(&descr) else {
        return Err(wrong(format!("elements of type {descr}, expected numbers")));
    };
    let count = shape.iter().try_fold(1usize, |all, &axis| all.checked_mul(axis));
    let Some(count) = count.filter(|n| n.checked_mul(element.size) == Some(rest.len())) else {
        return Err(wrong(format!("{} bytes of elements, expected shape {shape:?}", rest.len())));
    };
    let numbers =
        rest.chunks_exact(element.size).map(|bytes| element.double(element.low_first(bytes)));
    if !(fortran_order && shape.len() > 1) {
        return Ok((shape, numbers.collect()));
    }
    let mut all = vec![0.0; count];
    Positions::of(&shape).zip(numbers).for_each(|(at, number)| all[at] = number);
    Ok((shape, all))
}

#[cfg(test)]
mod tests {
    use overtone_testkit::dopamine::npy_with_dict;
    use tempfile::TempDir;

    use super::*;

    fn read(header: &str, elements: &[u8]) -> Result<(Vec<usize>, Vec<f64>), DataError> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("array.npy");
        fs::write(&path, npy_with_dict(header, elements)).unwrap();
        read_array(&path)
    }

    #[test]
    fn numbers_are_read_in_either_order() {
        let bytes: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        for (order, expected) in [("False", [1.0, 2.0, 3.0, 4.0]), ("True", [1.0, 3.0, 2.0, 4.0])] {
            let header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': (2, 2), }}");
            assert_eq!(read(&header, &bytes).unwrap(), (vec![2, 2], expected.to_vec()));
        }
        let doubles: Vec<u8> = [0.5f64, -1.5].iter().flat_map(|x| x.to_be_bytes()).collect();
        let header = "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(read(header, &doubles).unwrap(), (vec![2], vec![0.5, -1.5]));
    }

    #[test]
    fn damaged_arrays_are_refused() {
        let header = |descr: &str, shape: &str| {
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
        };
        for (header, n) in [
            (header("<f4", "(3,)"), 8),
            (header("<U4", "(3,)"), 48),
            (header("<f4", "(18446744073709551615, 4)"), 8),
            ("not a header".to_owned(), 8),
        ] {
            let error = read(&header, &vec![0; n]).unwrap_err();
            assert!(matches!(error, DataError::At { .. }), "{error}");
        }
        assert!(matches!(read_array(Path::new("none.npy")), Err(DataError::Missing { .. })));
    }
}
