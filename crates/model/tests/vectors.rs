//! Models on vectors: invariance of predictions, and gradients through the whole model.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, AttentionConfig, ConditionerConfig, ContextShape, Contexts, DecisionTransformer,
    DecisionTransformerConfig, DropoutSeed, FourierKernel, HeadConfig, History, Init, Model,
    ModelConfig, Observed, Perceptron, PerceptronConfig, PositionsConfig, PreviousActions, RShape,
    Steps,
    contexts::timesteps_from,
    decision_transformer::Form,
    head::{
        BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, FourierLikelihoodConfig,
        GaussianConfig, GmmHeadConfig, GmmLikelihoodConfig, LinearConfig, PointwiseConfig,
        TanhConfig,
    },
    weights::{self, NamedTensors},
};
use overtone_testkit::assert_close;
use rand::RngExt;

const CONTEXT: usize = 4;
const OBSERVATION_WIDTH: usize = 3;
const ACTION_WIDTH: usize = 2;
/// Number of discrete actions.
const N_ACTIONS: usize = 5;
/// Tolerance between contexts with different padding. No difference was seen; another machine may
/// group sums differently.
const ROUNDING: f64 = 1e-6;
/// Tolerance between the fused and the plain form. Largest seen: 2.4e-7.
const FORMS: f64 = 1e-5;
/// Tolerance of a gradient, relative to the largest entry of its tensor. Largest seen: 5e-7.
const GRADIENT: f64 = 1e-5;

fn heads() -> [HeadConfig; 11] {
    let binned = |head| HeadConfig::Binned(BinnedConfig { bins: 6, head });
    let half_range =
        FourierHeadConfig { gamma: 1e-3, domain: Domain::HalfRange, ..FourierHeadConfig::new(3) };
    let fourier = FourierLikelihoodConfig { gamma: 1e-3, ..FourierLikelihoodConfig::new(3) };
    [
        HeadConfig::Tanh(TanhConfig {}),
        HeadConfig::Pointwise(PointwiseConfig {}),
        HeadConfig::Gaussian(GaussianConfig {}),
        HeadConfig::FourierLikelihood(fourier),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 2, ..Default::default() }),
        binned(BinsHeadConfig::Linear(LinearConfig {})),
        binned(BinsHeadConfig::Fourier(half_range)),
        binned(BinsHeadConfig::Gmm(GmmHeadConfig { components: 2, ..Default::default() })),
        HeadConfig::Linear(LinearConfig {}),
        HeadConfig::Fourier(FourierHeadConfig { gamma: 1e-3, ..FourierHeadConfig::new(3) }),
        HeadConfig::Gmm(GmmHeadConfig { components: 2, ..Default::default() }),
    ]
}

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: OBSERVATION_WIDTH };

/// The action space of a head.
fn actions(head: &HeadConfig) -> ActionSpace {
    [ActionSpace::unit(ACTION_WIDTH), ActionSpace::numbered(N_ACTIONS)]
        .into_iter()
        .find(|actions| head.validate(actions).is_ok())
        .unwrap()
}

fn kernel(power: u32, r: RShape) -> AttentionConfig {
    let fourier = FourierKernel { power, r, initial: 1.5, epsilon: 0.0 };
    AttentionConfig::Fourier(fourier)
}

fn config(
    head: HeadConfig,
    attention: AttentionConfig,
    conditioning: Option<ConditionerConfig>,
) -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 8,
        context_length: CONTEXT,
        conditioning,
        attention,
        head,
        ..DecisionTransformerConfig::gym(7)
    }
}

/// The other kind of positions, from the reference on Atari.
const GLOBAL: PositionsConfig = PositionsConfig::LocalAndGlobal { max_timestep: 6 };

fn init(config: &DecisionTransformerConfig, device: &Device) -> DecisionTransformer {
    let mut generator = seed::generator(3, "init");
    let init = &mut Init::drawn(device, &mut generator);
    let model = DecisionTransformer::init(config, &OBSERVATIONS, &actions(&config.head), init);
    let model = model.unwrap();
    weights::import(model.clone(), &shown(weights::export(&model))).unwrap()
}

/// Replaces initial zeros, which would hide the effect of a parameter.
fn shown(mut parameters: NamedTensors) -> NamedTensors {
    for (name, data) in &mut parameters {
        let begins_with_zeros = ["positions.local", "positions.global"];
        if begins_with_zeros.contains(&name.as_str()) {
            let shape = data.shape().clone();
            let values: Vec<f32> = (0..shape.num_elements()).map(|i| (i as f32).sin()).collect();
            *data = TensorData::new(values, shape);
        }
    }
    parameters
}

