//! The inputs of a recorded step: contexts and steps that were sent in one buffer equal those that were
//! sent tensor by tensor, and a network computes the same from them.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;
mod pong;

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor};
use overtone_agents::{
    DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig,
    iql::Continuous,
    value::{DiscreteSteps, Rescaling, Steps},
};
use overtone_core::ActionSpace;
use overtone_core::seed;
use overtone_data::{Batch, BatchOptions, Dataset, Lookahead, Sampling, Subset};
use overtone_model::{
    Acted, AverageReturn, ConditionerConfig, Contexts, DecisionTransformerConfig, HeadConfig, Init,
    Inputs, Model, ModelConfig, Observed, Places, PositionsConfig, Sections, head::LinearConfig,
};
use overtone_train::{Algorithm, TrainingData, optimizer::scalar};

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter().collect()
}

fn ints<const D: usize>(tensor: &Tensor<D, Int>) -> Vec<i64> {
    tensor.to_data().iter().collect()
}

/// Contexts of one batch, sent in both ways.
fn both(
    model: &ModelConfig,
    dataset: &Arc<Dataset>,
    top_percent_idx: &[Option<u8>],
) -> [Contexts; 2] {
    let device = Device::flex().autodiff();
    let mut data = TrainingData::new(dataset.clone(), 1.0);
    data.keep_frames_on(&device).unwrap();
    let time = model.context_length();
    let sampler = data.dataset().sampler(Subset::Training, 0.0, Sampling::Uniform, time, 4);
    let options = BatchOptions { frames: false, ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(dataset, &mut sampler.unwrap(), 6, &options).unwrap();
    batch.top_percent_idx = top_percent_idx.to_vec();

    let n_padding: Vec<usize> = batch.n_real.iter().map(|&n| time - n as usize).collect();
    assert!(n_padding.iter().any(|&n| n > 0), "a batch without padding");
    let (timesteps, top_percent_idx) = (&batch.timesteps[..], &batch.top_percent_idx[..]);
    let mut sections = Sections::default();
    assert!(data.send(&batch, &mut sections));
    let (n_padding, step_weights) = (&n_padding[..], &batch.step_weights[..]);
    model.send(Places { timesteps, n_padding, step_weights, top_percent_idx }, &mut sections);
    let (layout, words) = sections.finish();
    let received = data.received(&Inputs::new(layout, words, &device));
    [received, data.contexts(&mut batch, &device)]
        .map(|contexts| model.conditioning().unwrap().condition(contexts))
}

/// A small model reads the same in both, and has the same loss and accuracy.
#[track_caller]
fn check(
    model: DecisionTransformerConfig,
    dataset: &Arc<Dataset>,
    (observations, actions): (overtone_core::ObservationSpace, ActionSpace),
    top_percent_idx: &[Option<u8>],
) {
    let config = ModelConfig::Transformer(model);
    let [received, sent] = both(&config, dataset, top_percent_idx);
    match (&received.observations, &sent.observations) {
        (Observed::Frames(got), Observed::Frames(expected)) => {
            assert_eq!(ints(got), ints(expected));
        }
        (Observed::Vectors(got), Observed::Vectors(expected)) => {
            assert_eq!(floats(got), floats(expected));
        }
        kinds => panic!("{kinds:?}"),
    }
    match (&received.actions, &sent.actions) {
        (Acted::Discrete(got), Acted::Discrete(expected)) => assert_eq!(ints(got), ints(expected)),
        kinds => panic!("{kinds:?}"),
    }
    assert_eq!(floats(&received.returns_to_go), floats(&sent.returns_to_go));

    let mut generator = seed::generator(2, "init");
    let mut init = Init::drawn(&Device::flex(), &mut generator);
    let model = Model::init(&config, &observations, &actions, &mut init).unwrap();
    let model = burn::module::Module::to_device(model, &Device::flex().autodiff());
    let [got, expected] = [received, sent].map(|contexts| model.loss(&contexts, None));
    let (got_accuracy, accuracy) = (got.accuracy.unwrap(), expected.accuracy.unwrap());
    assert_eq!(floats(&got_accuracy), floats(&accuracy));
    // The weights of timesteps are quotients in both, rounded on the host or on the device.
    let [got, expected] = [got.total, expected.total].map(|loss| floats(&loss)[0]);
    assert!((got - expected).abs() < 1e-6 * expected.abs(), "{got} {expected}");
}

fn small(config: DecisionTransformerConfig) -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        n_layers: 1,
        n_heads: 2,
        d_model: 16,
        context_length: 5,
        head: HeadConfig::Linear(LinearConfig {}),
        ..config
    }
}

