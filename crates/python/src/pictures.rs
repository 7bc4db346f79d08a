//! Pictures of an environment as the frames that agents see.

use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use overtone_core::picture::{FRAME, Picture, SIDE, STACK};
use pyo3::{exceptions::PyValueError, prelude::*};

/// The stacks of frames `[n, 4, 84, 84]` after the pictures `[n, …]`; `begins` marks the first
/// picture of an episode.
///
/// # Errors
/// When pictures of this shape are not supported, or the arrays do not belong together.
#[pyfunction]
pub fn frames<'py>(
    py: Python<'py>,
    pictures: &Bound<'py, PyArrayDyn<u8>>,
    stacks: &Bound<'py, PyArrayDyn<u8>>,
    begins: &Bound<'py, PyArray1<bool>>,
) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |reason: String| PyValueError::new_err(format!("observations: {reason}"));
    let (pictures, stacks, begins) = (pictures.readonly(), stacks.readonly(), begins.readonly());
    let shape = pictures.as_array().shape().to_vec();
    let (n, axes) = shape.split_first().ok_or_else(|| wrong("expected pictures".into()))?;
    let picture = Picture::of(axes)
        .map_err(|expected| wrong(format!("pictures of shape {axes:?}, expected {expected}")))?;
    let (pictures, begins) = (pictures.as_slice()?, begins.as_slice()?);
    let mut frames = stacks.as_slice()?.to_vec();
    if frames.len() != n * STACK * FRAME || begins.len() != *n {
        return Err(wrong(format!("expected a stack and a flag for each of {n} pictures")));
    }
    let seen = pictures.chunks_exact(picture.size()).zip(frames.chunks_exact_mut(STACK * FRAME));
    for ((image, stack), &begins) in seen.zip(begins) {
        picture.show(image, begins, stack);
    }
    frames.into_pyarray(py).call_method1("reshape", ((*n, STACK, SIDE, SIDE),))
}
