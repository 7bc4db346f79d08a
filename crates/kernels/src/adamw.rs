//! AdamW with clipping by the global norm, as PyTorch computes it (Loshchilov & Hutter 2019).
//!
//! The `t`-th step, from 1, with `g` the gradient after clipping:
//!
//! - `m ← β₁ m + (1 − β₁) g`, `v ← β₂ v + (1 − β₂) g²`
//! - `p ← p (1 − η λ) − η / (1 − β₁ᵗ) · m / (sqrt(v / (1 − β₂ᵗ)) + ε)`
//!
//! [`AdamWState`] contains parameters and moments and takes the step. On the CPU in `f32` it is one
//! loop over slices on all threads. Elsewhere it is a few operations on tensors, with
//! all parameters joined to one. That form runs on any device in any float type, and the tests
//! compare the loop with it.

#[cfg(feature = "cube")]
mod cube;
mod slices;
mod tensors;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{is_flex_f32, primitive};
use crate::polyak::contiguous;
use slices::{Slot, adamw_step, clip_factor, global_norm};
use tensors::Joined;

/// The optimizer's constants, with the same meaning as in PyTorch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Step size.
    pub learning_rate: f64,
    /// Decay rates of the averages of the gradient and of its square.
    pub betas: [f64; 2],
    /// Added to the square root of the second moment.
    pub epsilon: f64,
}

impl AdamW {
    /// The factors of the `step`-th step (from 1) that change from step to step: `η`,
    /// `η / (1 − β₁ᵗ)` and `1 / sqrt(1 − β₂ᵗ)`.
    ///
    /// # Panics
    /// When `step` is zero.
    pub fn factors(&self, step: u64) -> [f64; 3] {
        assert!(step > 0, "steps count from 1");
        let [correction1, correction2] = self.betas.map(|beta| 1.0 - beta.powf(step as f64));
        let rate = self.learning_rate;
        [rate, rate / correction1, 1.0 / correction2.sqrt()]
    }
}

impl Default for AdamW {
    /// PyTorch's defaults.
    fn default() -> Self {
        Self { learning_rate: 1e-3, betas: [0.9, 0.999], epsilon: 1e-8 }
    }
}

/// One parameter and its moments, flat and of one length, on a device without autodiff.
#[derive(Clone, Debug)]
pub struct TensorSlot {
    /// The values to optimize.
    pub parameter: Tensor<1>,
    /// Average of the gradient; zero before the first step.
    pub first_moment: Tensor<1>,
    /// Average of the gradient's square; zero before the first step.
    pub second_moment: Tensor<1>,
    /// Decay per unit of learning rate, independent of the gradient.
    pub weight_decay: f64,
}

/// Parameters of one device with their moments.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use overtone_kernels::{AdamW, AdamWState, Form, TensorSlot};
///
/// let zero = || Tensor::<1>::zeros([1], &Device::flex());
/// let parameter = Tensor::from_data([3.0f32], &Device::flex());
/// let slot = TensorSlot {
///     parameter,
///     first_moment: zero(),
///     second_moment: zero(),
///     weight_decay: 0.5,
/// };
/// let mut state = AdamWState::new(vec![slot], Form::Auto);
/// let optimizer = AdamW { learning_rate: 0.1, ..AdamW::default() };
/// let gradient = Tensor::from_data([2.0f32], &Device::flex());
/// let norm = state.step(optimizer, 1, None, vec![gradient]);
/// assert_eq!(norm.into_scalar::<f32>(), 2.0);
/// // 3 · (1 − 0.1 · 0.5) − 0.1 · 2 / 2
/// let moved = state.parameters()[0].clone().into_scalar::<f32>();
/// assert!((moved - 2.75).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct AdamWState(Held);

#[derive(Clone, Debug)]
enum Held {
    /// Each parameter separately, for the loop over slices.
    Apart(Vec<TensorSlot>),
    /// All in one tensor.
    Joined(Box<Joined>),
}

impl AdamWState {
    /// A state that starts from these parameters and moments.
    ///
    /// # Panics
    /// When there is no slot, or the tensors of a slot differ in length.
    pub fn new(slots: Vec<TensorSlot>, form: Form) -> Self {
        assert!(!slots.is_empty(), "an optimizer needs at least one parameter");
        for slot in &slots {
            let [n] = slot.parameter.dims();
            let lengths = [slot.first_moment.dims(), slot.second_moment.dims()];
            assert_eq!(lengths, [[n]; 2], "a parameter of {n} elements and its moments");
        }
        let is_plain = |slot: &TensorSlot| {
            is_plain(&slot.parameter)
                && is_plain(&slot.first_moment)
                && is_plain(&slot.second_moment)
        };
        if form != Form::Reference && slots.iter().all(is_plain) {
            return Self(Held::Apart(slots));
        }
        Self(Held::Joined(Box::new(Joined::new(&slots))))
    }

