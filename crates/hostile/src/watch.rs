//! The process that watches: starts workers, and goes on behind an input that ended one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::inputs::Inputs;
use crate::record::{Fault, Record};
use crate::targets::Target;
use crate::worker::{FILES, RECORD, note};

/// How often a worker's record is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Inputs a worker reads before another one is started.
const BATCH: u64 = 100_000;
/// Crashes and hangs of a target after which the rest of its inputs is given up.
const MOST_ENDED: u64 = 50;

/// What became of a target's inputs.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// As the workers counted them.
    pub record: Record,
    /// Inputs that ended a worker.
    pub crashes: u64,
    /// Inputs that took longer than [`Search::patience`].
    pub hangs: u64,
    /// Seconds of all.
    pub seconds: f64,
}

impl Outcome {
    /// Inputs read, or begun.
    pub fn inputs(&self) -> u64 {
        let Record { accepted, refused, panics, .. } = self.record;
        accepted + refused + panics + self.crashes + self.hangs
    }

    /// Inputs that found a fault.
    pub fn faults(&self) -> u64 {
        self.record.panics + self.record.memory + self.crashes + self.hangs
    }
}

/// What a search is to do.
pub struct Search<'a> {
    /// The program that [works](crate::worker::work) when it is told `worker`.
    pub program: &'a Path,
    /// Of all inputs.
    pub seed: u64,
    /// Where workers have their folders: in memory where there is such a place.
    pub scratch: &'a Path,
    /// Where inputs are kept that found a fault.
    pub kept: &'a Path,
    /// How long an input may take.
    pub patience: Duration,
}

impl Search<'_> {
    /// Has `n` inputs of `target` read, from number `first` on.
    ///
    /// # Errors
    /// When a worker cannot be started, or fails before its first input.
    pub fn run(&self, target: &Target, first: u64, n: u64) -> Result<Outcome> {
        let start = Instant::now();
        let mut outcome = Outcome::default();
        let (mut next, end) = (first, first + n);
        while next < end && outcome.crashes + outcome.hangs < MOST_ENDED {
            let folder = self.scratch.join(format!("{}-{next}", target.name));
            fs::create_dir_all(&folder)?;
            let batch = BATCH.min(end - next);
            let child = Command::new(self.program)
                .arg("worker")
                .arg(format!("target={}", target.name))
                .arg(format!("seed={}", self.seed))
                .arg(format!("first={next}"))
                .arg(format!("n={batch}"))
                .arg(format!("folder={}", folder.display()))
                .arg(format!("kept={}", self.kept.display()))
                .stdout(Stdio::null())
                .spawn()
                .context("starting a worker")?;
            let ended = watch(child, &folder.join(RECORD), self.patience)?;
            let record = Record::read(&folder.join(RECORD));
            outcome.record = outcome.record.joined(record);
            match ended {
                Ended::Well => next += batch,
                Ended::Badly(fault, status) => {
                    let began = folder.join(RECORD).is_file();
                    ensure!(began, "the worker of {} failed: {status}", target.name);
                    match fault {
                        Fault::Hang => outcome.hangs += 1,
                        _ => outcome.crashes += 1,
                    }
                    let path = self.again(target, record.next)?;
                    let said = status.to_string();
                    note(self.kept, target.name, self.seed, record.next, fault, &said, &path)?;
                    next = record.next + 1;
                }
            }
            fs::remove_dir_all(&folder)?;
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        Ok(outcome)
    }

    /// Writes an input again.
    fn again(&self, target: &Target, number: u64) -> Result<PathBuf> {
        let folder = self.scratch.join("again");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Inputs::new(target, self.seed, &folder.join(FILES))?.place(number)
    }
}

/// How a worker ended.
enum Ended {
    Well,
    Badly(Fault, ExitStatus),
}

/// Waits for a worker's end, or ends it when its record has stood still for too long.
fn watch(mut child: Child, record: &Path, patience: Duration) -> Result<Ended> {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.success() {
                true => Ended::Well,
                false => Ended::Badly(Fault::Crash, status),
            });
        }
        let next = Record::read(record).next;
        if next != seen {
            (seen, since) = (next, Instant::now());
        }
        if since.elapsed() > patience {
            child.kill()?;
            return Ok(Ended::Badly(Fault::Hang, child.wait()?));
        }
        thread::sleep(LOOK);
    }
}
