//! The provenance of a run: a line of `provenance.jsonl` for each process that trained it.

use std::{fs, io::Write, time::SystemTime};

use anyhow::{Context, Result};
use overtone_train::{RunDir, checkpoint::sha256, run_dir::CONFIG};
use serde::Serialize;

/// File name in a run's directory.
const FILE: &str = "provenance.jsonl";

/// One process.
#[derive(Debug, Serialize)]
struct Process {
    /// The program's version.
    version: &'static str,
    /// Start of the process, in seconds since 1970 (UTC).
    started: u64,
    /// The step after which it started.
    step: u64,
    /// The last step of the run.
    updates: u64,
    /// SHA-256 of the run's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    node: String,
    /// Processes that share the run, and threads that compute in each.
    processes: usize,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    slurm: Option<Slurm>,
}

/// The Slurm job of the process.
#[derive(Debug, Serialize)]
struct Slurm {
    job: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<String>,
    /// Number of times that Slurm requeued the job.
    restarts: u64,
}

/// Records that this process, one of `processes`, trains `run` after `step`. Prints a warning if
/// the configuration has changed since the previous process.
///
/// # Errors
/// When the file cannot be written.
pub fn note(run: &RunDir, step: u64, updates: u64, processes: usize) -> Result<()> {
    let path = run.path().join(FILE);
    let config = sha256(&run.path().join(CONFIG)).ok();
    let before = last(run).and_then(|last| last.get("config")?.as_str().map(str::to_owned));
    if before.is_some() && before != config {
        say!(
            "{CONFIG} has changed since the last process of this run: after update {step}, \
             training and evaluation use the new settings"
        );
    }
    let line = serde_json::to_string(&Process::this(step, updates, processes, config))?;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&path);
    file.as_mut()
        .map_err(|error| std::io::Error::from(error.kind()))
        .and_then(|file| file.write_all(format!("{line}\n").as_bytes()))
        .with_context(|| format!("{}", path.display()))
}

/// The number of a run's steps, from its last process.
pub fn updates(run: &RunDir) -> Option<u64> {
    last(run)?.get("updates")?.as_u64()
}

/// The line of the last process.
fn last(run: &RunDir) -> Option<serde_json::Value> {
    let text = fs::read_to_string(run.path().join(FILE)).ok()?;
    serde_json::from_str(text.lines().next_back()?).ok()
}

impl Process {
    fn this(step: u64, updates: u64, processes: usize, config: Option<String>) -> Self {
        let word = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let slurm = word("SLURM_JOB_ID").map(|job| Slurm {
            job,
            array: word("SLURM_ARRAY_JOB_ID")
                .zip(word("SLURM_ARRAY_TASK_ID"))
                .map(|(array, task)| format!("{array}_{task}")),
            restarts: word("SLURM_RESTART_COUNT").and_then(|n| n.parse().ok()).unwrap_or(0),
        });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            started: started.map_or(0, |time| time.as_secs()),
            step,
            updates,
            config,
            node: word("SLURMD_NODENAME").or_else(host).unwrap_or_default(),
            processes,
            threads: rayon::current_num_threads(),
            slurm,
        }
    }
}

/// This machine's name.
pub fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    name.map(|name| name.trim().to_owned()).or_else(|| std::env::var("HOSTNAME").ok())
}
