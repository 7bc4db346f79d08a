//! Polyak averaging: parameters that follow other parameters slowly.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use multiversion::multiversion;
use rayon::prelude::*;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{is_flex_f32, primitive};

/// Elements per task: 192 KiB of both tensors and the result.
const CHUNK: usize = 16 * 1024;

/// `target + rate · (source − target)`, for tensors without autodiff.
///
/// # Panics
/// When the lengths differ.
pub fn polyak(target: Tensor<1>, source: Tensor<1>, rate: f64, form: Form) -> Tensor<1> {
    assert_eq!(target.dims(), source.dims(), "target and source need equal lengths");
    let is_plain = |tensor: &Tensor<1>| is_flex_f32(tensor) && !tensor.device().is_autodiff();
    if form == Form::Reference || !is_plain(&target) || !is_plain(&source) {
        return target.clone() + (source - target) * rate;
    }
    let [target, source] = [target, source].map(contiguous);
    let [target, source] = [&target, &source].map(FlexTensor::storage::<f32>);
    // A network with the same target holds its memory, so the result is in new memory.
    let mut moved = Buffer::new(target.len());
    moved
        .par_chunks_mut(CHUNK)
        .zip(target.par_chunks(CHUNK))
        .zip(source.par_chunks(CHUNK))
        .for_each(|((moved, target), source)| follow(moved, target, source, rate as f32));
    let shape = [moved.len()];
    Tensor::from_primitive::<Flex>(primitive(moved, shape))
}

/// The whole storage of a tensor in `f32` on the CPU, without other elements.
pub(crate) fn contiguous(tensor: Tensor<1>) -> FlexTensor {
    let [length] = tensor.dims();
    match tensor.try_into_primitive::<Flex>() {
        Ok(tensor) if tensor.is_contiguous() && tensor.storage::<f32>().len() == length => tensor,
        Ok(view) => FlexTensor::from_data(view.into_data()),
        Err(error) => unreachable!("checked to be on the CPU: {error:?}"),
    }
}

#[multiversion(targets = "simd")]
fn follow(moved: &mut [f32], target: &[f32], source: &[f32], rate: f32) {
    for ((moved, target), source) in moved.iter_mut().zip(target).zip(source) {
        *moved = target + rate * (source - target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};

    #[test]
    fn both_forms_move_a_tenth_of_the_way() {
        let n = CHUNK + 3;
        let tensor = |value: f32, dtype| {
            Tensor::<1>::from_data(TensorData::new(vec![value; n], [n]), (&Device::flex(), dtype))
        };
        for (form, dtype) in
            [(Form::Auto, DType::F32), (Form::Reference, DType::F32), (Form::Auto, DType::F64)]
        {
            // 2 + 0.1 · (−3 − 2) = 1.5
            let moved = polyak(tensor(2.0, dtype), tensor(-3.0, dtype), 0.1, form);
            let moved: Vec<f64> = moved.into_data().iter::<f64>().collect();
            assert!(moved.len() == n && moved.iter().all(|x| (x - 1.5).abs() < 1e-6));
        }
    }

    #[test]
    fn memory_with_other_references_does_not_change() {
        let target = Tensor::<1>::from_data([1.0f32, 2.0], &Device::flex());
        let moved = polyak(target.clone(), target.clone() * 3.0, 0.5, Form::Auto);
        let numbers = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
        assert_eq!(numbers(target), [1.0, 2.0]);
        assert_eq!(numbers(moved), [2.0, 4.0]);
    }
}
