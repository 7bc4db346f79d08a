//! The step in burn tensors, on any device. All parameters are joined in one tensor, and so are the
//! first and the second moments.
//!
//! A GPU is slow to start an operation and fast to execute it. A model has about ninety small
//! parameters, so separate operations would mostly wait for starts. On flat tensors, a step joins
//! the gradients and runs a few operations, for any number of parameters.

use burn::tensor::{Tensor, TensorData};

use super::{AdamW, TensorSlot};

/// Alignment of parts of a flat tensor, in elements, so that the parts can be used in place: GPUs
/// need addresses that are multiples of 256 bytes.
const ALIGNED: usize = 64;

/// Parameters of one device with their moments, flat and concatenated.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// Length of each parameter, in the original order.
    lengths: Vec<usize>,
    /// Index of the parameter at each position.
    order: Vec<usize>,
    /// Decay of every element per unit of learning rate.
    decay: Tensor<1>,
    parameters: Tensor<1>,
    first_moments: Tensor<1>,
    second_moments: Tensor<1>,
}

impl Joined {
    /// Joins the parameters and moments of `slots`, which must not be empty.
    pub fn new(slots: &[TensorSlot]) -> Self {
        let lengths: Vec<usize> = slots.iter().map(|slot| slot.parameter.dims()[0]).collect();
        // The few parameters of other lengths come last, where they do not misalign others.
        let (mut order, rest): (Vec<usize>, Vec<usize>) =
            (0..slots.len()).partition(|&i| lengths[i].is_multiple_of(ALIGNED));
        order.extend(rest);
        let joined = |part: fn(&TensorSlot) -> &Tensor<1>| {
            Tensor::cat(order.iter().map(|&i| part(&slots[i]).clone()).collect(), 0)
        };
        let decay: Vec<f32> = order
            .iter()
            .flat_map(|&i| std::iter::repeat_n(slots[i].weight_decay as f32, lengths[i]))
            .collect();
        let like = &slots[0].parameter;
        Self {
            decay: Tensor::from_data(TensorData::from(&decay[..]), (&like.device(), like.dtype())),
            parameters: joined(|slot| &slot.parameter),
            first_moments: joined(|slot| &slot.first_moment),
            second_moments: joined(|slot| &slot.second_moment),
            lengths,
            order,
        }
    }

    /// One step; returns the norm.
    ///
    /// Values that change from step to step are sent to the device as a tensor, so that the
    /// operations are the same in every step.
    pub fn step(
        &mut self,
        optimizer: AdamW,
        step: u64,
        clip_norm: Option<f64>,
        gradients: Vec<Tensor<1>>,
    ) -> Tensor<1> {
        assert!(step > 0, "steps count from 1");
        assert_eq!(gradients.len(), self.lengths.len(), "a gradient for each parameter");
        let AdamW { learning_rate, betas: [beta1, beta2], epsilon } = optimizer;
        let [correction1, correction2] = [beta1, beta2].map(|beta| 1.0 - beta.powf(step as f64));
        let factors = [learning_rate, learning_rate / correction1, 1.0 / correction2.sqrt()];
        let like = &self.parameters;
        let factors = Tensor::<1>::from_data(factors, (&like.device(), like.dtype()));
        let [rate, corrected_rate, root] = [0, 1, 2].map(|i| factors.clone().narrow(0, i, 1));

        let gradient = Tensor::cat(self.order.iter().map(|&i| gradients[i].clone()).collect(), 0);
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
        self.parameters = kept - change * corrected_rate;
        self.first_moments = first;
        self.second_moments = second;
        norm
    }

    /// The parameters, in their original order. They share memory with the flat tensor if the
    /// device supports it.
    pub fn parameters(&self) -> Vec<Tensor<1>> {
        self.parts(&self.parameters)
    }

    /// First and second moment of each parameter, in the same order.
    pub fn moments(&self) -> Vec<[Tensor<1>; 2]> {
        let second = self.parts(&self.second_moments);
        let moments = self.parts(&self.first_moments).into_iter().zip(second);
        moments.map(|(first, second)| [first, second]).collect()
    }

    fn parts(&self, joined: &Tensor<1>) -> Vec<Tensor<1>> {
        let mut starts = vec![0; self.lengths.len()];
        let mut start = 0;
        for &i in &self.order {
            starts[i] = start;
            start += self.lengths[i];
        }
        let parts = starts.into_iter().zip(&self.lengths);
        parts.map(|(start, &length)| joined.clone().narrow(0, start, length)).collect()
    }
}
