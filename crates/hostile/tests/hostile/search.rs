//! The search: one damaged input after the other, read in this process.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use anyhow::Result;
use overtone_lab::memory;

use crate::inputs::Inputs;
use crate::targets::Target;

/// How long an input may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often progress is printed.
const PAUSE: Duration = Duration::from_secs(10);
/// Faults of a target after which the rest of its inputs is given up.
const MOST: u64 = 20;

/// Place and reason of the newest panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Which inputs are read.
pub struct Search {
    /// The seed that every input follows from, with its number.
    pub seed: u64,
    /// The first input's number.
    pub first: u64,
    /// Folder of the inputs that found a fault.
    pub kept: PathBuf,
}

/// The outcome of a target's inputs.
#[derive(Default)]
pub struct Outcome {
    /// Read without an error.
    pub accepted: u64,
    /// Refused with an error.
    pub refused: u64,
    /// That panicked.
    pub panics: u64,
    /// That took more memory than the target's limit.
    pub memory: u64,
    /// The most bytes held for one input.
    pub largest: u64,
    /// How long the slowest input took.
    pub slowest: Duration,
}

impl Search {
    /// Reads `n` inputs of `target`. A process that a reader ends leaves its folder behind, with
    /// the input and its number.
    ///
    /// # Errors
    /// When a file cannot be written. A reader's error is counted.
    pub fn run(&self, target: &Target, n: u64) -> Result<Outcome> {
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let inputs = Inputs::new(target, self.seed, &memory.path().join("files"))?;
        // A reader's panic is kept with its input, and not printed.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|said| {
            let mut newest = PANIC.lock().unwrap_or_else(|poison| poison.into_inner());
            *newest = said.to_string().replace('\n', " ");
        }));
        let number = Arc::new(AtomicU64::new(self.first));
        let ended = Arc::new(AtomicBool::new(false));
        let watch = watch(target.name, memory.path().into(), Arc::clone(&number), &ended);
        let outcome = self.read(target, n, inputs, &memory.path().join("number"), &number);
        ended.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        let _ = watch.join();
        panic::set_hook(hook);
        outcome
    }

    fn read(
        &self,
        target: &Target,
        n: u64,
        mut inputs: Inputs,
        noted: &std::path::Path,
        current: &AtomicU64,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for number in self.first..self.first + n {
            current.store(number, Ordering::Relaxed);
            fs::write(noted, number.to_string())?;
            let path = inputs.place(number)?;
            let bytes = fs::metadata(&path)?.len();
            let held = memory::restart();
            let start = Instant::now();
            let read = panic::catch_unwind(AssertUnwindSafe(|| (target.read)(&path)));
            outcome.slowest = outcome.slowest.max(start.elapsed());
            let most = memory::most_above(held) as u64;
            outcome.largest = outcome.largest.max(most);
            let limit = (target.limit)(bytes);
            let mut faults = Vec::new();
            match read {
                Ok(Ok(())) => outcome.accepted += 1,
                Ok(Err(_)) => outcome.refused += 1,
                Err(_) => {
                    outcome.panics += 1;
                    faults.push(PANIC.lock().unwrap_or_else(|poison| poison.into_inner()).clone());
                }
            }
            if most > limit {
                outcome.memory += 1;
                faults.push(format!("{most} bytes for one of {bytes}, and {limit} are allowed"));
            }
            for said in faults {
                fs::create_dir_all(&self.kept)?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let copy = format!("{}-{}-{number}-{name}", target.name, self.seed);
                fs::copy(&path, self.kept.join(copy))?;
                let list = self.kept.join("faults.txt");
                let mut list = fs::OpenOptions::new().append(true).create(true).open(list)?;
                writeln!(
                    list,
                    "target={} seed={} first={number} n=1: {said}",
                    target.name, self.seed
                )?;
            }
            if outcome.panics + outcome.memory >= MOST {
                break;
            }
        }
        Ok(outcome)
    }
}

/// Prints progress, and ends the process when an input takes too long.
fn watch(
    target: &'static str,
    folder: PathBuf,
    number: Arc<AtomicU64>,
    ended: &Arc<AtomicBool>,
) -> thread::JoinHandle<()> {
    let ended = Arc::clone(ended);
    thread::spawn(move || {
        let (mut seen, mut since, mut printed) = (u64::MAX, Instant::now(), Instant::now());
        while !ended.load(Ordering::Relaxed) {
            let now = number.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                println!("{target}: input {now} takes too long: {}", folder.display());
                process::abort();
            }
            if printed.elapsed() > PAUSE {
                println!("{target}: input {now}");
                printed = Instant::now();
            }
            thread::park_timeout(Duration::from_millis(100));
        }
    })
}
