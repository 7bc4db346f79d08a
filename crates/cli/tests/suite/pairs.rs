//! Pairs of features: each command that reads a run or a recording, with a run whose data has
//! another layout, has changed or is gone, a mixture, a run that is initialised from another, a
//! failed step before, and a fixed acting mode.

use std::{fmt::Write as _, fs, path::Path};

use overtone_testkit::npz::{f4, zip};
use serde_json::{Value, json};

use crate::desk::{Desk, checkpoint, copy};

/// What is right for a pair.
#[derive(Clone, Copy)]
enum Right {
    /// It is refused: exit code, and words of the sentence.
    Refused(i32, &'static [&'static str]),
    /// Its result is the same as this line's.
    As(&'static str),
    /// Its result differs from this line's.
    Unlike(&'static str),
    /// Its result has these values.
    Has(&'static [(&'static str, Expected)]),
}

/// A value of a result.
#[derive(Clone, Copy)]
enum Expected {
    Number(f64),
    Text(&'static str),
}

use Expected::{Number, Text};
use Right::{As, Has, Refused, Unlike};

/// The runs' settings: two updates of a small transformer.
const SMALL: &str = "model.n_layers=1 model.d_model=16 model.context_length=2 train.batch_size=2 \
                     train.updates=2 train.checkpoint_every=1";

const N_EPISODES: usize = 40;

/// Steps of the episodes: 3 to 6.
fn lengths() -> impl Iterator<Item = usize> {
    (0..N_EPISODES).map(|episode| 3 + episode % 4)
}

/// A file of 40 episodes, 180 steps in all. The rewards of an episode are equal, between `reward`
/// and `reward` + 4.
///
/// With `layout=ogbench`, each episode has one step less: 140 steps in all.
pub struct File {
    pub reward: f32,
    pub is_ogbench: bool,
    pub is_discrete: bool,
}

impl File {
    pub fn write(&self, path: &Path) {
        let n = lengths().sum::<usize>();
        let wave = |width: usize| -> Vec<f32> {
            (0..n * width).map(|i| (i as f32 * 0.37 + self.reward).sin()).collect()
        };
        let (mut rewards, mut ends, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for (episode, length) in lengths().enumerate() {
            let is_limit = episode % 2 == 1 && !self.is_ogbench;
            for step in 0..length {
                let is_last = step + 1 == length;
                rewards.push(self.reward + (episode % 5) as f32);
                ends.push(f32::from(is_last && !is_limit));
                limits.push(f32::from(is_last && is_limit));
            }
        }
        let mut arrays = vec![("rewards", f4(&[n], &rewards)), ("terminals", f4(&[n], &ends))];
        if self.is_discrete {
            let actions = (0..n).flat_map(|row| (row as i64 % 2).to_le_bytes()).collect::<Vec<_>>();
            arrays.push(("actions", overtone_testkit::dopamine::npy("<i8", &[n], &actions)));
            arrays.push(("behavior_log_probs", f4(&[n], &vec![0.5f32.ln(); n])));
            arrays.push(("observations", f4(&[n, 4], &wave(4))));
        } else {
            arrays.push(("actions", f4(&[n, 3], &wave(3))));
            arrays.push(("observations", f4(&[n, 11], &wave(11))));
        }
        if !self.is_ogbench {
            arrays.push(("timeouts", f4(&[n], &limits)));
        }
        fs::write(path, zip(&arrays)).unwrap();
    }
}

const DATA: [(&str, File); 10] = [
    ("plain.npz", File { reward: 1.0, is_ogbench: false, is_discrete: false }),
    ("other.npz", File { reward: 3.0, is_ogbench: false, is_discrete: false }),
    ("maze.npz", File { reward: 1.0, is_ogbench: true, is_discrete: false }),
    // As `plain.npz` until the runs are trained.
    ("changed.npz", File { reward: 1.0, is_ogbench: false, is_discrete: false }),
    ("gone.npz", File { reward: 1.0, is_ogbench: false, is_discrete: false }),
    ("log.npz", File { reward: 1.0, is_ogbench: false, is_discrete: true }),
    ("other_log.npz", File { reward: 3.0, is_ogbench: false, is_discrete: true }),
    ("maze_log.npz", File { reward: 1.0, is_ogbench: true, is_discrete: true }),
    ("changed_log.npz", File { reward: 1.0, is_ogbench: false, is_discrete: true }),
    ("gone_log.npz", File { reward: 1.0, is_ogbench: false, is_discrete: true }),
];

/// Runs, and the words that train them.
const HOPPER: [(&str, &str); 8] = [
    ("plain", "env=hopper dataset=./plain.npz"),
    ("maze", "env=hopper dataset=./maze.npz data.layout=ogbench"),
    ("tuned", "init=runs/plain dataset=./other.npz"),
    ("mixed", "env=hopper dataset=./plain.npz,./other.npz"),
    ("changed", "env=hopper dataset=./changed.npz"),
    ("gone", "env=hopper dataset=./gone.npz"),
    ("fixed", "env=hopper dataset=./plain.npz evaluation.return_quantile=0.5"),
    // Its second loss is not finite.
    ("broken", "env=hopper dataset=./plain.npz train.learning_rate=1e30 train.warmup_tokens=0"),
];

/// Runs whose recordings have log-probabilities.
const CARTPOLE: [(&str, &str); 7] = [
    ("log", "task=gymnasium/CartPole-v1 dataset=./log.npz"),
    ("maze_log", "task=gymnasium/CartPole-v1 dataset=./maze_log.npz data.layout=ogbench"),
    ("tuned_log", "init=runs/log dataset=./other_log.npz"),
    ("mixed_log", "task=gymnasium/CartPole-v1 dataset=./log.npz,./other_log.npz"),
    ("changed_log", "task=gymnasium/CartPole-v1 dataset=./changed_log.npz"),
    ("gone_log", "task=gymnasium/CartPole-v1 dataset=./gone_log.npz"),
    ("fixed_log", "task=gymnasium/CartPole-v1 dataset=./log.npz evaluation.temperature=0.5"),
];

/// A desk with [`DATA`] and trained `runs`. Then the data of the runs `changed` is replaced, and
/// that of `gone` is removed.
fn desk(runs: &[(&str, &str)]) -> Desk {
    let desk = Desk::new();
    for (name, file) in DATA {
        file.write(&desk.path(name));
    }
    fs::create_dir(desk.path("runs")).unwrap();
    for (name, words) in runs {
        let said = desk.run(&format!("train {words} {SMALL} evaluation.episodes=0 runs=new"));
        assert_eq!(said.code, Some(i32::from(*name == "broken")), "{words}: {said:?}");
        fs::rename(desk.only_run("new"), desk.path("runs").join(name)).unwrap();
    }
    for (from, to) in [("other.npz", "changed.npz"), ("other_log.npz", "changed_log.npz")] {
        fs::copy(desk.path(from), desk.path(to)).unwrap();
    }
    for gone in ["gone.npz", "gone_log.npz"] {
        fs::remove_file(desk.path(gone)).unwrap();
    }
    desk
}

/// The result of `line`: what it writes, without times and names.
#[track_caller]
fn result(desk: &Desk, line: &str) -> Value {
    let succeeds = |line: &str| {
        let said = desk.run(line);
        assert_eq!(said.code, Some(0), "{line}: {}", said.stderr);
        said.stdout
    };
    let written = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(desk.path(path)).unwrap()).unwrap()
    };
    let run = || line.split(' ').find_map(|word| word.strip_prefix("run=")).unwrap().to_owned();
    let command = line.split(' ').next().unwrap();
    match command {
        "train" => {
            let said = succeeds(&format!("{line} {SMALL} runs=new"));
            let run = desk.only_run("new");
            let counts = said.lines().find_map(|line| line.strip_prefix("dataset: ")).unwrap();
            let numbers: Vec<u64> =
                counts.split(' ').filter_map(|word| word.parse().ok()).collect();
            let mut result = json!({
                "transitions": numbers[0], "episodes": numbers[1], "weights": weights(&run, 2)
            });
            let evaluation = run.join("evaluation.json");
            if evaluation.is_file() {
                result["targets"] = written(&evaluation.display().to_string())["targets"].clone();
            }
            fs::remove_dir_all(desk.path("new")).unwrap();
            result
        }
        "weights" => {
            let run = desk.path("runs").join(&line[8..]);
            json!({ "weights": weights(&run, 2), "model": weights(&run, 2) })
        }
        "resume" => {
            // As if it had been killed before its last checkpoint.
            let opened = desk.path("new/run");
            copy(&desk.path("runs").join(run()), &opened);
            fs::remove_file(opened.join("finished")).unwrap();
            fs::remove_dir_all(opened.join("checkpoints/step-00000002")).unwrap();
            succeeds("resume run=new/run");
            let result = json!({ "weights": weights(&opened, 2) });
            fs::remove_dir_all(desk.path("new")).unwrap();
            result
        }
        "evaluate" => {
            succeeds(&format!("{line} out=evaluation.json"));
            let evaluation = written("evaluation.json");
            json!({
                "targets": evaluation["targets"], "step": evaluation["checkpoint"]["step"],
                "acting": evaluation["protocol"]["acting"],
            })
        }
        "judge" => {
            succeeds(&format!("{line} updates=0 modes=own"));
            written(&format!("runs/{}/judgement.json", run()))
        }
        "record" => {
            succeeds(&format!("{line} to=recorded"));
            let metadata = written("recorded/data/metadata.json");
            fs::remove_dir_all(desk.path("recorded")).unwrap();
            json!({ "content": metadata["overtone"]["content_sha256"] })
        }
        "export" => {
            succeeds(&format!("{line} format=safetensors exported"));
            let model = fs::read(desk.path("exported/model.safetensors")).unwrap();
            let settings = written("exported/overtone.json")["settings"].clone();
            fs::remove_dir_all(desk.path("exported")).unwrap();
            json!({ "model": short(&model), "settings": settings })
        }
        "report" => {
            succeeds(&format!("{line} video=false"));
            let page = desk.path("runs").join(&line[7..]).join("report.md");
            json!({ "page": fs::read_to_string(page).unwrap() })
        }
        _ => {
            let said = desk.run(&format!("{line} --json"));
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{line}: {said:?}"))
        }
    }
}

