//! A temporary directory to run the program in, and checks of its runs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

pub use overtone_testkit::{
    desk::{ProgramOutput, names, said},
    project,
};

/// A minimal model and run, on two episodes of a starter set.
pub const TINY: &str = "game=seaquest evaluation.episodes=0 evaluation.temperature=1 data.transitions=1500 \
                        model.n_layers=1 model.d_model=32 model.n_heads=2 \
                        model.context_length=5 train.batch_size=2 train.updates=4";

/// A desk of `overtone`.
pub struct Desk(overtone_testkit::Desk);

impl std::ops::Deref for Desk {
    type Target = overtone_testkit::Desk;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Desk {
    pub fn new() -> Self {
        Self(overtone_testkit::Desk::new(env!("CARGO_BIN_EXE_overtone")))
    }

    /// `train` with [`TINY`], changed by `words`; conversions are shared between tests.
    pub fn tiny(&self, words: &str) -> String {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("converted");
        let key = |word: &str| word.split('=').next().map(str::to_owned);
        let is_set = |word: &str| words.split_whitespace().any(|own| key(own) == key(word));
        let tiny: Vec<&str> = TINY.split_whitespace().filter(|word| !is_set(word)).collect();
        let cache = match words.contains("data.cache=") {
            true => String::new(),
            false => format!("data.cache={}", cache.display()),
        };
        format!("train {} {cache} {words}", tiny.join(" "))
    }

    /// Runs `line`, which must be refused with the sentence in `tests/sentences`.
    #[track_caller]
    pub fn refuses(&self, line: &str) {
        self.run(line).refused();
    }

    /// The only run in `runs`.
    #[track_caller]
    pub fn only_run(&self, runs: &str) -> PathBuf {
        let mut found = names(&self.path(runs));
        assert_eq!(found.len(), 1, "{found:?}");
        self.path(runs).join(found.remove(0))
    }
}

/// A child process that is killed when it is dropped, for example after a failed test.
pub struct Running(Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Waits for its end, which must be a success.
    #[track_caller]
    pub fn finish(mut self) {
        assert!(self.0.wait().unwrap().success(), "it failed");
    }

    /// Kills it at once; it must still be running.
    #[track_caller]
    pub fn kill(mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "it ended before it was killed");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends SIGINT, like Ctrl-C.
#[track_caller]
pub fn interrupt(process: u32) {
    let kill = format!("kill -INT {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Waits until `holds`, for half a minute at most.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Steps of a run's checkpoints, ascending.
pub fn steps(run: &Path) -> Vec<u64> {
    let names = names(&run.join("checkpoints"));
    names.iter().filter_map(|name| name.strip_prefix("step-")?.parse().ok()).collect()
}

/// The files of the checkpoint of `step`.
#[track_caller]
pub fn checkpoint(run: &Path, step: u64) -> BTreeMap<String, Vec<u8>> {
    let folder = run.join(format!("checkpoints/step-{step:08}"));
    // An evaluation adds the acting mode.
    let files: Vec<_> = names(&folder).into_iter().filter(|name| name != "acting.json").collect();
    assert_eq!(
        files,
        ["SHA256SUMS", "model.safetensors", "optimizer.safetensors", "state.json"],
        "{}",
        folder.display()
    );
    files.into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

/// The columns of `metrics.csv` that do not measure time: step to gradient norm.
#[track_caller]
pub fn curves(run: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let timed = header.iter().position(|name| *name == "timesteps_per_s").unwrap();
    assert_eq!(header[..3], ["step", "tokens", "loss"]);
    let row = |line: &str| line.split(',').take(timed).map(str::to_owned).collect();
    lines.map(row).collect()
}

/// Asserts that both runs are bit-identical at `step`.
#[track_caller]
pub fn same_run(one: &Path, other: &Path, step: u64) {
    assert!(checkpoint(one, step) == checkpoint(other, step), "the checkpoints differ");
    assert_eq!(curves(one), curves(other));
}

/// Copies a directory recursively.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap(), to.join(""));
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The acting mode of a run's last checkpoint.
pub fn acting_of(run: &Path) -> PathBuf {
    let checkpoints = run.join("checkpoints");
    let last = names(&checkpoints).into_iter().rfind(|name| name.starts_with("step-")).unwrap();
    checkpoints.join(last).join("acting.json")
}
