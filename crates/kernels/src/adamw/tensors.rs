//! The step in burn tensors, on any device. All parameters are joined in one tensor, and so are the
//! first and the second moments.
//!
//! A GPU is slow to start an operation and fast to execute it. A model has about ninety small
//! parameters, so separate operations would mostly wait for starts. On flat tensors, a step joins
//! the gradients and runs a few operations, for any number of parameters.

use burn::tensor::{Tensor, TensorData};

use super::{AdamW, TensorSlot};
use crate::stored::{ALIGNED, Packing, copy_into};

/// Parameters of one device with their moments, flat and concatenated.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// The place of each parameter.
    packing: Packing,
    /// Zeros up to the longest gap between two parameters.
    gap: Tensor<1>,
    /// Decay of every element per unit of learning rate.
    decay: Tensor<1>,
    parameters: Tensor<1>,
    first_moments: Tensor<1>,
    second_moments: Tensor<1>,
    #[cfg(feature = "cube")]
    gradient: GradientMemory,
}

/// Memory of the joined gradient on a GPU. A clone gets its own.
#[cfg(feature = "cube")]
#[derive(Debug, Default)]
struct GradientMemory(Option<Tensor<1>>);

#[cfg(feature = "cube")]
impl Clone for GradientMemory {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Joined {
    /// Joins the parameters and moments of `slots`, which must not be empty.
    pub fn new(slots: &[TensorSlot]) -> Self {
        let lengths: Vec<usize> = slots.iter().map(|slot| slot.parameter.dims()[0]).collect();
        let like = &slots[0].parameter;
        let options = (&like.device(), like.dtype());
        let gap = Tensor::zeros([ALIGNED], options);
        let packing = Packing::new(lengths);
        let joined = |part: fn(&TensorSlot) -> &Tensor<1>| {
            packing.join(slots.iter().map(|slot| part(slot).clone()), &gap)
        };
        let decay: Vec<f32> = slots
            .iter()
            .zip(packing.lengths())
            .flat_map(|(slot, &length)| {
                std::iter::repeat_n(slot.weight_decay as f32, length.next_multiple_of(ALIGNED))
            })
            .collect();
        Self {
            decay: Tensor::from_data(TensorData::from(&decay[..]), options),
            parameters: joined(|slot| &slot.parameter),
            first_moments: joined(|slot| &slot.first_moment),
            second_moments: joined(|slot| &slot.second_moment),
            packing,
            gap,
            #[cfg(feature = "cube")]
            gradient: GradientMemory::default(),
        }
    }

    /// One step; returns the norm.
    ///
    /// Values that change from step to step are the `factors` of [`AdamW::factors`], `[3]`, so that
    /// the operations are the same in every step. Results are written over the old ones if
    /// `in_place`, else to new memory.
    pub fn step(
        &mut self,
        optimizer: AdamW,
        factors: Tensor<1>,
        clip_norm: Option<f64>,
        gradients: Vec<Tensor<1>>,
        in_place: bool,
    ) -> Tensor<1> {
        assert_eq!(gradients.len(), self.packing.lengths().len(), "a gradient for each parameter");
        #[cfg(feature = "cube")]
        if super::cube::is_possible(&self.parameters) {
            return self.step_on_gpu(optimizer, factors, clip_norm, gradients, in_place);
        }
        let AdamW { betas: [beta1, beta2], epsilon, .. } = optimizer;
        let [rate, corrected_rate, root] = [0, 1, 2].map(|i| factors.clone().narrow(0, i, 1));

        let gradient = self.packing.join(gradients, &self.gap);
        let norm = gradient.clone().square().sum().sqrt();
        let gradient = match clip_norm {
            Some(clip_norm) => {
                gradient * ((norm.clone() + 1e-6).recip() * clip_norm).clamp_max(1.0)
            }
            None => gradient,
        };
        let first = self.first_moments.clone() * beta1 + gradient.clone() * (1.0 - beta1);
        let second = self.second_moments.clone() * beta2 + gradient.square() * (1.0 - beta2);
        let kept = self.parameters.clone() * ((self.decay.clone() * rate).neg() + 1.0);
        let change = first.clone() / (second.clone().sqrt() * root + epsilon);
        let moved = [kept - change * corrected_rate, first, second];
        for (part, moved) in self.memory_mut().into_iter().zip(moved) {
            *part = if in_place { copy_into(part.clone(), moved) } else { moved };
        }
        norm
    }

    #[cfg(feature = "cube")]
    fn step_on_gpu(
        &mut self,
        optimizer: AdamW,
        factors: Tensor<1>,
        clip_norm: Option<f64>,
        gradients: Vec<Tensor<1>>,
        in_place: bool,
    ) -> Tensor<1> {
        let starts: Vec<usize> = self.packing.starts().collect();
        let flat = self.gradient.0.get_or_insert_with(|| self.parameters.zeros_like());
        *flat = super::cube::gather(flat.clone(), gradients, &starts);
        let constant = [flat.clone(), self.decay.clone(), factors];
        let old = self.memory_mut().map(|part| part.clone());
        let [parameters, first, second, norm] =
            super::cube::step(optimizer, clip_norm, constant, old, in_place);
        [self.parameters, self.first_moments, self.second_moments] = [parameters, first, second];
        norm
    }

    /// The factors of a step on the device of the parameters.
    pub fn factors(&self, factors: [f64; 3]) -> Tensor<1> {
        Tensor::from_data(factors, (&self.parameters.device(), self.parameters.dtype()))
    }

    /// Everything that a step changes.
    pub fn memory_mut(&mut self) -> [&mut Tensor<1>; 3] {
        [&mut self.parameters, &mut self.first_moments, &mut self.second_moments]
    }

    /// The parameters in one tensor.
    pub fn joined_parameters(&self) -> &Tensor<1> {
        &self.parameters
    }

    /// The parameters, in their original order. On a GPU they share memory with the flat tensor.
    pub fn parameters(&self) -> Vec<Tensor<1>> {
        self.packing.parts(&self.parameters)
    }

    /// First and second moment of each parameter, in the same order.
    pub fn moments(&self) -> Vec<[Tensor<1>; 2]> {
        let second = self.packing.parts(&self.second_moments);
        let moments = self.packing.parts(&self.first_moments).into_iter().zip(second);
        moments.map(|(first, second)| [first, second]).collect()
    }
}
