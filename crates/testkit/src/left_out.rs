//! A word about what a test leaves out, where this machine lacks what it needs.

use std::io::{Write, stderr};

/// Says `why` where it is seen also of a test that passes.
///
/// # Panics
/// If `OVERTONE_TEST_ALL` is set: then no test may be left out.
pub fn left_out(why: &str) {
    assert!(std::env::var_os("OVERTONE_TEST_ALL").is_none(), "left out: {why}");
    // Not `eprintln!`, which is kept back of a test that passes.
    let _ = writeln!(stderr(), "left out: {why}");
}
