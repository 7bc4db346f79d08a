//! A reader with every fault, for the test that the search finds them.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{MIB, Seed, Target};

/// No reader of the project, and none of the targets.
pub fn faulty() -> Target {
    Target {
        name: "faulty",
        about: "nothing: a reader with every fault",
        gzip: false,
        native: false,
        share: 0,
        limit: |_| MIB,
        prepare: |_| {
            Ok(b"panic,abort,stack,memory,claim,hang".split(|b| *b == b',').map(seed).collect())
        },
        read,
    }
}

fn seed(word: &[u8]) -> Seed {
    Seed::new("word", word)
}

fn read(path: &Path) -> Result<()> {
    let bytes = fs::read(path)?;
    let says = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    assert!(!says(b"panic"), "as asked");
    if says(b"abort") {
        std::process::abort();
    }
    if says(b"stack") {
        ensure!(deep(bytes.len() as u64) != 1);
    }
    if says(b"memory") {
        black_box(vec![1u8; 2 << 20]);
    }
    if says(b"claim") {
        black_box(Vec::<u8>::with_capacity(2 << 30));
    }
    if says(b"hang") {
        thread::sleep(Duration::from_secs(3600));
    }
    ensure!(bytes.len() % 2 == 0, "an odd number of bytes");
    Ok(())
}

/// A recursion without end, which no optimizer makes a loop.
#[expect(unconditional_recursion, reason = "its point")]
fn deep(n: u64) -> u64 {
    let block = black_box([n; 64]);
    deep(block[7] + 1) + block[9]
}
