//! `overtone-hostile`: damaged and hostile files for every reader, in any number.
//!
//! ```text
//! overtone-hostile [target=npy] [n=100000] [seed=1] [first=0] [kept=target/hostile] [patience=10]
//! ```
//!
//! An input that takes longer than `patience` seconds is a fault. Without a target, `n` inputs are
//! shared out among all. The exit code is 1 when a fault was
//! found; the inputs that found it are in the folder `kept`, and `faults.txt` there says how
//! each is had again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use overtone_hostile::memory::Counting;
use overtone_hostile::targets::{Target, faulty, targets};
use overtone_hostile::watch::{Outcome, Search};
use overtone_hostile::worker::{Work, work};

/// No request above 1 GiB is granted: the process ends instead, and the machine goes on.
#[global_allocator]
static ALLOCATOR: Counting<{ 1 << 30 }> = Counting;

#[allow(clippy::print_stderr, reason = "nothing is lost where nobody reads its last line")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, rest)) if first == "worker" => worker(rest).map(|()| true),
        _ => search(&words),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Options, `key=value` each.
struct Options(BTreeMap<String, String>);

impl Options {
    fn of(words: &[String], known: &[&str]) -> Result<Self> {
        let mut options = BTreeMap::new();
        for word in words {
            let (key, value) =
                word.split_once('=').with_context(|| format!("`{word}`: key=value"))?;
            if !known.contains(&key) {
                bail!("there is no option `{key}`; there are {}", known.join(", "));
            }
            options.insert(key.to_owned(), value.to_owned());
        }
        Ok(Self(options))
    }

    fn number(&self, key: &str, default: u64) -> Result<u64> {
        let Some(value) = self.0.get(key) else { return Ok(default) };
        value.replace('_', "").parse().with_context(|| format!("{key}={value}"))
    }

    fn text(&self, key: &str) -> Result<&str> {
        self.0.get(key).map(String::as_str).with_context(|| format!("{key}= is missing"))
    }
}

/// What can be asked for by name: every target, and the one with faults.
fn named() -> Vec<Target> {
    targets().into_iter().chain([faulty()]).collect()
}

fn target<'a>(all: &'a [Target], name: &str) -> Result<&'a Target> {
    all.iter().find(|target| target.name == name).with_context(|| {
        let names: Vec<_> = all.iter().map(|target| target.name).collect();
        format!("there is no target `{name}`; there are {}", names.join(", "))
    })
}

fn worker(words: &[String]) -> Result<()> {
    let options = Options::of(words, &["target", "seed", "first", "n", "folder", "kept"])?;
    work(&Work {
        target: target(&named(), options.text("target")?)?,
        seed: options.number("seed", 1)?,
        first: options.number("first", 0)?,
        n: options.number("n", 0)?,
        folder: Path::new(options.text("folder")?),
        kept: Path::new(options.text("kept")?),
    })
}

/// Searches, prints the table, and says whether nothing was found.
fn search(words: &[String]) -> Result<bool> {
    let options = Options::of(words, &["target", "n", "seed", "first", "kept", "patience"])?;
    let (all, named) = (targets(), named());
    let (n, first) = (options.number("n", 100_000)?, options.number("first", 0)?);
    let shares: Vec<(&Target, u64)> = match options.0.get("target") {
        Some(name) => vec![(target(&named, name)?, n)],
        None => all.iter().map(|target| (target, (n * target.share).div_ceil(1000))).collect(),
    };
    let memory = Path::new("/dev/shm");
    let scratch = match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    };
    let kept = options.0.get("kept").map_or_else(|| "target/hostile".into(), PathBuf::from);
    let search = Search {
        program: &std::env::current_exe()?,
        seed: options.number("seed", 1)?,
        scratch: scratch.path(),
        kept: &kept,
        patience: Duration::from_secs(options.number("patience", 10)?),
    };
    println!(
        "| target | inputs | accepted | refused | panics | crashes | hangs | too much memory | \
         most memory, kB | slowest, ms | inputs/s |"
    );
    println!("|{}", " --- |".repeat(11));
    let mut faults = 0;
    for (target, n) in shares {
        let outcome = search.run(target, first, n)?;
        println!("{}", row(target.name, &outcome));
        faults += outcome.faults();
    }
    if faults > 0 {
        println!("\n{faults} faults; the first of each kind are in {}", kept.display());
    }
    Ok(faults == 0)
}

fn row(name: &str, outcome: &Outcome) -> String {
    let record = outcome.record;
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.0} |",
        outcome.inputs(),
        record.accepted,
        record.refused,
        record.panics,
        outcome.crashes,
        outcome.hangs,
        record.memory,
        record.largest.div_ceil(1024),
        record.slowest as f64 / 1000.0,
        outcome.inputs() as f64 / outcome.seconds.max(1e-9),
    )
}
