//! AdamW with decay groups and clipping by the global norm. The results equal PyTorch's if every
//! parameter has a gradient in every step.
//!
//! All parameters share one step count, while PyTorch keeps one for each. So if the first gradient
//! of a parameter comes later, its moments are not corrected for their start at zero.
//!
//! burn's optimizer clips each tensor separately and has another default epsilon. Both change what
//! a transformer learns.

mod moments;
mod parameters;

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{Device, Gradients, Tensor, TensorData},
};
use documented::DocumentedFields;
use overtone_kernels::{self as kernels, AdamWState, Form, TensorSlot};
use overtone_model::{Inputs, ModelError, matrices, weights::NamedTensors};
use serde::{Deserialize, Serialize};

use self::{
    moments::Moments,
    parameters::{FlatParameter, replace, with_gradients, with_slices},
};
use crate::gradient::Gradient;

/// The parameters with weight decay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decayed {
    /// The module's [matrices]: weights of linear layers and convolutions, as in the Atari
    /// reference.
    #[default]
    Matrices,
    /// Every parameter, as in the reference on Gym.
    Everything,
}

/// Constants of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    /// AdamW's decay of the first moment; the reference uses 0.9.
    pub beta_1: f64,
    /// AdamW's decay of the second moment; the reference uses 0.95 on frames, 0.999 on vectors.
    pub beta_2: f64,
    /// AdamW's epsilon; the reference uses 1e-8.
    pub epsilon: f64,
    /// Weight decay; the reference uses 0.1 on frames, 1e-4 on vectors.
    pub weight_decay: f64,
    /// Parameters with weight decay. matrices: weights of linear layers and convolutions, as in the
    /// reference on frames. everything: also biases, norms, embeddings and position tables, as on
    /// vectors.
    pub decayed: Decayed,
    /// Maximum norm of all gradients together; the reference uses 1 on frames, 0.25 on vectors.
    pub clip_norm: f64,
}

impl AdamWConfig {
    /// The reference's on Atari.
    pub const ATARI: Self = Self {
        beta_1: 0.9,
        beta_2: 0.95,
        epsilon: 1e-8,
        weight_decay: 0.1,
        decayed: Decayed::Matrices,
        clip_norm: 1.0,
    };
}

impl Default for AdamWConfig {
    /// PyTorch's AdamW without weight decay, gradients clipped to norm 1.
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            decayed: Decayed::default(),
            clip_norm: 1.0,
        }
    }
}

/// The learning rate of a step.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one at a time
pub enum LearningRate {
    /// A number on the host.
    Number(f64),
    /// The [factors](AdamW::factors) of the step on the device, `[3]`, for a step that is recorded.
    Sent(Tensor<1>),
}

impl LearningRate {
    /// The rate that was sent under this name; `None`: none was.
    pub fn received(inputs: &Inputs, name: &str) -> Option<Self> {
        inputs.plain_floats(name).map(Self::Sent)
    }
}

impl From<f64> for LearningRate {
    fn from(rate: f64) -> Self {
        Self::Number(rate)
    }
}

/// The optimizer of one module: step count, and moments by parameter name. Each step must receive
/// the parameters that the previous step returned.
#[derive(Clone, Debug)]
pub struct AdamW {
    config: AdamWConfig,
    n_steps: u64,
    /// The parameters of the last step, by name, in the order of their moments.
    stepping: Option<(Vec<String>, AdamWState)>,
    /// Moments of parameters that had no gradient in the last step.
    waiting: BTreeMap<String, Moments>,
    form: Form,
}

impl AdamW {
    /// An optimizer before its first step.
    pub fn new(config: AdamWConfig) -> Self {
        Self { config, n_steps: 0, stepping: None, waiting: BTreeMap::new(), form: Form::Auto }
    }

