//! Behaviour cloning by a perceptron: the baseline of Chen et al. (2021) on Gym that knows
//! neither attention nor returns.
//!
//! The last `context_length` observations, side by side, go through layers of ReLU and dropout
//! to the same heads that read the Decision Transformer's tokens; only the newest action of a
//! context is learned. Places before an episode's start hold zeros, which for a normalized
//! observation is its mean.
//!
//! Differs from the reference implementation:
//! - There padding holds zeros *before* normalization while training and *after* it while
//!   playing; here always after it.
//! - The action may be read by any [`ContinuousHead`]; the reference's is
//!   [`Tanh`](ContinuousHeadConfig::Tanh).

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData, activation::relu},
};
use overtone_core::seed::{self, Generator};
use overtone_kernels::{Dropout, Form};
use serde::{Deserialize, Serialize};

use crate::{
    config::{check_counts, config_error},
    continuous_decision_transformer::{ContinuousInputs, ContinuousLoss},
    continuous_history::{ContextShape, ContinuousHistory},
    error::ModelError,
    head::{ContinuousHead, ContinuousHeadConfig},
    init, tokens,
    transformer::DropoutSeed,
};

/// A perceptron on vectors of observations and real-valued actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Hidden layers.
    pub n_layers: usize,
    /// Width of a hidden layer.
    pub width: usize,
    /// Observations the model sees.
    pub context_length: usize,
    /// Numbers in an observation.
    pub observation_width: usize,
    /// Numbers in an action.
    pub action_width: usize,
    /// Probability of dropping a hidden number while training.
    pub dropout: f64,
    /// How the last hidden layer becomes an action.
    pub head: ContinuousHeadConfig,
}

impl MlpConfig {
    /// The sizes with which Chen et al. (2021) run it on Gym's locomotion tasks.
    pub fn gym(observation_width: usize, action_width: usize) -> Self {
        Self {
            n_layers: 3,
            width: 128,
            context_length: 20,
            observation_width,
            action_width,
            dropout: 0.1,
            head: ContinuousHeadConfig::Tanh,
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        check_counts(&[
            ("n_layers", self.n_layers),
            ("width", self.width),
            ("observation_width", self.observation_width),
            ("action_width", self.action_width),
        ])?;
        check_counts(&[("context_length", self.context_length)])?;
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(config_error("dropout", self.dropout, "must lie in [0, 1)"));
        }
        self.head.validate(self.action_width)
    }

    /// What its contexts are like.
    pub fn context_shape(&self) -> ContextShape {
        ContextShape {
            context_length: self.context_length,
            observation_width: self.observation_width,
            action_width: self.action_width,
        }
    }
}

/// `relu(x W + b)`.
#[derive(Module, Debug)]
pub struct HiddenLayer {
    /// `[in, out]`
    pub weight: Param<Tensor<2>>,
    /// `[out]`
    pub bias: Param<Tensor<1>>,
}

