//! What is said when something is wrong: one sentence that names it and says what to do.

use std::{fs, path::Path};

use overtone_testkit::dopamine::{FRAME, Recorder, npy, write_gz};

use crate::desk::{Desk, copy, names, said};

#[test]
fn options() {
    let desk = Desk::new();
    let refuses = |words: &str, parts: &[&str]| desk.refuses(&desk.tiny(words), parts);
    desk.refuses("train", &["which task?", "game=seaquest", "env=halfcheetah, hopper"]);
    refuses("game=seaqest", &["unknown game `seaqest`", "did you mean `seaquest`"]);
    refuses("head=cubic", &["head=cubic", "`linear`, `fourier`, `gmm`"]);
    refuses("attention=cubic", &["attention=cubic", "`softmax`"]);
    refuses("train.batchsize=2", &["no option `train.batchsize`", "`train.batch_size`"]);
    refuses("lerning_rate=2", &["no option `lerning_rate`", "`train.learning_rate`"]);
    refuses("train.batch_size=many", &["train.batch_size=many", "a whole number"]);
    refuses("train.batch_size=-1", &["train.batch_size=-1", "0 or more"]);
    let parts = ["train.batch_size = 4000000000", "1 to 65536"];
    refuses("train.batch_size=4000000000", &parts);
    refuses("train.learning_rate=fast", &["train.learning_rate=fast", "a number"]);
    refuses("train.learning_rate=nan", &["train.learning_rate", "must be positive"]);
    refuses("seaquest", &["`seaquest` is no option", "key=value"]);
    refuses("seed=18446744073709551615", &["a whole number of at most 9223372036854775807"]);
    refuses("runs=", &["runs=: say a folder"]);
    refuses("train.updates=0 train.epochs=0", &["train.updates", "updates or epochs"]);
    refuses("model.n_heads=3", &["model.n_heads = 3", "must divide d_model"]);
    refuses("model.context_length=0", &["model.context_length = 0", "1 to 65536"]);
    refuses("model.context_length=100000000", &["context_length", "1 to 65536"]);
    refuses("head=fourier head.frequencies=9999999", &["head.frequencies", "1 to 65536"]);
    refuses("device=gpu", &["device", "gpu", "auto, cpu, cuda or cuda:N"]);
    #[cfg(not(feature = "cuda"))]
    refuses("device=cuda", &["cuda", "without the feature `cuda`"]);
    #[cfg(feature = "cuda")]
    refuses("device=cuda:99", &["cuda:99", "CUDA device"]);
    // None of these left a run behind, which `evaluate` would take for the newest one.
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

#[test]
fn what_cannot_be_asked_is_found_before_training() {
    let desk = Desk::new();
    let refuses = |words: &str, parts: &[&str]| {
        desk.refuses(&desk.tiny(&format!("evaluation.episodes=1 {words}")), parts);
    };
    if cfg!(feature = "python") {
        refuses("evaluation.protocol=foo", &["protocol=foo", "matched and released"]);
        refuses("evaluation.target=high", &["evaluation.target=high: ", "p90"]);
        refuses("evaluation.target=p101", &["target=p101", "p0 to p100"]);
        refuses("evaluation.protocol=matched,foo", &["protocol=foo"]);
        refuses("evaluation.protocol=matched,matched", &["matched is named twice"]);
        let words = "evaluation.protocol=matched,released evaluation.target=p90";
        refuses(words, &["target=p90", "raw points", "a number"]);
        refuses("evaluation.temperature=0", &["temperature=0", "positive"]);
    } else {
        refuses("", &["without the feature `python`", "evaluation.episodes=0"]);
    }
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

#[test]
fn runs_that_are_not_there() {
    let desk = Desk::new();
    for command in ["evaluate rollouts", "resume"] {
        desk.refuses(command, &["no run in runs", "`overtone train`"]);
        desk.refuses(&format!("{command} run=nope"), &["no run `nope`", "`overtone train`"]);
        desk.refuses(&format!("{command} run"), &["`run` is no option"]);
        desk.refuses(&format!("{command} runn=x"), &["no option `runn`", "`run`"]);
    }
    desk.refuses("train game=seaquest dataset=nosuch", &["dataset=nosuch", "data.run="]);
    desk.refuses("resume device=gpu run=nope", &["no run `nope`"]);

    desk.succeeds(&desk.tiny(""));
    let said = desk.run("resume device=gpu");
    said.refused(&["gpu", "auto, cpu, cuda or cuda:N"]);
    assert_eq!(said.stdout, "", "the data was read before");
    desk.refuses("evaluate rollouts checkpoint=99", &["step-00000099", "no such checkpoint"]);
    desk.refuses("evaluate rollouts checkpoint=", &["checkpoint=: say last, best"]);
    desk.refuses("evaluate rollouts checkpoint=nowhere", &["nowhere", "no such checkpoint"]);
    desk.refuses("evaluate rollouts protocol=foo", &["protocol=foo", "matched and released"]);
    desk.refuses("evaluate rollouts episodes=0", &["episodes=0", "nothing to play"]);
    desk.refuses("evaluate rollouts parallel=-1", &["parallel=-1", "0 or more"]);
    desk.refuses("evaluate ablation only=gravity", &["only=gravity", "sticky_probability"]);
    desk.refuses("evaluate ablation other_target=foo", &["other_target=foo: "]);
    desk.refuses("evaluate ablation target=3,5", &["target=3,5", "one return"]);
    desk.refuses("evaluate ablation out=page.json", &["out=page.json", "ablation.md"]);
    desk.refuses("evaluate ablation episodes=0", &["nothing to play"]);
    desk.refuses("evaluate rollouts out=nowhere/a.json", &["out=nowhere/a.json", "a folder"]);
    let run = desk.only_run("runs");
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    let wrong = config.replacen("seed = 123", "seed = \"a\"", 1);
    fs::write(run.join("config.toml"), wrong).unwrap();
    desk.refuses("resume", &["config.toml is damaged", "seed"]);
    fs::write(run.join("config.toml"), config.replace("format = 1", "format = 0")).unwrap();
    desk.refuses("resume", &["another version of overtone (format 0", "train again"]);
    fs::write(run.join("config.toml"), "task = [").unwrap();
    desk.refuses("resume", &["config.toml is damaged"]);
}

/// Where no run can be kept; a file in the way stops root as well.
#[test]
fn runs_folder_that_cannot_be_written() {
    let desk = Desk::new();
    fs::write(desk.path("file"), "").unwrap();
    let line = desk.tiny("runs=file/runs");
    desk.refuses(&line, &["cannot make a folder for the run in runs=file/runs", "directory"]);
}

#[test]
fn data_that_is_not_there() {
    let desk = Desk::new();
    let refuses = |words: &str, parts: &[&str]| {
        desk.refuses(&desk.tiny(words), parts);
    };
    refuses("data.path=nowhere", &["nowhere does not exist", "the folder of a DQN-replay game"]);
    refuses("data.path=.", &["no DQN-replay files", "replay_logs"]);
    refuses("data.run=7", &["data.run=7: unknown dataset `7`", "known are 1, 2"]);
    refuses("data.run=4", &["published/dqn-replay/Seaquest/4 does not exist", "data.path="]);
    fs::write(desk.path("file"), "").unwrap();
    // Where it cannot be seen whether it is there.
    refuses("dataset=file/a.npz", &["file/a.npz: cannot open it (Not a directory"]);
    let own = project_data("Seaquest");
    let parts = ["run 4 is not here (data.run=4)", "run 1 is"];
    refuses(&format!("data.path={} data.run=4", own.display()), &parts);
    refuses("data.cache=file/cache", &["file/cache/Seaquest", "cannot open it (Not a directory"]);
    let other = project_data("Gravitar");
    refuses(&format!("data.path={}", other.display()), &["holds Gravitar", "game=seaquest"]);
    let mut command = desk.command(&desk.tiny(""));
    let output = command.env("OVERTONE_DATASETS", desk.path("none")).output().unwrap();
    said(output).refused(&["none does not exist", "run in the project's folder"]);
    desk.refuses("data inspect nowhere", &["nowhere does not exist"]);
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
    let parts = ["$store$_observation_ckpt.1.gz", "cut short", "fetch or copy it again"];
    desk.refuses("data inspect Seaquest", &parts);
    // Training on it needs whole episodes of that file.
    desk.refuses(&desk.tiny("data.path=Seaquest data.transitions=50000 data.cache=cache"), &parts);
    assert_eq!(names(&desk.path("runs")), [""; 0]);
    let left: Vec<_> =
        names(&desk.path("cache")).iter().map(|name| desk.path("cache").join(name)).collect();
    assert!(left.iter().all(|folder| names(folder).is_empty()), "half a conversion: {left:?}");
}

/// Replaces file `name` of a small log by `bytes`, and has it refused.
#[track_caller]
fn refuses_shard(name: &str, bytes: &[u8], parts: &[&str]) {
    let desk = Desk::new();
    let mut recorder = Recorder::new(&desk.path(""), "Seaquest", 10);
    recorder.episode(12);
    recorder.episode(8);
    write_gz(&recorder.folder.join(name), bytes);
    let parts = [&[name], parts].concat();
    desk.refuses("data inspect Seaquest", &parts);
    desk.refuses(&desk.tiny("data.path=Seaquest data.cache=cache"), &parts);
}

#[test]
fn shards_of_another_kind() {
    let observation = "$store$_observation_ckpt.1.gz";
    let shape = npy("|u1", &[10, 84, 83], &[]);
    refuses_shard(observation, &shape, &["has shape [10, 84, 83]", "files of one run"]);
    let dtype = npy("<f4", &[10, 84, 84], &vec![0; 40 * FRAME]);
    refuses_shard(observation, &dtype, &["has dtype <f4", "expected |u1"]);
    let pickle = npy("|O", &[10], b"\x80\x04cos\nsystem\n(S'true'\ntR.");
    refuses_shard("$store$_action_ckpt.0.gz", &pickle, &["pickled", "runs code from the file"]);
    refuses_shard("$store$_reward_ckpt.0.gz", b"no array", &["magic bytes"]);
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
    let parts = [
        "could not be played after training",
        "evaluation.episodes=0",
        "pip install 'overtone-rl[",
    ];
    elsewhere(&desk).refused(&parts);
    elsewhere(&desk).refused(&["no `.venv` here"]);
    // An empty environment of the right Python.
    for python in names(&crate::desk::project().join(".venv/lib")) {
        fs::create_dir_all(desk.path(&format!(".venv/lib/{python}/site-packages"))).unwrap();
    }
    fs::write(desk.path(".venv/pyvenv.cfg"), "").unwrap();
    elsewhere(&desk).refused(&["ale-py is not installed in", ".venv"]);
    elsewhere(&desk).refused(&parts);
    // Training alone needs none of it, and the trained agent is refused in the same words.
    let alone = desk.command(&desk.tiny("")).env_remove("VIRTUAL_ENV").output().unwrap();
    assert_eq!(said(alone).code, Some(0));
    let evaluate = desk.command("evaluate rollouts").env_remove("VIRTUAL_ENV").output().unwrap();
    said(evaluate).refused(&["ale-py is not installed in", "pip install 'overtone-rl["]);
}

#[cfg(feature = "python")]
#[test]
fn without_the_rom() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    fs::create_dir(desk.path("roms")).unwrap();
    let refused = |line: &str, parts: &[&str]| {
        let output = desk.command(line).env("ALE_ROMS_DIR", desk.path("roms")).output().unwrap();
        said(output).refused(parts);
    };
    let missing =
        ["the ROM of Seaquest is missing", "roms/seaquest.bin", "pip install 'overtone-rl["];
    refused("evaluate rollouts episodes=1", &missing);
    refused("evaluate rollouts episodes=1 protocol=matched,released", &missing);
    refused("evaluate ablation episodes=1", &missing);
    refused(&desk.tiny("evaluation.episodes=1 runs=other"), &missing);
    assert_eq!(names(&desk.path("other")), [""; 0], "found before training");
    fs::write(desk.path("roms/seaquest.bin"), "another game").unwrap();
    refused(
        "evaluate rollouts episodes=1",
        &["roms/seaquest.bin", "has MD5", "pip install 'overtone-rl["],
    );
    let run = desk.only_run("runs");
    let left: Vec<String> =
        names(&run).into_iter().filter(|name| name.contains("evaluation")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_loss_that_is_no_number() {
    let desk = Desk::new();
    let words = "train.learning_rate=1e30 train.warmup_tokens=0 train.checkpoint_every=1";
    let said = desk.run(&desk.tiny(words));
    said.refused(&[
        "update 2: the loss is",
        "not-finite-step-00000002.json; the checkpoint of update 1 is whole",
        "a lower learning rate",
    ]);
    let run = desk.only_run("runs");
    assert_eq!(crate::desk::steps(&run), [1]);
    assert!(Path::new(&run.join("not-finite-step-00000002.json")).is_file());
}
