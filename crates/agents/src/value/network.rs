//! [`Mlp`]: affine layers with ReLU between them, and layer norms where asked for.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::{Form, relu_layers};
use overtone_model::{
    ModelError, affine::Affine, error::config_error, init::Init, matrices::Matrices,
};

/// A layer norm.
#[derive(Module, Debug)]
pub struct Norm {
    /// `[width]`
    pub weight: Param<Tensor<1>>,
    /// `[width]`
    pub bias: Param<Tensor<1>>,
}

/// Layers with ReLU behind all but the last, and behind ReLU a norm where there are any.
#[derive(Module, Debug)]
pub struct Mlp {
    /// In the order in which they run.
    pub layers: Vec<Affine>,
    /// One for each hidden layer, or none.
    pub norms: Vec<Norm>,
    /// The fused operation where there is one, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl Matrices for Mlp {
    fn matrices(&self) -> Vec<ParamId> {
        self.layers.matrices()
    }
}

/// Sizes of the hidden layers of an [`Mlp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// How many.
    pub n_layers: usize,
    /// Of each.
    pub width: usize,
    /// Whether a layer norm comes behind each.
    pub has_norms: bool,
}

impl Hidden {
    /// # Errors
    /// Names the key of `section` whose value describes no network.
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
    /// With [`Affine::init`] for every layer.
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

    /// The last layer's result for every row. Parameters or `x` that track no gradients are
    /// constants.
    ///
    /// # Shapes
    /// - `x`: `[rows, inputs]`; result: `[rows, outputs]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let norm = |norm: &Norm| [norm.weight.val(), norm.bias.val()];
        let layers = self.layers.iter().enumerate();
        let layers = layers.map(|(i, layer)| layer.relu_layer(self.norms.get(i).map(norm)));
        relu_layers(x, layers.collect(), self.form)
    }

    /// The action in [-1, 1] that an actor takes at every observation: `tanh` of its result.
    pub fn act(&self, observations: Tensor<2>) -> Tensor<2> {
        self.forward(observations).tanh()
    }
}

/// Numbers of an observation and of an action of `algorithm`, which learns real-valued actions
/// from vectors.
///
/// # Errors
/// When the task shows or takes something else.
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
            let expected = "the task shows pixels; this algorithm reads vectors of numbers";
            Err(config_error("algorithm", algorithm, expected))
        }
        (_, ActionSpace::Discrete { .. }) => {
            let expected = "the task's actions are a list; this algorithm learns real-valued \
                            ones (discrete_cql learns from a list)";
            Err(config_error("algorithm", algorithm, expected))
        }
    }
}

/// The same numbers, usable beside tensors that track gradients.
pub fn constant<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if tensor.is_autodiff() { tensor } else { tensor.autodiff() }
}

/// The same numbers, usable beside `other`, whether that tracks gradients or not.
pub fn constant_beside<const D: usize, const E: usize>(
    tensor: Tensor<D>,
    other: &Tensor<E>,
) -> Tensor<D> {
    if other.is_autodiff() { constant(tensor) } else { tensor }
}