    /// Steps taken.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// One step; it consumes `gradients`. A parameter without a gradient does not change, and its
    /// moments are kept.
    ///
    /// It does not read from a GPU. Returns the updated module and the global gradient norm before
    /// clipping, `[1]`. A step with a rate that was [sent](LearningRate::Sent) keeps the memory of
    /// parameters and moments from the first of these steps on, and is not [counted](Self::counted).
    ///
    /// # Panics
    /// When the rate was sent and no parameter has a gradient, or the device is a CPU.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        mut gradients: Gradients,
        learning_rate: impl Into<LearningRate>,
    ) -> (M, Tensor<1>) {
        let parameters = with_gradients(&module, &mut gradients);
        match learning_rate.into() {
            LearningRate::Number(rate) => self.move_along(module, parameters, rate),
            LearningRate::Sent(factors) => {
                let (constants, clip_norm) = (self.constants(0.0), Some(self.config.clip_norm));
                self.update(module, parameters, |state, gradients| {
                    state.step_in_place(constants, factors, clip_norm, gradients)
                })
            }
        }
    }

    /// The same with a gradient that was assembled from parts.
    ///
    /// # Panics
    /// When `gradient` is of another module.
    pub fn step_along<M: Module>(
        &mut self,
        module: M,
        gradient: Gradient,
        learning_rate: f64,
    ) -> (M, Tensor<1>) {
        let parameters = with_slices(&module, gradient);
        self.move_along(module, parameters, learning_rate)
    }

    /// The [factors](LearningRate::Sent) of the next step.
    pub fn factors(&self, learning_rate: f64) -> [f64; 3] {
        self.constants(learning_rate).factors(self.n_steps + 1)
    }

    /// Counts a step with a rate that was sent.
    pub fn counted(&mut self) {
        self.n_steps += 1;
    }

    /// The parameters in one tensor, in the order of a [`Packing`](overtone_kernels::stored::Packing), if
    /// they are held so.
    pub fn joined_parameters(&self) -> Option<&Tensor<1>> {
        self.stepping.as_ref().and_then(|(_, state)| state.joined_parameters())
    }

    /// The memory of parameters and moments, if it is a few flat tensors.
    pub fn memory(&mut self) -> Vec<&mut Tensor<1>> {
        self.stepping.as_mut().map_or_else(Vec::new, |(_, state)| state.memory())
    }

    fn move_along<M: Module>(
        &mut self,
        module: M,
        parameters: Vec<FlatParameter>,
        learning_rate: f64,
    ) -> (M, Tensor<1>) {
        if parameters.is_empty() {
            let norm = zero_of(&module);
            return (module, norm);
        }
        self.n_steps += 1;
        let (constants, n_steps) = (self.constants(learning_rate), self.n_steps);
        let clip_norm = Some(self.config.clip_norm);
        self.update(module, parameters, |state, gradients| {
            state.step(constants, n_steps, clip_norm, gradients)
        })
    }

    fn constants(&self, learning_rate: f64) -> kernels::AdamW {
        let betas = [self.config.beta_1, self.config.beta_2];
        kernels::AdamW { learning_rate, betas, epsilon: self.config.epsilon }
    }

    /// `module` after `step` of the state of its parameters, and the result of `step`.
    fn update<M: Module>(
        &mut self,
        module: M,
        parameters: Vec<FlatParameter>,
        step: impl FnOnce(&mut AdamWState, Vec<Tensor<1>>) -> Tensor<1>,
    ) -> (M, Tensor<1>) {
        let gradients = parameters.iter().map(|parameter| parameter.gradient.clone()).collect();
        let (names, mut state) = self.take_state(&module, parameters);
        let norm = step(&mut state, gradients);
        let moved = names.iter().cloned().zip(state.parameters()).collect();
        self.stepping = Some((names, state));
        (replace(module, moved), norm)
    }

    /// The state of these parameters, with their names. It is the state of the last step if the
    /// parameters are the same, else a new one with their moments.
    fn take_state(
        &mut self,
        module: &impl Module,
        parameters: Vec<FlatParameter>,
    ) -> (Vec<String>, AdamWState) {
        let is_same =
            |names: &[String]| names.iter().eq(parameters.iter().map(|parameter| &parameter.name));
        match self.stepping.take() {
            Some((names, state)) if is_same(&names) => return (names, state),
            Some(earlier) => self.waiting.extend(moments_by_name(&earlier)),
            None => {}
        }
        let matrices = match self.config.decayed {
            Decayed::Matrices => Some(matrices::names(module)),
            Decayed::Everything => None,
        };
        let slot = |parameter: FlatParameter| {
            let decays = matrices.as_ref().is_none_or(|names| names.contains(&parameter.name));
            self.slot(parameter, if decays { self.config.weight_decay } else { 0.0 })
        };
        let (names, slots) = parameters.into_iter().map(slot).unzip();
        (names, AdamWState::new(slots, self.form))
    }

    /// Name and slot of a parameter with its moments, or zeros if it has none.
    fn slot(&mut self, flat: FlatParameter, weight_decay: f64) -> (String, TensorSlot) {
        let FlatParameter { name, parameter, gradient, .. } = flat;
        let moments = self.waiting.remove(&name).unwrap_or_else(|| Moments::zeros(&gradient));
        let slot = TensorSlot {
            parameter,
            first_moment: moments.first,
            second_moment: moments.second,
            weight_decay,
        };
        (name, slot)
    }

    /// The moments as tensors named `first.<parameter>` and `second.<parameter>`.
    pub fn export(&self) -> NamedTensors {
        let stepping = self.stepping.iter().flat_map(moments_by_name);
        moments::export(&stepping.chain(self.waiting.clone()).collect())
    }

    /// The same optimizer with exported moments of `module`, on its device.
    ///
    /// # Errors
    /// When a parameter's moment is missing or has another length.
    pub fn import<M: Module>(
        self,
        n_steps: u64,
        module: &M,
        tensors: &NamedTensors,
    ) -> Result<Self, ModelError> {
        let waiting = match n_steps {
            0 => BTreeMap::new(),
            _ => moments::import(module, tensors)?,
        };
        Ok(Self { n_steps, waiting, stepping: None, ..self })
    }
}