impl HiddenLayer {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        relu(x.matmul(self.weight.val()) + self.bias.val().unsqueeze())
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct MlpBc {
    /// In the order in which they run.
    pub layers: Vec<HiddenLayer>,
    /// From the last hidden layer to actions.
    pub head: ContinuousHead,
    /// What the model was built from.
    #[module(skip)]
    pub config: MlpConfig,
    /// Of dropout alone: the products are plain ones in every form.
    #[module(skip)]
    pub form: Form,
}

impl MlpBc {
    /// A new model with PyTorch's default for linear layers, U(±1/√fan_in) for weights and
    /// biases.
    ///
    /// # Errors
    /// When `config` describes no model.
    pub fn init(
        config: &MlpConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self, ModelError> {
        config.validate()?;
        let stacked = config.context_length * config.observation_width;
        let layers = (0..config.n_layers)
            .map(|layer_idx| {
                let inputs = if layer_idx == 0 { stacked } else { config.width };
                let (weight, bias) = init::linear([inputs, config.width], device, generator);
                HiddenLayer { weight, bias }
            })
            .collect();
        Ok(Self {
            layers,
            head: config.head.init(config.width, config.action_width, device, generator),
            config: config.clone(),
            form: Form::Auto,
        })
    }

    /// What the head reads at each context's newest step.
    ///
    /// # Shapes
    /// - result: `[batch, width]`
    pub fn hidden(&self, inputs: &ContinuousInputs, dropout: Option<DropoutSeed>) -> Tensor<2> {
        let mut hidden = self.stacked(inputs);
        for (layer_idx, layer) in (0u64..).zip(&self.layers) {
            hidden = layer.forward(hidden);
            if let Some(DropoutSeed(step_seed)) = dropout {
                let dropout = Dropout {
                    probability: self.config.dropout as f32,
                    seed: seed::derive_nth(step_seed, layer_idx),
                };
                let rows = hidden.unsqueeze::<3>();
                hidden = overtone_kernels::dropout(rows, dropout, self.form).squeeze_dim::<2>(0);
            }
        }
        hidden
    }

    /// The last `context_length` observations of each context side by side, zeros where there
    /// is none: `[batch, context_length · observation_width]`.
    fn stacked(&self, inputs: &ContinuousInputs) -> Tensor<2> {
        let [batch, time, width] = inputs.observations.dims();
        let context_length = self.config.context_length;
        let mut observations = inputs.observations.clone();
        let (device, dtype) = (observations.device(), observations.dtype());
        if inputs.n_padding.iter().any(|&n_padding| n_padding > 0) {
            let real = tokens::real_mask(&inputs.n_padding, time);
            let real = TensorData::new(real, [batch, time, 1]);
            observations = observations * Tensor::from_data(real, (&device, dtype));
        }
        let observations = match context_length.checked_sub(time) {
            Some(missing) if missing > 0 => {
                let zeros = Tensor::zeros([batch, missing, width], (&device, dtype));
                Tensor::cat(vec![zeros, observations], 1)
            }
            _ => observations.narrow(1, time - context_length, context_length),
        };
        observations.reshape([batch, context_length * width])
    }

    /// Mean loss of the newest logged action of each context, plus the head's regulariser.
    pub fn loss(&self, inputs: &ContinuousInputs, dropout: Option<DropoutSeed>) -> ContinuousLoss {
        let [batch, time, action_width] = inputs.actions.dims();
        let newest = inputs.actions.clone().narrow(1, time - 1, 1).reshape([batch, action_width]);
        let loss = self.head.loss(self.hidden(inputs, dropout), newest);
        let (device, dtype) = (loss.rows.device(), loss.rows.dtype());
        let shares = tokens::shares(&vec![0; batch], 1, &device, dtype);
        ContinuousLoss::of(loss, shares)
    }

    /// What the head reads to choose each agent's next action, without dropout.
    /// [`ContinuousHead::mode`] or [`ContinuousHead::sample`] makes actions of it.
    ///
    /// # Shapes
    /// - result: `[agents, width]`
    ///
    /// # Errors
    /// When a history does not fit the model.
    pub fn current(&self, histories: &[ContinuousHistory<'_>]) -> Result<Tensor<2>, ModelError> {
        let weight = self.layers[0].weight.val();
        let inputs = ContinuousInputs::of_histories(
            histories,
            self.config.context_shape(),
            (&weight.device(), weight.dtype()),
        )?;
        Ok(self.hidden(&inputs, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{self, NamedTensors};

    fn config() -> MlpConfig {
        MlpConfig { n_layers: 2, width: 3, context_length: 2, ..MlpConfig::gym(2, 1) }
    }

    fn model(config: &MlpConfig) -> MlpBc {
        MlpBc::init(config, &Device::flex(), &mut seed::generator(4, "init")).unwrap()
    }

    /// Two contexts of two steps, the first step of the second padded with noise.
    fn inputs() -> ContinuousInputs {
        let device = Device::flex();
        ContinuousInputs {
            observations: Tensor::from_data(
                [[[1.0f32, -2.0], [0.5, 3.0]], [[-7.0, 7.0], [2.0, -1.0]]],
                &device,
            ),
            actions: Tensor::from_data([[[0.9f32], [0.25]], [[0.9], [-0.5]]], &device),
            returns_to_go: Tensor::from_data([[3.0f32, 2.0], [0.0, 1.0]], &device),
            timesteps: Tensor::from_data([[4i32, 5], [0, 0]], &device),
            n_padding: vec![0, 1],
        }
    }

    /// Two observations are four numbers; the padded one is zeros.
    const STACKED: [[f64; 4]; 2] = [[1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 2.0, -1.0]];

    /// `x W + b` of a layer.
    fn affine(x: &[f64], layer: &str, weights: &NamedTensors) -> Vec<f64> {
        let of = |name: &str| -> Vec<f64> {
            weights[&format!("{layer}.{name}")].iter::<f64>().collect()
        };
        let (weight, bias) = (of("weight"), of("bias"));
        let out = bias.len();
        (0..out)
            .map(|j| bias[j] + (0..x.len()).map(|i| x[i] * weight[i * out + j]).sum::<f64>())
            .collect()
    }

    #[test]
    fn predictions_and_loss_by_hand() {
        let model = model(&config());
        let weights = weights::export(&model);
        let relu = |x: Vec<f64>| -> Vec<f64> { x.into_iter().map(|x| x.max(0.0)).collect() };
        let expected = STACKED.map(|x| {
            let hidden = relu(affine(&x, "layers.0", &weights));
            let hidden = relu(affine(&hidden, "layers.1", &weights));
            affine(&hidden, "head", &weights)[0].tanh()
        });
        let got = model.head.mode(model.hidden(&inputs(), None));
        assert!(got.iter().zip(expected).all(|(got, x)| (got - x).abs() < 1e-6), "{got:?}");
        // The newest actions are 0.25 and -0.5; the older 0.9 are not asked for.
        let squared = (expected[0] - 0.25).powi(2) + (expected[1] + 0.5).powi(2);
        let loss: f64 = model.loss(&inputs(), None).total.into_scalar();
        assert!((loss - squared / 2.0).abs() < 1e-6, "{loss} against {}", squared / 2.0);
    }

    /// Contexts shorter than the model's are padded, of longer ones the end is seen.
    #[test]
    fn contexts_of_any_length_are_stacked() {
        let stacked = |context_length| -> Vec<f32> {
            let model = model(&MlpConfig { context_length, ..config() });
            model.stacked(&inputs()).into_data().iter::<f32>().collect()
        };
        assert_eq!(stacked(1), [0.5, 3.0, 2.0, -1.0]);
        assert_eq!(stacked(2), [1.0, -2.0, 0.5, 3.0, 0.0, 0.0, 2.0, -1.0]);
        let padded = [0.0, 0.0, 1.0, -2.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0, 2.0, -1.0];
        assert_eq!(stacked(3), padded);
    }

    #[test]
    fn histories_are_read_as_contexts() {
        let model = model(&config());
        let long = ContinuousHistory {
            observations: &[9.0, 9.0, 1.0, -2.0, 0.5, 3.0],
            actions: &[0.1, 0.9],
            returns_to_go: &[4.0, 3.0, 2.0],
            timestep: 5,
        };
        let short = ContinuousHistory {
            observations: &[2.0, -1.0],
            actions: &[],
            returns_to_go: &[1.0],
            timestep: 0,
        };
        let numbers = |tensor: Tensor<2>| -> Vec<f32> { tensor.into_data().iter().collect() };
        let both = numbers(model.current(&[long, short]).unwrap());
        assert_eq!(both, numbers(model.hidden(&inputs(), None)));
        assert!(model.current(&[ContinuousHistory { returns_to_go: &[], ..long }]).is_err());
    }

    #[test]
    fn what_describes_no_model_is_named() {
        assert!(MlpConfig::gym(17, 6).validate().is_ok());
        let refused = |change: fn(&mut MlpConfig)| {
            let mut config = config();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        for (key, error) in [
            ("n_layers", refused(|config| config.n_layers = 0)),
            ("width", refused(|config| config.width = 0)),
            ("context_length", refused(|config| config.context_length = 0)),
            ("observation_width", refused(|config| config.observation_width = 0)),
            ("action_width", refused(|config| config.action_width = 0)),
            ("dropout", refused(|config| config.dropout = 1.0)),
        ] {
            assert!(error.starts_with(&format!("model.{key} = ")), "{key}: {error}");
        }
    }
}
