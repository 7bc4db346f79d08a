//! Training with several processes: the same bits for any number of them, and no process waits for
//! one that has ended. The processes are threads here; `crates/cli/tests/suite/mpi.rs` has real
//! ones.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

#[path = "../chain/mod.rs"]
mod chain;
#[path = "../pong/mod.rs"]
mod pong;
mod threads;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use burn::tensor::Device;
use overtone_agents::{Iql, IqlConfig, SequenceModel, iql::Continuous};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::{Dataset, Subset};
use overtone_model::{
    ConditionerConfig, DecisionTransformerConfig, HeadConfig, ModelConfig, PerceptronConfig,
    ReturnModelConfig,
};
use overtone_train::{
    Checkpoint, Finished, Job, Observer, Processes, RunDir, SingleProcess, TrainConfig, TrainError,
    Trainer, Training, TrainingData,
};
use threads::on_each;

/// Contexts of a batch, which is also the number of its parts.
const BATCH: usize = 16;
const PARTS: usize = 8;

/// The training task: a small model on a small dataset.
struct Case {
    algorithm: SequenceModel,
    data: Arc<Dataset>,
    config: TrainConfig,
}

fn config(updates: u64) -> TrainConfig {
    TrainConfig {
        batch_size: BATCH,
        micro_batches: PARTS,
        log_every: 2,
        checkpoint_every: 3,
        ..chain::config(updates)
    }
}

fn transformer(head: HeadConfig) -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        n_layers: 2,
        d_model: 16,
        context_length: 6,
        dropout: 0.1,
        head,
        ..DecisionTransformerConfig::gym(20)
    }
}

fn on_chain(model: ModelConfig, actions: ActionSpace, data: &Arc<Dataset>) -> Case {
    let algorithm = SequenceModel { model, observations: chain::observations(), actions };
    Case { algorithm, data: data.clone(), config: config(7) }
}

/// Every head, on discrete actions, on continuous actions, and on bins of continuous actions.
fn heads() -> Vec<(String, Case)> {
    let list = (ActionSpace::numbered(2), 0, chain::listed(0.5, 0.0));
    let real_valued = chain::real_valued(0.0);
    let numbers = (chain::numbers(), 0, real_valued.clone());
    let bins = (chain::numbers(), 9, real_valued);
    let mut cases = Vec::new();
    for (actions, bins, data) in [list, numbers, bins] {
        for choice in HeadConfig::choices(&actions, bins) {
            let name = format!("{} on {} actions, {bins} bins", choice.word, actions.size());
            let model = ModelConfig::Transformer(transformer(choice.config));
            cases.push((name, on_chain(model, actions.clone(), &data)));
        }
    }
    cases
}

fn linear() -> Case {
    let (_, case) = heads().swap_remove(0);
    case
}

/// Sets `stop` after a step.
struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn stepped(&mut self, step: u64, _loss: f64) {
        self.1.fetch_or(step + 1 == self.0, Ordering::Relaxed);
    }
}

impl Case {
    fn trainer(&self, run: &RunDir, seed: u64, resume: Option<&Checkpoint>) -> Box<dyn Training> {
        let job = Job {
            run: run.clone(),
            config: self.config.clone(),
            data: TrainingData::new(self.data.clone(), 1.0),
            agent: serde_json::json!("walks a chain"),
            seed,
            device: Device::flex(),
            init: None,
            resume: resume.cloned(),
        };
        Box::new(Trainer::new(self.algorithm.clone(), job).unwrap())
    }

    /// Trains in `run` on `n` processes until step `until`, from its newest checkpoint if there is
    /// one. Only the last process is stopped.
    fn train(&self, run: &RunDir, n: usize, until: u64) -> Vec<Result<Finished, TrainError>> {
        let resume = Checkpoint::newest(&run.checkpoints()).ok().map(|(checkpoint, _)| checkpoint);
        on_each(n, |member| {
            let stop = AtomicBool::new(false);
            let last = member.rank() + 1 == member.count();
            let mut observer = StopAfter(if last { until } else { u64::MAX }, &stop);
            self.trainer(run, 1, resume.as_ref()).train_among(&member, &stop, &mut observer)
        })
    }

