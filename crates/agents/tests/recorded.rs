//! Training steps that are recorded once and replayed, on the device that wgpu finds: any device
//! with Vulkan, including software devices. They end with the same bits as ordinary steps.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use std::{cell::Cell, collections::BTreeMap, fs, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::tensor::{Device, DeviceKind, Tensor};
use overtone_agents::{
    DiscreteCql, DiscreteCqlConfig, Iql, IqlConfig, Rebrac, RebracConfig, SequenceLearner,
    SequenceModel, Td3Bc, Td3BcConfig,
    iql::{Continuous, Discrete, InChunks},
};
use overtone_core::{ActionSpace, seed::Generator};
use overtone_data::{Batch, Dataset};
use overtone_model::{
    AttentionConfig, AverageReturn, ConditionerConfig, DecisionTransformerConfig, FourierKernel,
    HeadConfig, Inputs, ModelConfig, PerceptronConfig, PositionsConfig, ReturnModelConfig,
    Sections, head::LinearConfig, options::Choice,
};
use overtone_train::{
    Algorithm, Checkpoint, Job, Observer, Recorded, RunDir, StepAt, StepFigures, TrainConfig,
    TrainError, Trainer, Training, TrainingData,
};

/// Steps of a run. The fourth of a layout of inputs is recorded, and the fifth is checked.
const STEPS: u64 = 20;

/// What recording reported, by step.
#[derive(Default)]
struct News(Vec<(u64, Option<String>)>);

impl Observer for News {
    fn recorded(&mut self, step: u64, error: Option<&str>) {
        self.0.push((step, error.map(str::to_owned)));
    }
}

struct Run<'a, A = SequenceModel> {
    folder: &'a Path,
    data: &'a Arc<Dataset>,
    algorithm: &'a A,
    config: &'a TrainConfig,
}

impl<A: Algorithm + Clone> Run<'_, A> {
    /// The last checkpoint, and what recording reported.
    fn train(&self, name: &str, records: bool, resume: Option<&Checkpoint>) -> (Checkpoint, News) {
        let job = Job {
            run: RunDir::create(&self.folder.join(name), "run").unwrap(),
            config: self.config.clone(),
            data: TrainingData::new(self.data.clone(), 1.0),
            agent: serde_json::json!("recorded"),
            seed: 1,
            device: Device::wgpu(DeviceKind::DefaultDevice),
            init: None,
            resume: resume.cloned(),
        };
        let trainer = Trainer::new(self.algorithm.clone(), job).unwrap();
        let (stop, mut news) = (AtomicBool::new(false), News::default());
        let trainer = Box::new(trainer.recording(records));
        (trainer.train(&stop, &mut news).unwrap().checkpoint, news)
    }
}

/// The tensors of a checkpoint, as files.
fn tensors(checkpoint: &Checkpoint) -> BTreeMap<String, Vec<u8>> {
    let paths = fs::read_dir(&checkpoint.path).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "safetensors"));
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

#[track_caller]
fn check_equal(got: &Checkpoint, expected: &Checkpoint) {
    let [got, expected] = [got, expected].map(tensors);
    assert_eq!(got.len(), 2);
    assert!(got.into_values().eq(expected.into_values()), "other weights or moments");
}

/// The recorded run ends as the ordinary one.
#[track_caller]
fn check_recorded<A: Algorithm + Clone>(run: &Run<'_, A>, recordings: usize) {
    let (recorded, ordinary) = both(run, recordings);
    check_equal(&recorded, &ordinary);
}

/// The recorded run, whose `recordings` layouts are replayed, and the ordinary one.
#[track_caller]
fn both<A: Algorithm + Clone>(run: &Run<'_, A>, recordings: usize) -> (Checkpoint, Checkpoint) {
    let (ordinary, none) = run.train("ordinary", false, None);
    assert_eq!(none.0, []);
    let (recorded, news) = run.train("recorded", true, None);
    println!("{:?}", news.0);
    assert_eq!(news.0.len(), recordings, "{:?}", news.0);
    assert!(news.0.iter().all(|(_, error)| error.is_none()), "{:?}", news.0);
    (recorded, ordinary)
}

