//! Arrays in Fortran order, whose first axis changes fastest: what `numpy.asfortranarray` and
//! pandas' `to_numpy` give.

use crate::error::DataError;
use crate::read::source::EachStream;

/// Gives all bytes of an array to a function, piece by piece.
type Pass<'a> = dyn Fn(&mut dyn FnMut(&[u8])) -> Result<(), DataError> + 'a;

/// The positions in C order of an array's elements, which are stored in Fortran order.
pub(super) struct Positions {
    shape: Vec<usize>,
    /// How far a step along each axis leads.
    strides: Vec<usize>,
    index: Vec<usize>,
    position: usize,
}

impl Positions {
    /// Of an array of this shape.
    pub fn of(shape: &[usize]) -> Self {
        let mut strides = vec![1usize; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
        }
        Self { shape: shape.to_vec(), strides, index: vec![0; shape.len()], position: 0 }
    }
}

impl Iterator for Positions {
    type Item = usize;

    /// After the last element the first follows.
    fn next(&mut self) -> Option<usize> {
        let position = self.position;
        for axis in 0..self.shape.len() {
            self.index[axis] += 1;
            self.position += self.strides[axis];
            if self.index[axis] < self.shape[axis] {
                break;
            }
            self.position -= self.strides[axis] * self.index[axis];
            self.index[axis] = 0;
        }
        Some(position)
    }
}

/// Gives each row of an array of bytes to `each`. At most `at_once` bytes of rows are held at a
/// time, or one row: each such part takes a pass over the array.
pub(super) fn rows(
    pass: &Pass<'_>,
    shape: &[usize],
    at_once: usize,
    each: &mut EachStream<'_>,
) -> Result<(), DataError> {
    let [n_rows, axes @ ..] = shape else { return Ok(()) };
    let size: usize = axes.iter().product();
    let n_held = at_once.checked_div(size).unwrap_or(0).clamp(1, (*n_rows).max(1));
    let mut held = vec![0; n_held * size];
    for first in (0..*n_rows).step_by(n_held) {
        let part = first * size..(first + n_held).min(*n_rows) * size;
        let mut positions = Positions::of(shape);
        pass(&mut |bytes| {
            for (&byte, position) in bytes.iter().zip(&mut positions) {
                if part.contains(&position) {
                    held[position - part.start] = byte;
                }
            }
        })?;
        for (at, row) in held[..part.len()].chunks_exact(size.max(1)).enumerate() {
            each(first + at, row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes 0, 1, 2, … of an array in C order, as Fortran order stores them.
    fn stored(shape: &[usize]) -> Vec<u8> {
        let count = shape.iter().product();
        Positions::of(shape).take(count).map(|position| position as u8).collect()
    }

    #[test]
    fn positions_by_hand() {
        assert_eq!(stored(&[2, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(stored(&[2, 1, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(stored(&[2, 2, 2]), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert!(stored(&[3, 0]).is_empty());
    }

    /// Each part holds 7 bytes or one row, and pieces do not end where rows do.
    #[test]
    fn parts_give_the_rows_in_order() {
        for shape in [[5, 3, 2], [7, 1, 2], [4, 3, 3], [0, 3, 2], [3, 0, 2]] {
            let (bytes, count) = (stored(&shape), shape.iter().product::<usize>());
            let pass = |each: &mut dyn FnMut(&[u8])| {
                bytes.chunks(4).for_each(each);
                Ok(())
            };
            let mut all = Vec::new();
            let mut push = |row: usize, bytes: &[u8]| {
                assert_eq!(row * bytes.len(), all.len());
                all.extend_from_slice(bytes);
                Ok(())
            };
            rows(&pass, &shape, 7, &mut push).unwrap();
            assert_eq!(all, (0..count as u8).collect::<Vec<_>>(), "{shape:?}");
        }
    }
}
