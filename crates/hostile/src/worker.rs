//! The process that reads: one input after the other, each noted before it is read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;

use crate::inputs::Inputs;
use crate::memory;
use crate::record::{Fault, Record};
use crate::targets::Target;

/// Name of the record in a worker's folder.
pub const RECORD: &str = "record";
/// Name of the folder of the target's files in it.
pub const FILES: &str = "files";
/// Faults that a worker keeps the input of.
const KEPT: u64 = 20;

/// Where and why the newest panic was.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Which inputs a worker reads, and where it writes.
pub struct Work<'a> {
    /// Whose.
    pub target: &'a Target,
    /// Of the search.
    pub seed: u64,
    /// The first input's number.
    pub first: u64,
    /// How many.
    pub n: u64,
    /// The worker's folder, empty.
    pub folder: &'a Path,
    /// Where inputs are kept that found a fault.
    pub kept: &'a Path,
}

/// Reads the inputs.
///
/// # Errors
/// When the worker's own files cannot be written: what a reader says is counted.
pub fn work(work: &Work<'_>) -> Result<()> {
    // A reader's panic is told of once, with its input, and not printed.
    panic::set_hook(Box::new(|said| {
        let mut newest = PANIC.lock().unwrap_or_else(|poison| poison.into_inner());
        *newest = said.to_string().replace('\n', " ");
    }));
    let mut inputs = Inputs::new(work.target, work.seed, &work.folder.join(FILES))?;
    let file = File::create(work.folder.join(RECORD))?;
    let mut record = Record { next: work.first, ..Record::default() };
    for number in work.first..work.first + work.n {
        record.next = number;
        record.write(&file)?;
        let path = inputs.place(number)?;
        let bytes = fs::metadata(&path)?.len();
        let resident = work.target.native.then(memory::restart_resident).flatten();
        let held = memory::restart();
        let start = Instant::now();
        let read = panic::catch_unwind(AssertUnwindSafe(|| (work.target.read)(&path)));
        record.slowest = record.slowest.max(start.elapsed().as_micros() as u64);
        let mut most = memory::most_above(held) as u64;
        if let Some(grown) = resident.and_then(memory::most_resident_above) {
            most = most.max(grown as u64);
        }
        record.largest = record.largest.max(most);
        match read {
            Ok(Ok(())) => record.accepted += 1,
            Ok(Err(_)) => record.refused += 1,
            Err(_) => {
                record.panics += 1;
                let said = PANIC.lock().unwrap_or_else(|poison| poison.into_inner()).clone();
                keep(work, number, Fault::Panic, &said, record.panics, &path)?;
            }
        }
        let limit = (work.target.limit)(bytes);
        if most > limit {
            record.memory += 1;
            let said = format!("{most} bytes for an input of {bytes}, and {limit} are allowed");
            keep(work, number, Fault::Memory, &said, record.memory, &path)?;
        }
    }
    record.next = work.first + work.n;
    record.write(&file)?;
    Ok(())
}

/// Notes a fault, the `nth` of its kind, and keeps the input of the first ones.
fn keep(
    work: &Work<'_>,
    number: u64,
    fault: Fault,
    said: &str,
    nth: u64,
    path: &Path,
) -> Result<()> {
    if nth > KEPT {
        return Ok(());
    }
    note(work.kept, work.target.name, work.seed, number, fault, said, path)
}

/// Adds a line about a fault to `faults.txt` in the folder `kept`, and puts a copy of the input
/// beside it.
///
/// # Errors
/// When they cannot be written.
pub fn note(
    kept: &Path,
    target: &str,
    seed: u64,
    number: u64,
    fault: Fault,
    said: &str,
    path: &Path,
) -> Result<()> {
    fs::create_dir_all(kept)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let copy: PathBuf = kept.join(format!("{target}-{seed}-{number}-{fault}-{name}"));
    // A crash may have come before the input was written.
    let _ = fs::copy(path, &copy);
    let mut faults = OpenOptions::new().append(true).create(true).open(kept.join("faults.txt"))?;
    writeln!(faults, "{fault}: target={target} seed={seed} first={number} n=1: {said}")?;
    Ok(())
}
