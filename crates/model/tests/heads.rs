//! Every head for continuous actions: its loss, its modes and its samples.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{
    ActionSpace,
    seed::{self, Generator},
};
use overtone_model::{
    Head, HeadConfig, Init,
    head::{
        ActedRows, BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig,
        FourierLikelihoodConfig, GaussianConfig, GmmHeadConfig, GmmLikelihoodConfig, LinearConfig,
        MixtureStd, MixtureWeights, PointwiseConfig, TanhConfig,
    },
};

const D_MODEL: usize = 4;
const DIMENSIONS: usize = 3;
const ROWS: usize = 5;

fn configs() -> Vec<HeadConfig> {
    let fourier = |domain| {
        HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
            gamma: 1e-6,
            domain,
            ..FourierLikelihoodConfig::new(6)
        })
    };
    vec![
        HeadConfig::Tanh(TanhConfig {}),
        HeadConfig::Pointwise(PointwiseConfig {}),
        HeadConfig::Gaussian(GaussianConfig {}),
        fourier(Domain::Periodic),
        fourier(Domain::HalfRange),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 2, ..Default::default() }),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig {
            weights: MixtureWeights::Learned,
            std: MixtureStd::State,
            ..Default::default()
        }),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig {
            std: MixtureStd::Fixed,
            init_std: 0.3,
            ..Default::default()
        }),
        binned(BinsHeadConfig::Linear(LinearConfig {})),
        binned(BinsHeadConfig::Fourier(FourierHeadConfig::new(3))),
        binned(BinsHeadConfig::Gmm(GmmHeadConfig {
            weights: MixtureWeights::Learned,
            std: MixtureStd::State,
            ..Default::default()
        })),
        binned(BinsHeadConfig::Gmm(GmmHeadConfig { components: 2, ..Default::default() })),
    ]
}

fn binned(head: BinsHeadConfig) -> HeadConfig {
    HeadConfig::Binned(BinnedConfig { bins: 10, head })
}

fn generators(n: usize) -> Vec<Generator> {
    (0..n as u64).map(|seed| seed::generator(seed, "policy")).collect()
}

fn actions() -> ActionSpace {
    ActionSpace::unit(DIMENSIONS)
}

fn mode(head: &Head, hidden: Tensor<2>) -> Vec<f64> {
    head.decide(hidden).numbers().unwrap().modes()
}

/// An action drawn for each row from its own generator.
fn sample(head: &Head, hidden: Tensor<2>, generators: &mut [Generator]) -> Vec<f64> {
    let decisions = head.decide(hidden).numbers().unwrap();
    let rows = generators.iter_mut().enumerate();
    rows.flat_map(|(row, generator)| decisions.draw(row, 1.0, generator)).collect()
}

fn loss(head: &Head, hidden: Tensor<2>, targets: Tensor<2>) -> Vec<f64> {
    let loss = head.loss(hidden, ActedRows::Continuous(targets), None);
    loss.rows.into_data().iter::<f64>().collect()
}

fn heads() -> Vec<Head> {
    let mut generator = seed::generator(5, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    configs().iter().map(|config| config.init(D_MODEL, &actions(), init)).collect()
}

fn filled(shape: [usize; 2], step: f32) -> Tensor<2> {
    let values: Vec<f32> =
        (0..shape[0] * shape[1]).map(|i| (1.0 + i as f32 * step).sin()).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex())
}

#[test]
fn every_head_has_one_loss_a_row_and_one_number_a_dimension() {
    for head in heads() {
        let hidden = || filled([ROWS, D_MODEL], 0.7);
        let rows = loss(&head, hidden(), filled([ROWS, DIMENSIONS], 0.3));
        assert_eq!(rows.len(), ROWS);
        assert!(rows.iter().all(|x| x.is_finite()), "{head:?}: {rows:?}");
        for actions in [mode(&head, hidden()), sample(&head, hidden(), &mut generators(ROWS))] {
            assert_eq!(actions.len(), ROWS * DIMENSIONS);
            assert!(actions.iter().all(|x| (-1.0..=1.0).contains(x)), "{head:?}: {actions:?}");
        }
    }
}