/// The same, also if the recorded run is resumed.
#[track_caller]
fn check<A: Algorithm + Clone>(
    data: &Arc<Dataset>,
    algorithm: &A,
    config: &TrainConfig,
    recordings: usize,
) {
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: folder.path(), data, algorithm, config };
    let (recorded, ordinary) = both(&run, recordings);
    check_equal(&recorded, &ordinary);
    let half = Checkpoint::at_step(recorded.path.parent().unwrap(), STEPS / 2).unwrap();
    let resumed = run.train("resumed", true, Some(&half));
    check_equal(&resumed.0, &ordinary);
}

fn config() -> TrainConfig {
    TrainConfig { batch_size: 4, checkpoint_every: 10, log_every: 6, ..chain::config(STEPS) }
}

fn chain_model(config: DecisionTransformerConfig) -> SequenceModel {
    let names = vec!["left".to_owned(), "right".to_owned()];
    let model = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 16,
        context_length: 5,
        head: HeadConfig::Linear(LinearConfig {}),
        ..config
    };
    SequenceModel {
        model: ModelConfig::Transformer(model),
        observations: chain::observations(),
        actions: ActionSpace::Discrete { names },
    }
}

#[test]
fn contexts_with_timesteps() {
    let conditioning = ConditionerConfig {
        return_range: Some([0.0, 1.0]),
        average_return: Some(AverageReturn { horizon: 20 }),
        ..ConditionerConfig::default()
    };
    let model = DecisionTransformerConfig {
        attention: AttentionConfig::Fourier(FourierKernel::default()),
        conditioning: Some(conditioning),
        ..DecisionTransformerConfig::gym(20)
    };
    let config = TrainConfig { average_weights: true, held_out: 0.25, ..config() };
    check(&chain::listed(0.5, config.held_out), &chain_model(model), &config, 1);
}

/// Batches without padding have a layout of their own.
#[test]
fn contexts_with_places() {
    let model = DecisionTransformerConfig {
        positions: PositionsConfig::LocalAndGlobal { max_timestep: 20 },
        ..DecisionTransformerConfig::atari(20)
    };
    let config = TrainConfig { batch_size: 2, ..config() };
    check(&chain::listed(0.5, 0.0), &chain_model(model), &config, 2);
}

/// The default configuration of robots with vectors and continuous actions, but small. The return
/// model has an optimizer of its own.
#[test]
fn contexts_with_a_return_model() {
    let returns = ReturnModelConfig { width: 16, ..ReturnModelConfig::hl_gauss() };
    let model = DecisionTransformerConfig {
        n_layers: 2,
        d_model: 16,
        context_length: 5,
        dropout: 0.0,
        positions: PositionsConfig::Order,
        conditioning: Some(conditioning(Some(returns))),
        ..DecisionTransformerConfig::gym(20)
    };
    let model = robot(ModelConfig::Transformer(model));
    let config = TrainConfig { average_weights: true, held_out: 0.25, ..config() };
    check(&chain::real_valued(config.held_out), &model, &config, 1);
}

/// Behaviour cloning with dropout, and RvS-R with top percents.
#[test]
fn perceptrons() {
    let small = |model| PerceptronConfig { width: 16, context_length: 3, ..model };
    let cloning = small(PerceptronConfig::gym());
    check(&chain::real_valued(0.0), &robot(ModelConfig::Perceptron(cloning)), &config(), 1);
    let rvs = PerceptronConfig {
        conditioning: Some(conditioning(None)),
        context_length: 1,
        ..small(PerceptronConfig::rvs(20))
    };
    check(&chain::real_valued(0.0), &robot(ModelConfig::Perceptron(rvs)), &config(), 1);
}

