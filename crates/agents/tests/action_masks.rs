//! Masks of actions: in the losses of discrete actions, in their maxima, and when an agent acts.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use std::{collections::BTreeSet, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use chain::{config, observations};
use overtone_agents::{
    Agent, AlgorithmConfig, BehaviorCloningConfig, DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig,
    IqlOptions, SequenceModel, iql::Discrete, policy, value::DiscreteSteps,
};
use overtone_core::{
    ActionSpace, Actions, Observations, Play, Policy, Task, Turn, policy::EpisodeStart,
    protocol::ActionChoice, seed,
};
use overtone_data::{
    ActionColumn, ActionMasks, Batch, BatchActions, BatchOptions, Columns, Dataset, DatasetOptions,
    Lookahead, ObservationColumn, Sampling, StoredObservations, Subset,
};
use overtone_model::{
    DecisionTransformerConfig, ModelConfig, PerceptronConfig,
    head::{HeadConfig, LinearConfig, NOT_ALLOWED},
};
use overtone_testkit::sentences;
use overtone_train::{
    Algorithm, Checkpoint, Job, RunDir, ScheduleKind, StepAt, StepReport, TrainConfig,
    TrainingData, optimizer::scalar,
};

/// Walks on the chain with left and right; masks allow these two.
fn masked() -> Arc<Dataset> {
    let data = chain::listed(0.5, 0.0);
    let StoredObservations::Vectors { width, values, .. } = data.observations() else {
        panic!("vectors")
    };
    let ActionColumn::Discrete { values: taken, .. } = data.actions() else { panic!("discrete") };
    let mut columns = Columns::new(
        ObservationColumn::Vectors { width: *width, values: values.clone() },
        ActionColumn::Discrete { n_actions: 3, values: taken.clone() },
        data.rewards().to_vec(),
        data.episodes().as_slice().to_vec(),
    );
    let allowed = [true, true, false].repeat(taken.len());
    columns.optional.action_masks = Some(ActionMasks { n_actions: 3, allowed });
    Arc::new(Dataset::of(columns, &DatasetOptions::default()).unwrap())
}

fn drawn(data: &Dataset, time: usize) -> Batch {
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, time, 4).unwrap();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(data, &mut sampler, 16, &options).unwrap();
    batch
}

/// The named figure of a first step in which only the recorded actions are allowed.
fn figure<A: Algorithm>(algorithm: &A, name: &str) -> f64 {
    let data = masked();
    let mut batch = drawn(&data, algorithm.context_length());
    let BatchActions::Discrete(taken) = &batch.actions else { panic!("discrete") };
    batch.allowed_actions = taken.iter().flat_map(|&id| (0..3).map(move |a| a == id)).collect();
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(9, "init");
    let mut state = algorithm.init(&config(8), &device, generator).unwrap();
    let data = TrainingData::new(data, 1.0);
    let (schedule, device) = (ScheduleKind::Constant, &device);
    let at = StepAt { step: 0, n_steps: 8, learning_rate: 1e-3, schedule, seed: 5, device };
    let others = algorithm.step(&mut state, &mut batch, &data, &at).others;
    let place = algorithm.figures().iter().position(|figure| *figure == name).unwrap();
    scalar(others[place].clone())
}

/// An action that alone is allowed has probability 1.
#[test]
fn losses_are_among_the_allowed_actions() {
    let (observations, actions) = (observations(), ActionSpace::numbered(3));
    for algorithm in algorithms() {
        let loss = match algorithm {
            AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(model)) => {
                let (observations, actions) = (observations.clone(), actions.clone());
                figure(&SequenceModel { model, observations, actions }, "cross_entropy")
            }
            AlgorithmConfig::DiscreteCql(config) => {
                let (observations, actions) = (observations.clone(), actions.clone());
                figure(&DiscreteCql { config, observations, actions }, "conservative_loss")
            }
            AlgorithmConfig::Iql(IqlOptions { config, head }) => {
                let networks = Discrete::new(&observations, &actions, head.unwrap());
                figure(&Iql::new(config, networks), "actor_loss")
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(loss, 0.0);
    }
}

/// The next action of Q-learning is the best of the allowed ones.
#[test]
fn maxima_are_among_the_allowed_actions() {
    let config = DiscreteCqlConfig { quantiles: 5, hidden: 16, ..DiscreteCqlConfig::default() };
    let actions = ActionSpace::numbered(3);
    let algorithm = DiscreteCql { config, observations: observations(), actions };
    let data = masked();
    let mut batch = drawn(&data, 1);
    let (device, data) = (Device::flex().autodiff(), TrainingData::new(data, 1.0));
    let generator = &mut seed::generator(9, "init");
    let state = algorithm.init(&chain::config(8), &device, generator).unwrap();
    let mut steps = DiscreteSteps::of(&mut batch, &data, &device).unwrap();
    let online = &state.online.network;
    let best = online.valid().values(&steps.next.next_observations).argmax(1);
    let best: Vec<i64> = best.into_data().iter().collect();
    // Only the action that lies `shift` behind the best one is allowed.
    let mut td = |shift: Option<i64>| {
        let penalties = shift.map(|shift| {
            let allowed =
                best.iter().flat_map(|&best| (0..3).map(move |a| a == (best + shift) % 3));
            let penalties = allowed.map(|is| if is { 0.0 } else { NOT_ALLOWED }).collect();
            Tensor::from_data(TensorData::new(penalties, [best.len(), 1, 3]), &Device::flex())
        });
        steps.next.next_penalties = penalties;
        scalar(algorithm.loss(&state, online, &steps).temporal_difference)
    };
    let [free, same, other] = [td(None), td(Some(0)), td(Some(1))];
    assert_eq!(free, same);
    assert!((free - other).abs() > 1e-6, "{free} {other}");
}

fn algorithms() -> Vec<AlgorithmConfig> {
    let head = HeadConfig::Linear(LinearConfig {});
    let transformer = DecisionTransformerConfig {
        n_layers: 1,
        d_model: 16,
        context_length: 4,
        conditioning: None,
        head: head.clone(),
        ..DecisionTransformerConfig::gym(20)
    };
    let perceptron = PerceptronConfig { width: 16, head: head.clone(), ..PerceptronConfig::gym() };
    let cql = DiscreteCqlConfig {
        quantiles: 3,
        hidden: 16,
        epsilon: 0.5,
        ..DiscreteCqlConfig::default()
    };
    let iql = IqlConfig { hidden: 16, ..IqlConfig::default() };
    vec![
        AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(ModelConfig::Transformer(
            transformer,
        ))),
        AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(ModelConfig::Perceptron(
            perceptron,
        ))),
        AlgorithmConfig::DiscreteCql(cql),
        AlgorithmConfig::Iql(IqlOptions { config: iql, head: Some(head) }),
    ]
}