    /// The files of the last checkpoint of a run in phases: each phase has a number of processes
    /// and the step at which it ends.
    fn files(&self, phases: &[(usize, u64)]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), "run").unwrap();
        for &(n, until) in phases {
            let ended = self.train(&run, n, until);
            let steps = ended.iter().map(|ended| ended.as_ref().unwrap().checkpoint.state.step);
            assert!(steps.clone().all(|step| step == until), "{:?}", steps.collect::<Vec<_>>());
        }
        let mut files = pong::files(&Checkpoint::newest(&run.checkpoints()).unwrap().0.path);
        files.insert(
            "metrics".into(),
            columns(run.path(), &["step", "tokens", "loss", "grad_norm"]),
        );
        if self.config.held_out > 0.0 {
            files.insert("held_out".into(), fs::read(run.path().join("held_out.csv")).unwrap());
        }
        files
    }
}

/// These columns of a run's metrics.
fn columns(run: &Path, names: &[&str]) -> Vec<u8> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let places: Vec<usize> =
        (0..rows[0].len()).filter(|&at| names.contains(&rows[0][at])).collect();
    assert_eq!(places.len(), names.len());
    let row = |row: &Vec<&str>| places.iter().map(|&at| row[at]).collect::<Vec<_>>().join(",");
    rows.iter().map(row).collect::<Vec<_>>().join("\n").into_bytes()
}

#[track_caller]
fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert!(one.keys().eq(other.keys()));
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{what}: {name} differs");
    }
}

#[test]
fn any_number_of_processes_gives_the_same_bits() {
    for (name, case) in heads() {
        let alone = case.files(&[(1, 7)]);
        for n in [2, 4, 8] {
            assert_same(&alone, &case.files(&[(n, 7)]), &format!("{name}, {n} processes"));
        }
    }
}

#[test]
fn other_models_give_the_same_bits_on_any_number_of_processes() {
    let (actions, data) = (chain::numbers(), chain::real_valued(0.0));
    let head = || HeadConfig::choices(&actions, 0).swap_remove(0).config;
    let sizes = PerceptronConfig { width: 16, context_length: 3, ..PerceptronConfig::gym() };
    let perceptron = PerceptronConfig { head: head(), ..sizes };
    let cloning = DecisionTransformerConfig { conditioning: None, ..transformer(head()) };
    let returns = ReturnModelConfig { width: 8, ..ReturnModelConfig::hl_gauss() };
    let conditioning = ConditionerConfig {
        return_range: Some([0.0, 2.0]),
        return_model: Some(returns),
        ..ConditionerConfig::default()
    };
    let bounded =
        DecisionTransformerConfig { conditioning: Some(conditioning), ..transformer(head()) };
    for model in [
        ModelConfig::Perceptron(perceptron),
        ModelConfig::Transformer(cloning),
        ModelConfig::Transformer(bounded),
    ] {
        let case = on_chain(model, actions.clone(), &data);
        let alone = case.files(&[(1, 7)]);
        assert_same(&alone, &case.files(&[(4, 7)]), "4 processes");
        assert_same(&alone, &case.files(&[(2, 3), (1, 7)]), "2, then 1");
    }
}

#[test]
fn a_model_of_frames_gives_the_same_bits_on_any_number_of_processes() {
    let bench = pong::Bench::new();
    let config = TrainConfig {
        batch_size: 4,
        micro_batches: 4,
        held_out: 0.25,
        keep_checkpoints: 9,
        ..pong::config(3)
    };
    let case = Case { algorithm: bench.algorithm(), data: bench.dataset.clone(), config };
    let alone = case.files(&[(1, 3)]);
    assert_same(&alone, &case.files(&[(2, 3)]), "2 processes");
    assert_same(&alone, &case.files(&[(4, 2), (1, 3)]), "4 processes, then 1");
}