/// A few characters that differ when bytes do.
fn short(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The weights of a checkpoint, in a few characters.
fn weights(run: &Path, step: u64) -> String {
    short(&checkpoint(run, step)["model.safetensors"])
}

/// Runs the rows, and reports every one that does not hold.
#[track_caller]
fn check(desk: &Desk, rows: &[(&str, Right)]) {
    let mut wrong = String::new();
    for (line, right) in rows {
        match right {
            Refused(code, words) => {
                let said = if line.starts_with("train ") {
                    desk.run(&format!("{line} {SMALL} evaluation.episodes=0 runs=new"))
                } else {
                    desk.run(line)
                };
                let is_right = said.code == Some(*code)
                    && said.stderr.starts_with("error: ")
                    && said.stderr.lines().count() == 1
                    && words.iter().all(|word| said.stderr.contains(word));
                if !is_right {
                    let _ = writeln!(wrong, "{line}: not refused with {code}, {words:?}: {said:?}");
                }
            }
            As(other) => {
                let [one, other] = [line, other].map(|line| result(desk, line));
                let shared: Vec<&String> = one
                    .as_object()
                    .unwrap()
                    .keys()
                    .filter(|key| other.get(key).is_some())
                    .collect();
                assert!(!shared.is_empty(), "{line}: nothing to compare");
                for key in shared {
                    if one[key] != other[key] {
                        let _ = writeln!(wrong, "{line}: {key} {} is not {}", one[key], other[key]);
                    }
                }
            }
            Unlike(other) => {
                if result(desk, line) == result(desk, other) {
                    let _ = writeln!(wrong, "{line}: as {other}");
                }
            }
            Has(values) => {
                let result = result(desk, line);
                for (pointer, expected) in *values {
                    let value = result.pointer(pointer).unwrap_or(&Value::Null);
                    let is_right = match expected {
                        Number(number) => value.as_f64() == Some(*number),
                        Text(text) => value.as_str().is_some_and(|value| value.contains(text)),
                    };
                    if !is_right {
                        let _ = writeln!(wrong, "{line}: {pointer} is {value}");
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn commands_that_read_runs_and_recordings() {
    let desk = desk(&HOPPER);
    check(&desk, &TRAINING);
    check(&desk, &PLAYING);
    check(&desk, &READING);
}

#[test]
fn judgements() {
    check(&desk(&CARTPOLE), &JUDGING);
}

const TRAINING: [(&str, Right); 21] = [
    // Another layout.
    ("train env=hopper dataset=./maze.npz", Refused(1, &["maze.npz", "timeouts"])),
    // `timeouts` say that each row is a step, in any layout.
    (
        "train env=hopper dataset=./plain.npz data.layout=ogbench evaluation.episodes=0",
        As("weights plain"),
    ),
    (
        "train env=hopper dataset=./maze.npz data.layout=ogbench evaluation.episodes=0",
        Has(&[("/transitions", Number(140.0)), ("/episodes", Number(40.0))]),
    ),
    (
        "train env=hopper dataset=./plain.npz,./maze.npz data.layout=ogbench evaluation.episodes=0",
        Has(&[("/transitions", Number(320.0)), ("/episodes", Number(80.0))]),
    ),
    ("resume run=maze", As("weights maze")),
    // Another run's weights; its layout holds for its own data only.
    (
        "train init=runs/maze evaluation.episodes=0",
        Has(&[("/transitions", Number(140.0)), ("/episodes", Number(40.0))]),
    ),
    (
        "train init=runs/maze dataset=./plain.npz evaluation.episodes=0",
        Has(&[("/transitions", Number(180.0)), ("/episodes", Number(40.0))]),
    ),
    ("train init=runs/plain data.return_scale=7", Refused(1, &["data.return_scale"])),
    ("resume run=tuned", As("weights tuned")),
    // Mixtures.
    (
        "train env=hopper dataset=./plain.npz,./other.npz evaluation.episodes=0",
        Has(&[("/transitions", Number(360.0)), ("/episodes", Number(80.0))]),
    ),
    ("train env=hopper dataset=./other.npz,./plain.npz evaluation.episodes=0", As("weights mixed")),
    (
        "train init=runs/mixed evaluation.episodes=0",
        Has(&[("/transitions", Number(360.0)), ("/episodes", Number(80.0))]),
    ),
    ("train env=hopper dataset=./plain.npz,./gone.npz", Refused(1, &["gone.npz"])),
    ("resume run=mixed", As("weights mixed")),
    // Data that has changed, or is gone.
    ("resume run=runs/changed", Refused(1, &["changed", "dataset"])),
    (
        "train init=runs/changed evaluation.episodes=0",
        As("train init=runs/plain dataset=./other.npz evaluation.episodes=0"),
    ),
    ("resume run=runs/gone", Refused(1, &["gone.npz", "does not exist"])),
    ("train init=runs/gone", Refused(1, &["gone.npz", "does not exist"])),
    (
        "train init=runs/gone dataset=./other.npz evaluation.episodes=0",
        As("train init=runs/plain dataset=./other.npz evaluation.episodes=0"),
    ),
    // A step that failed, and fails again.
    ("resume run=runs/broken", Refused(1, &["the loss is NaN"])),
    // A fixed mode.
    (
        "train env=hopper dataset=./plain.npz evaluation.episodes=1 evaluation.target=20 \
         evaluation.return_quantile=0.5",
        As("evaluate rollouts run=fixed episodes=1 target=20"),
    ),
];

const PLAYING: [(&str, Right); 14] = [
    (
        "evaluate rollouts run=plain episodes=1 target=p100",
        Has(&[("/targets/0/target_return", Number(30.0)), ("/step", Number(2.0))]),
    ),
    // Five steps of the best reward are left of six.
    (
        "evaluate rollouts run=maze episodes=1 target=p100",
        Has(&[("/targets/0/target_return", Number(25.0))]),
    ),
    (
        "evaluate rollouts run=tuned episodes=1 target=p100",
        Has(&[("/targets/0/target_return", Number(42.0))]),
    ),
    (
        "evaluate rollouts run=mixed episodes=1 target=p100",
        Has(&[("/targets/0/target_return", Number(42.0))]),
    ),
    (
        "evaluate rollouts run=changed episodes=1 target=p100",
        As("evaluate rollouts run=plain episodes=1 target=p100"),
    ),
    (
        "evaluate rollouts run=gone episodes=1 target=p100",
        As("evaluate rollouts run=plain episodes=1 target=p100"),
    ),
    ("evaluate rollouts run=broken episodes=1 target=20", Refused(1, &["NaN", "the model"])),
    (
        "evaluate rollouts run=fixed episodes=1 target=20",
        As("evaluate rollouts run=plain episodes=1 target=20 return_quantile=0.5"),
    ),
    (
        "record policy=changed transitions=20 target=p100",
        As("record policy=plain transitions=20 target=p100"),
    ),
    (
        "record policy=gone transitions=20 target=p100",
        As("record policy=plain transitions=20 target=p100"),
    ),
    (
        "record policy=fixed transitions=20 target=20",
        Unlike("record policy=plain transitions=20 target=20"),
    ),
    ("export changed", As("weights changed")),
    ("export gone", As("weights gone")),
    ("export fixed", Has(&[("/settings", Text("return_quantile = 0.5"))])),
];

const JUDGING: [(&str, Right); 11] = [
    (
        "judge run=maze_log",
        Has(&[
            ("/recording/episodes", Number(40.0)),
            ("/recording/mean_length", Number(3.5)),
            ("/recording/trained", Text("yes")),
        ]),
    ),
    // By the layout of this file, not of the run's.
    (
        "judge run=maze_log dataset=./log.npz",
        Has(&[("/recording/episodes", Number(40.0)), ("/recording/mean_length", Number(4.5))]),
    ),
    ("judge run=tuned_log", Has(&[("/recording/trained", Text("yes"))])),
    // The run that initialised it trained on these.
    ("judge run=tuned_log dataset=./log.npz", Has(&[("/recording/trained", Text("yes"))])),
    (
        "judge run=mixed_log dataset=./other_log.npz",
        Has(&[("/recording/episodes", Number(40.0)), ("/recording/trained", Text("yes"))]),
    ),
    ("judge run=changed_log", Refused(2, &["changed_log.npz", "has changed"])),
    ("judge run=changed_log dataset=./log.npz", Has(&[("/recording/trained", Text("unknown"))])),
    ("judge run=gone_log", Refused(2, &["gone_log.npz", "does not exist"])),
    ("judge run=log dataset=./gone_log.npz", Refused(2, &["gone_log.npz", "does not exist"])),
    ("judge run=log dataset=./maze_log.npz", Refused(2, &["maze_log.npz", "timeouts"])),
    ("judge run=fixed_log", Has(&[("/policies/0/mode/temperature", Number(0.5))])),
];

const READING: [(&str, Right); 11] = [
    ("data inspect maze.npz", Refused(1, &["maze.npz", "timeouts"])),
    ("data inspect maze.npz layout=ogbench", Has(&[("/transitions", Number(140.0))])),
    ("data inspect plain.npz layout=ogbench", Has(&[("/transitions", Number(180.0))])),
    ("data lint maze.npz", Has(&[("/findings/0/severity", Text("error"))])),
    ("data inspect gone.npz", Refused(1, &["gone.npz"])),
    ("data lint gone.npz", Refused(2, &["gone.npz"])),
    ("report tuned", Has(&[("/page", Text("tuned"))])),
    ("report mixed", Has(&[("/page", Text("mixed"))])),
    ("report changed", Has(&[("/page", Text("changed"))])),
    ("report gone", Has(&[("/page", Text("gone"))])),
    ("report broken", Has(&[("/page", Text("broken"))])),
];
