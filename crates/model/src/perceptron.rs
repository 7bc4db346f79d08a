//! A perceptron that learns actions. Without returns it is behaviour cloning, the baseline of Chen
//! et al. (2021) on Gym, without attention. With one more input, the average return-to-go, it is
//! RvS-R (Emmons et al. 2022).
//!
//! The last `context_length` observations, concatenated, go through layers with ReLU and dropout to
//! the same heads as the Decision Transformer's tokens. Only the newest action of a context is
//! learned. Places before an episode's start contain zeros, the mean of a normalized observation.
//!
//! RvS-R is conditioned on the average return-to-go. With [top
//! percents](crate::conditioning::top_percent), half of its contexts are from the top episodes;
//! there the input of the return is 0 and the input of the top percent is 1.
//!
//! Differs from the reference implementation:
//! - There, padding is zero *before* normalization in training and *after* it while acting; here it
//!   is always zero after it.
//! - Gradients are clipped to a norm of 0.25 in `profile=paper`, as for the transformer; there they
//!   are not.
//! - Any [`Head`] that fits the actions can be used; the reference's is
//!   [tanh](crate::head::TanhConfig).

use burn::{
    module::Module,
    tensor::{Tensor, TensorData, activation::relu},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::{Form, relu_layers};
use serde::{Deserialize, Serialize};

use crate::{
    conditioning::{AverageReturn, ConditionerConfig},
    contexts::{self, Contexts, Observed, Steps, Stored},
    dropout_seed::DropoutSeed,
    encoder,
    error::{ModelError, check_counts, config_error},
    head::{Head, HeadConfig, TanhConfig},
    loss::Loss,
    parameters::{affine::Affine, init::Init},
};

/// A perceptron on vector observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerceptronConfig {
    /// Hidden layers.
    pub n_layers: usize,
    /// Width of a hidden layer.
    pub width: usize,
    /// Number of observations that the model sees.
    pub context_length: usize,
    /// Probability of dropping a hidden unit during training.
    pub dropout: f64,
    /// Conversion of the last hidden layer to an action.
    pub head: HeadConfig,
    /// Conversion of returns to the inputs that condition the model; `None` in behaviour cloning.
    pub conditioning: Option<ConditionerConfig>,
}

impl PerceptronConfig {
    /// The sizes with which Chen et al. (2021) run it on Gym's locomotion tasks.
    pub fn gym() -> Self {
        Self {
            n_layers: 3,
            width: 128,
            context_length: 20,
            dropout: 0.1,
            head: HeadConfig::Tanh(TanhConfig {}),
            conditioning: None,
        }
    }