/// A norm of zero for a step in which no parameter has a gradient, `[1]`: on the device of the
/// module and without gradients, like the other figures of a step.
fn zero_of<M: Module>(module: &M) -> Tensor<1> {
    let device = module.devices().into_iter().next().unwrap_or_else(Device::flex);
    let zero = Tensor::zeros([1], &device);
    if zero.is_autodiff() { zero.inner() } else { zero }
}

/// The moments of the parameters of a step, by name.
fn moments_by_name((names, state): &(Vec<String>, AdamWState)) -> Vec<(String, Moments)> {
    let moments = state.moments().into_iter();
    let moments = moments.map(|[first, second]| Moments { first, second });
    names.iter().cloned().zip(moments).collect()
}

/// A scalar tensor's value on the host.
pub fn scalar(tensor: Tensor<1>) -> f64 {
    let data: TensorData = tensor.into_data();
    data.iter::<f64>().next().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::Param;

    #[derive(Module, Debug)]
    struct Two {
        weight: Param<Tensor<2>>,
        bias: Param<Tensor<1>>,
    }

    impl Two {
        fn new(device: &Device) -> Self {
            let weight = Param::from_data([[1.0f32]], device);
            Self { weight, bias: Param::from_data([2.0f32], device) }
        }

        fn weight(&self) -> Tensor<1> {
            self.weight.val().reshape([1])
        }
    }

    /// Two hand-computed steps: loss = 3·weight + 4·bias, so the gradient is (3, 4) with
    /// norm 5, clipped to 1: (0.6, 0.8).
    #[track_caller]
    fn check_by_hand(decayed: Decayed, kept_of_bias: f64, form: Form) {
        let device = Device::flex().autodiff();
        let mut two = Two::new(&device);
        let config = AdamWConfig {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 0.1,
            weight_decay: 0.5,
            decayed,
            clip_norm: 1.0,
        };
        let mut adam = AdamW { form, ..AdamW::new(config) };
        for _ in 0..2 {
            let loss = two.weight() * 3.0 + two.bias.val() * 4.0;
            let (moved, norm) = adam.step(two, loss.backward(), 0.01);
            two = moved;
            assert!((scalar(norm) - 5.0).abs() < 1e-6);
        }
        // A constant gradient g gives m̂ = g and √v̂ = |g| at every step.
        // w ← w·(1 - 0.01·0.5) - 0.01·0.6/0.7;  b ← b·kept - 0.01·0.8/0.9.
        let twice = |value: f64, kept: f64, step: f64| (value * kept - step) * kept - step;
        let weight = twice(1.0, 0.995, 0.01 * 0.6 / 0.7);
        let bias = twice(2.0, kept_of_bias, 0.01 * 0.8 / 0.9);
        assert!((scalar(two.weight().inner()) - weight).abs() < 1e-6);
        assert!((scalar(two.bias.val().inner()) - bias).abs() < 1e-6);
    }

    #[test]
    fn matches_arithmetic_by_hand() {
        for form in [Form::Auto, Form::Reference] {
            check_by_hand(Decayed::Matrices, 1.0, form);
            check_by_hand(Decayed::Everything, 0.995, form);
        }
    }

    /// A parameter without a gradient does not change, and its moments are kept.
    #[test]
    fn both_forms_keep_the_same_moments() {
        let device = Device::flex().autodiff();
        let train = |form: Form| {
            let mut two = Two::new(&device);
            let config = AdamWConfig {
                beta_1: 0.9,
                beta_2: 0.99,
                epsilon: 0.1,
                weight_decay: 0.5,
                decayed: Decayed::Matrices,
                clip_norm: 1.0,
            };
            let mut adam = AdamW { form, ..AdamW::new(config) };
            for with_bias in [true, true, false, true] {
                let loss = two.weight().square();
                let loss = if with_bias { loss + two.bias.val().square() } else { loss };
                two = adam.step(two, loss.backward(), 0.1).0;
            }
            assert_eq!(adam.n_steps(), 4);
            let numbers = [scalar(two.weight().inner()), scalar(two.bias.val().inner())];
            let moments = adam.export();
            assert_eq!(moments.len(), 4);
            let moments = moments.values().flat_map(|data| data.iter::<f64>().collect::<Vec<_>>());
            numbers.into_iter().chain(moments).collect::<Vec<f64>>()
        };
        for (tensors, slices) in train(Form::Reference).iter().zip(train(Form::Auto)) {
            assert!((tensors - slices).abs() < 1e-6, "{tensors} {slices}");
        }
    }

    /// The figures of several modules are concatenated, so their tensors must have the same kind.
    #[test]
    fn without_any_gradient_nothing_moves_and_the_norm_is_a_plain_zero() {
        let device = Device::flex().autodiff();
        let two = Two::new(&device);
        let mut adam = AdamW::new(AdamWConfig::default());
        let other: Tensor<1> = Tensor::from_data([3.0f32], &device).require_grad();
        let (two, norm) = adam.step(two, other.square().backward(), 0.1);
        assert_eq!((adam.n_steps(), scalar(two.weight())), (0, 1.0));
        assert!(!norm.is_autodiff());
        assert_eq!(scalar(norm), 0.0);
    }

    #[test]
    fn names_of_decayed_parameters_in_configurations() {
        for (decayed, stored) in
            [(Decayed::Matrices, r#""matrices""#), (Decayed::Everything, r#""everything""#)]
        {
            assert_eq!(serde_json::to_string(&decayed).unwrap(), stored);
        }
    }
}