/// Agents that learn values. TD3+BC and ReBRAC have a layout for steps of the actor.
#[test]
fn values_of_numbers() {
    let data = chain::real_valued(0.0);
    let td3_bc = Td3BcConfig { hidden: 16, ..Td3BcConfig::default() };
    check(&data, &Td3Bc::new(td3_bc, &chain::observations(), &chain::numbers()), &config(), 2);
    check(&data, &rebrac(), &config(), 2);
    let averaging = TrainConfig { average_weights: true, ..config() };
    check(&data, &iql(), &averaging, 1);
    check(&chain::weighted(&data), &iql(), &config(), 1);
    let chunks = IqlConfig { hidden: 16, chunk_size: 2, ..IqlConfig::default() };
    let networks = InChunks::new(&chain::observations(), &chain::numbers().in_chunks(2));
    check(&data, &Iql::new(chunks, networks), &config(), 1);
}

fn rebrac() -> Rebrac {
    let config = RebracConfig { hidden: 16, n_steps: 1, ..RebracConfig::default() };
    Rebrac::new(config, &chain::observations(), &chain::numbers())
}

fn iql() -> Iql<Continuous> {
    let config = IqlConfig { hidden: 16, ..IqlConfig::default() };
    Iql::new(config, Continuous::new(&chain::observations(), &chain::numbers()))
}

#[test]
fn values_of_lists() {
    let data = chain::listed(0.5, 0.0);
    let actions = ActionSpace::numbered(2);
    let head = HeadConfig::Linear(LinearConfig {});
    let networks = Discrete::new(&chain::observations(), &actions, head);
    let iql = IqlConfig { hidden: 16, ..IqlConfig::default() };
    check(&data, &Iql::new(iql, networks), &config(), 1);
    let config_of_cql =
        DiscreteCqlConfig { hidden: 16, quantiles: 5, target_every: 3, ..Default::default() };
    let observations = chain::observations();
    let cql = DiscreteCql { config: config_of_cql, observations, actions };
    check(&data, &cql, &config(), 1);
    check(&chain::cut_short(&data), &cql, &config(), 1);
}

/// Steps without a target have the weight 0 in a recorded step, and are left out of an ordinary one.
#[test]
fn steps_that_do_not_count() {
    let data = chain::cut_short(&chain::real_valued(0.0));
    check_close(&data, &iql(), 1);
    check_close(&data, &rebrac(), 2);
}

#[track_caller]
fn check_close<A: Algorithm + Clone>(data: &Arc<Dataset>, algorithm: &A, recordings: usize) {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { batch_size: 32, ..config() };
    let run = Run { folder: folder.path(), data, algorithm, config: &config };
    let (recorded, ordinary) = both(&run, recordings);
    let [recorded, ordinary] = [recorded, ordinary].map(|checkpoint| checkpoint.weights().unwrap());
    for (name, expected) in &ordinary {
        for (got, expected) in recorded[name].iter::<f32>().zip(expected.iter::<f32>()) {
            assert!((got - expected).abs() < 1e-4, "{name}: {got} instead of {expected}");
        }
    }
}

fn robot(model: ModelConfig) -> SequenceModel {
    SequenceModel { model, observations: chain::observations(), actions: chain::numbers() }
}

fn conditioning(return_model: Option<ReturnModelConfig>) -> ConditionerConfig {
    ConditionerConfig {
        return_range: Some([0.0, 1.0]),
        average_return: Some(AverageReturn { horizon: 20 }),
        return_model,
        top_percents: vec![10.0, 50.0, 100.0],
    }
}

