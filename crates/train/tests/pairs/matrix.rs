//! Observations × actions × heads × attentions × conditioning, in both kinds of positions.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, AttentionConfig, ConditionerConfig, Contexts, DecisionTransformerConfig, HeadConfig,
    Init, Model, ModelConfig, Observed, PerceptronConfig,
    contexts::timesteps_from,
    decision_transformer::Form,
    head::{
        BinnedConfig, BinsHeadConfig, Decisions, Domain, FourierHeadConfig,
        FourierLikelihoodConfig, GaussianConfig, GmmHeadConfig, GmmLikelihoodConfig, LinearConfig,
        MixtureStd, MixtureWeights, PointwiseConfig, TanhConfig,
    },
    matrices, weights,
};
use overtone_train::Decayed;
use rand::RngExt;

use crate::{BATCH, CONTEXT, N_STEPS, attentions, check_learned, check_r, reloaded};

const OBSERVATION_WIDTH: usize = 5;
const ACTION_WIDTH: usize = 2;
const N_ACTIONS: usize = 6;

fn heads() -> Vec<HeadConfig> {
    let likelihood = |domain| {
        let plain = FourierLikelihoodConfig::new(4);
        HeadConfig::FourierLikelihood(FourierLikelihoodConfig { gamma: 1e-6, domain, ..plain })
    };
    let fourier = || FourierHeadConfig { gamma: 1e-6, ..FourierHeadConfig::new(4) };
    let gmm = || GmmHeadConfig { components: 2, ..Default::default() };
    let binned = |head| HeadConfig::Binned(BinnedConfig { bins: 10, head });
    vec![
        HeadConfig::Linear(LinearConfig {}),
        HeadConfig::Fourier(fourier()),
        HeadConfig::Gmm(gmm()),
        HeadConfig::Tanh(TanhConfig {}),
        HeadConfig::Pointwise(PointwiseConfig {}),
        HeadConfig::Gaussian(GaussianConfig {}),
        likelihood(Domain::Periodic),
        likelihood(Domain::HalfRange),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 2, ..Default::default() }),
        binned(BinsHeadConfig::Linear(LinearConfig {})),
        binned(BinsHeadConfig::Fourier(fourier())),
        binned(BinsHeadConfig::Gmm(gmm())),
        HeadConfig::Gmm(GmmHeadConfig {
            weights: MixtureWeights::Learned,
            std: MixtureStd::State,
            ..gmm()
        }),
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
    ]
}

fn observations() -> [ObservationSpace; 2] {
    [
        ObservationSpace::Pixels { shape: vec![4, 84, 84] },
        ObservationSpace::Vectors { width: OBSERVATION_WIDTH },
    ]
}

/// The action space of a head.
fn actions(head: &HeadConfig) -> ActionSpace {
    [ActionSpace::unit(ACTION_WIDTH), ActionSpace::numbered(N_ACTIONS)]
        .into_iter()
        .find(|actions| head.validate(actions).is_ok())
        .unwrap()
}

/// Random contexts, one of them padded.
fn batch(observations: &ObservationSpace, actions: &ActionSpace) -> Contexts {
    let device = Device::flex().autodiff();
    let mut generator = seed::generator(7, "batch");
    let pixels: Vec<u8> = match observations {
        ObservationSpace::Pixels { .. } => {
            (0..BATCH * (CONTEXT + 3) * 84 * 84).map(|_| generator.random()).collect()
        }
        ObservationSpace::Vectors { .. } => Vec::new(),
    };
    let n = BATCH * CONTEXT;
    let ids: Vec<i32> = (0..n).map(|_| generator.random_range(0..N_ACTIONS as i32)).collect();
    let mut random = |width: usize| -> Tensor<3> {
        let values: Vec<f32> = (0..n * width).map(|_| generator.random_range(-1.0..1.0)).collect();
        Tensor::from_data(TensorData::new(values, [BATCH, CONTEXT, width]), &device)
    };
    let n_padding = vec![0, 2, 0];
    Contexts {
        observations: match observations {
            ObservationSpace::Pixels { .. } => {
                let pixels = TensorData::new(pixels, [BATCH, CONTEXT + 3, 84, 84]);
                let frames = Tensor::<4, Int>::from_data(pixels, (&device, DType::U8));
                Observed::Frames(frames)
            }
            ObservationSpace::Vectors { width } => Observed::Vectors(random(*width)),
        },
        actions: match actions {
            ActionSpace::Discrete { .. } => {
                Acted::Discrete(Tensor::from_data(TensorData::new(ids, [BATCH, CONTEXT]), &device))
            }
            ActionSpace::Continuous { .. } => Acted::Continuous(random(ACTION_WIDTH)),
        },
        returns_to_go: random(1).squeeze_dim::<2>(2),
        // The last context extends beyond the horizon.
        timesteps: timesteps_from(&[3, 0, 7], &n_padding, CONTEXT),
        n_padding,
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
    }
}