fn trained(folder: &Path, algorithm: &AlgorithmConfig, data: &Arc<Dataset>) -> Checkpoint {
    let data = TrainingData::new(data.clone(), 1.0);
    let task = Task::own("chain", observations(), ActionSpace::numbered(3));
    let agent = Agent::new(task.clone(), algorithm.clone(), &data, 30).to_value();
    let config = TrainConfig { batch_size: 32, ..config(30) };
    let run = RunDir::create(folder, "run").unwrap();
    let device = Device::flex();
    let job = Job { run, config, data, agent, seed: 1, device, init: None, resume: None };
    let trainer = algorithm.trainer(&task, job).unwrap();
    trainer.train(&AtomicBool::new(false), &mut |_: &StepReport| {}).unwrap().checkpoint
}

/// Actions of many agents in state 0, with this mask of the three actions.
fn played(
    policy: &mut dyn Policy,
    n: usize,
    mask: Option<[bool; 3]>,
) -> Result<BTreeSet<usize>, String> {
    let start = |agent| Some(EpisodeStart { seed: agent as u64, target_return: 0.0 });
    let turns: Vec<Turn> =
        (0..n).map(|agent| Turn { agent, reward: 0.0, start: start(agent) }).collect();
    let seen = [1.0, 0.0, 0.0, 0.0, 0.0].repeat(n);
    if let Some(mask) = mask {
        policy.allow(mask.repeat(n)).map_err(|error| error.to_string())?;
    }
    match policy.act(&turns, Observations::Vectors(&seen)) {
        Ok(Actions::Discrete(drawn)) => Ok(drawn.into_iter().collect()),
        Ok(Actions::Continuous { .. }) => panic!("discrete actions"),
        Err(error) => Err(error.to_string()),
    }
}

/// Also an agent that was trained without masks obeys one, and also a random action of epsilon.
#[test]
fn agents_take_allowed_actions() {
    let data = masked();
    for algorithm in algorithms() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = trained(folder.path(), &algorithm, &data);
        let agent = Agent::of(&checkpoint).unwrap();
        assert!(agent.needs_action_mask);
        for choice in [ActionChoice::Sample, ActionChoice::Mode] {
            let play = Play { action_choice: choice, ..agent.matched() };
            let mut policy = policy(&checkpoint, &play, &Device::flex()).unwrap();
            for mask in [[false, true, true], [true, false, false], [true, true, false]] {
                let taken = played(&mut *policy, 200, Some(mask)).unwrap();
                assert!(!taken.is_empty() && taken.iter().all(|&action| mask[action]), "{taken:?}");
                let probs = policy.played().unwrap();
                for row in probs.probs.chunks(3) {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
                    let of_others = probs.actions.iter().zip(row).filter(|(a, _)| !mask[**a]);
                    assert!(of_others.into_iter().all(|(_, &prob)| prob == 0.0), "{row:?}");
                }
            }
            // A mask is for the next actions alone.
            sentences::check(&played(&mut *policy, 2, None).unwrap_err());
        }
        let free = Agent { needs_action_mask: false, ..agent };
        let weights = checkpoint.weights().unwrap();
        let mut policy = free.policy(&weights, &free.matched(), &Device::flex()).unwrap();
        played(&mut *policy, 2, None).unwrap();
        sentences::check(&played(&mut *policy, 2, Some([false; 3])).unwrap_err());
        policy.allow(vec![true; 5]).unwrap();
        sentences::check(&played(&mut *policy, 2, None).unwrap_err());
    }
}
