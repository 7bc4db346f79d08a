//! Golden files: numbers computed by the reference implementations.
//!
//! They are read from the folder named by the environment variable `GOLDEN_DIR`, or from
//! this crate's own `golden/`, so another folder can be checked without changing code.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};

/// Patterns of the files that are checked: prefix and suffix of a name.
pub const PATTERNS: [(&str, &str); 9] = [
    ("dt_atari", "_weights.safetensors"),
    ("dt_gym", "_weights.safetensors"),
    ("fourier_head_", ".safetensors"),
    ("fourier_mle_", ".safetensors"),
    ("gmm_head_", ".safetensors"),
    ("gmm_mle_", ".safetensors"),
    ("smoothness", "_pmfs.safetensors"),
    ("fourier_attention", ".safetensors"),
    ("toy_mlp", "_weights.safetensors"),
];

/// The folder of golden files.
pub fn folder() -> PathBuf {
    env::var_os("GOLDEN_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("golden"), PathBuf::from)
}

/// Files of [`folder`] that match one pattern, in name order. Another folder, named by
/// `GOLDEN_DIR`, may hold some of them only; an absent pattern is reported then.
///
/// # Panics
/// When the folder cannot be read, or when the project's own has no such file.
pub fn files(prefix: &str, suffix: &str) -> Vec<PathBuf> {
    let folder = folder();
    let entries = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("golden folder {}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(prefix) && name.ends_with(suffix)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    if found.is_empty() {
        let absent = format!("absent: no {prefix}*{suffix} in {}", folder.display());
        assert!(env::var_os("GOLDEN_DIR").is_some(), "{absent}");
        println!("{absent}");
    }
    found
}

/// A tensor of a golden file: shape and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f64>,
    /// Whether the file stores it in single precision.
    pub single: bool,
}

impl Array {
    /// A matrix the other way round: PyTorch's linear weights are `[out, in]`.
    ///
    /// # Panics
    /// If it is not a matrix.
    pub fn transposed(&self) -> Self {
        let [rows, columns] = self.shape[..] else { panic!("no matrix: {:?}", self.shape) };
        let values = (0..columns)
            .flat_map(|column| (0..rows).map(move |row| self.values[row * columns + column]))
            .collect();
        Self { shape: vec![columns, rows], values, single: self.single }
    }

    /// The values in single or double precision.
    pub fn data(&self, dtype: DType) -> TensorData {
        if dtype == DType::F64 {
            TensorData::new(self.values.clone(), self.shape.clone())
        } else {
            let single: Vec<f32> = self.values.iter().map(|&x| x as f32).collect();
            TensorData::new(single, self.shape.clone())
        }
    }

    /// The values as a tensor.
    pub fn tensor<const D: usize>(&self, device: &Device, dtype: DType) -> Tensor<D> {
        Tensor::from_data(self.data(dtype), (device, dtype))
    }

    /// The values as a tensor of integers.
    pub fn ints<const D: usize>(&self, device: &Device) -> Tensor<D, Int> {
        let ints: Vec<i32> = self.values.iter().map(|&x| x as i32).collect();
        Tensor::from_data(TensorData::new(ints, self.shape.clone()), device)
    }
}

/// The tensors of one golden safetensors file.
#[derive(Clone, Debug)]
pub struct Golden {
    path: PathBuf,
    arrays: BTreeMap<String, Array>,
}

impl Golden {
    /// Reads a file.
    ///
    /// # Panics
    /// When it cannot be read, or holds a type that is not a number.
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let tensors = SafeTensors::deserialize(&bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let arrays = tensors
            .tensors()
            .into_iter()
            .map(|(name, view)| {
                let data = view.data();
                let values = match view.dtype() {
                    Dtype::F64 => numbers(data, f64::from_le_bytes),
                    Dtype::F32 => numbers(data, |bytes| f32::from_le_bytes(bytes).into()),
                    Dtype::I64 => numbers(data, |bytes| i64::from_le_bytes(bytes) as f64),
                    Dtype::I32 => numbers(data, |bytes| i32::from_le_bytes(bytes).into()),
                    Dtype::U16 => numbers(data, |bytes| u16::from_le_bytes(bytes).into()),
                    Dtype::U8 => numbers(data, |bytes| u8::from_le_bytes(bytes).into()),
                    other => panic!("{}: `{name}` has type {other:?}", path.display()),
                };
                let single = view.dtype() == Dtype::F32;
                (name, Array { shape: view.shape().to_vec(), values, single })
            })
            .collect();
        Self { path: path.to_owned(), arrays }
    }

    /// A tensor that must be there.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn get(&self, name: &str) -> &Array {
        self.arrays
            .get(name)
            .unwrap_or_else(|| panic!("{}: no tensor `{name}`", self.path.display()))
    }

    /// A tensor that may be there.
    pub fn try_get(&self, name: &str) -> Option<&Array> {
        self.arrays.get(name)
    }

    /// The only value of a tensor.
    ///
    /// # Panics
    /// If the tensor does not exist.
    #[track_caller]
    pub fn scalar(&self, name: &str) -> f64 {
        self.get(name).values[0]
    }

    /// Names and tensors, in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Array)> {
        self.arrays.iter().map(|(name, array)| (name.as_str(), array))
    }
}

fn numbers<const N: usize>(data: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    data.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)).collect()
}
