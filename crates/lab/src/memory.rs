//! [`Counting`]: the system's allocator, which counts what Rust code holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted. A program has it as its `#[global_allocator]`; no request
/// above `MOST` bytes is granted.
pub struct Counting<const MOST: usize = { usize::MAX }>;

fn took(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

fn gave(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every request goes to the system's allocator as it is, or gets the null that says
// there is no memory.
unsafe impl<const MOST: usize> GlobalAlloc for Counting<MOST> {
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

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: what this allocator gave, with its layout.
        unsafe { System.dealloc(memory, layout) };
        gave(layout.size());
    }
}

/// Forgets what was held before, and gives what is held now.
pub fn restart() -> usize {
    let held = HELD.load(Ordering::Relaxed);
    PEAK.store(held, Ordering::Relaxed);
    held
}

/// The most bytes that were held since [`restart`], above the `held` it gave; 0 in a program that
/// has another allocator.
pub fn most_above(held: usize) -> usize {
    PEAK.load(Ordering::Relaxed).saturating_sub(held)
}
