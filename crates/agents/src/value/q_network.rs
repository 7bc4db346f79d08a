//! [`QNetwork`]: quantiles of the return of each discrete action, and the [`Body`] of a network on
//! frames or vectors.

use burn::{
    module::Module,
    tensor::{Int, Tensor, activation::relu},
};
use overtone_core::ObservationSpace;
use overtone_kernels::{Form, relu_layers};
use overtone_model::{
    ModelError,
    affine::Affine,
    contexts::Observed,
    device::is_cpu,
    encoder::{self, NatureEncoder},
    init::Init,
};

use super::network::Hidden;

/// The encoder from an observation to features.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one body per network
pub enum Body {
    /// For frames.
    Nature(NatureEncoder),
    /// For vectors: layers with ReLU.
    Layers(Vec<Affine>),
}

impl Body {
    /// An encoder of such observations to `hidden.width` features. Frames have one layer of this
    /// width after the convolutions, vectors `hidden.n_layers`.
    ///
    /// # Errors
    /// When there is no encoder for such observations.
    pub fn init(
        observations: &ObservationSpace,
        hidden: Hidden,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        encoder::validate(observations)?;
        Ok(match observations {
            ObservationSpace::Pixels { .. } => {
                Self::Nature(NatureEncoder::init(hidden.width, init))
            }
            ObservationSpace::Vectors { width } => {
                let inputs = |layer_idx| if layer_idx == 0 { *width } else { hidden.width };
                let layers = (0..hidden.n_layers)
                    .map(|layer_idx| Affine::init([inputs(layer_idx), hidden.width], init));
                Self::Layers(layers.collect())
            }
        })
    }

    /// The features of every observation, followed by ReLU or tanh.
    ///
    /// # Shapes
    /// - result: `[n, hidden]`
    ///
    /// # Panics
    /// When the observations have another kind than the network's: a caller's bug.
    pub fn features(&self, observed: &Observed, form: Form) -> Tensor<2> {
        let (rows, layers) = self.split(observed, form);
        if layers.is_empty() {
            return rows;
        }
        let layers = layers.iter().map(|layer| layer.relu_layer(None)).collect();
        let form = exact(form, &rows);
        relu(relu_layers(rows, layers, form))
    }

    /// The inputs of the affine layers, and these layers; on frames the features and none.
    fn split(&self, observed: &Observed, form: Form) -> (Tensor<2>, &[Affine]) {
        match (self, observed) {
            (Self::Nature(encoder), Observed::Frames(frames)) => {
                (encoder.forward(frames.clone(), form), &[])
            }
            (Self::Layers(layers), Observed::Vectors(vectors)) => {
                (vectors.clone().flatten(0, 1), layers)
            }
            _ => panic!("observations of another kind than the network's"),
        }
    }
}

/// In `f32` on a CPU the plain form. The fused form sums in another order. Learning values from values
/// amplifies differences in the last bit until the same seed gives another agent.
fn exact(form: Form, rows: &Tensor<2>) -> Form {
    if form == Form::Auto && is_cpu(&rows.device()) { Form::Reference } else { form }
}

/// Quantiles of the return of each action.
#[derive(Module, Debug)]
pub struct QNetwork {
    /// From an observation to `hidden` features.
    pub body: Body,
    /// From features to `[actions · quantiles]`.
    pub out: Affine,
    /// Quantiles per action.
    pub n_quantiles: usize,
    /// Fused operations if available, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl QNetwork {
    /// A network with PyTorch's default initialization of linear layers, for this number of actions
    /// and of quantiles.
    ///
    /// # Errors
    /// When there is no encoder for such observations.
    pub fn init(
        observations: &ObservationSpace,
        hidden: Hidden,
        [n_actions, n_quantiles]: [usize; 2],
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        let body = Body::init(observations, hidden, init)?;
        let out = Affine::init([hidden.width, n_actions * n_quantiles], init);
        Ok(Self { body, out, n_quantiles, form: Form::Auto })
    }

    /// # Shapes
    /// - result: `[n, actions, quantiles]`, observation by observation
    ///
    /// # Panics
    /// When the observations have another kind than the network's: a caller's bug.
    pub fn quantiles(&self, observed: &Observed) -> Tensor<3> {
        let (rows, hidden) = self.body.split(observed, self.form);
        let layers = hidden.iter().chain([&self.out]).map(|layer| layer.relu_layer(None)).collect();
        let form = exact(self.form, &rows);
        let out = relu_layers(rows, layers, form);
        let [n, size] = out.dims();
        out.reshape([n, size / self.n_quantiles, self.n_quantiles])
    }

    /// Mean return of each action, `[n, actions]`.
    pub fn values(&self, observed: &Observed) -> Tensor<2> {
        self.quantiles(observed).mean_dim(2).squeeze_dim::<2>(2)
    }
}

/// The quantiles of one action per row.
///
/// # Shapes
/// - `quantiles`: `[rows, actions, n]`; `actions`: `[rows]`; result `[rows, n]`
pub(crate) fn of_actions(quantiles: Tensor<3>, actions: Tensor<1, Int>) -> Tensor<2> {
    let [rows, _, n] = quantiles.dims();
    let actions = actions.reshape([rows, 1, 1]).repeat_dim(2, n);
    quantiles.gather(1, actions).squeeze_dim::<2>(1)
}

/// `ln Σ e^x` of each row.
pub(crate) fn log_sum_exp(rows: Tensor<2>) -> Tensor<1> {
    let largest = rows.clone().detach().max_dim(1);
    let sum = (rows - largest.clone()).exp().sum_dim(1).log() + largest;
    sum.squeeze_dim::<1>(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_model::matrices;

    #[track_caller]
    fn check_matrices(observations: ObservationSpace, expected: &[&str]) {
        let init = &mut Init::shapes(&Device::flex());
        let hidden = Hidden { n_layers: 2, width: 16, has_norms: false };
        let network = QNetwork::init(&observations, hidden, [3, 5], init).unwrap();
        assert!(matrices::names(&network).iter().eq(expected));
    }

    #[test]
    fn biases_are_not_matrices() {
        check_matrices(
            ObservationSpace::Vectors { width: 5 },
            &["body.0.weight", "body.1.weight", "out.weight"],
        );
        check_matrices(
            ObservationSpace::Pixels { shape: vec![4, 84, 84] },
            &[
                "body.conv_1_weight",
                "body.conv_2_weight",
                "body.conv_3_weight",
                "body.linear_weight",
                "out.weight",
            ],
        );
    }
}
