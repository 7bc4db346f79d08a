//! Errors: one sentence with the reason and what to do.

use std::{fs, path::Path};

use overtone_testkit::dopamine::{FRAME, Recorder, npy, write_gz};

use crate::desk::{Desk, copy, names, said};

#[test]
fn options() {
    let desk = Desk::new();
    let refuses = |words: &str| desk.refuses(&desk.tiny(words));
    desk.refuses("train");
    refuses("game=seaqest");
    refuses("head=cubic");
    refuses("attention=cubic");
    refuses("train.batchsize=2");
    refuses("lerning_rate=2");
    refuses("train.batch_size=many");
    refuses("train.batch_size=-1");
    refuses("train.batch_size=4000000000");
    refuses("train.learning_rate=fast");
    refuses("train.learning_rate=nan");
    refuses("seaquest");
    refuses("seed=18446744073709551615");
    refuses("runs=");
    refuses("train.updates=0 train.epochs=0");
    refuses("model.n_heads=3");
    refuses("model.context_length=0");
    refuses("model.context_length=100000000");
    refuses("head=fourier head.frequencies=9999999");
    refuses("device=gpu");
    #[cfg(not(feature = "cuda"))]
    refuses("device=cuda");
    #[cfg(feature = "cuda")]
    refuses("device=cuda:99");
    // None of these created a run, which would be the newest one for `evaluate`.
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

/// What people write who know another program, or are in a hurry.
#[test]
fn what_was_meant_is_named() {
    let desk = Desk::new();
    for words in [
        "train env=hopper lr=1e-4",
        "train env=hopper context=3",
        "train env=hopper threads=1",
        "train env=hopper algorithm=iql gamma=0.9",
        "train env=hopper algorithm=cql",
        "train env=hopper algorithm=td3bc",
        "train env = hopper",
        "train env= hopper",
        "train env =hopper",
        "train hopper",
        "train log.csv",
        "evaluate run=A run=B",
        "train own=plant dataset=own.nzp",
        "train env=hopper data.columns.episode=a",
    ] {
        desk.refuses(words);
    }
    let twice = desk.run("train game=seaquest train.updates=1 train.updates=2 seed=a");
    assert!(
        twice.stdout.contains("train.updates is given twice, as 1 and as 2"),
        "{}",
        twice.stdout
    );
    // The flag of a setting, and the command that is meant without its name.
    let flag = desk.run("train --updates 100");
    assert!(flag.stderr.contains("use train.updates=100"), "{}", flag.stderr);
    desk.refuses("evaluate run=A");
    fs::write(desk.path("own.npz"), b"").unwrap();
    desk.refuses("data inspect own.nzp");
    // A word that is a file is a file, and a folder with a recording a recording.
    for name in ["log.csv", "plant.npz"] {
        fs::write(desk.path(name), b"").unwrap();
        desk.refuses(&format!("train own=plant dataset={name}"));
    }
}

#[test]
fn invalid_evaluations_are_refused_before_training() {
    let desk = Desk::new();
    let refuses = |words: &str| {
        desk.refuses(&desk.tiny(&format!("evaluation.episodes=1 {words}")));
    };
    if cfg!(feature = "python") {
        refuses("evaluation.protocol=foo");
        refuses("evaluation.target=high");
        refuses("evaluation.target=p101");
        refuses("evaluation.protocol=matched,foo");
        refuses("evaluation.protocol=matched,matched");
        let words = "evaluation.protocol=matched,released evaluation.target=p90";
        refuses(words);
        refuses("evaluation.temperature=0");
    } else {
        refuses("");
    }
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

#[test]
fn runs_that_are_not_there() {
    let desk = Desk::new();
    for command in ["evaluate rollouts", "resume"] {
        desk.refuses(command);
        desk.refuses(&format!("{command} run=nope"));
        desk.refuses(&format!("{command} run"));
        desk.refuses(&format!("{command} runn=x"));
    }
    desk.refuses("train game=seaquest dataset=nosuch");
    desk.refuses("resume device=gpu run=nope");

    desk.succeeds(&desk.tiny(""));
    let said = desk.run("resume device=gpu");
    said.refused();
    assert_eq!(said.stdout, "", "the data was read before");
    desk.refuses("evaluate rollouts checkpoint=99");
    desk.refuses("evaluate rollouts checkpoint=");
    desk.refuses("evaluate rollouts checkpoint=nowhere");
    desk.refuses("evaluate rollouts protocol=foo");
    desk.refuses("evaluate rollouts episodes=0");
    desk.refuses("evaluate rollouts parallel=-1");
    desk.refuses("evaluate rollouts out=nowhere/a.json");
    let run = desk.only_run("runs");
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    let wrong = config.replacen("seed = 123", "seed = \"a\"", 1);
    fs::write(run.join("config.toml"), wrong).unwrap();
    desk.refuses("resume");
    fs::write(run.join("config.toml"), config.replace("format = 1", "format = 0")).unwrap();
    desk.refuses("resume");
    fs::write(run.join("config.toml"), "task = [").unwrap();
    desk.refuses("resume");
}

/// A runs directory that cannot be created; a file blocks the path, also for root.
#[test]
fn runs_folder_that_cannot_be_written() {
    let desk = Desk::new();
    fs::write(desk.path("file"), "").unwrap();
    let line = desk.tiny("runs=file/runs");
    desk.refuses(&line);
}

#[test]
fn missing_data() {
    let desk = Desk::new();
    let refuses = |words: &str| {
        desk.refuses(&desk.tiny(words));
    };
    refuses("data.path=nowhere");
    refuses("data.path=.");
    refuses("data.run=7");
    refuses("data.run=4");
    fs::write(desk.path("file"), "").unwrap();
    // A path whose existence cannot be checked.
    refuses("dataset=file/a.npz");
    let own = project_data("Seaquest");
    refuses(&format!("data.path={} data.run=4", own.display()));
    refuses("data.cache=file/cache");
    let other = project_data("Gravitar");
    refuses(&format!("data.path={}", other.display()));
    let mut command = desk.command(&desk.tiny(""));
    let output = command.env("OVERTONE_DATASETS", desk.path("none")).output().unwrap();
    said(output).refused();
    desk.refuses("data inspect nowhere");
}

fn project_data(game: &str) -> std::path::PathBuf {
    crate::desk::project().join("datasets/starter").join(game)
}

/// A shard of the starter set cut short, inspected and trained on.
#[test]
fn a_truncated_shard() {
    let desk = Desk::new();
    copy(&project_data("Seaquest"), &desk.path("Seaquest"));
    let shard = desk.path("Seaquest/1/replay_logs/$store$_observation_ckpt.1.gz");
    let file = fs::OpenOptions::new().write(true).open(&shard).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    desk.refuses("data inspect Seaquest");
    // Training on it needs whole episodes of that file.
    desk.refuses(&desk.tiny("data.path=Seaquest data.transitions=50000 data.cache=cache"));
    assert_eq!(names(&desk.path("runs")), [""; 0]);
    let left: Vec<_> =
        names(&desk.path("cache")).iter().map(|name| desk.path("cache").join(name)).collect();
    assert!(left.iter().all(|folder| names(folder).is_empty()), "half a conversion: {left:?}");
}

/// Replaces file `name` of a small log by `bytes`, and checks that it is refused.
#[track_caller]
fn refuses_shard(name: &str, bytes: &[u8]) {
    let desk = Desk::new();
    let mut recorder = Recorder::new(&desk.path(""), "Seaquest", 10);
    recorder.episode(12);
    recorder.episode(8);
    write_gz(&recorder.folder.join(name), bytes);
    desk.refuses("data inspect Seaquest");
    desk.refuses(&desk.tiny("data.path=Seaquest data.cache=cache"));
}

#[test]
fn shards_of_another_kind() {
    let observation = "$store$_observation_ckpt.1.gz";
    let shape = npy("|u1", &[10, 84, 83], &[]);
    refuses_shard(observation, &shape);
    let dtype = npy("<f4", &[10, 84, 84], &vec![0; 40 * FRAME]);
    refuses_shard(observation, &dtype);
    let pickle = npy("|O", &[10], b"\x80\x04cos\nsystem\n(S'true'\ntR.");
    refuses_shard("$store$_action_ckpt.0.gz", &pickle);
    refuses_shard("$store$_reward_ckpt.0.gz", b"no array");
}

#[cfg(feature = "python")]
#[test]
fn without_ale_py() {
    let desk = Desk::new();
    let line = desk.tiny("evaluation.episodes=1");
    let elsewhere = |desk: &Desk| {
        let output = desk.command(&line).env_remove("VIRTUAL_ENV").output().unwrap();
        said(output)
    };
    elsewhere(&desk).refused();
    elsewhere(&desk).refused();
    // An empty environment of the right Python.
    for python in names(&crate::desk::project().join(".venv/lib")) {
        fs::create_dir_all(desk.path(&format!(".venv/lib/{python}/site-packages"))).unwrap();
    }
    fs::write(desk.path(".venv/pyvenv.cfg"), "").unwrap();
    elsewhere(&desk).refused();
    elsewhere(&desk).refused();
    // Training without evaluation does not need ale-py; the evaluation has the same error.
    let alone = desk.command(&desk.tiny("")).env_remove("VIRTUAL_ENV").output().unwrap();
    assert_eq!(said(alone).code, Some(0));
    let evaluate = desk.command("evaluate rollouts").env_remove("VIRTUAL_ENV").output().unwrap();
    said(evaluate).refused();
}

#[cfg(feature = "python")]
#[test]
fn without_the_rom() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    fs::create_dir(desk.path("roms")).unwrap();
    let refused = |line: &str| {
        let output = desk.command(line).env("ALE_ROMS_DIR", desk.path("roms")).output().unwrap();
        said(output).refused();
    };
    refused("evaluate rollouts episodes=1");
    refused("evaluate rollouts episodes=1 protocol=matched,released");
    refused(&desk.tiny("evaluation.episodes=1 runs=other"));
    assert_eq!(names(&desk.path("other")), [""; 0], "found before training");
    fs::write(desk.path("roms/seaquest.bin"), "another game").unwrap();
    refused("evaluate rollouts episodes=1");
    let run = desk.only_run("runs");
    let left: Vec<String> =
        names(&run).into_iter().filter(|name| name.contains("evaluation")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_loss_that_is_nan() {
    let desk = Desk::new();
    let words = "train.learning_rate=1e30 train.warmup_tokens=0 train.checkpoint_every=1";
    let said = desk.run(&desk.tiny(words));
    said.refused();
    let run = desk.only_run("runs");
    assert_eq!(crate::desk::steps(&run), [1]);
    assert!(Path::new(&run.join("not-finite-step-00000002.json")).is_file());
}
