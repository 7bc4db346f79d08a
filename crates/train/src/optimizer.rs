//! AdamW with decay groups and clipping by the global norm, as PyTorch computes them.
//!
//! burn's own clips each tensor by itself and has another default epsilon; both change what
//! a transformer learns.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Device, Gradients, Tensor, TensorData},
};
use overtone_kernels::{self as kernels, Flat, TensorSlot};
use overtone_model::{
    ModelError,
    device::is_cpu,
    weights::{FieldPath, NamedTensors},
};
use serde::{Deserialize, Serialize};

/// Constants of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    /// β₁, decay of the first moment.
    pub beta_1: f64,
    /// β₂, decay of the second moment.
    pub beta_2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay of the parameters that `decayed` names.
    pub weight_decay: f64,
    /// What weight decay applies to; matrices in runs from before there was a choice.
    #[serde(default)]
    pub decayed: Decayed,
    /// Largest norm of all gradients together; larger ones are scaled down.
    pub clip_norm: f64,
}

/// Which parameters weight decay applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decayed {
    /// Matrices of linear layers and convolutions: biases, norms, embeddings, position tables
    /// and the `R` of Fourier attention are not decayed. The Atari reference does this.
    #[default]
    Matrices,
    /// Every parameter, as the reference on Gym.
    Everything,
}

impl Decayed {
    /// Whether the parameter of this name decays.
    pub fn includes(self, name: &str) -> bool {
        match self {
            Self::Matrices => {
                let field = name.rsplit('.').next().unwrap_or(name);
                field.ends_with("weight") && !field.contains("norm")
            }
            Self::Everything => true,
        }
    }
}

/// Both moments of one parameter, flat.
#[derive(Clone, Debug)]
struct Moments {
    first: Tensor<1>,
    second: Tensor<1>,
}

impl Moments {
    fn zeros(like: &Tensor<1>) -> Self {
        Self { first: like.zeros_like(), second: like.zeros_like() }
    }
}

/// Where moments are kept.
#[derive(Clone, Debug)]
enum State {
    /// Each by itself, by the parameter's name.
    Apart(BTreeMap<String, Moments>),
    /// Joined, with the parameters of these names; of parameters that had no gradient in the
    /// last step, each by itself.
    Joined { names: Vec<String>, flat: Box<Flat>, others: BTreeMap<String, Moments> },
}

impl State {
    /// The moments by parameter name.
    fn apart(&self) -> BTreeMap<String, Moments> {
        match self {
            Self::Apart(moments) => moments.clone(),
            Self::Joined { names, flat, others } => {
                let moments = flat.first_moments().into_iter().zip(flat.second_moments());
                let moments = moments.map(|(first, second)| Moments { first, second });
                names.iter().cloned().zip(moments).chain(others.clone()).collect()
            }
        }
    }
}

/// The optimizer's state: step count and moments by parameter name.
#[derive(Clone, Debug)]
pub struct AdamW {
    config: AdamWConfig,
    n_steps: u64,
    state: State,
    /// Whether parameters are joined before they are stepped; `None`: by their device.
    joins: Option<bool>,
}

impl AdamW {
    /// An optimizer that has not stepped yet. On a GPU it keeps parameters and moments as one
    /// tensor each, which it does in a handful of operations.
    pub fn new(config: AdamWConfig) -> Self {
        Self { config, n_steps: 0, state: State::Apart(BTreeMap::new()), joins: None }
    }

    /// The same, with parameters and moments as one tensor each on any device.
    pub fn joined(config: AdamWConfig) -> Self {
        Self { joins: Some(true), ..Self::new(config) }
    }

