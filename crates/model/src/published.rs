//! Weights in the layouts of the published Decision Transformers, with the references' names.

mod atari;
mod gym;

use burn::tensor::{DType, TensorData};

pub use atari::atari;
pub use gym::{gym, hugging_face, to_hugging_face};

use crate::{error::ModelError, head::HeadConfig, parameters::weights::NamedTensors};

/// Source of one of our tensors.
struct Source {
    ours: String,
    /// Several tensors are joined along their first axis.
    theirs: Vec<String>,
    layout: Layout,
}

/// Layout of a published tensor.
#[derive(Clone, Copy)]
enum Layout {
    /// As ours.
    Same,
    /// `[out, in]`, a linear layer's weight in PyTorch; ours is `[in, out]`.
    OutIn,
    /// With a leading axis of length one.
    LeadingOne,
}

impl Source {
    fn new(ours: impl Into<String>, theirs: impl Into<String>, layout: Layout) -> Self {
        Self { ours: ours.into(), theirs: vec![theirs.into()], layout }
    }
}

/// `{ours}weight` and `{ours}bias` of a layer whose weight has this layout.
fn layer(ours: &str, theirs: &str, layout: Layout) -> [Source; 2] {
    [
        Source::new(format!("{ours}weight"), format!("{theirs}.weight"), layout),
        Source::new(format!("{ours}bias"), format!("{theirs}.bias"), Layout::Same),
    ]
}

fn unpublished(head: &HeadConfig, expected: &str) -> ModelError {
    ModelError::Input {
        what: "head of published weights",
        got: head.describe(),
        expected: expected.into(),
    }
}

/// Converts their tensors to ours, keeping their float type.
///
/// # Errors
/// When a tensor is missing or cannot be joined with its neighbours.
fn import(sources: Vec<Source>, theirs: &NamedTensors) -> Result<NamedTensors, ModelError> {
    let tensor = |source: &Source| {
        let parts: Result<Vec<(&String, &TensorData)>, _> = source
            .theirs
            .iter()
            .map(|name| match theirs.get(name) {
                Some(tensor) => Ok((name, tensor)),
                None => Err(ModelError::MissingTensor { name: name.clone() }),
            })
            .collect();
        Ok(in_our_layout(joined(&parts?)?, source.layout))
    };
    sources
        .into_iter()
        .map(|source| {
            let tensor = tensor(&source)?;
            Ok((source.ours, tensor))
        })
        .collect()
}

/// The inverse of [`import`], for sources that are not joined.
///
/// # Errors
/// When a tensor is missing.
fn export(sources: Vec<Source>, ours: &NamedTensors) -> Result<NamedTensors, ModelError> {
    let tensor = |source: Source| match ours.get(&source.ours) {
        // A transposition is its own inverse.
        Some(tensor) => Ok((source.theirs.concat(), in_our_layout(tensor.clone(), source.layout))),
        None => Err(ModelError::MissingTensor { name: source.ours }),
    };
    sources.into_iter().map(tensor).collect()
}

/// Joins along the first axis.
fn joined(parts: &[(&String, &TensorData)]) -> Result<TensorData, ModelError> {
    let [(_, first), rest @ ..] = parts else { unreachable!("a source has a name") };
    if rest.is_empty() {
        return Ok((*first).clone());
    }
    for (name, part) in parts {
        if part.rank() == 0 || part.shape()[1..] != first.shape()[1..] {
            return Err(ModelError::Shape {
                name: (*name).clone(),
                got: part.shape().to_vec(),
                expected: first.shape().to_vec(),
            });
        }
    }
    let mut shape = first.shape().to_vec();
    shape[0] = parts.iter().map(|(_, part)| part.shape()[0]).sum();
    let values = parts.iter().flat_map(|(_, part)| part.iter::<f64>()).collect();
    Ok(floats(values, shape, first.dtype()))
}

/// A tensor in our layout. A tensor with other axes than its layout does not change: its shape will
/// differ from the model's.
fn in_our_layout(tensor: TensorData, layout: Layout) -> TensorData {
    match (layout, &tensor.shape()[..]) {
        (Layout::OutIn, &[out, inputs]) => {
            let values: Vec<f64> = tensor.iter::<f64>().collect();
            let values = (0..inputs)
                .flat_map(|column| (0..out).map(move |row| row * inputs + column))
                .map(|index| values[index])
                .collect();
            floats(values, vec![inputs, out], tensor.dtype())
        }
        (Layout::LeadingOne, &[1, ref rest @ ..]) => {
            floats(tensor.iter::<f64>().collect(), rest.to_vec(), tensor.dtype())
        }
        _ => tensor,
    }
}

fn floats(values: Vec<f64>, shape: Vec<usize>, dtype: DType) -> TensorData {
    if dtype == DType::F64 {
        return TensorData::new(values, shape);
    }
    TensorData::new(values.into_iter().map(|value| value as f32).collect::<Vec<_>>(), shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::check_error;

    fn tensor(values: &[f32], shape: &[usize]) -> TensorData {
        TensorData::new(values.to_vec(), shape.to_vec())
    }

    #[test]
    fn layouts() {
        let matrix = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        let transposed = tensor(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], &[3, 2]);
        assert_eq!(in_our_layout(matrix.clone(), Layout::OutIn), transposed);
        assert_eq!(in_our_layout(matrix.clone(), Layout::Same), matrix);
        let table = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 2, 3]);
        assert_eq!(in_our_layout(table, Layout::LeadingOne), matrix);
    }

    #[test]
    fn parts_are_joined_or_named() {
        let source = || {
            vec![Source {
                ours: "both".into(),
                theirs: vec!["a".into(), "b".into()],
                layout: Layout::OutIn,
            }]
        };
        let mut theirs = NamedTensors::from([
            ("a".into(), tensor(&[1.0, 2.0], &[1, 2])),
            ("b".into(), tensor(&[3.0, 4.0, 5.0, 6.0], &[2, 2])),
        ]);
        let both = &import(source(), &theirs).unwrap()["both"];
        assert_eq!(*both, tensor(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0], &[2, 3]));
        for shape in [&[4][..], &[1, 4], &[4, 1]] {
            theirs.insert("b".into(), tensor(&[3.0, 4.0, 5.0, 6.0], shape));
            let error = import(source(), &theirs).unwrap_err();
            check_error!(error, ModelError::Shape { name, .. } if name == "b");
        }
        theirs.remove("b");
        let error = import(source(), &theirs).unwrap_err();
        check_error!(error, ModelError::MissingTensor { name } if name == "b");
    }
}
