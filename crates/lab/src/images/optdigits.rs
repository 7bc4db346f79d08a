//! Handwritten digits of 8 × 8 pixels (`optdigits`), cut into patches.

use std::path::Path;

use crate::classifier::{Sequences, Split};
use crate::data_file::{DataFileError, number, read_lines};

/// Pixels of a side.
const SIDE: usize = 8;
/// The brightest pixel.
const BRIGHTEST: f32 = 16.0;
const DIGITS: usize = 10;

/// Pixels from 0 to 1, row by row, and the digit.
fn parse(line: &str) -> Result<Option<(Vec<f32>, usize)>, String> {
    let cells: Vec<&str> = line.split(',').collect();
    let [pixels @ .., digit] = &cells[..] else { return Err("an empty line".into()) };
    if pixels.len() != SIDE * SIDE {
        return Err(format!("{} pixels, not 64", pixels.len()));
    }
    let pixels: Vec<f32> = pixels.iter().map(|cell| number(cell)).collect::<Result<_, _>>()?;
    let digit = digit.trim().parse().ok().filter(|digit| *digit < DIGITS);
    let digit = digit.ok_or("the last number is no digit")?;
    Ok(Some((pixels.iter().map(|pixel| pixel / BRIGHTEST).collect(), digit)))
}

/// Reads `optdigits.tra` and `optdigits.tes`; each image becomes patches of `patch` × `patch`
/// pixels, row by row.
///
/// # Errors
/// When a file cannot be read or is not of this format.
///
/// # Panics
/// When `patch` does not divide 8.
pub fn read(folder: &Path, patch: usize) -> Result<Split, DataFileError> {
    assert!(SIDE.is_multiple_of(patch), "patches of {patch} do not divide a side of {SIDE}");
    let across = SIDE / patch;
    let read = |name: &str| -> Result<Sequences, DataFileError> {
        let images = read_lines(&folder.join(name), parse)?;
        let mut values = Vec::with_capacity(images.len() * SIDE * SIDE);
        for (pixels, _) in &images {
            for place in 0..across * across {
                let (top, left) = (place / across * patch, place % across * patch);
                for row in top..top + patch {
                    values.extend_from_slice(&pixels[row * SIDE + left..][..patch]);
                }
            }
        }
        let time = across * across;
        let classes = images.iter().map(|(_, digit)| *digit).collect();
        Ok(Sequences {
            values,
            lengths: vec![time; images.len()],
            classes,
            time,
            width: patch * patch,
        })
    };
    Ok(Split { train: read("optdigits.tra")?, test: read("optdigits.tes")?, n_classes: DIGITS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_files_are_as_their_description_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/lab");
        let split = read(&folder, 2).unwrap();
        assert_eq!((split.train.classes.len(), split.test.classes.len()), (3823, 1797));
        assert_eq!((split.train.time, split.train.width), (16, 4));
        assert_eq!(split.train.classes[..2], [0, 0]);
        // The first image begins 0,1,6,15,12,1,0,0 / 0,7,16,6,6,10,0,0: its second patch of 2 × 2
        // pixels is 6, 15 / 16, 6.
        let expected = [6.0, 15.0, 16.0, 6.0].map(|pixel: f32| pixel / 16.0);
        assert_eq!(split.train.values[4..8], expected);
        let all = read(&folder, 8).unwrap();
        assert_eq!((all.train.time, all.train.width), (1, 64));
        assert_eq!(all.train.values[8 + 2], 1.0);
    }

    #[test]
    fn other_lines_are_refused() {
        let pixels = "1,".repeat(64);
        for (line, part) in [
            ("1,2".into(), "1 pixels"),
            (format!("{pixels}10"), "digit"),
            (format!("{pixels}x"), "digit"),
        ] {
            let refused = parse(&line).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
