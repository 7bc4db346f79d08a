//! Comparison of the value-based algorithms with a PyTorch program of the same equations, 20 steps
//! each. `scripts/peers/value_golden.py` generates the files.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_agents::{
    DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig, RebracConfig, Td3BcConfig,
    discrete_cql::{CqlLoss, DiscreteCqlState},
    iql::{Continuous, Discrete, InChunks, IqlLosses, Networks, StateOf},
    value::{ActorCritic, DiscreteSteps, Steps, Td3, td3::Td3Options},
};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    contexts::Observed,
    head::{HeadConfig, LinearConfig},
    weights::{self, NamedTensors},
};
use overtone_testkit::{Golden, assert_close, golden::Array};
use overtone_train::{
    AdamWConfig, Algorithm, Exported, Stored, TrainConfig, TransitionTensors, optimizer::scalar,
};

/// Losses relative, tensors relative to their largest entry, in `f64`: gradients of the first step
/// and parameters after 20.
const DOUBLE: f64 = 1e-8;
/// The same in `f32`, with the fused operations.
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
        let [observations, actions, rewards, continues, next_observations, next_actions] =
            ["observations", "actions", "rewards", "goes_on", "next_observations", "next_actions"]
                .map(|name| self.column(name, step));
        Steps {
            observations,
            actions,
            rewards,
            continues,
            next_observations,
            next_actions,
            step_weights: None,
            counts: None,
        }
    }

    /// The tensors under `prefix/`.
    fn tensors(&self, prefix: &str) -> NamedTensors {
        let named = self.golden.iter().filter_map(|(name, array)| {
            let name = name.strip_prefix(prefix)?.strip_prefix('/')?;
            Some((name.to_owned(), array.data(self.dtype)))
        });
        named.collect()
    }

    /// The state before the first step; `acts` is the acting part.
    fn state<A: Algorithm>(&self, algorithm: &A, acts: &str, optimizers: &[&str]) -> A::State {
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
        self.fresh(algorithm).import(&Exported { model, training }, 0).unwrap()
    }

    /// A state of the algorithm's sizes.
    fn fresh<A: Algorithm>(&self, algorithm: &A) -> A::State {
        let optimizer = AdamWConfig { clip_norm: 1e9, ..AdamWConfig::default() };
        let config = TrainConfig { optimizer, ..TrainConfig::default() };
        let mut generator = seed::generator(0, "init");
        algorithm.init(&config, &Device::flex().autodiff(), &mut generator).unwrap()
    }

    /// Our tensors under `part` against the file's tensors under `prefix/part`.
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

    /// All networks at the end, acting or not.
    #[track_caller]
    fn check_final(&self, state: &impl Stored, acts: &str) {
        let (model, mut training) = (state.export_model(), state.export_training());
        self.check("final", acts, &model);
        let is_moment = |name: &str| name.starts_with("first.") || name.starts_with("second.");
        training.retain(|name, _| !name.contains("optimizer.") && !is_moment(name));
        let n = self.tensors("final").len();
        assert_eq!(model.len() + training.len(), n, "networks of the file");
        self.check_parts("final", training);
    }

    /// Our tensors, each with the name of its part in front.
    #[track_caller]
    fn check_parts(&self, prefix: &str, ours: NamedTensors) {
        for (name, data) in ours {
            let (part, name) = name.split_once('.').unwrap();
            self.check(prefix, part, &NamedTensors::from([(name.to_owned(), data)]));
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

/// Gradients of the first step, all losses, and all networks at the end.
fn check_td3<O: Td3Options>(options: O) {
    let (observations, actions) = spaces();
    let algorithm = Td3::new(options, &observations, &actions);
    for case in Case::both(O::NAME) {
        let mut state: ActorCritic = case.state(&algorithm, "actor", &ACTOR_CRITIC);
        let (steps, noise) = (case.steps(0), case.column("noise", 0));
        let [loss, _] = algorithm.config.critic_loss(&state, &steps, noise);
        let gradients = weights::export_gradients(&state.critics.network, &loss.backward());
        case.check("gradient", "critics", &gradients);
        let loss = algorithm.config.actor_loss(&state, &steps);
        let gradients = weights::export_gradients(&state.actor.network, &loss.backward());
        case.check("gradient", "actor", &gradients);
        for step in 0..N_STEPS {
            let (steps, noise) = (case.steps(step), case.column("noise", step));
            let figures = algorithm.learn(&mut state, &steps, noise, (step, LEARNING_RATE));
            case.check_loss("critic", step, figures.loss);
            // Only every second step has an actor's loss.
            if step % 2 == 1 {
                case.check_loss("actor", step, figures.others[0].clone());
            }
        }
        case.check_final(&state, "actor");
    }
}

#[test]
fn td3_bc() {
    let sizes = Td3BcConfig::default();
    check_td3(Td3BcConfig { hidden: HIDDEN, target_rate: TARGET_RATE, ..sizes });
}

#[test]
fn rebrac() {
    check_td3(RebracConfig {
        actor_penalty: 0.03,
        critic_penalty: 0.02,
        hidden: HIDDEN,
        target_rate: TARGET_RATE,
        normalize: false,
        ..RebracConfig::default()
    });
}

/// Gradients of the first step, all losses, and all networks at the end.
fn check_iql<N: Networks>(name: &str, networks: &N, steps: impl Fn(&Case, u64) -> N::Steps) {
    let sizes = IqlConfig::default();
    let config = IqlConfig { beta: 3.0, hidden: HIDDEN, target_rate: TARGET_RATE, ..sizes };
    let algorithm = Iql::new(config, networks.clone());
    for case in Case::both(name) {
        let mut state: StateOf<N> = case.state(&algorithm, "actor", &ACTOR_CRITIC);
        let IqlLosses { value, critic, actor, .. } = algorithm.losses(&state, &steps(&case, 0));
        let total = critic.into_iter().fold(value + actor, |total, critic| total + critic);
        let gradients = total.backward();
        let of_actor = weights::export_gradients(&state.actor.network, &gradients);
        case.check("gradient", "actor", &of_actor);
        let of_values = weights::export_gradients(&state.critics.network, &gradients);
        case.check_parts("gradient", of_values);
        for step in 0..N_STEPS {
            let steps = steps(&case, step);
            let IqlLosses { value, critic, actor, .. } = algorithm.losses(&state, &steps);
            case.check_loss("value", step, value);
            if let Some(critic) = critic {
                case.check_loss("critic", step, critic);
            }
            case.check_loss("actor", step, actor);
            let progress = step as f64 / N_STEPS as f64;
            let falling = 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
            algorithm.learn(&mut state, &steps, [LEARNING_RATE, LEARNING_RATE * falling]);
        }
        case.check_final(&state, "actor");
    }
}

#[test]
fn iql() {
    let (observations, actions) = spaces();
    check_iql("iql", &Continuous::new(&observations, &actions), Case::steps);
}

/// Without critics. A chunk is an action with more numbers.
#[test]
fn iql_in_chunks() {
    let (observations, actions) = spaces();
    check_iql("iql_in_chunks", &InChunks::new(&observations, &actions), Case::steps);
}

#[test]
fn iql_with_discrete_actions() {
    let (observations, actions) = (spaces().0, ActionSpace::numbered(5));
    let head = HeadConfig::Linear(LinearConfig {});
    let networks = Discrete::new(&observations, &actions, head);
    check_iql("iql_discrete", &networks, listed);
}

/// The file's batch of a step, with discrete actions.
fn listed(case: &Case, step: u64) -> DiscreteSteps {
    let observed = |tensor: Tensor<2>| {
        let [rows, width] = tensor.dims();
        Observed::Vectors(tensor.reshape([rows, 1, width]))
    };
    let terminated = case.column("goes_on", step).neg() + 1.0;
    DiscreteSteps {
        observations: observed(case.column("observations", step).autodiff()),
        actions: case.column("actions", step).int().flatten(0, 1),
        penalties: None,
        next: TransitionTensors {
            rewards: case.column("rewards", step),
            continues: case.column("goes_on", step),
            next_is_known: terminated.ones_like(),
            terminated,
            step_weights: None,
            next_observations: observed(case.column("next_observations", step)),
            next_penalties: None,
        },
    }
}

#[test]
fn discrete_cql() {
    let config = DiscreteCqlConfig {
        gamma: 0.99,
        quantiles: 7,
        hidden: HIDDEN,
        target_every: 6,
        ..DiscreteCqlConfig::default()
    };
    let (observations, actions) = (spaces().0, ActionSpace::numbered(5));
    let algorithm = DiscreteCql { config, observations, actions };
    for case in Case::both("discrete_cql") {
        let model: NamedTensors = case
            .tensors("initial")
            .into_iter()
            .map(|(name, data)| (name.strip_prefix("online.").unwrap().to_owned(), data))
            .collect();
        let training: NamedTensors =
            model.iter().map(|(name, data)| (format!("target.{name}"), data.clone())).collect();
        let state = case.fresh(&algorithm);
        let mut state: DiscreteCqlState = state.begin(&Exported { model, training }).unwrap();
        let CqlLoss { total, .. } =
            algorithm.loss(&state, &state.online.network, &listed(&case, 0));
        let gradients = weights::export_gradients(&state.online.network, &total.backward());
        case.check("gradient", "online", &gradients);
        for step in 0..N_STEPS {
            let figures = algorithm.learn(&mut state, &listed(&case, step), LEARNING_RATE);
            algorithm.copy_if_due(&mut state, step);
            case.check_loss("td", step, figures.others[0].clone());
            case.check_loss("conservative", step, figures.others[1].clone());
        }
        case.check_final(&state, "online");
    }
}