    /// One step, the `step`-th (from 1), as defined in the [module](self). `gradients` contains one
    /// flat gradient for each parameter. Returns the norm of all of them before clipping, `[1]`.
    ///
    /// With a `clip_norm`, gradients are first multiplied by `min(1, clip_norm / (norm + 1e-6))`, as in
    /// PyTorch. It does not read from
    /// a GPU. On the CPU, moments without other references are written in place.
    ///
    /// # Panics
    /// When the numbers of gradients and parameters differ, or `step` is zero.
    pub fn step(
        &mut self,
        optimizer: AdamW,
        step: u64,
        clip_norm: Option<f64>,
        gradients: Vec<Tensor<1>>,
    ) -> Tensor<1> {
        match &mut self.0 {
            Held::Apart(slots) => step_apart(slots, optimizer, step, clip_norm, gradients),
            Held::Joined(joined) => {
                let factors = joined.factors(optimizer.factors(step));
                joined.step(optimizer, factors, clip_norm, gradients, false)
            }
        }
    }

    /// The same step with its [factors](AdamW::factors) on the device, `[3]`, for a step that is
    /// recorded: on a GPU, parameters and moments keep their memory. Clones of this state and the
    /// tensors that it returned before share that memory, so they change too.
    ///
    /// # Panics
    /// When the numbers of gradients and parameters differ, or this is the form for CPUs.
    pub fn step_in_place(
        &mut self,
        optimizer: AdamW,
        factors: Tensor<1>,
        clip_norm: Option<f64>,
        gradients: Vec<Tensor<1>>,
    ) -> Tensor<1> {
        match &mut self.0 {
            Held::Apart(_) => panic!("a step on a CPU is not recorded"),
            Held::Joined(joined) => joined.step(optimizer, factors, clip_norm, gradients, true),
        }
    }

    /// Everything that a step changes, if it is in a few flat tensors.
    pub fn memory(&mut self) -> Vec<&mut Tensor<1>> {
        match &mut self.0 {
            Held::Apart(_) => Vec::new(),
            Held::Joined(joined) => joined.memory_mut().into(),
        }
    }

    /// The parameters in one tensor, in the order of their [`Packing`](crate::stored::Packing); `None` if
    /// each is separate.
    pub fn joined_parameters(&self) -> Option<&Tensor<1>> {
        match &self.0 {
            Held::Apart(_) => None,
            Held::Joined(joined) => Some(joined.joined_parameters()),
        }
    }

    /// The parameters, in their original order.
    pub fn parameters(&self) -> Vec<Tensor<1>> {
        match &self.0 {
            Held::Apart(slots) => slots.iter().map(|slot| slot.parameter.clone()).collect(),
            Held::Joined(joined) => joined.parameters(),
        }
    }

    /// First and second moment of each parameter, in the same order.
    pub fn moments(&self) -> Vec<[Tensor<1>; 2]> {
        match &self.0 {
            Held::Apart(slots) => slots
                .iter()
                .map(|slot| [slot.first_moment.clone(), slot.second_moment.clone()])
                .collect(),
            Held::Joined(joined) => joined.moments(),
        }
    }
}

fn step_apart(
    slots: &mut Vec<TensorSlot>,
    optimizer: AdamW,
    step: u64,
    clip_norm: Option<f64>,
    gradients: Vec<Tensor<1>>,
) -> Tensor<1> {
    assert_eq!(gradients.len(), slots.len(), "a gradient for each parameter");
    let device = slots[0].parameter.device();
    let gradients: Vec<FlexTensor> = gradients.into_iter().map(contiguous).collect();
    let norm = global_norm(gradients.iter().map(FlexTensor::storage::<f32>));
    let scale = clip_norm.map_or(1.0, |clip_norm| clip_factor(norm, clip_norm));

    // The slots' own references end here, so moments without other references are written in place.
    let (mut parts, decays): (Vec<[FlexTensor; 3]>, Vec<f64>) = std::mem::take(slots)
        .into_iter()
        .map(|slot| {
            let parts = [slot.parameter, slot.first_moment, slot.second_moment];
            (parts.map(contiguous), slot.weight_decay)
        })
        .unzip();
    // A model holds the parameters too, so new ones are written to other memory.
    let mut moved: Vec<Buffer> =
        parts.iter().map(|[parameter, ..]| Buffer::new(parameter.storage::<f32>().len())).collect();
    let flat = parts.iter_mut().zip(&mut moved).zip(&gradients).zip(&decays).map(
        |((([parameter, first_moment, second_moment], moved), gradient), weight_decay)| Slot {
            old: parameter.storage(),
            parameter: moved,
            gradient: gradient.storage(),
            first_moment: first_moment.storage_mut(),
            second_moment: second_moment.storage_mut(),
            weight_decay: *weight_decay,
        },
    );
    adamw_step(optimizer, step, scale, flat.collect());

    *slots = parts
        .into_iter()
        .zip(moved)
        .zip(decays)
        .map(|(([_, first_moment, second_moment], moved), weight_decay)| {
            let n = moved.len();
            let [parameter, first_moment, second_moment] =
                [primitive(moved, [n]), first_moment, second_moment]
                    .map(Tensor::from_primitive::<Flex>);
            TensorSlot { parameter, first_moment, second_moment, weight_decay }
        })
        .collect();
    Tensor::from_data([norm as f32], &device)
}

fn is_plain(tensor: &Tensor<1>) -> bool {
    is_flex_f32(tensor) && !tensor.device().is_autodiff()
}
