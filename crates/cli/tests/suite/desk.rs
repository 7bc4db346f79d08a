//! A folder of its own to run the program in, and what every run of it must hold to.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A model and a run as small as they can be, on two episodes of a starter set.
pub const TINY: &str = "game=seaquest evaluation.episodes=0 data.transitions=1500 \
                        model.n_layers=1 model.d_model=32 model.n_heads=2 \
                        model.context_length=5 train.batch_size=2 train.updates=4";

/// The project's folder.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub struct Desk(TempDir);

/// What a run of the program printed.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with the words of `line`, here, with the project's data and packages.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_overtone"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("OVERTONE_DATASETS", project().join("datasets"))
            .env("VIRTUAL_ENV", project().join(".venv"))
            .env("RUST_BACKTRACE", "1")
            .env_remove("ALE_ROMS_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// `train` with [`TINY`] and `words`; conversions are shared between tests.
    pub fn tiny(&self, words: &str) -> String {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("converted");
        format!("train {TINY} data.cache={} {words}", cache.display())
    }

    #[track_caller]
    pub fn run(&self, line: &str) -> Said {
        said(self.command(line).output().unwrap())
    }

    /// Runs what must succeed, without a word on standard error.
    #[track_caller]
    pub fn succeeds(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{line}\n{}", said.stdout);
        said.stdout
    }

    /// Runs what must be refused, in one sentence that has all `parts`.
    #[track_caller]
    pub fn refuses(&self, line: &str, parts: &[&str]) {
        self.run(line).refused(parts);
    }

    /// The only run in `runs`.
    #[track_caller]
    pub fn only_run(&self, runs: &str) -> PathBuf {
        let mut found = names(&self.path(runs));
        assert_eq!(found.len(), 1, "{found:?}");
        self.path(runs).join(found.remove(0))
    }
}

impl Said {
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        let error = self.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("{self:?}"));
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(error.lines().count(), 1, "more than a sentence: {error}");
        for part in parts {
            assert!(error.contains(part), "no {part:?} in: {error}");
        }
        let clauses: Vec<&str> = error.trim().split(": ").collect();
        for (i, clause) in clauses.iter().enumerate() {
            assert!(!clauses[..i].contains(clause), "said twice: {error}");
        }
    }
}

/// What was printed, having checked what holds for every run: no panic, and nothing for
/// terminals where there is none.
#[track_caller]
pub fn said(output: Output) -> Said {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in [&stdout, &stderr] {
        assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
        assert!(!text.contains(['\x1b', '\r', '\x08']), "control codes: {text:?}");
    }
    Said { code: output.status.code(), stdout, stderr }
}

/// A process of ours that is killed when it is dropped, as when a test fails.
pub struct Running(Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Kills it at once; it must not have come to its end.
    #[track_caller]
    pub fn kill(mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "it was done before it was killed");
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

/// What Ctrl-C does.
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

/// Names in a folder, sorted; none where there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    let mut names: Vec<String> = entries
        .unwrap_or_default()
        .iter()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Steps of a run's checkpoints, ascending.
pub fn steps(run: &Path) -> Vec<u64> {
    let names = names(&run.join("checkpoints"));
    names.iter().filter_map(|name| name.strip_prefix("step-")?.parse().ok()).collect()
}

/// Everything in the checkpoint of `step`.
#[track_caller]
pub fn checkpoint(run: &Path, step: u64) -> BTreeMap<String, Vec<u8>> {
    let folder = run.join(format!("checkpoints/step-{step:08}"));
    let files = names(&folder);
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

/// Asserts that both runs came to the same end by `step`, to the bit.
#[track_caller]
pub fn same_run(one: &Path, other: &Path, step: u64) {
    assert!(checkpoint(one, step) == checkpoint(other, step), "the checkpoints differ");
    assert_eq!(curves(one), curves(other));
}

/// Copies a folder with the folders in it.
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