/// Every head with both attentions and the references' positions, with and without returns; and
/// with positions that do not depend on the episode.
fn models() -> Vec<DecisionTransformer> {
    let mut models = Vec::new();
    for head in heads() {
        for attention in [AttentionConfig::SOFTMAX, kernel(4, RShape::PerHead)] {
            for conditioning in [Some(ConditionerConfig::default()), None] {
                let config = config(head.clone(), attention, conditioning);
                models.push(init(&config, &Device::flex()));
                let global = DecisionTransformerConfig {
                    positions: GLOBAL,
                    tanh_embeddings: true,
                    ..config
                };
                models.push(init(&global, &Device::flex()));
                for positions in [PositionsConfig::Local, PositionsConfig::Order] {
                    let config = DecisionTransformerConfig { positions, ..global.clone() };
                    models.push(init(&config, &Device::flex()));
                }
            }
        }
    }
    models
}

/// Random timesteps of one episode.
#[derive(Clone)]
struct Episode {
    observations: Vec<f32>,
    actions: Vec<f32>,
    ids: Vec<i32>,
    returns_to_go: Vec<f32>,
}

impl Episode {
    fn random(length: usize) -> Self {
        let mut generator = seed::generator(11, "episode");
        let mut random =
            |n: usize| -> Vec<f32> { (0..n).map(|_| generator.random_range(-1.0..1.0)).collect() };
        Self {
            observations: random(length * OBSERVATION_WIDTH),
            actions: random(length * ACTION_WIDTH),
            returns_to_go: random(length),
            ids: (0..length).map(|_| generator.random_range(0..N_ACTIONS as i32)).collect(),
        }
    }

