//! The project's readers against damaged and hostile files.
//!
//! A [`Target`] is a reader with a few sound files. `mutate` damages one of them, and the reader
//! must accept or refuse it: without a panic, a crash, more memory than the target's limit, or ten
//! seconds of silence. Every input follows from the seed and its number alone.
//!
//! `OVERTONE_HOSTILE` has the options of a long search, which `just hostile` sets:
//!
//! ```text
//! [target=npy] [n=100000] [seed=1] [first=0] [kept=target/hostile]
//! ```
//!
//! Without a target, `n` inputs are shared out among all. The folder `kept` has the inputs that
//! found a fault, and `faults.txt` there says how to repeat each.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod atari;
mod inputs;
mod lab;
mod nested;
mod robots;
mod runs;
mod search;
mod targets;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use overtone_lab::memory::Counting;

use crate::search::Search;
use crate::targets::{Seed, Target, targets};

/// The process ends on a request above 1 GiB.
#[global_allocator]
static ALLOCATOR: Counting<{ 1 << 30 }> = Counting;

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Options of a search, `key=value` each.
fn options(words: &str) -> BTreeMap<String, String> {
    let known = ["target", "n", "seed", "first", "kept"];
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}: key=value"));
        assert!(known.contains(&key), "no option `{key}`; there are {}", known.join(", "));
        (key.to_owned(), value.to_owned())
    };
    words.split_whitespace().map(pair).collect()
}

#[test]
fn no_reader_comes_to_harm() {
    let _alone = alone();
    let words = std::env::var("OVERTONE_HOSTILE").ok();
    // Another seed than the long search's.
    let options = options(words.as_deref().unwrap_or("n=40000 seed=2"));
    let number = |key: &str, default: u64| {
        options.get(key).map_or(default, |value| value.replace('_', "").parse().unwrap())
    };
    let scratch = tempfile::tempdir().unwrap();
    let kept = match &words {
        Some(_) => options.get("kept").map_or("target/hostile", String::as_str).into(),
        None => scratch.path().join("kept"),
    };
    let search = Search { seed: number("seed", 1), first: number("first", 0), kept };
    let (all, n) = (targets(), number("n", 100_000));
    let chosen = options.get("target");
    assert!(chosen.is_none_or(|name| all.iter().any(|target| target.name == name)), "{chosen:?}");
    println!(
        "| target | inputs | accepted | refused | panics | too much memory | most memory, kB | \
         slowest, ms | inputs/s |\n|{}",
        " --- |".repeat(9)
    );
    let mut wrong = Vec::new();
    for target in &all {
        let n = match chosen {
            Some(name) if name == target.name => n,
            Some(_) => continue,
            None => (n * target.share).div_ceil(1000),
        };
        let start = Instant::now();
        let outcome = search.run(target, n).unwrap();
        println!(
            "| {} | {n} | {} | {} | {} | {} | {} | {:.1} | {:.0} |",
            target.name,
            outcome.accepted,
            outcome.refused,
            outcome.panics,
            outcome.memory,
            outcome.largest.div_ceil(1024),
            outcome.slowest.as_secs_f64() * 1e3,
            n as f64 / start.elapsed().as_secs_f64(),
        );
        // Rows of metrics that are damaged are dropped, and the others kept.
        let tells = outcome.accepted > 0 && (outcome.refused > 0 || target.name == "metrics");
        if outcome.panics + outcome.memory > 0 || (words.is_none() && !tells) {
            wrong.push(target.name);
        }
    }
    let faults = std::fs::read_to_string(search.kept.join("faults.txt")).unwrap_or_default();
    assert!(wrong.is_empty(), "{wrong:?}, see {}:\n{faults}", search.kept.display());
}

/// A reader with faults: each is found, counted and kept, and the search continues.
#[test]
fn faults_are_found() {
    let _alone = alone();
    let faulty = Target {
        name: "faulty",
        // Nothing: a reader with faults.
        gzip: false,
        share: 0,
        limit: |_| 1 << 20,
        prepare: |_| Ok(["panic", "memory"].map(|word| Seed::new("word", word)).into()),
        read: |path| {
            let bytes = std::fs::read(path)?;
            let says = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
            assert!(!says(b"panic"), "as it should");
            if says(b"memory") {
                black_box(vec![1u8; 2 << 20]);
            }
            Ok(())
        },
    };
    let kept = tempfile::tempdir().unwrap();
    let search = |first| Search { seed: 3, first, kept: kept.path().into() };
    let outcome = search(0).run(&faulty, 60).unwrap();
    assert!(outcome.panics > 0 && outcome.memory > 0 && outcome.accepted > 0);
    let faults = std::fs::read_to_string(kept.path().join("faults.txt")).unwrap();
    let said = faults.lines().find(|line| line.contains("as it should")).unwrap();
    // The line repeats the fault, and only it.
    let first = said.split("first=").nth(1).unwrap().split(' ').next().unwrap();
    let again = search(first.parse().unwrap()).run(&faulty, 1).unwrap();
    assert_eq!((again.panics, again.accepted), (1, 0), "{said}");
}

#[test]
fn sound_files_are_accepted() {
    let _alone = alone();
    for target in targets() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = inputs::Inputs::new(&target, 1, folder.path()).unwrap();
        for at in 0..inputs.sound().count() {
            let path = inputs.place_sound(at).unwrap();
            if let Err(error) = (target.read)(&path) {
                panic!("{}: {}: {error:#}", target.name, path.display());
            }
        }
    }
}

#[test]
fn shares_are_of_a_thousand_and_names_differ() {
    let all = targets();
    assert_eq!(all.iter().map(|target| target.share).sum::<u64>(), 1000);
    let mut names: Vec<_> = all.iter().map(|target| target.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
}
