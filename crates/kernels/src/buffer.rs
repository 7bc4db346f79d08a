//! Pool of large working memory, kept between calls.
//!
//! A training step needs the same buffers repeatedly. Fresh memory from the system costs a page
//! fault every 4 KiB, a tenth of the time of a step.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cubecl_environment::bytes::{
    AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes,
};

/// Maximum number of idle buffers; beyond it, the one that was idle for longest is dropped.
const IDLE: usize = 256;
/// Maximum number of elements in all idle buffers together (4 GiB): more than a step of the largest
/// preset leaves, and less than a machine's memory.
const IDLE_ELEMENTS: usize = 1 << 30;
/// Shorter ones are left to the allocator, which is fast for them.
const SHORTEST: usize = 4096;

static POOL: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<Vec<f32>>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of a given length with arbitrary initial content. It is returned to the pool when
/// dropped.
pub(crate) struct Buffer {
    values: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// The smallest idle buffer with at least `length` elements, unless it is more than twice as
    /// long; else a new one.
    pub fn new(length: usize) -> Self {
        if length < SHORTEST {
            return Self { values: vec![0.0; length], length };
        }
        let mut idle = pool();
        let best = (0..idle.len())
            .filter(|i| (length..=2 * length).contains(&idle[*i].len()))
            .min_by_key(|i| idle[*i].len());
        let reused = best.map(|i| idle.remove(i));
        drop(idle);
        Self { values: reused.unwrap_or_else(|| vec![0.0; length]), length }
    }
}

impl Buffer {
    /// Memory filled with zeros.
    pub fn zeros(length: usize) -> Self {
        let mut buffer = Self::new(length);
        buffer.fill(0.0);
        buffer
    }

    /// The memory as bytes of a tensor, which returns it to the pool.
    pub fn into_bytes(self) -> Bytes {
        let length = size_of::<f32>() * self.length;
        // SAFETY: all of the buffer is initialised, and `memory` is its first `length` bytes.
        unsafe { Bytes::from_controller(Box::new(self), length) }
    }
}

impl From<&[f32]> for Buffer {
    fn from(values: &[f32]) -> Self {
        let mut buffer = Self::new(values.len());
        buffer.copy_from_slice(values);
        buffer
    }
}

impl AllocationController for Buffer {
    fn alloc_align(&self) -> usize {
        align_of::<f32>()
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(
        &mut self,
        _policy: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let length = size_of::<f32>() * self.length;
        // SAFETY: these are the bytes of the buffer's own elements, borrowed as it is. Any
        // initialised bytes are valid `f32`, and the caller writes no others.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), length) })
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let length = size_of::<f32>() * self.length;
        // SAFETY: these are the bytes of the buffer's own elements, borrowed as it is.
        Ok(unsafe { std::slice::from_raw_parts(self.values.as_ptr().cast(), length) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.length < SHORTEST {
            return;
        }
        let mut idle = pool();
        idle.push(std::mem::take(&mut self.values));
        drop_oldest(&mut idle, IDLE, IDLE_ELEMENTS);
    }
}

/// Drops the buffers that were idle for longest, until at most `count` buffers with at most
/// `elements` in total are left.
fn drop_oldest(idle: &mut Vec<Vec<f32>>, count: usize, elements: usize) {
    let mut held: usize = idle.iter().map(Vec::len).sum();
    let mut n = 0;
    while n < idle.len() && (idle.len() - n > count || held > elements) {
        held -= idle[n].len();
        n += 1;
    }
    idle.drain(..n);
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

    #[test]
    fn idle_memory_has_a_bound() {
        let left = |count, elements| {
            let mut idle = [3, 5, 7].map(|length| vec![0.0; length]).to_vec();
            drop_oldest(&mut idle, count, elements);
            idle.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(left(3, 15), [3, 5, 7]);
        assert_eq!(left(2, 15), [5, 7]);
        assert_eq!(left(3, 14), [5, 7]);
        assert_eq!(left(3, 11), [7]);
        assert!(left(3, 6).is_empty());
    }

    #[test]
    fn a_tensor_s_memory_comes_back() {
        // A length no other test uses.
        let length = 234_567;
        let buffer = Buffer::from(&vec![1.5f32; length][..]);
        let address = buffer.as_ptr();
        let mut bytes = buffer.into_bytes();
        assert_eq!((bytes.len(), bytes.as_ptr()), (4 * length, address.cast()));
        assert_eq!(bytes[..4], 1.5f32.to_ne_bytes());
        bytes[..4].copy_from_slice(&2.5f32.to_ne_bytes());
        let copy = bytes.clone();
        drop(bytes);
        let again = Buffer::new(length);
        assert_eq!((again.as_ptr(), again[0]), (address, 2.5));
        assert_eq!(copy[..4], 2.5f32.to_ne_bytes());
    }
}
