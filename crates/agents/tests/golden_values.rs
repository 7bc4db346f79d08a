//! The value-based algorithms against a program of the same equations in PyTorch, 20 steps of
//! each: `scripts/peers/value_golden.py` makes the files.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_agents::{
    Td3Bc, Td3BcConfig,
    value::{ActorCritic, Steps},
};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::weights::{self, NamedTensors};
use overtone_testkit::{Golden, assert_close, golden::Array};
use overtone_train::{AdamWConfig, Algorithm, Exported, Stored, TrainConfig, optimizer::scalar};

/// Of the largest entry of a tensor, in `f64`. Largest seen: 1e-13 (losses and gradients), 2e-9
/// (parameters after 20 steps).
const DOUBLE: f64 = 1e-8;
/// Likewise in `f32`, by the fused operations.
const SINGLE: f64 = 1e-4;

const OBSERVATION: usize = 11;
const ACTION: usize = 3;
const HIDDEN: usize = 32;
const N_STEPS: u64 = 20;
const LEARNING_RATE: f64 = 3e-3;
const TARGET_RATE: f64 = 0.05;

/// A file's numbers in one precision.
struct Case {
    golden: Golden,
    dtype: DType,
}

impl Case {
    fn both(name: &str) -> [Self; 2] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let golden = Golden::read(&folder.join(format!("{name}.safetensors")));
        [DType::F64, DType::F32].map(|dtype| Self { golden: golden.clone(), dtype })
    }

    fn tolerance(&self) -> f64 {
        if self.dtype == DType::F64 { DOUBLE } else { SINGLE }
    }

    /// The batch's column of a step, `[rows, width]`.
    fn column(&self, name: &str, step: u64) -> Tensor<2> {
        let Array { shape, values, single } = self.golden.get(&format!("batch/{name}"));
        let [_, rows, width] = shape[..] else { panic!("{name}: {shape:?}") };
        let values = values[step as usize * rows * width..][..rows * width].to_vec();
        Array { shape: vec![rows, width], values, single: *single }
            .tensor(&Device::flex(), self.dtype)
    }

    fn steps(&self, step: u64) -> Steps {
        let [observations, actions, rewards, goes_on, next_observations, next_actions] =
            ["observations", "actions", "rewards", "goes_on", "next_observations", "next_actions"]
                .map(|name| self.column(name, step));
        Steps { observations, actions, rewards, goes_on, next_observations, next_actions }
    }

    /// The tensors under `prefix/`.
    fn tensors(&self, prefix: &str) -> NamedTensors {
        let named = self.golden.iter().filter_map(|(name, array)| {
            let name = name.strip_prefix(prefix)?.strip_prefix('/')?;
            Some((name.to_owned(), array.data(self.dtype)))
        });
        named.collect()
    }

    /// The state before the first step; `acts` is the part that plays.
    fn state<A: Algorithm>(&self, algorithm: &A, acts: &str, optimizers: &[&str]) -> A::State {
        let device = Device::flex().autodiff();
        let optimizer = AdamWConfig { clip_norm: 1e9, ..AdamWConfig::default() };
        let config = TrainConfig { optimizer, ..TrainConfig::default() };
        let mut generator = seed::generator(0, "init");
        let state = algorithm.init(&config, &device, &mut generator).unwrap();
        let (mut model, mut training) = (NamedTensors::new(), NamedTensors::new());
        for (name, data) in self.tensors("initial") {
            match name.strip_prefix(acts).and_then(|name| name.strip_prefix('.')) {
                Some(name) => model.insert(name.to_owned(), data),
                None => training.insert(name, data),
            };
        }
        for optimizer in optimizers {
            training.insert(format!("{optimizer}.n_steps"), TensorData::from([0.0]));
        }
        state.import(&Exported { model, training }, 0).unwrap()
    }

    /// Tensors of ours under `part` against those of the file under `prefix/part`.
    #[track_caller]
    fn check(&self, prefix: &str, part: &str, ours: &NamedTensors) {
        assert!(!ours.is_empty(), "{prefix}/{part} is empty");
        for (name, got) in ours {
            let name = format!("{prefix}/{part}.{name}");
            let expected = self.golden.get(&name);
            assert_eq!(got.shape()[..], expected.shape[..], "{name}");
            let got: Vec<f64> = got.iter::<f64>().collect();
            let scale = expected.values.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
            assert_close(&name, &got, &expected.values, 0.0, self.tolerance() * scale.max(1e-9));
        }
    }

    /// All networks in the end, those that play and those that do not.
    #[track_caller]
    fn check_final(&self, state: &impl Stored, acts: &str) {
        let (model, mut training) = (state.export_model(), state.export_training());
        self.check("final", acts, &model);
        training.retain(|name, _| !name.contains("optimizer."));
        let n = self.tensors("final").len();
        assert_eq!(model.len() + training.len(), n, "networks of the file");
        for (name, data) in training {
            let (part, name) = name.split_once('.').unwrap();
            self.check("final", part, &NamedTensors::from([(name.to_owned(), data)]));
        }
    }

    #[track_caller]
    fn check_loss(&self, name: &str, step: u64, got: Tensor<1>) {
        let expected = self.golden.get(&format!("loss/{name}")).values[step as usize];
        let what = format!("{name} loss of step {step}");
        let got = if got.is_autodiff() { got.inner() } else { got };
        assert_close(&what, &[scalar(got)], &[expected], self.tolerance(), 0.0);
    }
}

fn spaces() -> (ObservationSpace, ActionSpace) {
    (ObservationSpace::Vectors { width: OBSERVATION }, ActionSpace::unit(ACTION))
}

const ACTOR_CRITIC: [&str; 2] = ["actor_optimizer", "critic_optimizer"];

#[test]
fn td3_bc() {
    let config = Td3BcConfig { hidden: HIDDEN, target_rate: TARGET_RATE, ..Td3BcConfig::default() };
    let (observations, actions) = spaces();
    let algorithm = Td3Bc { config, observations, actions };
    for case in Case::both("td3_bc") {
        let mut state: ActorCritic = case.state(&algorithm, "actor", &ACTOR_CRITIC);
        let (steps, noise) = (case.steps(0), case.column("noise", 0));
        let [loss, _] = algorithm.critic_loss(&state, &steps, noise);
        let gradients = weights::export_gradients(&state.critics, &loss.backward());
        case.check("gradient", "critics", &gradients);
        let loss = algorithm.actor_loss(&state, &steps);
        let gradients = weights::export_gradients(&state.actor, &loss.backward());
        case.check("gradient", "actor", &gradients);
        for step in 0..N_STEPS {
            let (steps, noise) = (case.steps(step), case.column("noise", step));
            // Only every second step has an actor's loss, and reports it twice.
            let figures = algorithm.learn(&mut state, &steps, noise, (step, LEARNING_RATE));
            case.check_loss("critic", step, figures.loss);
            if step % 2 == 1 {
                case.check_loss("actor", step, figures.others[0].clone() / 2.0);
            }
        }
        case.check_final(&state, "actor");
    }
}
