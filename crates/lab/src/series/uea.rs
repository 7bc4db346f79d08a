//! Files of the UEA archive of time series (`.ts`): a series a line, dimensions apart by colons,
//! values by commas, the class last.

use std::path::Path;

use crate::classifier::{Sequences, Split};
use crate::data_file::{DataFileError, number, read_lines};

/// One series of each line: `[dimension][step]`, and its class.
type Line = (Vec<Vec<f32>>, String);

fn parse(line: &str) -> Result<Option<Line>, String> {
    if line.starts_with(['#', '@']) || line.trim().is_empty() {
        return Ok(None);
    }
    let (dimensions, class) = line.rsplit_once(':').ok_or("no class after a colon")?;
    let dimensions = dimensions.split(':');
    let dimensions: Vec<Vec<f32>> =
        dimensions.map(|one| one.split(',').map(number).collect()).collect::<Result<_, _>>()?;
    if dimensions.iter().any(|one| one.len() != dimensions[0].len()) {
        return Err("dimensions of unequal length".into());
    }
    Ok(Some((dimensions, class.trim().to_owned())))
}

/// Reads `NAME_TRAIN.ts` and `NAME_TEST.ts`, and standardizes both by the former.
///
/// # Errors
/// When a file cannot be read or is not of this format.
pub fn read(folder: &Path, name: &str) -> Result<Split, DataFileError> {
    let paths = ["TRAIN", "TEST"].map(|part| folder.join(format!("{name}_{part}.ts")));
    let [train, test] = [read_lines(&paths[0], parse)?, read_lines(&paths[1], parse)?];
    let mut classes: Vec<&String> = train.iter().map(|(_, class)| class).collect();
    classes.sort();
    classes.dedup();
    let width = train[0].0.len();
    let time = train.iter().chain(&test).map(|(series, _)| series[0].len()).max().unwrap_or(0);
    let sequences = |lines: &[Line], path: &Path| {
        let mut all = Sequences { values: vec![], lengths: vec![], classes: vec![], time, width };
        let refused = |reason| Err(DataFileError::Content { path: path.to_owned(), reason });
        for (i, (series, class)) in lines.iter().enumerate() {
            let Ok(class) = classes.binary_search(&class) else {
                return refused(format!("no training series is of series {i}'s class, {class}"));
            };
            if series.len() != width {
                return refused(format!("series {i} has {} dimensions, not {width}", series.len()));
            }
            for t in 0..time {
                all.values.extend(series.iter().map(|one| one.get(t).copied().unwrap_or(0.0)));
            }
            all.lengths.push(series[0].len());
            all.classes.push(class);
        }
        Ok(all)
    };
    let (mut train, mut test) = (sequences(&train, &paths[0])?, sequences(&test, &paths[1])?);
    let raw = train.clone();
    train.standardize(&raw);
    test.standardize(&raw);
    Ok(Split { train, test, n_classes: classes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Split {
        let datasets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/lab");
        read(&datasets, name).unwrap()
    }

    #[test]
    fn the_shipped_files_are_as_their_description_says() {
        let vowels = shipped("JapaneseVowels");
        assert_eq!((vowels.train.lengths.len(), vowels.test.lengths.len()), (270, 370));
        assert_eq!((vowels.train.time, vowels.train.width, vowels.n_classes), (29, 12, 9));
        assert_eq!(vowels.train.lengths[..2], [20, 26]);
        assert_eq!(vowels.test.lengths.iter().min(), Some(&7));
        for class in 0..9 {
            assert_eq!(vowels.train.classes.iter().filter(|c| **c == class).count(), 30);
        }
        // Speaker 3 has 88 utterances in the test set.
        assert_eq!(vowels.test.classes.iter().filter(|class| **class == 2).count(), 88);

        let motions = shipped("BasicMotions");
        assert_eq!((motions.train.lengths.len(), motions.test.lengths.len()), (40, 40));
        assert_eq!((motions.train.time, motions.train.width, motions.n_classes), (100, 6, 4));
    }

    #[test]
    fn values_are_standardized_by_the_training_set() {
        let vowels = shipped("JapaneseVowels");
        let real = |data: &Sequences| -> overtone_eval::Pooled {
            let rows = data.values.chunks_exact(29 * 12).zip(&data.lengths);
            rows.flat_map(|(row, &length)| {
                row[..length * 12].iter().step_by(12).map(|value| f64::from(*value))
            })
            .collect()
        };
        let train = real(&vowels.train);
        assert!(train.mean.abs() < 1e-5 && (train.sd().unwrap() - 1.0).abs() < 1e-5, "{train:?}");
        // The first value of the file is 1.860936, its first dimension's largest but a few.
        assert!(vowels.train.values[0] > 1.0, "{}", vowels.train.values[0]);
    }

    #[test]
    fn other_lines_are_refused() {
        for (line, part) in [("1,2", "colon"), ("1,2:3:a", "unequal"), ("1,x:2,3:a", "`x`")] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(parse("# text"), Ok(None));
        assert_eq!(parse("1,2:3,4:b").unwrap().unwrap().0, [[1.0, 2.0], [3.0, 4.0]]);
    }
}
