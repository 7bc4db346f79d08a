//! What a process holds: what Rust code allocates, which the allocator counts, and what a C
//! library allocates, which is seen from outside, as memory that the process uses
//! ([`most_resident_above`]): address space that is asked for and never written to takes none.

use std::fs;

pub use overtone_lab::memory::{Counting, most_above, restart};

/// Makes the system forget how much memory this process held before, and gives what it holds
/// now, where Linux does both.
pub fn restart_resident() -> Option<usize> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// The most memory that this process held since [`restart_resident`], above the `held` it gave.
pub fn most_resident_above(held: usize) -> Option<usize> {
    Some(status("VmHWM:")?.saturating_sub(held))
}

fn status(field: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
