//! Weights of steps, in the loss of every algorithm: a weight of 0 is a step left out of the batch,
//! and a weight multiplies its loss.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use std::sync::Arc;

use burn::tensor::Device;
use chain::{GAMMA, config, listed, numbers, observations, real_valued};
use overtone_agents::{
    DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig, Rebrac, RebracConfig, SequenceModel, Td3Bc,
    Td3BcConfig,
    iql::{Continuous, Discrete},
};
use overtone_core::{ActionSpace, seed};
use overtone_data::{
    Batch, BatchActions, BatchObservations, BatchOptions, Dataset, Lookahead, Sampling, Subset,
    Transitions,
};
use overtone_model::{
    DecisionTransformerConfig, ModelConfig, PerceptronConfig,
    head::{HeadConfig, LinearConfig, TanhConfig},
};
use overtone_train::{
    Algorithm, ScheduleKind, StepAt, StepFigures, TrainingData, optimizer::scalar,
};

/// Contexts of a batch.
const BATCH: usize = 24;
/// Largest relative difference of a figure seen: 4e-7.
const TOLERANCE: f64 = 1e-5;

/// The loss of an algorithm's second step, its gradient norm and its other figures.
fn figures<A: Algorithm>(algorithm: &A, data: &Arc<Dataset>, batch: &Batch) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(9, "init");
    let mut state = algorithm.init(&config(8), &device, generator).unwrap();
    let data = TrainingData::new(data.clone(), 1.0);
    let (schedule, device) = (ScheduleKind::Constant, &device);
    let at = StepAt { step: 1, n_steps: 8, learning_rate: 1e-3, schedule, seed: 5, device };
    let StepFigures { loss, grad_norm, others } =
        algorithm.step(&mut state, &mut batch.clone(), &data, &at);
    [loss, grad_norm].into_iter().chain(others).map(scalar).collect()
}

/// The rows of some contexts of a column.
fn of<T: Clone>(contexts: &[usize], column: &[T]) -> Vec<T> {
    let width = column.len() / BATCH;
    contexts.iter().flat_map(|context| column[context * width..][..width].to_vec()).collect()
}

/// A batch of some of the contexts of `batch`.
fn selected(contexts: &[usize], batch: &Batch) -> Batch {
    let observed = |observations: &BatchObservations| match observations {
        BatchObservations::Vectors(values) => BatchObservations::Vectors(of(contexts, values)),
        BatchObservations::Frames { .. } => panic!("vectors"),
    };
    let acted = |actions: &BatchActions| match actions {
        BatchActions::Discrete(ids) => BatchActions::Discrete(of(contexts, ids)),
        BatchActions::Continuous(values) => BatchActions::Continuous(of(contexts, values)),
    };
    let transitions = batch.transitions.as_ref().unwrap();
    Batch {
        batch: contexts.len(),
        observations: observed(&batch.observations),
        actions: acted(&batch.actions),
        returns_to_go: of(contexts, &batch.returns_to_go),
        timesteps: of(contexts, &batch.timesteps),
        n_real: of(contexts, &batch.n_real),
        top_percent_idx: Vec::new(),
        transitions: Some(Transitions {
            rewards: of(contexts, &transitions.rewards),
            discounts: of(contexts, &transitions.discounts),
            terminated: of(contexts, &transitions.terminated),
            next_is_known: of(contexts, &transitions.next_is_known),
            next_observations: observed(&transitions.next_observations),
            next_actions: acted(&transitions.next_actions),
            next_allowed_actions: Vec::new(),
        }),
        ..batch.clone()
    }
}

#[track_caller]
fn check<A: Algorithm>(algorithm: &A, data: &Arc<Dataset>) {
    let time = algorithm.context_length();
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, time, 4).unwrap();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(data, &mut sampler, BATCH, &options).unwrap();
    let of_contexts = |weight: fn(usize) -> f32| Batch {
        step_weights: (0..BATCH).flat_map(|context| vec![weight(context); time]).collect(),
        ..batch.clone()
    };
    let close = |got: Vec<f64>, expected: Vec<f64>| {
        for (got, expected) in got.iter().zip(&expected) {
            assert!(expected.is_finite() && expected.abs() > 1e-6, "{expected}");
            assert!((got / expected - 1.0).abs() < TOLERANCE, "{got} and {expected}");
        }
    };
    let kept: Vec<usize> = (0..BATCH).filter(|context| context % 3 > 0).collect();
    let zeros = of_contexts(|context| f32::from(u8::from(context % 3 > 0)));
    close(figures(algorithm, data, &zeros), figures(algorithm, data, &selected(&kept, &batch)));
    let doubled = figures(algorithm, data, &batch).iter().map(|figure| 2.0 * figure).collect();
    close(figures(algorithm, data, &of_contexts(|_| 2.0)), doubled);
}

fn spaces(is_discrete: bool) -> (ActionSpace, Arc<Dataset>) {
    match is_discrete {
        true => (ActionSpace::numbered(2), listed(0.5, 0.0)),
        false => (numbers(), real_valued(0.0)),
    }
}

#[test]
fn a_transformer() {
    for is_discrete in [true, false] {
        let (actions, data) = spaces(is_discrete);
        let head = match is_discrete {
            true => HeadConfig::Linear(LinearConfig {}),
            false => HeadConfig::Tanh(TanhConfig {}),
        };
        let sizes = DecisionTransformerConfig {
            n_layers: 1,
            d_model: 16,
            ..DecisionTransformerConfig::gym(20)
        };
        let model = DecisionTransformerConfig { context_length: 4, dropout: 0.0, head, ..sizes };
        let model = ModelConfig::Transformer(model);
        check(&SequenceModel { model, observations: observations(), actions }, &data);
    }
}

#[test]
fn a_perceptron() {
    let (actions, data) = spaces(false);
    let model = PerceptronConfig { width: 16, context_length: 2, ..PerceptronConfig::rvs(20) };
    let model = ModelConfig::Perceptron(model);
    check(&SequenceModel { model, observations: observations(), actions }, &data);
}

#[test]
fn conservative_q_learning() {
    let (actions, data) = spaces(true);
    let config = DiscreteCqlConfig { quantiles: 3, hidden: 16, ..DiscreteCqlConfig::default() };
    check(&DiscreteCql { config, observations: observations(), actions }, &data);
}

#[test]
fn implicit_q_learning() {
    let config = IqlConfig { gamma: GAMMA, hidden: 16, ..IqlConfig::default() };
    let (actions, data) = spaces(false);
    check(&Iql::new(config.clone(), Continuous::new(&observations(), &actions)), &data);
    let (actions, data) = spaces(true);
    let head = HeadConfig::Linear(LinearConfig {});
    check(&Iql::new(config, Discrete::new(&observations(), &actions, head)), &data);
}

#[test]
fn td3_bc_and_rebrac() {
    let (actions, data) = spaces(false);
    let td3_bc = Td3BcConfig { hidden: 16, ..Td3BcConfig::default() };
    check(&Td3Bc::new(td3_bc, &observations(), &actions), &data);
    let rebrac = RebracConfig { hidden: 16, ..RebracConfig::default() };
    check(&Rebrac::new(rebrac, &observations(), &actions), &data);
}
