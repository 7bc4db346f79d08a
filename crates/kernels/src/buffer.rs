//! Large working memory that is kept between calls.
//!
//! A training step needs the same buffers again and again. Fresh memory from the system
//! costs a page fault every 4 KiB, a tenth of the time of a step.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Idle buffers that are kept; beyond, the one idle for longest goes.
const IDLE: usize = 64;

static POOL: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<Vec<f32>>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of a given length, whose content is at first arbitrary. It is returned to the
/// pool when dropped.
pub(crate) struct Buffer {
    values: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// Of the idle buffers the smallest that holds `length` elements, unless it is more
    /// than twice as long; else a new one.
    pub fn new(length: usize) -> Self {
        if length == 0 {
            return Self { values: Vec::new(), length };
        }
        let mut idle = pool();
        let best = (0..idle.len())
            .filter(|i| (length..=2 * length).contains(&idle[*i].len()))
            .min_by_key(|i| idle[*i].len());
        let found = best.map(|i| idle.remove(i));
        drop(idle);
        Self { values: found.unwrap_or_else(|| vec![0.0; length]), length }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.length == 0 {
            return;
        }
        let mut idle = pool();
        if idle.len() == IDLE {
            idle.remove(0);
        }
        idle.push(std::mem::take(&mut self.values));
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        // A length no other test uses.
        let length = 123_457;
        let mut first = Buffer::new(length);
        first[length - 1] = 5.0;
        let address = first.as_ptr();
        drop(first);
        let again = Buffer::new(length - 10);
        assert_eq!((again.as_ptr(), again.len()), (address, length - 10));
        let other = Buffer::new(length);
        assert_ne!(other.as_ptr(), address);
        assert!(Buffer::new(0).is_empty());
    }
}