    /// Steps `first .. first + n`, after `n_padding` padded places filled with `noise`.
    fn context(
        &self,
        head: &HeadConfig,
        first: usize,
        n: usize,
        n_padding: usize,
        noise: f32,
    ) -> Contexts {
        let device = Device::flex();
        let time = n_padding + n;
        let padded = |column: &[f32], width: usize| {
            let real = &column[first * width..(first + n) * width];
            let values = [&vec![noise; n_padding * width][..], real].concat();
            Tensor::<3>::from_data(TensorData::new(values, [1, time, width]), &device)
        };
        let timesteps = (0..n_padding)
            .map(|_| noise as i32)
            .chain((first..first + n).map(|timestep| timestep as i32))
            .collect();
        let ids = [&vec![noise.abs() as i32 % 5; n_padding], &self.ids[first..first + n]].concat();
        Contexts {
            observations: Observed::Vectors(padded(&self.observations, OBSERVATION_WIDTH)),
            actions: match actions(head) {
                ActionSpace::Continuous { .. } => {
                    Acted::Continuous(padded(&self.actions, ACTION_WIDTH))
                }
                ActionSpace::Discrete { .. } => {
                    Acted::Discrete(Tensor::from_data(TensorData::new(ids, [1, time]), &device))
                }
            },
            returns_to_go: padded(&self.returns_to_go, 1).squeeze_dim::<2>(2),
            timesteps,
            n_padding: vec![n_padding],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }

    /// An agent's history at step `last`, from step `first` on.
    fn history(&self, head: &HeadConfig, first: usize, last: usize) -> History<'_> {
        History {
            observations: &self.observations
                [first * OBSERVATION_WIDTH..(last + 1) * OBSERVATION_WIDTH],
            actions: match actions(head) {
                ActionSpace::Discrete { .. } => PreviousActions::Discrete(&self.ids[first..last]),
                ActionSpace::Continuous { .. } => PreviousActions::Continuous(
                    &self.actions[first * ACTION_WIDTH..last * ACTION_WIDTH],
                ),
            },
            returns_to_go: &self.returns_to_go[first..=last],
            timestep: last,
        }
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// The head's input for the newest action of each history.
fn current(model: &Model, histories: &[History<'_>]) -> Vec<f64> {
    let (observations, actions) = model.spaces();
    let shape = ContextShape { context_length: CONTEXT, observations, actions };
    let place = (&Device::flex(), DType::F32);
    let contexts = Contexts::of_histories(histories, shape, None, place);
    numbers(model.newest(&contexts))
}

/// The head's input at the last `n` steps.
fn hidden(model: &DecisionTransformer, contexts: &Contexts, n: usize) -> Vec<f64> {
    let hidden = numbers(model.hidden(contexts, Steps::All, None));
    hidden[hidden.len() - n * model.config.d_model..].to_vec()
}

#[test]
fn padding_changes_nothing() {
    let episode = Episode::random(3);
    for model in models() {
        for n in 1..=3 {
            let head = &model.config.head;
            let alone = episode.context(head, 0, n, 0, 0.0);
            let loss = numbers(model.loss(&alone, None).total);
            let alone = hidden(&model, &alone, n);
            for (n_padding, noise) in [(CONTEXT - n, 0.0), (CONTEXT - n, -10.0), (1, 7.0)] {
                let padded = episode.context(head, 0, n, n_padding, noise);
                let padded_loss = numbers(model.loss(&padded, None).total);
                assert_close("padded loss", &padded_loss, &loss, ROUNDING, ROUNDING);
                let padded = hidden(&model, &padded, n);
                assert_close("padded", &padded, &alone, 0.0, ROUNDING);
            }
        }
    }
}

#[test]
fn the_future_changes_no_past_output() {
    let episode = Episode::random(CONTEXT);
    for model in models() {
        let outputs = |episode: &Episode| {
            let contexts = episode.context(&model.config.head, 0, CONTEXT, 0, 0.0);
            hidden(&model, &contexts, CONTEXT)
        };
        let before = outputs(&episode);
        let last = CONTEXT - 1;
        let past = last * model.config.d_model;
        let mut changed = episode.clone();
        changed.actions[last * ACTION_WIDTH] += 0.5;
        changed.ids[last] = (changed.ids[last] + 1) % N_ACTIONS as i32;
        assert_eq!(outputs(&changed), before, "an action was read before it was taken");
        changed.observations[last * OBSERVATION_WIDTH] += 0.5;
        changed.returns_to_go[last] -= 0.5;
        let after = outputs(&changed);
        assert_eq!(after[..past], before[..past], "a past prediction moved");
        assert_ne!(after[past..], before[past..], "the present has no effect");
    }
}

/// Returns have an effect on the model if it is conditioned on them, and only then.
#[test]
fn conditioning_decides_whether_returns_have_an_effect() {
    let episode = Episode::random(CONTEXT);
    let mut other = episode.clone();
    other.returns_to_go.iter_mut().for_each(|returns| *returns += 1.0);
    for model in models() {
        let [one, other] = [&episode, &other].map(|episode| {
            let contexts = episode.context(&model.config.head, 0, CONTEXT, 0, 0.0);
            hidden(&model, &contexts, CONTEXT)
        });
        assert_eq!(one != other, model.config.conditioning.is_some());
    }
}

/// A range of returns only changes the unit.
#[test]
fn returns_become_their_place_in_the_range() {
    let episode = Episode::random(CONTEXT);
    let mut scaled = episode.clone();
    // From [-0.5, 1.5] to [-1, 1], exact in binary.
    scaled.returns_to_go.iter_mut().for_each(|returns| *returns -= 0.5);
    let range = ConditionerConfig { return_range: Some([-0.5, 1.5]), ..Default::default() };
    for model in models() {
        let context = |episode: &Episode| episode.context(&model.config.head, 0, CONTEXT, 0, 0.0);
        let ranged = range.condition(context(&episode));
        let [scaled_outputs, ranged, unscaled] = [context(&scaled), ranged, context(&episode)]
            .map(|contexts| hidden(&model, &contexts, CONTEXT));
        assert_close("ranged", &ranged, &scaled_outputs, 0.0, ROUNDING);
        assert_eq!(ranged != unscaled, model.config.conditioning.is_some());
    }
}

#[test]
fn timesteps_past_the_horizon_use_its_last_row() {
    let episode = Episode::random(9);
    for model in models() {
        let head = &model.config.head;
        let agent = Model::Transformer(model.clone());
        let at = |last: usize| {
            let history = History { timestep: last, ..episode.history(head, 0, 0) };
            current(&agent, &[history])
        };
        assert_eq!(at(6), at(7));
        assert_eq!(at(6), at(usize::MAX));
        let knows_none = [PositionsConfig::Local, PositionsConfig::Order];
        assert_eq!(at(5) == at(6), knows_none.contains(&model.config.positions));
    }
}

/// Agents with episodes of different lengths, acting together, have the same head inputs as one
/// pass over each context.
#[test]
fn acting_together_equals_one_pass_each() {
    let episode = Episode::random(CONTEXT + 3);
    for model in models() {
        for last in 1..CONTEXT + 3 {
            let head = &model.config.head;
            let both = [episode.history(head, 0, last), episode.history(head, 0, last / 2)];
            let got = current(&Model::Transformer(model.clone()), &both);
            let alone = [last, last / 2].map(|last| {
                let n = (last + 1).min(CONTEXT);
                hidden(&model, &episode.context(head, last + 1 - n, n, 0, 0.0), 1)
            });
            assert_close("current", &got, &alone.concat(), 0.0, ROUNDING);
        }
    }
}

fn dropout(seed: u64) -> DropoutSeed {
    DropoutSeed::new(seed, &Device::flex())
}

/// Dropout drops units in training, depending only on its seed.
#[test]
fn dropout_follows_its_seed() {
    let episode = Episode::random(CONTEXT);
    for model in models() {
        let inputs = episode.context(&model.config.head, 0, CONTEXT, 0, 0.0);
        let with =
            |seed: Option<u64>| numbers(model.hidden(&inputs, Steps::All, seed.map(dropout)));
        assert_eq!(with(Some(1)), with(Some(1)));
        assert_ne!(with(Some(1)), with(Some(2)));
        assert_ne!(with(Some(1)), with(None));
        let plain = DecisionTransformer { form: Form::Reference, ..model.clone() };
        let plain = numbers(plain.hidden(&inputs, Steps::All, Some(dropout(1))));
        assert_close("plain form", &with(Some(1)), &plain, 0.0, FORMS);
    }
}

/// In `f64`, with padding: every parameter's gradient against central differences.
#[track_caller]
fn check_gradients(config: &ModelConfig) {
    let init = |device: &Device| {
        let generator = &mut seed::generator(3, "init");
        let init = &mut Init::drawn(device, generator);
        Model::init(config, &OBSERVATIONS, &actions(config.head()), init).unwrap()
    };
    // At the start, a transformer's matrices are so small that their differences are rounding
    // errors.
    let parameters: NamedTensors = shown(weights::export(&init(&Device::flex())))
        .into_iter()
        .map(|(name, data)| {
            let small = name.starts_with("blocks.") && !name.ends_with("fourier_r");
            let scale = if small && data.rank() == 2 { 20.0 } else { 1.0 };
            let values: Vec<f64> = data.iter::<f64>().map(|x| x * scale).collect();
            (name, TensorData::new(values, data.shape().clone()))
        })
        .collect();
    let inputs = |device: &Device| {
        let single = Episode::random(3).context(config.head(), 0, 3, 1, 0.5);
        let double = |tensor: Tensor<3>| {
            Tensor::<3>::from_data(tensor.into_data().convert::<f64>(), (device, DType::F64))
        };
        let Observed::Vectors(observations) = single.observations else { panic!("vectors") };
        Contexts {
            observations: Observed::Vectors(double(observations)),
            actions: match single.actions {
                Acted::Continuous(numbers) => Acted::Continuous(double(numbers)),
                Acted::Discrete(ids) => Acted::Discrete(Tensor::from_data(ids.into_data(), device)),
            },
            returns_to_go: double(single.returns_to_go.unsqueeze_dim(2)).squeeze_dim::<2>(2),
            timesteps: timesteps_from(&[0], &[1], 4),
            n_padding: vec![1],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    };
    let tracked = Device::flex().autodiff();
    let model = weights::import(init(&tracked), &parameters).unwrap();
    let gradients = model.loss(&inputs(&tracked), None).total.backward();
    let gradients = weights::export_gradients(&model, &gradients);
    assert_eq!(gradients.len(), parameters.len());

    let (plain, untracked) = (Device::flex(), inputs(&Device::flex()));
    let fresh = init(&plain);
    let loss = |moved: &NamedTensors| {
        let model = weights::import(fresh.clone(), moved).unwrap();
        numbers(model.loss(&untracked, None).total)[0]
    };
    let step = 1e-6;
    for (name, gradient) in gradients {
        let gradient: Vec<f64> = gradient.iter::<f64>().collect();
        let values: Vec<f64> = parameters[&name].iter::<f64>().collect();
        let differences: Vec<f64> = (0..values.len())
            .map(|index| {
                let at = |x: f64| {
                    let mut moved = parameters.clone();
                    let mut values = values.clone();
                    values[index] = x;
                    let shape = parameters[&name].shape().clone();
                    moved.insert(name.clone(), TensorData::new(values, shape));
                    loss(&moved)
                };
                (at(values[index] + step) - at(values[index] - step)) / (2.0 * step)
            })
            .collect();
        let scale = differences.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        // The bias of keys has no effect on softmax attention: its differences are rounding errors.
        let absolute = GRADIENT * scale.max(1e-4);
        let what = format!("{name} of {config:?}");
        assert_close(&what, &gradient, &differences, 0.0, absolute);
    }
}

fn check_transformer(
    head: HeadConfig,
    attention: AttentionConfig,
    conditioning: Option<ConditionerConfig>,
) {
    let config = config(head, attention, conditioning);
    let config = DecisionTransformerConfig { n_layers: 1, d_model: 4, ..config };
    check_gradients(&ModelConfig::Transformer(config.clone()));
    let global = DecisionTransformerConfig { positions: GLOBAL, tanh_embeddings: true, ..config };
    check_gradients(&ModelConfig::Transformer(global));
}

#[test]
fn gradients_of_every_head() {
    for head in heads() {
        check_transformer(head, AttentionConfig::SOFTMAX, Some(ConditionerConfig::default()));
    }
}

#[test]
fn gradients_of_every_attention() {
    for (power, r) in [(2, RShape::Scalar), (4, RShape::PerHead), (6, RShape::PerDimension)] {
        check_transformer(
            HeadConfig::Tanh(TanhConfig {}),
            kernel(power, r),
            Some(ConditionerConfig::default()),
        );
    }
}

#[test]
fn gradients_without_return_tokens() {
    let head = HeadConfig::Tanh(TanhConfig {});
    check_transformer(head, AttentionConfig::SOFTMAX, None);
}

#[test]
fn gradients_of_a_perceptron() {
    for head in heads() {
        let gym = PerceptronConfig::gym();
        let config =
            PerceptronConfig { n_layers: 2, width: 6, context_length: CONTEXT, head, ..gym };
        let conditioning = PerceptronConfig::rvs(7).conditioning;
        let rvs = PerceptronConfig { conditioning, ..config.clone() };
        check_gradients(&ModelConfig::Perceptron(config));
        check_gradients(&ModelConfig::Perceptron(rvs));
    }
}

/// A perceptron reads only the last observations. Padding has no effect, and dropout depends on its
/// seed.
#[test]
fn a_perceptron_reads_only_observations() {
    let gym = PerceptronConfig::gym();
    let config = PerceptronConfig { width: 16, context_length: CONTEXT, dropout: 0.5, ..gym };
    let mut generator = seed::generator(3, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    let head = &config.head;
    let model = Perceptron::init(&config, &OBSERVATIONS, &actions(head), init).unwrap();
    let agent = Model::Perceptron(model.clone());
    let episode = Episode::random(CONTEXT + 2);
    let mut other = episode.clone();
    other.observations[2 * OBSERVATION_WIDTH - 1] += 1.0; // of step 1, which is out of the context
    other.actions.iter_mut().for_each(|action| *action += 0.1);
    other.returns_to_go.iter_mut().for_each(|returns| *returns += 1.0);
    let last = CONTEXT + 1;
    let acting = |episode: &Episode, last| current(&agent, &[episode.history(head, 0, last)]);
    assert_eq!(acting(&episode, last), acting(&other, last));
    assert_ne!(acting(&episode, last - 1), acting(&other, last - 1));

    let hidden = |noise| numbers(model.hidden(&episode.context(head, 0, 2, 2, noise), None));
    assert_eq!(hidden(0.0), hidden(-10.0));
    let both = [episode.history(head, 0, 1), episode.history(head, 0, last)];
    let together = current(&agent, &both);
    let alone = both.map(|history| current(&agent, &[history])).concat();
    assert_close("current", &together, &alone, 0.0, ROUNDING);

    let inputs = episode.context(head, 0, CONTEXT, 0, 0.0);
    let with = |seed: Option<u64>| numbers(model.hidden(&inputs, seed.map(dropout)));
    assert_eq!(with(Some(1)), with(Some(1)));
    assert_ne!(with(Some(1)), with(Some(2)));
    assert_ne!(with(Some(1)), with(None));
}
