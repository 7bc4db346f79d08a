//! Output of a run: checkpoints that are intact or named as broken, and the files that remain when
//! the loss becomes non-finite.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod pong;

use std::{collections::BTreeMap, fs, sync::atomic::AtomicBool};

use burn::tensor::Device;
use overtone_agents::{Agent, AlgorithmConfig, BehaviorCloningConfig, policy};
use overtone_model::{ModelConfig, ModelError, weights};
use overtone_testkit::{check_error, sentences};
use overtone_train::{
    Algorithm, Checkpoint, Initial, Job, RunDir, TrainConfig, TrainError, Trainer,
};
use pong::{BATCH, Bench, Witness, config, files};

#[test]
fn the_newest_are_kept() {
    let bench = Bench::new();
    let (finished, witness) = bench.train(config(5));
    let finished = finished.unwrap();
    assert!(!finished.interrupted);
    assert_eq!(finished.checkpoint.path, bench.step(5));
    assert_eq!(witness.0.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(bench.steps(), ["step-00000004", "step-00000005"]);
    for step in [4, 5] {
        assert!(files(&bench.step(step)) == witness.0[&step], "changed after it was written");
    }
    let (newest, skipped) = Checkpoint::newest(&bench.run.checkpoints()).unwrap();
    assert_eq!((newest.path, newest.state.step, skipped.len()), (bench.step(5), 5, 0));
}

#[test]
fn model_and_optimizer_come_back_as_they_were() {
    let bench = Bench::new();
    bench.train(config(3)).0.unwrap();
    let checkpoint = Checkpoint::at_step(&bench.run.checkpoints(), 3).unwrap();
    let device = Device::flex().autodiff();
    let mut generator = overtone_core::seed::generator(9, "any");
    let state = bench.algorithm().init(&config(3), &device, &mut generator).unwrap();
    let state = checkpoint.restore(state).unwrap();
    assert_eq!(state.model.optimizer.n_steps(), 3);
    let stored = weights::load(&bench.step(3).join("optimizer.safetensors")).unwrap();
    assert_eq!(state.model.optimizer.export(), stored);
    // Two moments of every parameter, and none with zeros in both.
    assert_eq!(stored.len(), 2 * weights::export(&state.model.network).len());
    assert!(stored["second.blocks.0.qkv_weight"].iter::<f32>().any(|value| value > 0.0));
    let copy = bench.dir.path().join("copy");
    let saved = Checkpoint::save(&copy, &checkpoint.state, &state, 1, 1).unwrap();
    assert!(files(&saved.path) == files(&bench.step(3)));
}

/// The acting weights are stored in the model's file, and the trained weights next to the moments.
#[test]
fn averages_resume_unchanged() {
    let bench = Bench::new();
    let plain = TrainConfig { checkpoint_every: 37, ..config(60) };
    let (_, without) = bench.train(plain.clone());
    let averaging = TrainConfig { average_weights: true, ..plain };
    let bench = Bench::new();
    let (_, whole) = bench.train(averaging.clone());

    let stored = |file: &str| weights::load(&bench.step(60).join(file)).unwrap();
    let (averages, training) = (stored("model.safetensors"), stored("optimizer.safetensors"));
    let stepped = |name: &str| training[&format!("weights.{name}")].clone();
    assert!(averages.iter().all(|(name, average)| *average != stepped(name)));
    let path = bench.dir.path().join("stepped.safetensors");
    let by_name = averages.keys().map(|name| (name.clone(), stepped(name))).collect();
    weights::save(&by_name, &BTreeMap::new(), &path).unwrap();
    let last = bench.dir.path().join("last.safetensors");
    fs::write(&last, &without.0[&60]["model.safetensors"]).unwrap();
    assert_eq!(weights::load(&path).unwrap(), weights::load(&last).unwrap());

    let checkpoint = Checkpoint::at_step(&bench.run.checkpoints(), 37).unwrap();
    let mut witness = Witness::default();
    let trainer = bench.trainer(averaging.clone(), Some(&checkpoint));
    trainer.train(&AtomicBool::new(false), &mut witness).unwrap();
    assert!(witness.0[&60] == whole.0[&60]);

    // A run that is initialised from another one starts from its acting weights.
    let mut generator = overtone_core::seed::generator(9, "any");
    let device = Device::flex().autodiff();
    let state = bench.algorithm().init(&averaging, &device, &mut generator).unwrap();
    let last = Checkpoint::at_step(&bench.run.checkpoints(), 60).unwrap();
    let state = last.begin(state).unwrap();
    assert_eq!(weights::export(&state.model.network), averages);
    assert_eq!(weights::export(&state.model.acting()), averages);
}

/// Other programs write such files: ours are in `f32`.
#[test]
fn training_resumes_in_single_precision() {
    let bench = Bench::new();
    let (_, whole) = bench.train(config(3));
    fs::remove_file(bench.step(2).join("SHA256SUMS")).unwrap();
    for file in ["model.safetensors", "optimizer.safetensors"] {
        let path = bench.step(2).join(file);
        let doubles = weights::load(&path).unwrap().into_iter();
        let doubles = doubles.map(|(name, data)| (name, data.convert::<f64>())).collect();
        weights::save(&doubles, &BTreeMap::new(), &path).unwrap();
    }
    let checkpoint = Checkpoint::at_step(&bench.run.checkpoints(), 2).unwrap();
    let mut witness = Witness::default();
    let trainer = bench.trainer(config(3), Some(&checkpoint));
    trainer.train(&AtomicBool::new(false), &mut witness).unwrap();
    assert!(witness.0[&3] == whole.0[&3]);
}

#[test]
fn any_change_of_a_file_is_noticed_and_named() {
    let bench = Bench::new();
    bench.train(config(2)).0.unwrap();
    let whole = files(&bench.step(2));
    assert_eq!(whole.len(), 4);
    for (name, bytes) in whole.iter().filter(|(name, _)| *name != "SHA256SUMS") {
        let path = bench.step(2).join(name);
        let flipped = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            bytes
        };
        let n = bytes.len();
        let cut = |at: usize| bytes[..at].to_vec();
        let damages =
            [cut(0), cut(7), cut(n / 2), cut(n - 1), flipped(3), flipped(n / 2), flipped(n - 3)];
        for (i, damaged) in damages.into_iter().enumerate() {
            fs::write(&path, damaged).unwrap();
            let (newest, skipped) = Checkpoint::newest(&bench.run.checkpoints()).unwrap();
            assert_eq!(newest.state.step, 1, "{name}, damage {i}");
            let message = skipped[0].to_string();
            assert!(message.contains(&format!("step-00000002/{name}")), "damage {i}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
        fs::write(&path, bytes).unwrap();
    }
    // An invalid sum is as bad as an invalid file.
    fs::write(bench.step(2).join("SHA256SUMS"), "").unwrap();
    assert_eq!(Checkpoint::newest(&bench.run.checkpoints()).unwrap().0.state.step, 1);
    fs::remove_file(bench.step(1).join("state.json")).unwrap();
    let error = Checkpoint::newest(&bench.run.checkpoints()).unwrap_err();
    check_error!(error, TrainError::Checkpoint { .. });
    let error = Checkpoint::newest(bench.dir.path()).unwrap_err();
    assert!(matches!(error, TrainError::NoCheckpoint { .. }), "{error}");
    let error = Checkpoint::at_step(&bench.run.checkpoints(), 9).unwrap_err();
    check_error!(error, TrainError::Checkpoint { path, .. } if path.ends_with("step-00000009"));
}

/// A run that resumes from the checkpoint before a broken one must keep its new checkpoints, and
/// delete the broken one although it has a later step.
#[test]
fn resuming_from_before_a_broken_checkpoint() {
    let bench = Bench::new();
    bench.train(TrainConfig { keep_checkpoints: 4, ..config(4) }).0.unwrap();
    for step in [3, 4] {
        fs::write(bench.step(step).join("model.safetensors"), "broken").unwrap();
    }
    fs::create_dir(bench.run.checkpoints().join(".step-00000004.77")).unwrap();
    let (newest, skipped) = Checkpoint::newest(&bench.run.checkpoints()).unwrap();
    assert_eq!((newest.state.step, skipped.len()), (2, 2));
    let config = TrainConfig { keep_checkpoints: 1, ..config(4) };
    let stop = AtomicBool::new(true);
    let trainer = bench.trainer(config, Some(&newest));
    let finished = trainer.train(&stop, &mut Witness::default()).unwrap();
    assert!(finished.interrupted);
    assert_eq!(finished.checkpoint.state.step, 3);
    assert_eq!(bench.steps(), ["step-00000003"]);
    Checkpoint::newest(&bench.run.checkpoints()).unwrap();
}

/// A copy that a person made, and files of other programs.
#[test]
fn other_files_are_kept_and_ignored() {
    let bench = Bench::new();
    let folder = bench.run.checkpoints();
    let others = [".step-00000001.old", "step-00000001-backup", "step-1", "step-best"];
    for name in others {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("step-notes"), "the third is good").unwrap();
    fs::write(folder.join("step-00000009"), "no folder").unwrap();
    bench.train(config(4)).0.unwrap();
    let mut expected = [&others[..], &["step-notes", "step-00000009"]].concat();
    expected.extend(["step-00000003", "step-00000004"]);
    expected.sort_unstable();
    assert_eq!(bench.steps(), expected);
    let (newest, skipped) = Checkpoint::newest(&folder).unwrap();
    assert_eq!((newest.state.step, skipped.len()), (4, 0));
}

/// Two are kept. The run is stopped after update 5, and again after update 6, which is planned.
#[test]
fn a_stop_costs_no_planned_checkpoint() {
    let bench = Bench::new();
    let config = TrainConfig { checkpoint_every: 3, ..config(9) };
    let stops = |resume: Option<&Checkpoint>| {
        let stop = AtomicBool::new(true);
        let trainer = bench.trainer(config.clone(), resume);
        trainer.train(&stop, &mut Witness::default()).unwrap().checkpoint
    };
    let mut last = stops(None);
    while last.state.step < 5 {
        last = stops(Some(&last));
    }
    assert_eq!(bench.steps(), ["step-00000003", "step-00000005"]);
    stops(Some(&last));
    assert_eq!(bench.steps(), ["step-00000003", "step-00000006"]);
}

#[test]
fn a_copy_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    let checkpoint = bench.train(config(1)).0.unwrap().checkpoint;
    let other = RunDir::create(bench.dir.path(), "other").unwrap();
    let in_the_way = other.path().join("init/model.safetensors");
    fs::create_dir_all(&in_the_way).unwrap();
    let error = Initial { checkpoint, run: "run".into() }.keep_in(&other).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", in_the_way.display())), "{error}");
}

/// Without its sums, a state file can claim anything.
#[test]
fn a_state_cannot_claim_a_model_that_its_weights_are_not() {
    let bench = Bench::new();
    bench.train(config(1)).0.unwrap();
    fs::remove_file(bench.step(1).join("SHA256SUMS")).unwrap();
    let path = bench.step(1).join("state.json");
    let state = fs::read_to_string(&path).unwrap();
    // The longest valid context, and counts far beyond any memory.
    for (key, claimed) in [
        ("max_timestep", 2_000_000_000),
        ("context_length", 65_536),
        ("n_layers", 60_000),
        ("n_layers", 1_000_000_000_000u64),
    ] {
        let (before, after) = state.split_once(&format!("\"{key}\": ")).unwrap();
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        fs::write(&path, format!("{before}\"{key}\": {claimed}{rest}")).unwrap();
        let checkpoint = Checkpoint::open(&bench.step(1)).unwrap();
        let play = bench.agent().matched();
        let error = policy(&checkpoint, &play, &Device::flex()).err().unwrap().to_string();
        assert!(error.contains("its state and its weights belong to different agents"), "{error}");
        sentences::check(&error);
    }
}

/// Invalid options are refused in training, and also when weights are read.
#[test]
fn an_agent_that_could_not_be_trained_does_not_play() {
    let bench = Bench::new();
    bench.train(config(1)).0.unwrap();
    let weights = weights::load(&bench.step(1).join("model.safetensors")).unwrap();
    let model = ModelConfig::Transformer(bench.model());
    let cloning = AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(model));
    let agent = Agent { algorithm: cloning, ..bench.agent() };
    let error = agent.policy(&weights, &agent.matched(), &Device::flex());
    let error = error.err().unwrap();
    check_error!(error, ModelError::Config { key, .. } if key == "model.conditioning");
}