    /// The sizes with which Emmons et al. (2022) run RvS-R on Gym's locomotion tasks.
    pub fn rvs(horizon: usize) -> Self {
        Self {
            n_layers: 2,
            width: 1024,
            context_length: 1,
            dropout: 0.0,
            conditioning: Some(ConditionerConfig {
                average_return: Some(AverageReturn { horizon }),
                ..ConditionerConfig::default()
            }),
            ..Self::gym()
        }
    }

    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with a value that is not valid for such observations and actions.
    pub fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        check_counts(&[
            ("model.n_layers", self.n_layers),
            ("model.d_model", self.width),
            ("model.context_length", self.context_length),
        ])?;
        // The precision of the computation.
        if !(0.0..1.0).contains(&(self.dropout as f32)) {
            return Err(config_error("model.dropout", self.dropout, "must lie in [0, 1)"));
        }
        if let Some(conditioning) = &self.conditioning {
            conditioning.validate(observations)?;
        }
        if let ObservationSpace::Pixels { .. } = observations {
            let expected = "a perceptron needs vectors. Use model.kind=transformer for pixels";
            return Err(config_error("observations", "pixels", expected));
        }
        encoder::validate(observations)?;
        self.head.validate(actions)
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct Perceptron {
    /// In the order of execution.
    pub layers: Vec<Affine>,
    /// Head from the last hidden layer to actions.
    pub head: Head,
    /// The configuration of the model.
    #[module(skip)]
    pub config: PerceptronConfig,
    /// The form of the observations.
    #[module(skip)]
    pub observations: ObservationSpace,
    /// The form of the actions.
    #[module(skip)]
    pub actions: ActionSpace,
    /// Fused operations if available, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl Perceptron {
    /// A new model with PyTorch's default for linear layers, U(±1/√fan_in) for weights and
    /// biases.
    ///
    /// # Errors
    /// When `config` is not valid for such observations and actions.
    pub fn init(
        config: &PerceptronConfig,
        observations: &ObservationSpace,
        actions: &ActionSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        config.validate(observations, actions)?;
        let condition = config.conditioning.as_ref().map_or(0, ConditionerConfig::width);
        let stacked = config.context_length * observations.size() + condition;
        let layers = (0..config.n_layers)
            .map(|layer_idx| {
                let inputs = if layer_idx == 0 { stacked } else { config.width };
                Affine::init([inputs, config.width], init)
            })
            .collect();
        Ok(Self {
            layers,
            head: config.head.init(config.width, actions, init),
            config: config.clone(),
            observations: observations.clone(),
            actions: actions.clone(),
            form: Form::Auto,
        })
    }

    /// The head's input at each context's newest step.
    ///
    /// # Shapes
    /// - result: `[batch, width]`
    ///
    /// # Panics
    /// When the observations are not vectors: a caller's bug.
    pub fn hidden(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Tensor<2> {
        let mut hidden = self.stacked(contexts);
        if let Some(conditioning) = &self.config.conditioning {
            let ([_, time], width) = (contexts.dims(), conditioning.width());
            let newest = contexts.condition(width - 1).narrow(1, time - 1, 1);
            hidden = Tensor::cat(vec![hidden, newest.squeeze_dim::<2>(1)], 1);
        }
        self.through_layers(hidden, dropout)
    }

    /// The head's input for rows of inputs.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, in of the first layer]`; result: `[rows, width]`
    pub(crate) fn through_layers(
        &self,
        mut hidden: Tensor<2>,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<2> {
        let nth_dropout = |nth| dropout.as_ref()?.nth(nth, self.config.dropout);
        if nth_dropout(0).is_none() {
            let layers = self.layers.iter().map(|layer| layer.relu_layer(None)).collect();
            return relu(relu_layers(hidden, layers, self.form));
        }
        for (layer_idx, layer) in (0u32..).zip(&self.layers) {
            hidden = relu(relu_layers(hidden, vec![layer.relu_layer(None)], self.form));
            if let Some(dropout) = nth_dropout(layer_idx) {
                let rows = hidden.unsqueeze::<3>();
                hidden = overtone_kernels::dropout(rows, dropout, self.form).squeeze_dim::<2>(0);
            }
        }
        hidden
    }

    /// The last `context_length` observations of each context, concatenated, with zeros for missing
    /// ones: `[batch, context_length · observation_width]`.
    fn stacked(&self, contexts: &Contexts) -> Tensor<2> {
        let Observed::Vectors(observations) = &contexts.observations else {
            panic!("a perceptron needs vectors");
        };
        let [batch, time, width] = observations.dims();
        let context_length = self.config.context_length;
        let mut observations = observations.clone();
        let (device, dtype) = (observations.device(), observations.dtype());
        if let Some(Stored { real: Some(real), .. }) = &contexts.stored {
            observations = observations * real.clone();
        } else if contexts.n_padding.iter().any(|&n_padding| n_padding > 0) {
            let real = contexts::real_mask(&contexts.n_padding, time);
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

    /// Mean loss of the newest recorded action of each context, plus the head's regulariser.
    pub fn loss(&self, contexts: &Contexts, dropout: Option<DropoutSeed>) -> Loss {
        let (hidden, actions) = (self.hidden(contexts, dropout), contexts.actions.newest());
        let loss = self.head.loss(hidden, actions, contexts.penalties_of(Steps::Newest));
        let weights = contexts.newest_weights(&loss.rows.device(), loss.rows.dtype());
        Loss::of(loss, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contexts::Acted,
        head::Decisions,
        parameters::weights::{self, NamedTensors},
    };
    use burn::tensor::Device;
    use overtone_kernels::Half;
    use overtone_testkit::check_error;

    fn config() -> PerceptronConfig {
        PerceptronConfig { n_layers: 2, width: 3, context_length: 2, ..PerceptronConfig::gym() }
    }

    const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };

    fn model(config: &PerceptronConfig) -> Perceptron {
        let generator = &mut overtone_core::seed::generator(4, "init");
        let init = &mut Init::drawn(&Device::flex(), generator);
        Perceptron::init(config, &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap()
    }

    /// Two contexts of two steps, the first step of the second padded with noise.
    fn inputs() -> Contexts {
        let device = Device::flex();
        Contexts {
            observations: Observed::Vectors(Tensor::from_data(
                [[[1.0f32, -2.0], [0.5, 3.0]], [[-7.0, 7.0], [2.0, -1.0]]],
                &device,
            )),
            actions: Acted::Continuous(Tensor::from_data(
                [[[0.9f32], [0.25]], [[0.9], [-0.5]]],
                &device,
            )),
            returns_to_go: Tensor::from_data([[3.0f32, 2.0], [0.0, 1.0]], &device),
            timesteps: vec![4, 5, 0, 0],
            n_padding: vec![0, 1],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }

    /// Two observations are four numbers; the padded one is zeros.
    const STACKED: [[f64; 4]; 2] = [[1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 2.0, -1.0]];

    /// `x W + b` of a layer.
    fn affine(x: &[f64], layer: &str, weights: &NamedTensors) -> Vec<f64> {
        let values = |name: &str| -> Vec<f64> {
            weights[&format!("{layer}.{name}")].iter::<f64>().collect()
        };
        let (weight, bias) = (values("weight"), values("bias"));
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
        let decisions = model.head.decide(model.hidden(&inputs(), None));
        let Decisions::Numbers(decisions) = decisions else { panic!("numbers") };
        let got = [decisions.mode(0), decisions.mode(1)].concat();
        assert!(got.iter().zip(expected).all(|(got, x)| (got - x).abs() < 1e-6), "{got:?}");
        // The newest actions are 0.25 and -0.5; the older 0.9 is not a target.
        let squared = (expected[0] - 0.25).powi(2) + (expected[1] + 0.5).powi(2);
        let loss: f64 = model.loss(&inputs(), None).total.into_scalar();
        assert!((loss - squared / 2.0).abs() < 1e-6, "{loss} against {}", squared / 2.0);
    }

    #[test]
    fn layers_with_dropout_have_the_precision_of_their_form() {
        let model = model(&PerceptronConfig { width: 64, ..config() });
        let hidden = |form| -> Vec<f32> {
            let model = Perceptron { form, ..model.clone() };
            model
                .hidden(&inputs(), Some(DropoutSeed::new(3, &Device::flex())))
                .into_data()
                .iter()
                .collect()
        };
        let (exact, rounded) = (hidden(Form::Auto), hidden(Form::Mixed(Half::Bf16)));
        assert_ne!(rounded, exact);
        assert!(rounded.iter().zip(&exact).all(|(rounded, exact)| (rounded - exact).abs() < 0.1));
    }

    /// Contexts shorter than the model's are padded; of longer ones, the end is used.
    #[test]
    fn contexts_of_any_length_are_stacked() {
        let stacked = |context_length| -> Vec<f32> {
            let model = model(&PerceptronConfig { context_length, ..config() });
            model.stacked(&inputs()).into_data().iter::<f32>().collect()
        };
        assert_eq!(stacked(1), [0.5, 3.0, 2.0, -1.0]);
        assert_eq!(stacked(2), [1.0, -2.0, 0.5, 3.0, 0.0, 0.0, 2.0, -1.0]);
        let padded = [0.0, 0.0, 1.0, -2.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0, 2.0, -1.0];
        assert_eq!(stacked(3), padded);
    }

    /// A return-to-go of 2 at step 5 of at most 10 is an average of 4 per episode. At step 0, the
    /// average is the return. From the last step on, one step remains.
    #[test]
    fn the_average_return_is_one_more_input() {
        let average = AverageReturn { horizon: 10 };
        let returns_to_go = Tensor::from_data([[2.0f32], [1.0]], &Device::flex());
        let average_return: Vec<f32> =
            average.of(returns_to_go, &[5, 0]).into_data().iter().collect();
        assert_eq!(average_return, [2.0 * 10.0 / 5.0, 1.0]);
        assert_eq!([9, 10, 11].map(|timestep| average.factor(timestep)), [10.0, 10.0, 10.0]);

        let conditioning = PerceptronConfig::rvs(10).conditioning.unwrap();
        let rvs = PerceptronConfig { conditioning: Some(conditioning.clone()), ..config() };
        let model = model(&rvs);
        assert_eq!(model.layers[0].weight.dims(), [5, 3]);
        let hidden = |contexts: &Contexts| -> Vec<f32> {
            let contexts = conditioning.condition(contexts.clone());
            model.hidden(&contexts, None).into_data().iter().collect()
        };
        let with_return = |newest: f32| Contexts {
            returns_to_go: Tensor::from_data([[8.0f32, newest], [7.0, newest]], &Device::flex()),
            ..inputs()
        };
        assert_ne!(hidden(&with_return(1.0)), hidden(&with_return(2.0)));
        // Returns of earlier steps are not read.
        let earlier = Contexts {
            returns_to_go: Tensor::from_data([[0.0f32, 1.0], [0.0, 1.0]], &Device::flex()),
            ..inputs()
        };
        assert_eq!(hidden(&with_return(1.0)), hidden(&earlier));
    }

    #[test]
    fn what_describes_no_model_is_named() {
        let actions = ActionSpace::unit(1);
        assert!(PerceptronConfig::gym().validate(&OBSERVATIONS, &actions).is_ok());
        // Neither long episodes nor wide observations allocate memory in themselves.
        let wide = ObservationSpace::Vectors { width: 70_000 };
        assert!(PerceptronConfig::rvs(70_000).validate(&wide, &actions).is_ok());
        let refused = |change: fn(&mut PerceptronConfig)| {
            let mut config = config();
            change(&mut config);
            config.validate(&OBSERVATIONS, &actions).unwrap_err().to_string()
        };
        for (key, error) in [
            ("model.n_layers", refused(|config| config.n_layers = 0)),
            ("model.d_model", refused(|config| config.width = 0)),
            ("model.context_length", refused(|config| config.context_length = 0)),
            ("model.dropout", refused(|config| config.dropout = 1.0)),
            (
                "average_return.horizon",
                refused(|config| config.conditioning = PerceptronConfig::rvs(0).conditioning),
            ),
        ] {
            assert!(error.starts_with(&format!("{key} = ")), "{key}: {error}");
        }
        let pixels = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
        let error = PerceptronConfig::gym().validate(&pixels, &actions).unwrap_err();
        check_error!(error, ModelError::Config { key, .. } if key == "observations");
    }
}