    /// Steps taken.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// One step. `gradients` are consumed; a parameter without a gradient stays as it is.
    ///
    /// Nothing is read from a GPU. Returns the updated module and the global gradient norm
    /// before clipping, `[1]`.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        mut gradients: Gradients,
        learning_rate: f64,
    ) -> (M, Tensor<1>) {
        let mut collect =
            Collect { path: FieldPath::default(), gradients: &mut gradients, found: Vec::new() };
        module.visit(&mut collect);
        let found = collect.found;
        let Some(first) = found.first() else {
            return (module, Tensor::zeros([1], &Device::flex()));
        };
        self.n_steps += 1;
        let constants = kernels::AdamW {
            learning_rate,
            betas: [self.config.beta_1, self.config.beta_2],
            epsilon: self.config.epsilon,
        };
        let joins = self.joins.unwrap_or_else(|| !is_cpu(&first.gradient.device()));
        let (moved, norm) = match joins {
            true => self.step_joined(found, constants),
            false => self.step_apart(found, constants),
        };
        (module.map(&mut Replace { path: FieldPath::default(), moved }), norm)
    }

    /// The moved parameters, and the norm.
    fn step_apart(
        &mut self,
        found: Vec<Found>,
        constants: kernels::AdamW,
    ) -> (BTreeMap<String, Tensor<1>>, Tensor<1>) {
        let State::Apart(mut moments) =
            std::mem::replace(&mut self.state, State::Apart(BTreeMap::new()))
        else {
            unreachable!("an optimizer that joins nothing")
        };
        let (names, slots) = self.slots(found, &mut moments);
        let clip_norm = Some(self.config.clip_norm);
        let (slots, norm) =
            kernels::adamw(constants, self.n_steps, clip_norm, slots, kernels::Form::Auto);
        let mut moved = BTreeMap::new();
        for (name, slot) in names.into_iter().zip(slots) {
            let own = Moments { first: slot.first_moment, second: slot.second_moment };
            moments.insert(name.clone(), own);
            moved.insert(name, slot.parameter);
        }
        self.state = State::Apart(moments);
        (moved, norm)
    }

    /// The same, joined.
    fn step_joined(
        &mut self,
        found: Vec<Found>,
        constants: kernels::AdamW,
    ) -> (BTreeMap<String, Tensor<1>>, Tensor<1>) {
        let is_same = |names: &[String]| names.iter().eq(found.iter().map(|found| &found.name));
        let gradients: Vec<Tensor<1>> = found.iter().map(|found| found.gradient.clone()).collect();
        if !matches!(&self.state, State::Joined { names, .. } if is_same(names)) {
            let mut others = self.state.apart();
            let (names, slots) = self.slots(found, &mut others);
            self.state = State::Joined { names, flat: Box::new(Flat::new(&slots)), others };
        }
        let State::Joined { names, flat, .. } = &mut self.state else {
            unreachable!("it was joined above")
        };
        let norm = flat.step(constants, self.n_steps, Some(self.config.clip_norm), gradients);
        (names.iter().cloned().zip(flat.parameters()).collect(), norm)
    }

    /// Names and slots of parameters; their moments are taken, or zero where there are none.
    fn slots(
        &self,
        found: Vec<Found>,
        moments: &mut BTreeMap<String, Moments>,
    ) -> (Vec<String>, Vec<TensorSlot>) {
        let slot = |Found { name, parameter, gradient }: Found| {
            let moments = moments.remove(&name).unwrap_or_else(|| Moments::zeros(&gradient));
            let decays = self.config.decayed.includes(&name);
            let slot = TensorSlot {
                parameter,
                gradient,
                first_moment: moments.first,
                second_moment: moments.second,
                weight_decay: if decays { self.config.weight_decay } else { 0.0 },
            };
            (name, slot)
        };
        found.into_iter().map(slot).unzip()
    }

    /// The moments as tensors named `first.<parameter>` and `second.<parameter>`.
    pub fn export(&self) -> NamedTensors {
        self.state
            .apart()
            .iter()
            .flat_map(|(name, moments)| {
                [("first", &moments.first), ("second", &moments.second)]
                    .map(|(which, tensor)| (format!("{which}.{name}"), tensor.to_data()))
            })
            .collect()
    }

    /// An optimizer that goes on from exported moments, for `module` on its device.
    ///
    /// # Errors
    /// When a parameter's moment is missing or has another length.
    pub fn import<M: Module>(
        config: AdamWConfig,
        n_steps: u64,
        module: &M,
        tensors: &NamedTensors,
    ) -> Result<Self, ModelError> {
        struct Restore<'a> {
            path: FieldPath,
            tensors: &'a NamedTensors,
            moments: BTreeMap<String, Moments>,
            error: Option<ModelError>,
        }
        impl Restore<'_> {
            fn moment<const D: usize>(
                &self,
                which: &str,
                name: &str,
                value: &Tensor<D>,
            ) -> Result<Tensor<1>, ModelError> {
                let name = format!("{which}.{name}");
                let data = self
                    .tensors
                    .get(&name)
                    .ok_or_else(|| ModelError::MissingTensor { name: name.clone() })?;
                let expected = value.shape().num_elements();
                if data.shape()[..] != [expected] {
                    return Err(ModelError::Shape {
                        name,
                        got: data.shape().to_vec(),
                        expected: vec![expected],
                    });
                }
                let device = value.device().without_autodiff();
                Ok(Tensor::from_data(data.clone(), (&device, data.dtype())))
            }
        }
        impl ModuleVisitor for Restore<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let name = self.path.name();
                let value = param.val();
                let moments = self.moment("first", &name, &value).and_then(|first| {
                    Ok(Moments { first, second: self.moment("second", &name, &value)? })
                });
                match moments {
                    Ok(moments) => {
                        self.moments.insert(name, moments);
                    }
                    Err(error) => {
                        self.error.get_or_insert(error);
                    }
                }
            }
            fn enter_module(&mut self, name: &str, container: &str) {
                self.path.enter(name, container);
            }
            fn exit_module(&mut self, _name: &str, container: &str) {
                self.path.exit(container);
            }
        }
        let mut restore =
            Restore { path: FieldPath::default(), tensors, moments: BTreeMap::new(), error: None };
        if n_steps > 0 {
            module.visit(&mut restore);
        }
        match restore.error {
            Some(error) => Err(error),
            None => {
                let state = State::Apart(restore.moments);
                Ok(Self { config, n_steps, state, joins: None })
            }
        }
    }
}

