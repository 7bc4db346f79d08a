//! [`Tensor`]: a shape and its elements, in row-major order.

use crate::error::{Error, damaged};

/// Largest number of elements of a tensor: 33 million.
const MOST: usize = 1 << 25;

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Whole numbers, and flags as 0 and 1.
    I64(Vec<i64>),
    /// Bytes.
    U8(Vec<u8>),
}

/// A shape and its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The sizes of the axes.
    pub dims: Vec<usize>,
    /// As many elements as the product of `dims`.
    pub data: Data,
}

/// The product of `dims`. The product of any of them is in range too, also next to an empty axis.
///
/// # Errors
/// When it is too large.
pub fn count(dims: &[usize]) -> Result<usize, Error> {
    let product = dims.iter().try_fold(1usize, |product, n| product.checked_mul((*n).max(1)));
    match product {
        Some(n) if n <= MOST => Ok(if dims.contains(&0) { 0 } else { n }),
        _ => Err(damaged(format!("agent.onnx: a tensor of {dims:?} is too large"))),
    }
}

impl Data {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U8(values) => values.len(),
        }
    }
}

/// Runs `$body` with the elements of any type; the result has the same type.
macro_rules! each_type {
    ($data:expr, $values:ident => $body:expr) => {
        match $data {
            Data::F32($values) => Data::F32($body),
            Data::F64($values) => Data::F64($body),
            Data::I64($values) => Data::I64($body),
            Data::U8($values) => Data::U8($body),
        }
    };
}

impl Tensor {
    /// # Errors
    /// When there are not as many elements as the product of `dims`.
    pub fn new(dims: Vec<usize>, data: Data) -> Result<Self, Error> {
        if count(&dims)? != data.len() {
            let n = data.len();
            return Err(damaged(format!("agent.onnx: {n} elements for a tensor of {dims:?}")));
        }
        Ok(Self { dims, data })
    }

    /// Bytes of its elements.
    pub fn size(&self) -> usize {
        match &self.data {
            Data::F32(values) => 4 * values.len(),
            Data::F64(values) => 8 * values.len(),
            Data::I64(values) => 8 * values.len(),
            Data::U8(values) => values.len(),
        }
    }

    /// The 32-bit floats.
    ///
    /// # Errors
    /// When the elements have another type.
    pub fn f32s(&self) -> Result<&[f32], Error> {
        match &self.data {
            Data::F32(values) => Ok(values),
            _ => Err(damaged("agent.onnx: an operation reads another type than 32-bit floats")),
        }
    }

    /// The whole numbers.
    ///
    /// # Errors
    /// When the elements have another type.
    pub fn i64s(&self) -> Result<&[i64], Error> {
        match &self.data {
            Data::I64(values) => Ok(values),
            _ => Err(damaged("agent.onnx: an operation reads another type than whole numbers")),
        }
    }

    /// The axis with this number; negative ones count from the last.
    ///
    /// # Errors
    /// When there is no such axis.
    pub fn axis(&self, axis: i64) -> Result<usize, Error> {
        let n = self.dims.len() as i64;
        let place = if axis < 0 { axis + n } else { axis };
        if (0..n).contains(&place) {
            Ok(place as usize)
        } else {
            Err(damaged(format!("agent.onnx: no axis {axis} in {:?}", self.dims)))
        }
    }

    /// The elements around an axis: products of the axes before it, its size, and after it.
    pub fn around(&self, axis: usize) -> [usize; 3] {
        let product = |dims: &[usize]| dims.iter().product();
        [product(&self.dims[..axis]), self.dims[axis], product(&self.dims[axis + 1..])]
    }

    /// The elements at these places, in another shape.
    ///
    /// # Errors
    /// When a place does not exist.
    pub fn picked(&self, dims: Vec<usize>, places: &[usize]) -> Result<Self, Error> {
        let n = self.data.len();
        if places.iter().any(|&place| place >= n) {
            return Err(damaged("agent.onnx: an index is out of range"));
        }
        let data = each_type!(&self.data, values => places.iter().map(|&at| values[at]).collect());
        Self::new(dims, data)
    }
}

/// The common shape of two tensors, whose axes have the same size or the size 1.
///
/// # Errors
/// When there is none.
pub fn common(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Error> {
    let n = a.len().max(b.len());
    let size = |dims: &[usize], axis: usize| match (axis + dims.len()).checked_sub(n) {
        Some(axis) => dims[axis],
        None => 1,
    };
    let each = (0..n).map(|axis| match (size(a, axis), size(b, axis)) {
        (x, y) if x == y => Ok(x),
        (1, y) => Ok(y),
        (x, 1) => Ok(x),
        _ => Err(damaged(format!("agent.onnx: shapes {a:?} and {b:?} do not fit together"))),
    });
    let dims: Vec<usize> = each.collect::<Result<_, _>>()?;
    count(&dims)?;
    Ok(dims)
}

/// The place in a tensor of `dims` of every element of the larger shape `to`.
pub fn places(dims: &[usize], to: &[usize]) -> Vec<usize> {
    let missing = to.len() - dims.len();
    let mut strides = vec![0; to.len()];
    let mut stride = 1;
    for axis in (0..dims.len()).rev() {
        if dims[axis] != 1 {
            strides[axis + missing] = stride;
        }
        stride *= dims[axis];
    }
    walk(to, &strides)
}

/// The places of all elements of `dims`, the last axis first, with these distances between the
/// elements of each axis.
pub fn walk(dims: &[usize], strides: &[usize]) -> Vec<usize> {
    let n = dims.iter().product();
    let mut all = Vec::with_capacity(n);
    let (mut index, mut place) = (vec![0usize; dims.len()], 0usize);
    for _ in 0..n {
        all.push(place);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            place -= strides[axis] * index[axis];
            index[axis] = 0;
        }
    }
    all
}

/// Sizes of axes.
///
/// # Errors
/// When one is negative.
pub fn sizes(numbers: &[i64]) -> Result<Vec<usize>, Error> {
    let sizes: Result<Vec<usize>, _> = numbers.iter().map(|&n| usize::try_from(n)).collect();
    sizes.map_err(|_| damaged("agent.onnx: a negative size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Next to an empty axis, the other sizes could be of any size.
    #[test]
    fn sizes_are_limited_next_to_an_empty_axis_too() {
        assert_eq!(count(&[3, 0, 4]), Ok(0));
        assert!(count(&[0, 1 << 40]).is_err() && count(&[usize::MAX, 2]).is_err());
    }
}
