//! [`Processes`]: several processes that train one agent together.
//!
//! Each process computes the gradients of some of a batch's parts. Then all of them add up the same
//! numbers in the same order. This crate does not define the transport, and does not depend on MPI.

use crate::error::TrainError;

/// The processes of a run, seen from one of them. An implementation moves bytes and does not
/// compute, so it cannot change the order of a sum.
pub trait Processes {
    /// The rank of this process, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn count(&self) -> usize;

    /// The bytes of every process, concatenated by rank. All processes must pass equally many
    /// bytes.
    ///
    /// # Errors
    /// When a process cannot be reached.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<u8>, LostProcess>;

    /// The bytes of every process for this one, by rank. `parts` is cut into as many equal parts as
    /// there are processes, and part i goes to process i. All processes must pass equally many
    /// bytes.
    ///
    /// # Errors
    /// When a process cannot be reached.
    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, LostProcess>;
}

/// A process that cannot be reached any more, with the known details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostProcess(pub String);

impl From<LostProcess> for TrainError {
    fn from(LostProcess(what): LostProcess) -> Self {
        Self::Lost { what, last: None }
    }
}

/// A single process.
#[derive(Clone, Copy, Debug)]
pub struct SingleProcess;

impl Processes for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<u8>, LostProcess> {
        Ok(bytes.to_vec())
    }

    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, LostProcess> {
        Ok(parts.to_vec())
    }
}

/// The bytes of process 0 on all processes; the argument of the other processes is ignored.
///
/// # Errors
/// When a process cannot be reached.
pub fn broadcast(processes: &dyn Processes, bytes: &[u8]) -> Result<Vec<u8>, LostProcess> {
    let leads = processes.rank() == 0;
    let n = if leads { bytes.len() as u64 } else { 0 };
    let lengths = processes.all_gather(&n.to_le_bytes())?;
    let n: u64 = lengths.iter().take(8).rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let mut sent = if leads { bytes.to_vec() } else { Vec::new() };
    sent.resize(n as usize, 0);
    let mut all = processes.all_gather(&sent)?;
    all.truncate(n as usize);
    Ok(all)
}

/// The result of this process, if all processes succeeded.
///
/// # Errors
/// The error of this process; [`TrainError::Elsewhere`] when only another process failed.
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