/// A parameter that has a gradient, flat.
struct Found {
    name: String,
    parameter: Tensor<1>,
    gradient: Tensor<1>,
}

/// Takes every parameter that has a gradient.
struct Collect<'a> {
    path: FieldPath,
    gradients: &'a mut Gradients,
    found: Vec<Found>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let Some(gradient) = value.grad_remove(self.gradients) else { return };
        let n = gradient.shape().num_elements();
        self.found.push(Found {
            name: self.path.name(),
            parameter: value.inner().reshape([n]),
            gradient: gradient.reshape([n]),
        });
    }
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }
}

/// Puts moved parameters in their places.
struct Replace {
    path: FieldPath,
    moved: BTreeMap<String, Tensor<1>>,
}

impl ModuleMapper for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(moved) = self.moved.remove(&self.path.name()) else { return param };
        param.map(|value| {
            let tracked = value.is_autodiff();
            let moved = moved.reshape(value.dims());
            if tracked { moved.autodiff().require_grad() } else { moved }
        })
    }
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }
    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }
}

/// A scalar tensor's value on the host.
pub fn scalar(tensor: Tensor<1>) -> f64 {
    let data: TensorData = tensor.into_data();
    data.iter::<f64>().next().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_model::{
        HeadConfig,
        head::{
            ContinuousHeadConfig, FourierHeadConfig, FourierLikelihoodConfig, GmmHeadConfig,
            GmmLikelihoodConfig,
        },
    };

    #[derive(Module, Debug)]
    struct Two {
        weight: Param<Tensor<1>>,
        bias: Param<Tensor<1>>,
    }

    /// Two hand-computed steps: loss = 3·weight + 4·bias, so the gradient is (3, 4) with
    /// norm 5, clipped to 1: (0.6, 0.8).
    #[track_caller]
    fn check_by_hand(decayed: Decayed, kept_of_bias: f64, new: fn(AdamWConfig) -> AdamW) {
        let device = Device::flex().autodiff();
        let param = |value: f32| Param::from_data([value], &device);
        let mut two = Two { weight: param(1.0), bias: param(2.0) };
        let mut adam = new(AdamWConfig {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 0.1,
            weight_decay: 0.5,
            decayed,
            clip_norm: 1.0,
        });
        for _ in 0..2 {
            let loss = two.weight.val() * 3.0 + two.bias.val() * 4.0;
            let (moved, norm) = adam.step(two, loss.backward(), 0.01);
            two = moved;
            assert!((scalar(norm) - 5.0).abs() < 1e-6);
        }
        // A constant gradient g gives m̂ = g and √v̂ = |g| at every step.
        // w ← w·(1 - 0.01·0.5) - 0.01·0.6/0.7;  b ← b·kept - 0.01·0.8/0.9.
        let twice = |value: f64, kept: f64, step: f64| (value * kept - step) * kept - step;
        let weight = twice(1.0, 0.995, 0.01 * 0.6 / 0.7);
        let bias = twice(2.0, kept_of_bias, 0.01 * 0.8 / 0.9);
        assert!((scalar(two.weight.val().inner()) - weight).abs() < 1e-6);
        assert!((scalar(two.bias.val().inner()) - bias).abs() < 1e-6);
    }

    #[test]
    fn matches_arithmetic_by_hand() {
        for new in [AdamW::new, AdamW::joined] {
            check_by_hand(Decayed::Matrices, 1.0, new);
            check_by_hand(Decayed::Everything, 0.995, new);
        }
    }

    /// A parameter without a gradient stays, and its moments wait for it.
    #[test]
    fn joined_moments_are_those_kept_apart() {
        let device = Device::flex().autodiff();
        let train = |new: fn(AdamWConfig) -> AdamW| {
            let param = |value: f32| Param::from_data([value], &device);
            let mut two = Two { weight: param(1.0), bias: param(2.0) };
            let mut adam = new(AdamWConfig {
                beta_1: 0.9,
                beta_2: 0.99,
                epsilon: 0.1,
                weight_decay: 0.5,
                decayed: Decayed::Matrices,
                clip_norm: 1.0,
            });
            for with_bias in [true, true, false, true] {
                let loss = two.weight.val().square();
                let loss = if with_bias { loss + two.bias.val().square() } else { loss };
                two = adam.step(two, loss.backward(), 0.1).0;
            }
            assert_eq!(adam.n_steps(), 4);
            let numbers = [scalar(two.weight.val().inner()), scalar(two.bias.val().inner())];
            let moments = adam.export();
            assert_eq!(moments.len(), 4);
            let moments = moments.values().flat_map(|data| data.iter::<f64>().collect::<Vec<_>>());
            numbers.into_iter().chain(moments).collect::<Vec<f64>>()
        };
        for (joined, apart) in train(AdamW::joined).iter().zip(train(AdamW::new)) {
            assert!((joined - apart).abs() < 1e-6, "{joined} {apart}");
        }
    }

    #[test]
    fn runs_from_before_the_choice_decay_matrices() {
        let stored =
            r#"{"beta_1":0.9,"beta_2":0.95,"epsilon":1e-8,"weight_decay":0.1,"clip_norm":1.0}"#;
        let config: AdamWConfig = serde_json::from_str(stored).unwrap();
        assert_eq!(config.decayed, Decayed::Matrices);
    }

    /// Of every head the matrices decay, and biases and standard deviations do not.
    #[test]
    fn heads_decay_their_matrices() {
        struct Matrices {
            path: FieldPath,
            n_seen: usize,
        }
        impl ModuleVisitor for Matrices {
            fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
                let name = format!("head.{}", self.path.name());
                assert_eq!(Decayed::Matrices.includes(&name), D == 2, "{name} has {D} axes");
                self.n_seen += 1;
            }
            fn enter_module(&mut self, name: &str, container: &str) {
                self.path.enter(name, container);
            }
            fn exit_module(&mut self, _name: &str, container: &str) {
                self.path.exit(container);
            }
        }
        let device = Device::flex();
        let generator = &mut overtone_core::seed::generator(1, "init");
        let parameters = |head: &dyn Fn(&mut Matrices)| {
            let mut matrices = Matrices { path: FieldPath::default(), n_seen: 0 };
            head(&mut matrices);
            matrices.n_seen
        };
        for (config, expected) in [
            (HeadConfig::Linear, 1),
            (HeadConfig::Fourier(FourierHeadConfig::new(3)), 2),
            (HeadConfig::Gmm(GmmHeadConfig { components: 2, action_order: None }), 3),
        ] {
            let head = config.init(4, 5, &device, generator);
            assert_eq!(parameters(&|visitor| head.visit(visitor)), expected, "{config:?}");
        }
        for (config, expected) in [
            (ContinuousHeadConfig::Tanh, 2),
            (ContinuousHeadConfig::Pointwise, 2),
            (ContinuousHeadConfig::Gaussian, 3),
            (ContinuousHeadConfig::Fourier(FourierLikelihoodConfig::new(3)), 2),
            (ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 2 }), 3),
        ] {
            let head = config.init(4, 5, &device, generator);
            assert_eq!(parameters(&|visitor| head.visit(visitor)), expected, "{config:?}");
        }
    }

    #[test]
    fn decay_groups() {
        for name in ["blocks.0.qkv_weight", "head.weight", "conv_1_weight", "return_weight"] {
            assert!(Decayed::Matrices.includes(name), "{name}");
        }
        for name in [
            "blocks.0.norm_1_weight",
            "final_norm_weight",
            "action_embedding",
            "position_embedding",
            "head.bias",
            "head.raw_std",
            "head.log_std",
            "blocks.0.fourier_r",
            "timestep_embedding",
            "embedding_norm_weight",
        ] {
            assert!(!Decayed::Matrices.includes(name), "{name}");
            assert!(Decayed::Everything.includes(name), "{name}");
        }
    }
}
