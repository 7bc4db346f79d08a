//! Several perceptrons act as the mixture of what they say, and learn as each would alone.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, Contexts, Ensemble, Init, Model, ModelConfig, Observed, PerceptronConfig,
    head::{Decisions, HeadConfig, LinearConfig, TanhConfig},
    weights,
};

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };
const MEMBERS: usize = 3;

fn config(head: HeadConfig) -> PerceptronConfig {
    let gym = PerceptronConfig::gym();
    PerceptronConfig { n_layers: 2, width: 8, context_length: 1, members: MEMBERS, head, ..gym }
}

fn ensemble(head: HeadConfig, actions: &ActionSpace, device: &Device) -> Ensemble {
    let generator = &mut seed::generator(4, "init");
    let init = &mut Init::drawn(device, generator);
    Ensemble::init(&config(head), &OBSERVATIONS, actions, init).unwrap()
}

fn contexts(actions: Acted, device: &Device) -> Contexts {
    let seen = TensorData::from([[[1.0f32, -2.0]], [[0.5, 3.0]]]);
    Contexts {
        observations: Observed::Vectors(Tensor::from_data(seen, device)),
        actions,
        returns_to_go: Tensor::zeros([2, 1], device),
        timesteps: vec![0, 0],
        n_padding: vec![0, 0],
        best: Vec::new(),
    }
}

fn numbers(device: &Device) -> Contexts {
    let actions = Tensor::from_data(TensorData::from([[[0.9f32]], [[-0.4]]]), device);
    contexts(Acted::Continuous(actions), device)
}

#[test]
fn a_real_valued_action_is_the_mean_of_the_members() {
    let device = &Device::flex();
    let ensemble = ensemble(HeadConfig::Tanh(TanhConfig {}), &ActionSpace::unit(1), device);
    let inputs = numbers(device);
    let of = |decisions: Decisions| decisions.numbers().unwrap().modes();
    let alone: Vec<Vec<f64>> =
        ensemble.members.iter().map(|member| of(member.decide(&inputs))).collect();
    assert!(alone[0] != alone[1] && alone[1] != alone[2], "members begin apart: {alone:?}");
    let together = of(ensemble.decide(&inputs));
    for row in 0..2 {
        let mean = alone.iter().map(|modes| modes[row]).sum::<f64>() / MEMBERS as f64;
        assert!((together[row] - mean).abs() < 1e-12, "{} against {mean}", together[row]);
    }
}

#[test]
fn of_a_list_of_actions_the_probabilities_are_averaged() {
    let device = &Device::flex();
    let head = HeadConfig::Linear(LinearConfig {});
    let ensemble = ensemble(head, &ActionSpace::numbered(4), device);
    let actions = Tensor::from_data(TensorData::from([[0i32], [1]]), device);
    let inputs = contexts(Acted::Discrete(actions), device);
    let probs = |decisions: Decisions, row| decisions.actions().unwrap().probs(row, 1.0);
    for row in 0..2 {
        let together = probs(ensemble.decide(&inputs), row);
        for action in 0..4 {
            let alone = ensemble.members.iter().map(|m| probs(m.decide(&inputs), row)[action]);
            let mean = alone.sum::<f64>() / MEMBERS as f64;
            assert!((together[action] - mean).abs() < 1e-6, "{together:?} against {mean}");
        }
    }
}

/// Predictions without a distribution: a draw is one of the members', each as often.
#[test]
fn a_draw_is_one_of_the_members() {
    let device = &Device::flex();
    let ensemble = ensemble(HeadConfig::Tanh(TanhConfig {}), &ActionSpace::unit(1), device);
    let inputs = numbers(device);
    let of = |decisions: Decisions| decisions.numbers().unwrap();
    let alone: Vec<f64> =
        ensemble.members.iter().map(|member| of(member.decide(&inputs)).mode(0)[0]).collect();
    let together = of(ensemble.decide(&inputs));
    let generator = &mut seed::generator(1, "draws");
    let mut counts = [0; MEMBERS];
    for _ in 0..3000 {
        let drawn = together.draw(0, 1.0, generator)[0];
        let member = alone.iter().position(|mode| *mode == drawn);
        counts[member.expect("a draw of no member")] += 1;
    }
    // Five standard deviations of a binomial count: 5 · √(3000 · 1/3 · 2/3) = 129.
    assert!(counts.iter().all(|count| (871..=1129).contains(count)), "{counts:?}");
}

#[test]
fn a_member_learns_by_its_own_loss() {
    let device = &Device::flex().autodiff();
    let head = HeadConfig::Tanh(TanhConfig {});
    let ensemble = ensemble(head, &ActionSpace::unit(1), device);
    let inputs = numbers(device);
    let loss = ensemble.loss(&inputs, None);
    let losses: Vec<f64> = ensemble
        .members
        .iter()
        .map(|member| member.loss(&inputs, None).total.into_scalar())
        .collect();
    let mean = losses.iter().sum::<f64>() / MEMBERS as f64;
    let total: f64 = loss.total.clone().into_scalar();
    assert!((total - mean).abs() < 1e-6, "{total} against {mean}");
    let together = weights::export_gradients(&ensemble, &loss.total.backward());
    for (member_idx, member) in ensemble.members.iter().enumerate() {
        let own = member.loss(&inputs, None).total.backward();
        for (name, alone) in weights::export_gradients(member, &own) {
            let shared = &together[&format!("members.{member_idx}.{name}")];
            let scaled = shared.iter::<f64>().map(|x| x * MEMBERS as f64);
            for (got, expected) in scaled.zip(alone.iter::<f64>()) {
                assert!((got - expected).abs() < 1e-6, "{name}: {got} against {expected}");
            }
        }
    }
}

#[test]
fn weights_are_read_back_and_too_many_members_refused() {
    let device = &Device::flex();
    let head = HeadConfig::Tanh(TanhConfig {});
    let actions = &ActionSpace::unit(1);
    let tensors = weights::export(&ensemble(head.clone(), actions, device));
    let read = |members| {
        let config = PerceptronConfig { members, ..config(head.clone()) };
        let config = ModelConfig::Perceptron(config);
        Model::from_weights(&config, &OBSERVATIONS, actions, &tensors, device)
    };
    let back = read(MEMBERS).unwrap();
    assert_eq!(weights::export(&back), tensors);
    for members in [1, MEMBERS - 1, MEMBERS + 1] {
        assert!(read(members).is_err(), "{members} members");
    }
    let error = read(60_000).unwrap_err().to_string();
    assert!(error.starts_with("model.members = 60000"), "{error}");
    let none = PerceptronConfig { members: 0, ..config(head.clone()) };
    let error = none.validate(&OBSERVATIONS, actions).unwrap_err().to_string();
    assert!(error.starts_with("model.members = 0"), "{error}");
}