/// Even if other parts of the file have changed.
#[test]
fn another_layout_is_refused_with_a_sentence() {
    let bench = Bench::new();
    bench.train(config(1)).0.unwrap();
    fs::remove_file(bench.step(1).join("SHA256SUMS")).unwrap();
    fs::write(bench.step(1).join("state.json"), r#"{"format": 2, "model": "small"}"#).unwrap();
    let error = Checkpoint::open(&bench.step(1)).unwrap_err();
    check_error!(error, TrainError::Checkpoint { reason, .. } if reason.contains("layout 2"));
}

#[test]
fn another_model_or_other_data_is_refused() {
    let bench = Bench::new();
    let checkpoint = bench.train(config(1)).0.unwrap().checkpoint;
    let refused = |change: &dyn Fn(&mut Checkpoint)| {
        let mut other = checkpoint.clone();
        change(&mut other);
        Trainer::new(bench.algorithm(), Job { resume: Some(other), ..bench.job(config(1)) })
            .err()
            .unwrap()
    };
    let error = refused(&|other| {
        other.state.agent["algorithm"]["n_layers"] = 2.into();
    });
    check_error!(error, TrainError::Checkpoint { reason, .. } if reason.contains("config"));
    let error = refused(&|other| other.state.dataset_hash = "0".into());
    check_error!(error, TrainError::Checkpoint { reason, .. } if reason.contains("dataset"));
}

#[test]
fn a_non_finite_loss_changes_nothing() {
    let bench = Bench::new();
    let (finished, witness) = bench.train(TrainConfig { learning_rate: 1e30, ..config(9) });
    let error = finished.unwrap_err();
    let message = error.to_string();
    let TrainError::NonFinite { step, what, value, indices, .. } = error else {
        panic!("{message}");
    };
    let expected = format!("; the checkpoint of update {} is intact. Try a lower", step - 1);
    assert!(
        message.starts_with(&format!("update {step}: ")) && message.contains(&expected),
        "{message}"
    );
    assert!(step >= 2 && !value.is_finite(), "{step}: {value}");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(indices).unwrap()).unwrap();
    assert_eq!(record["step"], step);
    assert_eq!(record[what], value.to_string());
    let rows: Vec<usize> = record["last_indices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_u64().unwrap() as usize)
        .collect();
    assert_eq!(rows.len(), BATCH);
    assert!(rows.iter().all(|&row| row < bench.dataset.n_transitions()), "{rows:?}");
    // The newest checkpoint is from the step before, unchanged.
    let (newest, _) = Checkpoint::newest(&bench.run.checkpoints()).unwrap();
    assert_eq!(newest.state.step, step - 1);
    assert!(files(&newest.path) == witness.0[&(step - 1)]);
    let tensors = weights::load(&newest.path.join("model.safetensors")).unwrap();
    assert!(tensors.values().all(|tensor| tensor.iter::<f32>().all(f32::is_finite)));
    // From there, the same batch fails again, and is named again.
    let config = TrainConfig { learning_rate: 1e30, ..config(9) };
    let again = bench.trainer(config, Some(&newest));
    let error = again.train(&AtomicBool::new(false), &mut Witness::default()).unwrap_err();
    let TrainError::NonFinite { step: again, indices, .. } = error else { panic!("{error}") };
    assert_eq!(again, step);
    let same: serde_json::Value = serde_json::from_slice(&fs::read(indices).unwrap()).unwrap();
    assert_eq!(same, record);
}
