//! TD3+BC on a chain of five states with known values (`chain`): the optimum is to walk right,
//! `Q*(s, right) = γ^(4 − s)`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Device, Tensor},
};
use chain::{
    GAMMA, check_optimal, check_resuming, config, learned, numbers, observations, played,
    real_valued,
};
use overtone_agents::{
    AlgorithmOptions, SequenceModel, Td3Bc, Td3BcConfig,
    value::{Rescaling, Steps},
};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_data::{Batch, BatchOptions, Lookahead, Sampling, Subset};
use overtone_model::{
    ModelConfig, ModelError, PerceptronConfig,
    contexts::{Acted, Contexts, Observed},
    head::{HeadConfig, TanhConfig},
    weights,
};
use overtone_testkit::check_error;
use overtone_train::{Algorithm, BatchLoss, Checkpoint, TrainConfig, optimizer::scalar};

fn algorithm(config: Td3BcConfig) -> Td3Bc {
    Td3Bc::new(config, &observations(), &numbers())
}

fn small(alpha: f64) -> Td3BcConfig {
    Td3BcConfig {
        alpha,
        gamma: GAMMA,
        target_rate: 0.02,
        target_noise: 0.05,
        hidden: 32,
        ..Td3BcConfig::default()
    }
}

#[test]
fn with_a_large_alpha_the_actor_walks_right_and_its_values_are_the_optimum() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(50.0)), &data, config(3000));
    check_optimal(played(&state, &data, true), 0.05);
}

/// With α = 0, training equals this project's behaviour cloning with a perceptron, from the same
/// weights, batches and rates. Largest difference seen: 0.
#[test]
fn without_values_it_is_behaviour_cloning() {
    let (data, config) = (real_valued(0.0), config(1));
    let td3 = algorithm(Td3BcConfig { actor_every: 1, ..small(0.0) });
    let perceptron = PerceptronConfig {
        n_layers: 2,
        width: 32,
        context_length: 1,
        dropout: 0.0,
        head: HeadConfig::Tanh(TanhConfig {}),
        conditioning: None,
    };
    let cloning = SequenceModel {
        model: ModelConfig::Perceptron(perceptron),
        observations: observations(),
        actions: numbers(),
    };
    let device = Device::flex().autodiff();
    let generator = || seed::generator(5, "init");
    let mut state = td3.init(&config, &device, &mut generator()).unwrap();
    let mut cloned = cloning.init(&config, &device, &mut generator()).unwrap();
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 4).unwrap();
    let (mut batch, rescaling) = (Batch::default(), Rescaling::new(data.normalization(), true));
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    for step in 0..40 {
        batch.fill(&data, &mut sampler, 32, &options).unwrap();
        let steps = Steps::of(&batch, &rescaling, &Device::flex()).unwrap();
        let noise = steps.actions.zeros_like();
        td3.learn(&mut state, &steps, noise, (step, 1e-2));
        let [n, width] = steps.observations.dims();
        let contexts = Contexts {
            observations: Observed::Vectors(steps.observations.reshape([n, 1, width]).autodiff()),
            actions: Acted::Continuous(steps.actions.reshape([n, 1, 1]).autodiff()),
            returns_to_go: Tensor::zeros([n, 1], &device),
            timesteps: vec![0; n],
            n_padding: vec![0; n],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        };
        let total = cloned.model.network.loss(&contexts, None).total;
        cloned.model.descend(BatchLoss { total, figures: Vec::new() }, 1e-2);
    }
    let numbers = |tensors: weights::NamedTensors| -> Vec<f64> {
        tensors.values().flat_map(|data| data.iter::<f64>().collect::<Vec<_>>()).collect()
    };
    // `head` sorts before `layers` there and is `layers.2` here.
    let mut theirs = weights::export(&cloned.model.network);
    for part in ["weight", "bias"] {
        let head = theirs.remove(&format!("head.{part}")).unwrap();
        theirs.insert(format!("layers.2.{part}"), head);
    }
    let ours = weights::export(&state.actor.network);
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    let largest = ours.iter().zip(&theirs).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    println!("largest difference: {largest:.1e}");
    assert!(largest < 1e-6, "{largest}");
}

/// The training loop checks only the critics' loss and gradient norm. The actor takes every second
/// step.
#[test]
fn a_broken_actor_is_reported_in_the_same_step() {
    let (data, algorithm) = (real_valued(0.0), algorithm(small(2.5)));
    let (device, steps) = (Device::flex().autodiff(), chain::steps(&data));
    let whole = algorithm.init(&config(1), &device, &mut seed::generator(5, "init")).unwrap();
    let mut broken = whole.clone();
    broken.actor.network = chain::broken(broken.actor.network);
    for (mut state, step, is_told) in [
        (broken.clone(), 0, false),
        (broken, 1, true),
        (whole.clone(), 0, false),
        (whole, 1, false),
    ] {
        let noise = steps.actions.zeros_like();
        let figures = algorithm.learn(&mut state, &steps, noise, (step, 1e-3));
        assert!(scalar(figures.loss).is_finite(), "step {step}");
        let has_loss = step == 1 && !is_told;
        assert_eq!(scalar(figures.others[0].clone()).is_finite(), has_loss, "step {step}");
        assert_eq!(scalar(figures.grad_norm).is_nan(), is_told, "step {step}");
    }
}

