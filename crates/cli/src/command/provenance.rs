//! Where a run was computed: a line of `provenance.jsonl` for each process that worked on it.

use std::{fs, io::Write, time::SystemTime};

use anyhow::{Context, Result};
use overtone_train::{RunDir, checkpoint::sha256, run_dir::CONFIG};
use serde::Serialize;

/// Its file in a run's folder.
const FILE: &str = "provenance.jsonl";

/// One process.
#[derive(Debug, Serialize)]
struct Process {
    /// The program's version.
    version: &'static str,
    /// Seconds since 1970 (UTC) when it began.
    started: u64,
    /// The step after which it began, and that of the run's end.
    step: u64,
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

/// The job in which it ran.
#[derive(Debug, Serialize)]
struct Slurm {
    job: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<String>,
    /// How often the job was queued again.
    restarts: u64,
}

/// Notes that this process, one of `processes`, works on `run` from `step` on, and says where its
/// configuration is another than the process before it had.
///
/// # Errors
/// When that cannot be written.
pub fn note(run: &RunDir, step: u64, updates: u64, processes: usize) -> Result<()> {
    let path = run.path().join(FILE);
    let config = sha256(&run.path().join(CONFIG)).ok();
    let before = last(run).and_then(|last| last.get("config")?.as_str().map(str::to_owned));
    if before.is_some() && before != config {
        say!(
            "{CONFIG} was changed since this run was last worked on: from update {step} on it trains \
             and plays as the file says now"
        );
    }
    let line = serde_json::to_string(&Process::this(step, updates, processes, config))?;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&path);
    file.as_mut()
        .map_err(|error| std::io::Error::from(error.kind()))
        .and_then(|file| file.write_all(format!("{line}\n").as_bytes()))
        .with_context(|| format!("{}", path.display()))
}

/// How many steps a run has, as its last process found.
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
