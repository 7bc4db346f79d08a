//! [`Averages`]: running averages of a network's weights, which act instead of the last weights.

use burn::module::Module;

use crate::follow::{copied, follow};

/// Steps between two updates of the averages. The rates below are so small that more frequent
/// updates change nothing, but cost time.
const EVERY: u64 = 10;

/// Running averages of the weights of a network: Polyak averages over a window that grows with the
/// run.
///
/// After the steps `t` that are a multiple of 10, each average moves towards its weight by a
/// fraction of the distance,
///
/// `ā ← ā + κₜ (w − ā)`, `κₜ = min(1, 10 (1 + t)^(−2/3))`,
///
/// so its window is about the last `(1 + t)^(2/3)` steps, 160 of 2,000. Up to step 30 the averages
/// equal the weights.
///
/// Single steps change the return of a policy by far more than its loss, and the average is
/// steadier (Block et al. 2024, "Butterfly effects of SGD noise"). The rate that falls with a power
/// of `t` is Crowson's, in Hugging Face's diffusers, with the default 2/3.
#[derive(Clone, Debug)]
pub(crate) struct Averages<M> {
    /// The network with the averages as its weights, without gradients.
    pub(crate) network: M,
}

impl<M: Module> Averages<M> {
    /// Averages that are initialised from the weights of `network`.
    pub(crate) fn of(network: &M) -> Self {
        Self { network: network.valid() }
    }

    /// [`follow`](Self::follow) for a network whose weights keep their memory, so that it must not be shared.
    pub(crate) fn follow_copied(&mut self, network: &M, step: u64) {
        if rate(step) >= 1.0 {
            self.network = copied(network.valid());
        } else {
            self.follow(network, step);
        }
    }

    /// Updates the averages from `network` after `step` steps.
    pub(crate) fn follow(&mut self, network: &M, step: u64) {
        let rate = rate(step);
        if rate >= 1.0 {
            self.network = network.valid();
        } else if step.is_multiple_of(EVERY) {
            self.network = follow(self.network.clone(), network, rate);
        }
    }
}

/// `κₜ`.
fn rate(step: u64) -> f64 {
    (EVERY as f64 * ((1 + step) as f64).powf(-2.0 / 3.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use burn::{
        module::Param,
        tensor::{Device, Tensor},
    };

    use super::*;
    use crate::optimizer::scalar;

    #[derive(Module, Debug)]
    struct One {
        weight: Param<Tensor<1>>,
    }

    fn one(value: f32) -> One {
        One { weight: Param::from_data([value], &Device::flex().autodiff()) }
    }

    fn average(averages: &Averages<One>) -> f64 {
        scalar(averages.network.weight.val())
    }

    /// The weight is its step's number.
    #[test]
    fn matches_arithmetic_by_hand() {
        let mut averages = Averages::of(&one(0.0));
        let mut expected = 0.0;
        for step in 1..=2000 {
            averages.follow(&one(step as f32), step);
            let weight = step as f64;
            if step <= 30 {
                expected = weight;
            } else if step % 10 == 0 {
                expected += 10.0 / (1.0 + weight).cbrt().powi(2) * (weight - expected);
            }
            assert!((average(&averages) - expected).abs() < 1e-3, "step {step}");
        }
        // A weight that grows by 1 per step is ahead of its average by the average's age.
        let age = 2000.0 - average(&averages);
        assert!((120.0..200.0).contains(&age), "{age}");
        assert!(!averages.network.weight.val().is_autodiff());
    }

    #[test]
    fn a_constant_weight_equals_its_average() {
        let mut averages = Averages::of(&one(0.0));
        for step in 1..=500 {
            averages.follow(&one(-1.25), step);
            assert_eq!(average(&averages), -1.25);
        }
    }
}