#[test]
fn vectors_with_timesteps_and_average_returns() {
    let conditioning = ConditionerConfig {
        return_range: Some([0.0, 1.0]),
        average_return: Some(AverageReturn { horizon: 20 }),
        top_percents: vec![10.0, 50.0],
        ..ConditionerConfig::default()
    };
    // A table with fewer rows than an episode has timesteps.
    let positions = PositionsConfig::Timestep { horizon: 12, std: 1.0 };
    let model = DecisionTransformerConfig {
        conditioning: Some(conditioning),
        positions,
        ..DecisionTransformerConfig::gym(20)
    };
    let names = vec!["left".to_owned(), "right".to_owned()];
    let spaces = (chain::observations(), ActionSpace::Discrete { names });
    let best = [None, Some(0), None, Some(1), Some(0), None];
    let data = chain::listed(0.5, 0.0);
    check(small(model.clone()), &data, spaces.clone(), &best);
    check(small(model), &chain::weighted(&data), spaces, &best);
}

#[test]
fn frames_on_the_device_with_places() {
    let (bench, model) = (pong::Bench::new(), DecisionTransformerConfig::atari(7));
    let task = bench.task();
    check(small(model), &bench.dataset, (task.observations, task.actions), &[]);
}

/// A batch of steps, and its data with frames on the device.
fn steps(dataset: &Arc<Dataset>) -> (TrainingData, Batch) {
    let mut data = TrainingData::new(dataset.clone(), 1.0);
    data.keep_frames_on(&Device::flex()).unwrap();
    let mut sampler = dataset.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 4).unwrap();
    let transitions = Some(Lookahead::ONE);
    let options = BatchOptions { frames: false, transitions, ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(dataset, &mut sampler, 32, &options).unwrap();
    (data, batch)
}

fn received(sections: Sections) -> Inputs {
    let (layout, words) = sections.finish();
    Inputs::new(layout, words, &Device::flex())
}

/// The steps without a target are left out, or count nothing.
#[test]
fn steps_of_numbers() {
    let whole = chain::real_valued(0.0);
    for data in [whole.clone(), chain::cut_short(&whole), chain::weighted(&whole)] {
        let (config, (_, batch)) = (IqlConfig::default(), steps(&data));
        let algorithm =
            Iql::new(config, Continuous::new(&chain::observations(), &chain::numbers()));
        let device = Device::flex().autodiff();
        let generator = &mut seed::generator(2, "init");
        let state = algorithm.init(&chain::config(1), &device, generator).unwrap();
        let rescaling = Rescaling::new(data.normalization(), true);
        let mut sections = Sections::default();
        let counting = Steps::send(&batch, &rescaling, &mut sections);
        let sent = Steps::received(&received(sections));
        let kept = Steps::of(&batch, &rescaling, &Device::flex()).unwrap();
        assert_eq!([sent.rewards.dims()[0], kept.rewards.dims()[0]], [32, counting.len()]);
        let [got, expected] = [sent, kept].map(|steps| {
            let losses = algorithm.losses(&state, &steps);
            [losses.value, losses.critic.unwrap(), losses.actor, losses.mean_value].map(scalar)
        });
        for (got, expected) in got.into_iter().zip(expected) {
            assert!((got - expected).abs() < 1e-6 * expected.abs().max(1e-3), "{got} {expected}");
        }
    }
}

#[test]
fn steps_of_lists() {
    let listed = chain::listed(0.5, 0.0);
    for data in [listed.clone(), chain::cut_short(&listed), chain::weighted(&listed)] {
        check_listed(&data, (chain::observations(), ActionSpace::numbered(2)));
    }
    let bench = pong::Bench::new();
    let task = bench.task();
    check_listed(&bench.dataset, (task.observations, task.actions));
}

#[track_caller]
fn check_listed(
    dataset: &Arc<Dataset>,
    (observations, actions): (overtone_core::ObservationSpace, ActionSpace),
) {
    let (data, mut batch) = steps(dataset);
    let config = DiscreteCqlConfig { hidden: 16, quantiles: 5, ..DiscreteCqlConfig::default() };
    let algorithm = DiscreteCql { config, observations, actions };
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(2, "init");
    let state = algorithm.init(&chain::config(1), &device, generator).unwrap();
    let mut sections = Sections::default();
    assert!(DiscreteSteps::send(&batch, &data, &mut sections));
    let sent = DiscreteSteps::received(&received(sections), &data);
    let whole = DiscreteSteps::of(&mut batch, &data, &device).unwrap();
    let [got, expected] = [sent, whole].map(|steps| {
        let loss = algorithm.loss(&state, &state.online.network, &steps);
        [loss.total, loss.temporal_difference, loss.conservative, loss.value].map(scalar)
    });
    assert_eq!(got, expected);
}
