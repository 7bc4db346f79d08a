//! [`Counting`]: the system's allocator, which counts what is held.
//!
//! It sees what Rust code allocates. What a C library allocates is seen from outside, as memory
//! that the process uses ([`most_resident_above`]): address space that is asked for and never
//! written to takes none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No request above this is granted: the process ends instead, and the machine goes on.
const MOST: usize = 1 << 30;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
pub struct Counting;

fn took(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

fn gave(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every request goes to the system's allocator as it is, or gets the null that says
// there is no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout, unchanged.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() {
            took(layout.size());
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout, unchanged.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            took(layout.size());
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: what this allocator gave, with its layout.
        unsafe { System.dealloc(memory, layout) };
        gave(layout.size());
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > MOST {
            return std::ptr::null_mut();
        }
        // SAFETY: what this allocator gave, with its layout.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            // As if both were held for a moment, which they may be.
            took(size);
            gave(layout.size());
        }
        moved
    }
}

/// Forgets what was held before, and gives what is held now.
pub fn restart() -> usize {
    let held = HELD.load(Ordering::Relaxed);
    PEAK.store(held, Ordering::Relaxed);
    held
}

/// The most bytes that were held since [`restart`], above the `held` it gave.
pub fn most_above(held: usize) -> usize {
    PEAK.load(Ordering::Relaxed).saturating_sub(held)
}

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
