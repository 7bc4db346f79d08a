//! Files of distributions: safetensors, or CSV with one distribution a row.

use std::path::{Path, PathBuf};
use std::{fs, io};

use safetensors::{Dtype, SafeTensors};

/// How far from 1 a distribution's sum may be: thousands of rounded `f32` bins add up.
pub const SUM_TOLERANCE: f64 = 1e-3;

/// A distribution of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Pmf {
    /// `row 3`, `tensor` or `tensor[7]`; counted from 1 in a CSV file (as lines are) and from
    /// 0 in a tensor.
    pub name: String,
    /// Probability of each bin.
    pub probs: Vec<f64>,
}

/// Why a file holds no distributions.
#[derive(Debug, thiserror::Error)]
pub enum PmfFileError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its name ends otherwise.
    #[error("{path}: distributions are read from .safetensors and .csv files")]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged.
    #[error("{path} is no safetensors file")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: safetensors::SafeTensorError,
    },
    /// A tensor of other numbers.
    #[error("{path}: `{name}` holds {dtype:?}; distributions are F32 or F64")]
    Type {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What it holds.
        dtype: Dtype,
    },
    /// A cell that is not a number.
    #[error("{path}: line {line}: `{cell}` is no number")]
    Cell {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The cell.
        cell: String,
    },
    /// Negative numbers, none at all, or another sum.
    #[error("{path}: {name} is no distribution: {why}")]
    NoDistribution {
        /// The file.
        path: PathBuf,
        /// Which one.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing in it.
    #[error("{path} holds no distribution")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads every distribution of a file, tensors by name.
///
/// A tensor's last axis is the bins, whatever the axes before it. A CSV file's first line may
/// be a header; its rows may differ in length.
///
/// # Errors
/// When something in the file is no distribution.
pub fn read(path: &Path) -> Result<Vec<Pmf>, PmfFileError> {
    let file_error = |source| PmfFileError::File { path: path.to_path_buf(), source };
    let pmfs = match path.extension().and_then(|extension| extension.to_str()) {
        Some("safetensors") => of_safetensors(path, &fs::read(path).map_err(file_error)?)?,
        Some("csv") => of_csv(path, &fs::read_to_string(path).map_err(file_error)?)?,
        _ => return Err(PmfFileError::Kind { path: path.to_path_buf() }),
    };
    if pmfs.is_empty() {
        return Err(PmfFileError::Empty { path: path.to_path_buf() });
    }
    for pmf in &pmfs {
        let negative = pmf.probs.iter().find(|p| !(p.is_finite() && **p >= 0.0));
        let sum: f64 = pmf.probs.iter().sum();
        let why = match negative {
            _ if pmf.probs.is_empty() => "it has no bins".to_owned(),
            Some(p) => format!("{p} is no probability"),
            None if (sum - 1.0).abs() > SUM_TOLERANCE => format!("it sums to {sum}"),
            None => continue,
        };
        let (path, name) = (path.to_path_buf(), pmf.name.clone());
        return Err(PmfFileError::NoDistribution { path, name, why });
    }
    Ok(pmfs)
}

fn of_safetensors(path: &Path, bytes: &[u8]) -> Result<Vec<Pmf>, PmfFileError> {
    let tensors = SafeTensors::deserialize(bytes)
        .map_err(|source| PmfFileError::Safetensors { path: path.to_path_buf(), source })?;
    let mut tensors = tensors.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut pmfs = Vec::new();
    for (name, view) in tensors {
        let data = view.data();
        let values: Vec<f64> = match view.dtype() {
            Dtype::F64 => data.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
            Dtype::F32 => {
                data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect()
            }
            dtype => return Err(PmfFileError::Type { path: path.to_path_buf(), name, dtype }),
        };
        match view.shape() {
            [] | [_] => pmfs.push(Pmf { name, probs: values }),
            [.., m] => {
                for (row, probs) in values.chunks(*m.max(&1)).enumerate() {
                    pmfs.push(Pmf { name: format!("{name}[{row}]"), probs: probs.to_vec() });
                }
            }
        }
    }
    Ok(pmfs)
}

fn of_csv(path: &Path, text: &str) -> Result<Vec<Pmf>, PmfFileError> {
    let mut pmfs = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut cells = line.split(',').map(str::trim);
        let numbers: Result<Vec<f64>, &str> =
            cells.clone().map(|cell| cell.parse().map_err(|_| cell)).collect();
        match numbers {
            Ok(probs) => pmfs.push(Pmf { name: format!("row {}", index + 1), probs }),
            // A header: not one number in it.
            Err(_) if index == 0 && cells.all(|cell| cell.parse::<f64>().is_err()) => {}
            Err(cell) => {
                let (path, cell) = (path.to_path_buf(), cell.to_owned());
                return Err(PmfFileError::Cell { path, line: index + 1, cell });
            }
        }
    }
    Ok(pmfs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    /// What is read from a file of this name with these bytes.
    fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Pmf>, PmfFileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[track_caller]
    fn refused(name: &str, bytes: &[u8], part: &str) {
        let error = read_bytes(name, bytes).unwrap_err().to_string();
        assert!(error.contains(part), "no {part:?} in: {error}");
    }

    fn safetensors(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.to_vec(), data).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    #[test]
    fn rows_of_csv_are_distributions() {
        let pmfs = read_bytes("a.csv", b"left,right\n0.25, 0.75\n\n0.5,0.25,0.25\n").unwrap();
        let expected = [("row 2", vec![0.25, 0.75]), ("row 4", vec![0.5, 0.25, 0.25])];
        assert_eq!(pmfs, expected.map(|(name, probs)| Pmf { name: name.into(), probs }));
    }

    #[test]
    fn last_axes_of_tensors_are_distributions() {
        let double: Vec<u8> = [0.125f64, 0.875].iter().flat_map(|x| x.to_le_bytes()).collect();
        let file = safetensors(&[
            ("b", Dtype::F64, &[2], &double),
            ("a", Dtype::F32, &[2, 1, 3], &bytes(&[0.5, 0.25, 0.25, 0.0, 1.0, 0.0])),
        ]);
        let expected = [
            ("a[0]", vec![0.5, 0.25, 0.25]),
            ("a[1]", vec![0.0, 1.0, 0.0]),
            ("b", vec![0.125, 0.875]),
        ];
        let expected = expected.map(|(name, probs)| Pmf { name: name.into(), probs });
        assert_eq!(read_bytes("a.safetensors", &file).unwrap(), expected);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        refused("a.csv", b"", "no distribution");
        refused("a.csv", b"left,right\n", "no distribution");
        refused("a.csv", b"0.5,0.5\n0.5,x\n", "line 2: `x`");
        refused("a.csv", b"0.5,x\n", "line 1: `x`");
        refused("a.csv", b"0.5,0.6\n", "row 1 is no distribution: it sums to 1.1");
        refused("a.csv", b"-0.5,1.5\n", "-0.5 is no probability");
        refused("a.csv", b"NaN,1\n", "NaN is no probability");
        refused("a.csv", b"\xff\xfe", "cannot read");
        refused("a.txt", b"1", ".safetensors and .csv");
        refused("a.safetensors", b"12345678", "is no safetensors file");
        let ints = safetensors(&[("n", Dtype::I32, &[1], &[1, 0, 0, 0])]);
        refused("a.safetensors", &ints, "`n` holds I32");
        let none = safetensors(&[("n", Dtype::F32, &[0], &[])]);
        refused("a.safetensors", &none, "it has no bins");
        assert!(matches!(read(Path::new("absent.csv")), Err(PmfFileError::File { .. })));
    }
}
