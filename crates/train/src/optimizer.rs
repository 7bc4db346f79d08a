//! AdamW with decay groups and clipping by the global norm, as PyTorch computes them.
//!
//! burn's own clips each tensor by itself and has another default epsilon; both change what
//! a transformer learns.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Device, Gradients, Tensor, TensorData},
};
use overtone_kernels::{self as kernels, TensorSlot};
use overtone_model::{
    ModelError,
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

/// The optimizer's state: step count and moments by parameter name.
#[derive(Clone, Debug)]
pub struct AdamW {
    config: AdamWConfig,
    n_steps: u64,
    moments: BTreeMap<String, Moments>,
}

impl AdamW {
    /// An optimizer that has not stepped yet.
    pub fn new(config: AdamWConfig) -> Self {
        Self { config, n_steps: 0, moments: BTreeMap::new() }
    }

    /// Steps taken.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// One step. `gradients` are consumed; a parameter without a gradient stays as it is.
    ///
    /// Returns the updated module and the global gradient norm before clipping, `[1]`.
    pub fn step<M: Module>(
        &mut self,
        module: M,
        mut gradients: Gradients,
        learning_rate: f64,
    ) -> (M, Tensor<1>) {
        let mut collect = Collect {
            path: FieldPath::default(),
            gradients: &mut gradients,
            moments: &mut self.moments,
            config: self.config,
            names: Vec::new(),
            slots: Vec::new(),
        };
        module.visit(&mut collect);
        let Collect { names, slots, .. } = collect;
        if slots.is_empty() {
            return (module, Tensor::zeros([1], &Device::flex()));
        }
        self.n_steps += 1;
        let constants = kernels::AdamW {
            learning_rate,
            betas: [self.config.beta_1, self.config.beta_2],
            epsilon: self.config.epsilon,
        };
        let clip_norm = Some(self.config.clip_norm);
        let (slots, norm) =
            kernels::adamw(constants, self.n_steps, clip_norm, slots, kernels::Form::Auto);
        let mut moved = BTreeMap::new();
        for (name, slot) in names.into_iter().zip(slots) {
            let moments = Moments { first: slot.first_moment, second: slot.second_moment };
            self.moments.insert(name.clone(), moments);
            moved.insert(name, slot.parameter);
        }
        (module.map(&mut Replace { path: FieldPath::default(), moved }), norm)
    }

    /// The moments as tensors named `first.<parameter>` and `second.<parameter>`.
    pub fn export(&self) -> NamedTensors {
        self.moments
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
            None => Ok(Self { config, n_steps, moments: restore.moments }),
        }
    }
}

/// Takes every parameter that has a gradient, with its gradient and moments, flat.
struct Collect<'a> {
    path: FieldPath,
    gradients: &'a mut Gradients,
    moments: &'a mut BTreeMap<String, Moments>,
    config: AdamWConfig,
    names: Vec<String>,
    slots: Vec<TensorSlot>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let Some(gradient) = value.grad_remove(self.gradients) else { return };
        let name = self.path.name();
        let n = gradient.shape().num_elements();
        let gradient = gradient.reshape([n]);
        let moments = self.moments.remove(&name).unwrap_or_else(|| Moments::zeros(&gradient));
        let decays = self.config.decayed.includes(&name);
        self.slots.push(TensorSlot {
            parameter: value.inner().reshape([n]),
            gradient,
            first_moment: moments.first,
            second_moment: moments.second,
            weight_decay: if decays { self.config.weight_decay } else { 0.0 },
        });
        self.names.push(name);
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
    fn check_by_hand(decayed: Decayed, kept_of_bias: f64) {
        let device = Device::flex().autodiff();
        let param = |value: f32| Param::from_data([value], &device);
        let mut two = Two { weight: param(1.0), bias: param(2.0) };
        let mut adam = AdamW::new(AdamWConfig {
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
        check_by_hand(Decayed::Matrices, 1.0);
        check_by_hand(Decayed::Everything, 0.995);
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