/// A model from the matrix.
struct Pair {
    observations: ObservationSpace,
    actions: ActionSpace,
    config: ModelConfig,
}

impl Pair {
    fn model(&self) -> Model {
        let device = Device::flex().autodiff();
        let mut generator = seed::generator(1, "init");
        let init = &mut Init::drawn(&device, &mut generator);
        Model::init(&self.config, &self.observations, &self.actions, init).unwrap()
    }

    /// The losses of a few steps, and the trained model.
    fn train(&self, model: Model) -> (Vec<f64>, Model) {
        let contexts = batch(&self.observations, &self.actions);
        let decayed = match self.actions {
            ActionSpace::Discrete { .. } => Decayed::Matrices,
            ActionSpace::Continuous { .. } => Decayed::Everything,
        };
        // With pixels read as numbers, a few large steps overshoot. A perceptron needs larger
        // steps.
        let steps = match (&self.config, &self.observations, &self.actions) {
            (ModelConfig::Perceptron(_), ..) => (N_STEPS, 1e-2),
            (_, ObservationSpace::Pixels { .. }, ActionSpace::Continuous { .. }) => {
                (3 * N_STEPS, 1e-3)
            }
            _ => (N_STEPS, 3e-3),
        };
        let loss = |model: &Model| model.loss(&contexts, None).total;
        crate::train(model, decayed, steps, loss)
    }

    /// The model's output for the newest actions of the batch.
    fn newest_outputs(&self, model: &Model) -> Vec<f64> {
        match model.decide(&batch(&self.observations, &self.actions)) {
            Decisions::Actions(logits) => {
                (0..BATCH).flat_map(|row| logits.probs(row, 1.0)).collect()
            }
            Decisions::Numbers(numbers) => numbers.modes(),
        }
    }

    /// A trained model has the same output after it is saved and loaded.
    fn check(&self) {
        let fresh = self.model();
        let (losses, trained) = self.train(fresh.clone());
        check_learned((&self.observations, &self.config), &losses, &trained);
        assert_ne!(self.newest_outputs(&fresh), self.newest_outputs(&trained));
        assert_eq!(self.newest_outputs(&reloaded(&trained, fresh)), self.newest_outputs(&trained));
    }
}

/// A transformer with the structure of either reference. The Atari reference uses pixels and
/// discrete actions.
fn transformer(
    observations: &ObservationSpace,
    head: &HeadConfig,
    attention: AttentionConfig,
    conditioning: Option<ConditionerConfig>,
) -> Pair {
    let reference = match observations {
        ObservationSpace::Pixels { .. } => DecisionTransformerConfig::atari(10),
        ObservationSpace::Vectors { .. } => DecisionTransformerConfig::gym(9),
    };
    let config = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 32,
        context_length: CONTEXT,
        dropout: 0.0,
        conditioning,
        attention,
        head: head.clone(),
        ..reference
    };
    Pair {
        observations: observations.clone(),
        actions: actions(head),
        config: ModelConfig::Transformer(config),
    }
}

fn perceptron(
    observations: &ObservationSpace,
    head: &HeadConfig,
    conditioning: Option<ConditionerConfig>,
) -> Pair {
    let config = PerceptronConfig {
        n_layers: 2,
        width: 32,
        context_length: CONTEXT,
        dropout: 0.0,
        head: head.clone(),
        conditioning,
    };
    let config = ModelConfig::Perceptron(config);
    Pair { observations: observations.clone(), actions: actions(head), config }
}

/// Every head with every attention on vectors. On pixels, which cost more, every head is tested
/// with two attentions.
#[test]
fn everything_learns_with_everything_and_files_lose_nothing() {
    let [pixels, vectors] = observations();
    let few = [attentions()[0], attentions()[7]];
    for head in heads() {
        for conditioning in [Some(ConditionerConfig::default()), None] {
            for attention in attentions() {
                transformer(&vectors, &head, attention, conditioning.clone()).check();
            }
            for attention in few {
                transformer(&pixels, &head, attention, conditioning.clone()).check();
            }
        }
    }
}

/// Every attention on pixels with discrete actions, as in the paper.
#[test]
fn every_attention_learns_from_pixels() {
    let [pixels, _] = observations();
    for head in &heads()[..3] {
        for attention in attentions() {
            transformer(&pixels, head, attention, Some(ConditionerConfig::default())).check();
        }
    }
}

