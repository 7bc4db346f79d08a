//! Affine layers with ReLU between them: the small networks of value-based agents.

mod fused;
mod reference;

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};

/// One layer, `x W + b`. All layers except the last are followed by ReLU, and then by an optional
/// layer norm.
#[derive(Clone, Debug)]
pub struct ReluLayer {
    /// `[in, out]`
    pub weight: Tensor<2>,
    /// `[out]`
    pub bias: Tensor<1>,
    /// Weight and bias of a layer norm of the ReLU's result, each `[out]`.
    pub norm: Option<[Tensor<1>; 2]>,
}

impl ReluLayer {
    /// All parameters except the weight.
    fn vectors(&self) -> impl Iterator<Item = &Tensor<1>> {
        self.norm.iter().flatten().chain([&self.bias])
    }
}

/// Maximum number of tensors, including `x`, of a fused network; larger networks use plain tensors.
const MOST_FUSED: usize = 15;

/// The last layer's output for every row of `x`.
///
/// Gradients are computed only for tracked tensors. With untracked parameters, only the gradient of
/// `x` is computed, from which a policy learns with a critic.
///
/// # Shapes
/// - `x`: `[rows, in]`; result: `[rows, out of the last layer]`
///
/// # Panics
/// When there is no layer, shapes do not fit together, or the last layer has a norm.
pub fn relu_layers(x: Tensor<2>, layers: Vec<ReluLayer>, form: Form) -> Tensor<2> {
    let [rows, mut width] = x.dims();
    assert!(
        layers.last().is_some_and(|last| last.norm.is_none()),
        "the last layer cannot have a norm"
    );
    for (i, layer) in layers.iter().enumerate() {
        let [inputs, outputs] = layer.weight.dims();
        assert_eq!(inputs, width, "inputs of layer {i}");
        assert_eq!(layer.bias.dims(), [outputs], "bias of layer {i}");
        for part in layer.norm.iter().flatten() {
            assert_eq!(part.dims(), [outputs], "norm of layer {i}");
        }
        width = outputs;
    }
    let n_tensors = 1 + layers.iter().map(|layer| 1 + layer.vectors().count()).sum::<usize>();
    let is_fused = form == Form::Auto
        && n_tensors <= MOST_FUSED
        && is_flex_f32(&x)
        && layers
            .iter()
            .all(|layer| is_flex_f32(&layer.weight) && layer.vectors().all(is_flex_f32));
    if !is_fused {
        return reference::relu_layers(x, layers, form);
    }
    let network = Network {
        shapes: layers.iter().map(|layer| layer.weight.dims()).collect(),
        norms: layers.iter().map(|layer| layer.norm.is_some()).collect(),
        by_x: x.is_tracked(),
        by_parameters: layers
            .iter()
            .map(|layer| layer.weight.is_tracked() || layer.vectors().any(Tensor::is_tracked))
            .collect(),
    };
    let mut inputs = vec![x.into_dispatch()];
    for ReluLayer { weight, bias, norm } in layers {
        inputs.extend([weight.into_dispatch(), bias.into_dispatch()]);
        inputs.extend(norm.into_iter().flatten().map(Tensor::into_dispatch));
    }
    let shape = [rows, width];
    match inputs.len() {
        3 => apply::<3>(network, inputs, shape),
        5 => apply::<5>(network, inputs, shape),
        7 => apply::<7>(network, inputs, shape),
        9 => apply::<9>(network, inputs, shape),
        11 => apply::<11>(network, inputs, shape),
        13 => apply::<13>(network, inputs, shape),
        15 => apply::<15>(network, inputs, shape),
        n => unreachable!("a network of {n} tensors uses plain tensors"),
    }
}

fn apply<const N: usize>(
    network: Network,
    inputs: Vec<DispatchTensor>,
    shape: [usize; 2],
) -> Tensor<2> {
    let Ok(inputs) = <[DispatchTensor; N]>::try_from(inputs) else {
        unreachable!("{N} inputs were counted")
    };
    flex::apply(network, inputs, shape)
}

/// The fused form. The float inputs are `x`, then for each layer weight, bias, and the norm's
/// weight and bias if there is one.
struct Network {
    /// `[in, out]` of each layer.
    shapes: Vec<[usize; 2]>,
    /// Whether a layer has a norm.
    norms: Vec<bool>,
    /// Whether the gradient of `x` is needed.
    by_x: bool,
    /// Whether the gradient of a layer's parameters is needed.
    by_parameters: Vec<bool>,
}

impl Network {
    /// The layers' parameters as slices.
    fn layers<'a>(&self, mut inputs: &[&'a [f32]]) -> Vec<fused::Layer<'a>> {
        let mut take = || match inputs.split_first() {
            Some((first, rest)) => {
                inputs = rest;
                *first
            }
            None => unreachable!("as many inputs as the layers have"),
        };
        let layers = self.shapes.iter().zip(&self.norms).zip(&self.by_parameters);
        let layers = layers.map(|((&shape, &has_norm), &is_tracked)| {
            let (weight, bias) = (take(), take());
            let norm = has_norm.then(|| [take(), take()]);
            fused::Layer { shape, weight, bias, norm, is_tracked }
        });
        layers.collect()
    }
}

impl<const N: usize> Fused<N> for Network {
    type Saved = Vec<fused::Kept>;

    fn forward(&self, inputs: [&[f32]; N], keep: bool) -> (Buffer, Option<Self::Saved>) {
        let (out, kept) = fused::forward(inputs[0], &self.layers(&inputs[1..]));
        (out, keep.then_some(kept))
    }

    fn backward(
        &self,
        inputs: [&[f32]; N],
        _output: &[f32],
        saved: &Self::Saved,
        gradient: &[f32],
    ) -> [Buffer; N] {
        let layers = self.layers(&inputs[1..]);
        let gradients = fused::backward(inputs[0], &layers, saved, gradient, self.by_x);
        match gradients.try_into() {
            Ok(gradients) => gradients,
            Err(_) => unreachable!("a gradient for each of {N} inputs"),
        }
    }
}