/// One process of four is stopped, then one of two.
#[test]
fn a_run_resumes_with_fewer_processes_to_the_same_bits() {
    for case in [linear(), heads().swap_remove(6).1] {
        let undisturbed = case.files(&[(1, 7)]);
        assert_same(&undisturbed, &case.files(&[(4, 2), (2, 5), (1, 7)]), "4, 2, 1");
        assert_same(&undisturbed, &case.files(&[(1, 3), (8, 7)]), "1, 8");
    }
}

/// The sum of the parts is the gradient of the batch, for parts with different numbers of labels.
#[test]
fn a_step_in_parts_equals_a_step_of_the_whole_batch() {
    let weighted = Case { data: chain::weighted(&linear().data), ..linear() };
    for (name, mut case) in heads().into_iter().chain([("weights".to_owned(), weighted)]) {
        let ModelConfig::Transformer(model) = &mut case.algorithm.model else { unreachable!() };
        model.dropout = 0.0;
        case.config = TrainConfig { log_every: 1, ..config(1) };
        let numbers = |case: &Case, n: usize| {
            let folder = tempfile::tempdir().unwrap();
            let run = RunDir::create(folder.path(), "run").unwrap();
            case.train(&run, n, 1).into_iter().for_each(|ended| drop(ended.unwrap()));
            let names = ["tokens", "loss", "grad_norm"];
            let text = String::from_utf8(columns(run.path(), &names)).unwrap();
            let row = text.lines().nth(1).unwrap();
            row.split(',').map(|number| number.parse::<f64>().unwrap()).collect::<Vec<_>>()
        };
        let in_parts = numbers(&case, 4);
        case.config.micro_batches = 1;
        for (part, whole) in in_parts.iter().zip(numbers(&case, 1)) {
            assert!((part - whole).abs() < 1e-5 * whole.abs(), "{name}: {part} and {whole}");
        }
    }
    // The parts do have different label counts.
    let case = linear();
    let mut sampler = TrainingData::new(case.data.clone(), 1.0)
        .sampler(Subset::Training, 6, &case.config, 1)
        .unwrap();
    let counts: Vec<usize> =
        (0..PARTS).map(|_| (0..BATCH / PARTS).map(|_| sampler.draw().n_real).sum()).collect();
    assert!(counts.iter().any(|n| *n != counts[0]), "{counts:?}");
}

/// Simulates the end of its process after a step.
struct Dies(u64);

impl Observer for Dies {
    fn stepped(&mut self, step: u64, _loss: f64) {
        if step == self.0 {
            std::panic::resume_unwind(Box::new("dies"));
        }
    }
}

#[test]
fn the_others_end_when_a_process_is_gone() {
    let case = linear();
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    let ended = on_each(4, |member| {
        let (stop, dies) = (AtomicBool::new(false), member.rank() == 2);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut observer = Dies(if dies { 5 } else { u64::MAX });
            // Moved here, so that it ends with this process.
            let member = member;
            case.trainer(&run, 1, None).train_among(&member, &stop, &mut observer)
        }))
    });
    for (rank, ended) in ended.into_iter().enumerate() {
        if rank == 2 {
            assert!(ended.is_err());
            continue;
        }
        let error = ended.unwrap().unwrap_err();
        assert!(matches!(error, TrainError::Lost { last: Some(3), .. }), "{rank}: {error}");
        let message = error.to_string();
        assert!(message.contains("has ended; the checkpoint of update 3 is intact"), "{message}");
    }
    let (newest, skipped) = Checkpoint::newest(&run.checkpoints()).unwrap();
    assert_eq!((newest.state.step, skipped.len()), (3, 0));
    // The rest of the run on two processes gives the bits of an undisturbed run.
    case.train(&run, 2, 7).into_iter().for_each(|ended| drop(ended.unwrap()));
    let last = Checkpoint::newest(&run.checkpoints()).unwrap().0.path;
    let undisturbed = case.files(&[(1, 7)]);
    for (name, bytes) in pong::files(&last) {
        assert!(bytes == undisturbed[&name], "{name} differs");
    }
}