/// The weights of linear layers and convolutions in both references are named `weight` here,
/// outside of norms. Tables, biases, `R` and standard deviations are not.
#[track_caller]
fn check_matrices(pair: &Pair) {
    let init = &mut Init::shapes(&Device::flex());
    let model = Model::init(&pair.config, &pair.observations, &pair.actions, init).unwrap();
    let is_weight = |name: &&String| {
        let field = name.rsplit('.').next().unwrap();
        field.ends_with("weight") && !field.contains("norm")
    };
    let tensors = weights::export(&pair.model());
    let expected = tensors.keys().filter(is_weight).cloned().collect();
    assert_eq!(matrices::names(&model), expected, "{:?}", pair.config);
    // Each layer of a block, the head, and an embedding layer.
    assert!(matrices::names(&model).len() > 2);
}

#[test]
fn every_model_names_its_matrices() {
    for observations in observations() {
        for head in heads() {
            for attention in attentions() {
                for conditioning in [Some(ConditionerConfig::default()), None] {
                    check_matrices(&transformer(&observations, &head, attention, conditioning));
                }
            }
        }
    }
    let [_, vectors] = observations();
    for head in heads() {
        check_matrices(&perceptron(&vectors, &head, None));
    }
}

/// The groups of a small Atari and a small Gym model, name by name, as minGPT's
/// `configure_optimizers` sorts them.
#[test]
fn matrices_of_the_references_by_name() {
    let blocks = |n_layers: usize| {
        let fields = ["mlp_1_weight", "mlp_2_weight", "projection_weight", "qkv_weight"];
        let names = move |layer| fields.map(|field| format!("blocks.{layer}.{field}"));
        (0..n_layers).flat_map(names)
    };
    let [pixels, vectors] = observations();
    let fourier = attentions()[7];
    for (observations, head, others) in [
        (
            &pixels,
            &heads()[1],
            &[
                "encoder.conv_1_weight",
                "encoder.conv_2_weight",
                "encoder.conv_3_weight",
                "encoder.linear_weight",
                "head.weight",
                "returns.weight",
            ][..],
        ),
        (
            &vectors,
            &heads()[5],
            &["action.weight", "encoder.weight", "head.mean.weight", "returns.weight"][..],
        ),
    ] {
        let model =
            transformer(observations, head, fourier, Some(ConditionerConfig::default())).model();
        let expected = others.iter().map(|name| name.to_string()).chain(blocks(2)).collect();
        assert_eq!(matrices::names(&model), expected);
    }
}

/// The other reference's positions and embeddings.
#[test]
fn positions_are_independent_of_what_is_seen() {
    for observations in observations() {
        for head in [&heads()[0], &heads()[3]] {
            let mut pair = transformer(
                &observations,
                head,
                attentions()[0],
                Some(ConditionerConfig::default()),
            );
            let ModelConfig::Transformer(config) = &mut pair.config else { panic!() };
            let other = match observations {
                ObservationSpace::Pixels { .. } => DecisionTransformerConfig::gym(9),
                ObservationSpace::Vectors { .. } => DecisionTransformerConfig::atari(10),
            };
            config.positions = other.positions;
            config.tanh_embeddings = other.tanh_embeddings;
            config.activation = other.activation;
            pair.check();
        }
    }
}

#[test]
fn a_perceptron_learns_with_every_head() {
    let [_, vectors] = observations();
    for head in heads() {
        for conditioning in [None, PerceptronConfig::rvs(9).conditioning] {
            perceptron(&vectors, &head, conditioning).check();
        }
    }
}

/// Every `R` of every layer has a gradient and changes.
#[test]
fn every_r_is_learned() {
    let [pixels, vectors] = observations();
    for attention in attentions() {
        for (observations, head) in [(&pixels, &heads()[0]), (&vectors, &heads()[3])] {
            let pair =
                transformer(observations, head, attention, Some(ConditionerConfig::default()));
            check_r(attention, &pair.train(pair.model()).1);
        }
    }
}

/// The fused operations give the same results as the plain ones.
#[test]
fn forms_learn_alike() {
    let [pixels, vectors] = observations();
    let [softmax, fourier] = [attentions()[0], attentions()[7]];
    for (observations, head, attention) in [
        (&pixels, &heads()[0], fourier),
        (&vectors, &heads()[3], softmax),
        (&vectors, &heads()[3], fourier),
    ] {
        let pair = transformer(observations, head, attention, Some(ConditionerConfig::default()));
        let losses = |form| pair.train(pair.model().with_form(form)).0;
        let [fused, plain] = [Form::Auto, Form::Reference].map(losses);
        assert_ne!(fused, plain, "the fused form did not run");
        for (fused, plain) in fused.iter().zip(&plain) {
            assert!((fused - plain).abs() < 1e-3 * plain, "{fused} against {plain}");
        }
    }
}