/// Heads keep their tables of constants on the device.
#[test]
fn heads_with_constants() {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { checkpoint_every: 6, ..config() };
    let config = TrainConfig { updates: 6, ..config };
    let names = vec!["left".to_owned(), "right".to_owned()];
    let cases = [
        (ActionSpace::Discrete { names }, chain::listed(0.5, 0.0), 0),
        (chain::numbers(), chain::real_valued(0.0), 0),
        (chain::numbers(), chain::real_valued(0.0), 5),
    ];
    for (i, (actions, data, bins)) in cases.into_iter().enumerate() {
        for Choice { word, config: head, .. } in HeadConfig::choices(&actions, bins) {
            println!("{word}, {bins} bins");
            let model = DecisionTransformerConfig {
                n_layers: 1,
                d_model: 8,
                context_length: 3,
                head,
                ..DecisionTransformerConfig::gym(20)
            };
            let algorithm = SequenceModel {
                model: ModelConfig::Transformer(model),
                observations: chain::observations(),
                actions: actions.clone(),
            };
            let folder = folder.path().join(format!("{i}-{word}"));
            let run = Run { folder: &folder, data: &data, algorithm: &algorithm, config: &config };
            check_recorded(&run, 1);
        }
    }
}

/// A model with a step that cannot be recorded.
#[derive(Clone)]
struct Wrong {
    model: SequenceModel,
    kind: Kind,
    n_steps: Cell<u8>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// It sends something in the middle of a step.
    Sending,
    /// It passes a number to a kernel that differs from step to step.
    Counting,
}

impl Algorithm for Wrong {
    type State = SequenceLearner;

    fn figures(&self) -> &'static [&'static str] {
        self.model.figures()
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn labels_per_context(&self) -> usize {
        self.model.labels_per_context()
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<SequenceLearner, TrainError> {
        self.model.init(config, device, generator)
    }

    fn step(
        &self,
        state: &mut SequenceLearner,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        self.model.step(state, batch, data, at)
    }

    fn recorded(&self) -> Option<&dyn Recorded<SequenceLearner>> {
        Some(self)
    }

    fn held_out_loss(
        &self,
        state: &SequenceLearner,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        self.model.held_out_loss(state, batch, data, device)
    }
}

impl Recorded<SequenceLearner> for Wrong {
    fn send(
        &self,
        state: &SequenceLearner,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool {
        self.model.send(state, batch, data, at, to)
    }

    fn compute(
        &self,
        state: &mut SequenceLearner,
        inputs: &Inputs,
        data: &TrainingData,
    ) -> StepFigures {
        let figures = self.model.compute(state, inputs, data);
        self.n_steps.set(self.n_steps.get() + 1);
        let loss = match self.kind {
            Kind::Sending => {
                let sent = Tensor::from_data([1.0f32], &figures.loss.device());
                figures.loss * sent
            }
            Kind::Counting => figures.loss * f64::from(self.n_steps.get()),
        };
        StepFigures { loss, ..figures }
    }

    fn counted(&self, state: &mut SequenceLearner, at: &StepAt<'_>) {
        self.model.counted(state, at);
    }

    fn memory<'s>(&self, state: &'s mut SequenceLearner) -> Vec<&'s mut Tensor<1>> {
        self.model.memory(state)
    }
}

#[test]
fn a_step_that_cannot_be_recorded_runs_ordinarily() {
    let folder = tempfile::tempdir().unwrap();
    let model = chain_model(DecisionTransformerConfig::gym(20));
    let (data, config) = (&chain::listed(0.5, 0.0), &config());
    let run = Run { folder: folder.path(), data, algorithm: &model, config };
    let (ordinary, _) = run.train("ordinary", false, None);
    for (name, kind, words) in
        [("sending", Kind::Sending, "write"), ("counting", Kind::Counting, "differs")]
    {
        let wrong = Wrong { model: model.clone(), kind, n_steps: Cell::new(0) };
        let run = Run { folder: folder.path(), data, algorithm: &wrong, config };
        let (recorded, news) = run.train(name, true, None);
        let [(_, Some(error))] = &news.0[..] else { panic!("{:?}", news.0) };
        assert!(error.contains(words), "{error}");
        check_equal(&recorded, &ordinary);
    }
}
