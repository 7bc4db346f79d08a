//! [`Mlp`]: affine layers with ReLU between them, and optional layer norms.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::{Form, relu_layers};
use overtone_model::{ModelError, affine::Affine, error::config_error, init::Init};

/// A layer norm.
#[derive(Module, Debug)]
pub struct Norm {
    /// `[width]`
    pub weight: Param<Tensor<1>>,
    /// `[width]`
    pub bias: Param<Tensor<1>>,
}

/// Layers with ReLU after all but the last, and an optional norm after each ReLU.
#[derive(Module, Debug)]
pub struct Mlp {
    /// In the order of execution.
    pub layers: Vec<Affine>,
    /// One for each hidden layer, or none.
    pub norms: Vec<Norm>,
    /// The fused operation if available, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

/// Sizes of the hidden layers of an [`Mlp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Number of layers.
    pub n_layers: usize,
    /// Width of each layer.
    pub width: usize,
    /// Whether each layer is followed by a layer norm.
    pub has_norms: bool,
}

impl Hidden {
    /// # Errors
    /// Names the key of `section` with an invalid value.
    pub fn check(&self, section: &str) -> Result<(), ModelError> {
        for (key, value, most) in [("n_layers", self.n_layers, 8), ("hidden", self.width, 1 << 14)]
        {
            if !(1..=most).contains(&value) {
                let (key, expected) =
                    (format!("{section}.{key}"), format!("must lie in 1 to {most}"));
                return Err(config_error(key, value, expected));
            }
        }
        Ok(())
    }
}

impl Mlp {
    /// A network with [`Affine::init`] for every layer.
    pub fn init([inputs, outputs]: [usize; 2], hidden: Hidden, init: &mut Init<'_>) -> Self {
        let Hidden { n_layers, width, has_norms } = hidden;
        let layers = (0..=n_layers).map(|i| {
            let shape =
                [if i == 0 { inputs } else { width }, if i == n_layers { outputs } else { width }];
            Affine::init(shape, init)
        });
        let layers = layers.collect();
        let n_norms = if has_norms { n_layers } else { 0 };
        let norms = (0..n_norms)
            .map(|_| Norm {
                weight: init.constant([width], 1.0),
                bias: init.constant([width], 0.0),
            })
            .collect();
        Self { layers, norms, form: Form::Auto }
    }

    /// The output of the last layer for every row. Parameters or `x` that do not track gradients
    /// are constants.
    ///
    /// # Shapes
    /// - `x`: `[rows, inputs]`; result: `[rows, outputs]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let norm = |norm: &Norm| [norm.weight.val(), norm.bias.val()];
        let layers = self.layers.iter().enumerate();
        let layers = layers.map(|(i, layer)| layer.relu_layer(self.norms.get(i).map(norm)));
        relu_layers(x, layers.collect(), self.form)
    }

    /// An actor's action in [-1, 1] for every observation: `tanh` of its output.
    pub fn act(&self, observations: Tensor<2>) -> Tensor<2> {
        self.forward(observations).tanh()
    }
}

/// Widths of an observation and of an action for `algorithm`, which learns continuous actions from
/// vectors.
///
/// # Errors
/// When the task has other spaces.
pub fn widths(
    algorithm: &str,
    observations: &ObservationSpace,
    actions: &ActionSpace,
) -> Result<[usize; 2], ModelError> {
    match (observations, actions) {
        (ObservationSpace::Vectors { width }, ActionSpace::Continuous { .. }) => {
            Ok([*width, actions.size()])
        }
        (ObservationSpace::Pixels { .. }, _) => {
            let expected = "the task has pixel observations; this algorithm needs vectors";
            Err(config_error("algorithm", algorithm, expected))
        }
        (_, ActionSpace::Discrete { .. }) => {
            let expected = "the task's actions are discrete; this algorithm needs continuous \
                            ones (use discrete_cql or iql for discrete actions)";
            Err(config_error("algorithm", algorithm, expected))
        }
    }
}

/// The same numbers, for use together with tensors that track gradients.
pub fn constant<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if tensor.is_autodiff() { tensor } else { tensor.autodiff() }
}

/// The same numbers, for use together with `other`, whether it tracks gradients or not.
pub fn constant_like<const D: usize, const E: usize>(
    tensor: Tensor<D>,
    other: &Tensor<E>,
) -> Tensor<D> {
    if other.is_autodiff() { constant(tensor) } else { tensor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_model::matrices;

    /// They have one axis.
    #[test]
    fn weights_of_norms_are_no_matrices() {
        let init = &mut Init::shapes(&Device::flex());
        let hidden = Hidden { n_layers: 2, width: 16, has_norms: true };
        let names = matrices::names(&Mlp::init([5, 3], hidden, init));
        assert!(names.iter().eq(["layers.0.weight", "layers.1.weight", "layers.2.weight"]));
    }
}
