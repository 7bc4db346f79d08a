//! Comparison with a PyTorch program of the same equations and with d3rlpy's fitted Q-evaluation,
//! 20 steps each. `scripts/peers/fqe_golden.py` generates the files.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;

use burn::tensor::{DType, Device, Tensor};
use overtone_agents::value::network::Hidden;
use overtone_core::seed;
use overtone_judge::{
    FittedQ, RecordedSteps,
    fitted_q::{Critic, weighted_squares},
};
use overtone_model::weights::{self, NamedTensors};
use overtone_testkit::{Golden, assert_close, golden::Array};
use overtone_train::{Target, optimizer::scalar};

/// Losses relative, tensors relative to their largest entry. In `f64` against our PyTorch program;
/// largest difference seen: 2e-15.
const DOUBLE: f64 = 1e-12;
/// In `f32`, with the fused operations, against d3rlpy in the same precision, and against our PyTorch
/// program in double precision; largest differences seen: 7e-7 and 5e-7.
const SINGLE: f64 = 1e-5;

const OBSERVATION: usize = 5;
const ACTION: usize = 3;
const WIDTH: usize = 16;
const N_STEPS: usize = 20;
const LEARNING_RATE: f64 = 3e-3;
const TARGET_RATE: f64 = 0.05;
/// Steps between two copies of d3rlpy's target, from step 0 on.
const COPY_EVERY: usize = 6;

struct Case {
    golden: Golden,
    fitted_q: FittedQ,
    dtype: DType,
    tolerance: f64,
}

impl Case {
    fn of(name: &str, n_policies: usize, (dtype, tolerance): (DType, f64)) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let golden = Golden::read(&folder.join(format!("{name}.safetensors")));
        let is_own = name.starts_with("own");
        let bounds = if is_own { [-1.5, 1.2] } else { [f64::NEG_INFINITY, f64::INFINITY] };
        let is_discrete = name.ends_with("discrete");
        let fitted_q = FittedQ { n_policies, width: ACTION, is_discrete, gamma: 0.97, bounds };
        Self { golden, fitted_q, dtype, tolerance }
    }

    fn column(&self, name: &str, step: usize) -> Tensor<2> {
        let Array { shape, values, single } = self.golden.get(&format!("batch/{name}"));
        let [_, rows, width] = shape[..] else { panic!("{name}: {shape:?}") };
        let values = values[step * rows * width..][..rows * width].to_vec();
        let of_step = Array { shape: vec![rows, width], values, single: *single };
        of_step.tensor(&Device::flex(), self.dtype)
    }

    fn steps(&self, step: usize) -> RecordedSteps {
        RecordedSteps {
            observations: self.column("observations", step),
            actions: self.column("actions", step),
            rewards: self.column("rewards", step),
            continues: self.column("continues", step),
            next_observations: self.column("next_observations", step),
            next_policies: self.column("next_policies", step),
            weights: self.column("weights", step),
        }
    }

    /// The critic before the first step.
    fn critic(&self) -> Critic {
        let hidden = Hidden { n_layers: 2, width: WIDTH, has_norms: true };
        let mut generator = seed::generator(0, "init");
        let network = self.fitted_q.network(OBSERVATION, hidden, 0.0, &mut generator);
        let critic = Critic::new(weights::import(network, &self.tensors("online")).unwrap());
        let target = weights::import(critic.target.network, &self.tensors("target")).unwrap();
        Critic { target: Target::with(target), ..critic }
    }

    /// The initial tensors of a network.
    fn tensors(&self, network: &str) -> NamedTensors {
        let prefix = format!("initial/{network}.");
        let named = self.golden.iter().filter_map(|(name, array)| {
            Some((name.strip_prefix(&prefix)?.to_owned(), array.data(self.dtype)))
        });
        named.collect()
    }

    #[track_caller]
    fn check(&self, prefix: &str, ours: &NamedTensors) {
        // Three layers and two norms.
        assert_eq!(ours.len(), 10, "{prefix}");
        for (name, got) in ours {
            let name = format!("{prefix}.{name}");
            let expected = self.golden.get(&name);
            assert_eq!(got.shape()[..], expected.shape[..], "{name}");
            let got: Vec<f64> = got.iter::<f64>().collect();
            let scale = expected.values.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
            assert_close(&name, &got, &expected.values, 0.0, self.tolerance * scale);
        }
    }

    #[track_caller]
    fn check_loss(&self, step: usize, loss: &Tensor<1>) {
        let expected = self.golden.get("loss").values[step];
        let what = format!("loss of step {step}");
        assert_close(&what, &[scalar(loss.clone().inner())], &[expected], self.tolerance, 0.0);
    }

    fn check_final(&self, critic: &Critic) {
        self.check("final/online", &weights::export(&critic.online.network));
        self.check("final/target", &weights::export(&critic.target.network));
    }
}

#[track_caller]
fn check_own(name: &str) {
    for precision in [(DType::F64, DOUBLE), (DType::F32, SINGLE)] {
        let case = Case::of(name, 4, precision);
        let mut critic = case.critic();
        let mut n_clipped = 0;
        for step in 0..N_STEPS {
            let steps = case.steps(step);
            let targets = case.fitted_q.targets(&critic.target.network, &steps);
            let [low, high] = case.fitted_q.bounds;
            let values: Vec<f64> = targets.to_data().iter::<f64>().collect();
            let is_at_bound = |&&y: &&f64| (y - low).abs() < 1e-6 || (y - high).abs() < 1e-6;
            n_clipped += values.iter().filter(is_at_bound).count();
            let errors = case.fitted_q.errors(&critic.online.network, &steps, targets);
            let loss = weighted_squares(errors, &steps.weights);
            case.check_loss(step, &loss);
            if step == 0 {
                let gradients = weights::export_gradients(&critic.online.network, &loss.backward());
                case.check("gradient/online", &gradients);
            }
            case.fitted_q.learn(&mut critic, &steps, [LEARNING_RATE, TARGET_RATE]);
        }
        assert!(n_clipped > 50, "{n_clipped} targets were clipped");
        case.check_final(&critic);
    }
}

#[test]
fn continuous_actions_as_pytorch() {
    check_own("own_continuous");
}

#[test]
fn discrete_actions_as_pytorch() {
    check_own("own_discrete");
}

/// d3rlpy has one policy, copies its target and does not clip. Its loss of discrete actions is
/// Huber's.
#[track_caller]
fn check_d3rlpy(name: &str) {
    let case = Case::of(name, 1, (DType::F32, SINGLE));
    let mut critic = case.critic();
    for step in 0..N_STEPS {
        let steps = case.steps(step);
        let targets = case.fitted_q.targets(&critic.target.network, &steps);
        let errors = case.fitted_q.errors(&critic.online.network, &steps, targets);
        let loss = if case.fitted_q.is_discrete {
            let size = errors.abs();
            let quadratic = size.clone().clamp_max(1.0);
            (quadratic.clone() * (size - quadratic / 2.0)).mean()
        } else {
            weighted_squares(errors, &steps.weights)
        };
        case.check_loss(step, &loss);
        critic.descend(&loss, LEARNING_RATE);
        if step.is_multiple_of(COPY_EVERY) {
            critic.follow(1.0);
        }
    }
    case.check_final(&critic);
}

#[test]
fn continuous_actions_as_d3rlpy() {
    check_d3rlpy("d3rlpy_continuous");
}

#[test]
fn discrete_actions_as_d3rlpy() {
    check_d3rlpy("d3rlpy_discrete");
}
