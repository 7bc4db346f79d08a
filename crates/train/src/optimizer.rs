//! AdamW with decay groups and clipping by the global norm, as PyTorch computes them.
//!
//! burn's own clips each tensor by itself and has another default epsilon; both change what
//! a transformer learns.

mod decayed;
mod moments;
mod parameters;

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{Device, Gradients, Tensor, TensorData},
};
use overtone_kernels::{self as kernels, Flat, TensorSlot};
use overtone_model::{ModelError, device::is_cpu, weights::NamedTensors};
use serde::{Deserialize, Serialize};

pub use self::decayed::Decayed;
use self::{
    moments::Moments,
    parameters::{Found, replace, with_gradients},
};

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
        let found = with_gradients(&module, &mut gradients);
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
        (replace(module, moved), norm)
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
        moments::export(&self.state.apart())
    }

    /// The same optimizer, going on from exported moments for `module` on its device.
    ///
    /// # Errors
    /// When a parameter's moment is missing or has another length.
    pub fn import<M: Module>(
        self,
        n_steps: u64,
        module: &M,
        tensors: &NamedTensors,
    ) -> Result<Self, ModelError> {
        let moments = match n_steps {
            0 => BTreeMap::new(),
            _ => moments::import(module, tensors)?,
        };
        Ok(Self { n_steps, state: State::Apart(moments), ..self })
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
    use burn::module::Param;

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
}