/// The disk of process 0 refuses the checkpoint: the others receive the error and do not wait.
#[test]
fn the_others_receive_the_error_of_a_failed_process() {
    let case = linear();
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    fs::remove_dir(run.checkpoints()).unwrap();
    fs::write(run.checkpoints(), "no folder").unwrap();
    for updates in [3, 7] {
        let case = Case { config: config(updates), ..linear() };
        let mut ended = case.train(&run, 4, u64::MAX).into_iter().map(Result::unwrap_err);
        let first = ended.next().unwrap();
        assert!(matches!(first, TrainError::Save { step: 3, .. }), "{first}");
        for error in ended {
            assert!(matches!(error, TrainError::Elsewhere { rank: 0, n: 4 }), "{error}");
        }
    }
    drop(case);
}

#[test]
fn processes_with_different_weights_are_refused() {
    let case = linear();
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    let ended = on_each(4, |member| {
        let seed = if member.rank() == 3 { 2 } else { 1 };
        let stop = AtomicBool::new(false);
        case.trainer(&run, seed, None).train_among(&member, &stop, &mut Dies(u64::MAX))
    });
    for ended in ended {
        let error = ended.unwrap_err();
        assert!(matches!(error, TrainError::Differ { step: 0, rank: 3 }), "{error}");
    }
}

#[test]
fn a_non_finite_loss_ends_all_and_names_the_whole_batch() {
    let case = Case { config: TrainConfig { learning_rate: 1e30, ..config(9) }, ..linear() };
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    let mut steps = Vec::new();
    for error in case.train(&run, 4, u64::MAX).into_iter().map(Result::unwrap_err) {
        let TrainError::NonFinite { step, indices, .. } = &error else { panic!("{error}") };
        steps.push(*step);
        let record: serde_json::Value =
            serde_json::from_slice(&fs::read(indices).unwrap()).unwrap();
        let mut sampler = TrainingData::new(case.data.clone(), 1.0)
            .sampler(Subset::Training, 6, &case.config, 1)
            .unwrap();
        sampler.seek((step - 1) * BATCH as u64);
        let drawn: Vec<usize> = (0..BATCH).map(|_| sampler.draw().range().end - 1).collect();
        assert_eq!(record["last_indices"], serde_json::json!(drawn));
    }
    assert!(steps.len() == 4 && steps.iter().all(|step| *step == steps[0]), "{steps:?}");
}

#[test]
fn unequal_parts_are_refused_with_the_key() {
    for parts in [0, 3, 32] {
        let error = TrainConfig { micro_batches: parts, ..config(1) }.validate().unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with(&format!("train.micro_batches = {parts} with")), "{message}");
    }
    let case = Case { config: TrainConfig { micro_batches: 2, ..config(1) }, ..linear() };
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    for ended in case.train(&run, 4, u64::MAX) {
        let message = ended.unwrap_err().to_string();
        assert!(message.contains("train.micro_batches = 2 with 4 processes: must be"), "{message}");
    }
    assert_eq!(pong::files_and_folders(run.path()), ["checkpoints"], "nothing was written");
    let shown = ObservationSpace::Vectors { width: chain::STATES };
    let iql = Iql::new(IqlConfig::default(), Continuous::new(&shown, &chain::numbers()));
    let job = Job {
        run,
        config: config(1),
        data: TrainingData::new(chain::real_valued(0.0), 1.0),
        agent: serde_json::Value::Null,
        seed: 1,
        device: Device::flex(),
        init: None,
        resume: None,
    };
    let error = Trainer::new(iql, job).err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("train.micro_batches = 8: must be 1"), "{error}");
    assert_eq!((SingleProcess.rank(), SingleProcess.count()), (0, 1));
}