/// A row alone has the same result as in a batch: no value crosses rows.
#[test]
fn rows_do_not_mix() {
    for head in heads() {
        let (hidden, targets) = (filled([ROWS, D_MODEL], 0.7), filled([ROWS, DIMENSIONS], 0.3));
        let all = loss(&head, hidden.clone(), targets.clone());
        let modes = mode(&head, hidden.clone());
        let draws = sample(&head, hidden.clone(), &mut generators(ROWS));
        for row in 0..ROWS {
            let one = |tensor: &Tensor<2>| tensor.clone().narrow(0, row, 1);
            let alone = loss(&head, one(&hidden), one(&targets));
            assert!((alone[0] - all[row]).abs() < 1e-5, "{head:?}");
            let alone = mode(&head, one(&hidden));
            for (got, expected) in modes[row * DIMENSIONS..].iter().zip(alone) {
                assert!((got - expected).abs() < 1e-5, "{head:?}");
            }
            let draw = sample(&head, one(&hidden), &mut generators(ROWS)[row..=row]);
            for (got, expected) in draws[row * DIMENSIONS..].iter().zip(draw) {
                assert!((got - expected).abs() < 1e-5, "{head:?}");
            }
        }
    }
}

/// The loss of a head with a density is smallest at its mode, one dimension at a time. For other
/// heads it is smallest, and zero, at their prediction.
#[test]
fn nothing_costs_less_than_the_mode() {
    for head in heads() {
        let hidden = filled([1, D_MODEL], 0.7);
        let mode: Vec<f32> = mode(&head, hidden.clone()).iter().map(|&x| x as f32).collect();
        let cost = |action: &[f32]| -> f64 {
            let shape = [1, DIMENSIONS];
            let action = TensorData::new(action.to_vec(), shape);
            let action = Tensor::from_data(action, &Device::flex());
            loss(&head, hidden.clone(), action)[0]
        };
        let least = cost(&mode);
        for dimension in 0..DIMENSIONS {
            for step in -20..=20i8 {
                let mut action = mode.clone();
                action[dimension] = f32::from(step) / 20.0;
                assert!(cost(&action) >= least - 1e-5, "{head:?}: {mode:?} and {action:?}");
            }
        }
    }
}

#[test]
fn invalid_options_are_refused() {
    for config in configs() {
        assert!(config.validate(&ActionSpace::unit(2)).is_ok());
        assert!(config.validate(&ActionSpace::unit(0)).is_err());
    }
    let gmm = HeadConfig::GmmLikelihood;
    let mixture = GmmLikelihoodConfig::default;
    let learned = MixtureWeights::Learned;
    let fourier = |frequencies, gamma| {
        HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
            gamma,
            ..FourierLikelihoodConfig::new(frequencies)
        })
    };
    for (config, key) in [
        (gmm(GmmLikelihoodConfig { components: 0, ..mixture() }), "head.components"),
        (
            gmm(GmmLikelihoodConfig { components: 1, weights: learned, ..mixture() }),
            "head.weights = learned: must be equal: one Gaussian has nothing to weigh. Or use \
             head.components=2 or more",
        ),
        (gmm(GmmLikelihoodConfig { init_std: -0.1, ..mixture() }), "head.init_std = -0.1"),
        (gmm(GmmLikelihoodConfig { init_std: f64::NAN, ..mixture() }), "head.init_std = NaN"),
        (
            binned(BinsHeadConfig::Gmm(GmmHeadConfig { init_std: 11.0, ..Default::default() })),
            "head.init_std = 11: must be 0 (the reference's), or lie in [0.001, 10]",
        ),
        (fourier(0, 0.0), "head.frequencies"),
        (fourier(3, f64::NAN), "head.gamma"),
        (fourier(3, 1e300), "head.gamma"),
    ] {
        let error = config.validate(&ActionSpace::unit(1)).unwrap_err().to_string();
        assert!(error.starts_with(key), "{error}");
    }
}