/// The actor learns at every second step. A row of the metrics is the mean over these steps,
/// however many steps it covers, and wherever the run stops.
#[test]
fn the_actor_loss_in_a_row_is_a_mean_over_steps_that_have_one() {
    let (data, algorithm) = (real_valued(0.0), algorithm(small(2.5)));
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, log_every, resume: Option<&Checkpoint>| {
        let config = TrainConfig { log_every, ..config(12) };
        let folder = folder.path().join(name);
        let last = chain::train(&folder, &data, (algorithm.clone(), config), resume);
        (chain::metrics(&last, "actor_loss"), last)
    };
    let (each, _) = run("each", 1, None);
    for (i, loss) in each.iter().enumerate() {
        assert_eq!(loss.is_nan(), i % 2 == 0, "update {}: {loss}", i + 1);
    }
    // Of the updates 1 to 3, 4 to 6, 7 to 9 and 10 to 12.
    let (quarters, whole) = run("quarters", 3, None);
    let last = (each[9] + each[11]) / 2.0;
    assert_eq!(quarters, [each[1], (each[3] + each[5]) / 2.0, each[7], last]);
    // A checkpoint exists after update 7.
    let stopped = Checkpoint::at_step(whole.path.parent().unwrap(), 7).unwrap();
    assert_eq!(run("rest", 3, Some(&stopped)).0, [each[7], last]);
}

#[test]
fn no_checkpoint_is_the_best_by_errors_of_values() {
    chain::check_held_out(&algorithm(small(2.5)), &real_valued(0.25));
}

/// Networks, targets and both optimizers; the third step of the actor comes after a stop.
#[test]
fn resuming_is_never_having_stopped() {
    check_resuming(&algorithm(small(2.5)), &real_valued(0.0));
}

#[test]
fn other_tasks_and_options_are_refused() {
    let listed = ActionSpace::numbered(4);
    let error = small(0.0).validate(&observations(), &listed).unwrap_err();
    check_error!(error, ModelError::Config { key, .. } if key == "algorithm");
    let pixels = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let error = small(0.0).validate(&pixels, &numbers()).unwrap_err().to_string();
    assert!(error.contains("pixel"), "{error}");
    // A configuration from another program may not have been validated.
    let wrong = |config: Td3BcConfig| {
        let device = Device::flex().autodiff();
        let generator = &mut seed::generator(5, "init");
        let ended = algorithm(config).init(&chain::config(1), &device, generator);
        ended.map(drop).unwrap_err().to_string()
    };
    for (key, config) in [
        ("alpha", small(-1.0)),
        ("alpha", small(f64::NAN)),
        ("gamma", Td3BcConfig { gamma: 1.5, ..small(1.0) }),
        ("target_rate", Td3BcConfig { target_rate: f64::NAN, ..small(1.0) }),
        ("noise_clip", Td3BcConfig { noise_clip: f64::INFINITY, ..small(1.0) }),
        ("actor_every", Td3BcConfig { actor_every: 0, ..small(1.0) }),
        ("n_layers", Td3BcConfig { n_layers: 0, ..small(1.0) }),
        ("hidden", Td3BcConfig { hidden: 0, ..small(1.0) }),
    ] {
        let error = wrong(config);
        assert!(error.starts_with(&format!("td3_bc.{key} = ")), "{error}");
    }
}

struct Zeros;

impl ModuleMapper for Zeros {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| (tensor * 0.0).detach().require_grad())
    }
}

/// Critics of zeros give every action the value 0, and the actor's loss is divided by the mean
/// size.
#[test]
fn values_of_zero_leave_the_actor_finite() {
    let (data, config) = (real_valued(0.0), config(1));
    let td3 = algorithm(Td3BcConfig { actor_every: 1, ..small(2.5) });
    let device = Device::flex().autodiff();
    let mut state = td3.init(&config, &device, &mut seed::generator(5, "init")).unwrap();
    state.critics.network = state.critics.network.clone().map(&mut Zeros);
    let before = weights::export(&state.actor.network);
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 4).unwrap();
    let mut batch = Batch::default();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    batch.fill(&data, &mut sampler, 32, &options).unwrap();
    let rescaling = Rescaling::new(data.normalization(), true);
    let steps = Steps::of(&batch, &rescaling, &Device::flex()).unwrap();
    let noise = steps.actions.zeros_like();
    td3.learn(&mut state, &steps, noise, (0, 1e-2));
    let after = weights::export(&state.actor.network);
    assert_ne!(before, after, "the actor still clones");
    let finite = after.values().all(|data| data.iter::<f64>().all(f64::is_finite));
    assert!(finite, "{after:?}");
}
