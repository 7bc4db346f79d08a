//! [`Processes`]: several processes that train one agent.
//!
//! Each computes the gradients of its share of a batch's parts; then all add up the same numbers
//! in the same order. What carries the bytes is not decided here: this crate knows no MPI.

use crate::error::TrainError;

/// The processes of a run, as one of them sees them. Bytes are moved and nothing is computed, so
/// that the order of no sum is left to who implements it.
pub trait Processes {
    /// Which one this is, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// What each process gives, one after the other by rank. All give equally many bytes.
    ///
    /// # Errors
    /// When a process cannot be reached.
    fn all_gather(&self, own: &[u8]) -> Result<Vec<u8>, Lost>;

    /// What each process has for this one, by rank: of `parts`, cut into as many equal parts as
    /// there are processes, the i-th goes to process i. All give equally many bytes.
    ///
    /// # Errors
    /// When a process cannot be reached.
    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, Lost>;
}

/// A process that cannot be reached any more: which, and what is known of it, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost(pub String);

impl From<Lost> for TrainError {
    fn from(Lost(what): Lost) -> Self {
        Self::Lost { what, last: None }
    }
}

/// One process by itself.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Processes for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn all_gather(&self, own: &[u8]) -> Result<Vec<u8>, Lost> {
        Ok(own.to_vec())
    }

    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, Lost> {
        Ok(parts.to_vec())
    }
}

/// What process 0 says, on all of them; what others give is not read.
///
/// # Errors
/// When a process cannot be reached.
pub fn told_by_first(processes: &dyn Processes, bytes: &[u8]) -> Result<Vec<u8>, Lost> {
    let leads = processes.rank() == 0;
    let n = if leads { bytes.len() as u64 } else { 0 };
    let lengths = processes.all_gather(&n.to_le_bytes())?;
    let n: u64 = lengths.iter().take(8).rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let mut own = if leads { bytes.to_vec() } else { Vec::new() };
    own.resize(n as usize, 0);
    let mut all = processes.all_gather(&own)?;
    all.truncate(n as usize);
    Ok(all)
}

/// What was computed here, when it could be computed on all processes.
///
/// # Errors
/// The error of this process; [`TrainError::Elsewhere`] when only another has one.
pub fn on_all<T, E: From<TrainError>>(
    processes: &dyn Processes,
    here: Result<T, E>,
) -> Result<T, E> {
    let failed = processes.all_gather(&[u8::from(here.is_err())]).map_err(TrainError::from)?;
    let here = here?;
    match failed.iter().position(|&failed| failed != 0) {
        Some(rank) => Err(TrainError::Elsewhere { rank, n: processes.count() }.into()),
        None => Ok(here),
    }
}
