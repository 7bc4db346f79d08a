//! [`Team`]: exchanges between the processes of a run during training.
//!
//! All processes run the same exchanges in the same order: one at the beginning; [`Team::meet`] and
//! then [`Team::sum`] in every step; [`Team::compare`] after some steps; [`Team::meet`] again after
//! the measurement of a checkpoint; [`Team::close`] at the end. A process that fails reports it at
//! the next meeting, so that the others do not wait for it.

use std::cell::Cell;

use burn::tensor::{DType, Tensor, TensorData};
use overtone_data::Share;

use super::tree::TreeSum;
use crate::{error::TrainError, processes::Processes};

/// The processes of a run.
pub struct Team<'a> {
    processes: &'a dyn Processes,
    /// Whether all processes know that training ends, so no process waits for another exchange.
    is_over: Cell<bool>,
}

/// The status of a process at a meeting.
#[derive(Clone, Copy)]
enum Status {
    Continues = 0,
    IsToStop = 1,
    Failed = 2,
}

/// Result of a meeting.
pub struct Agreement {
    /// Action labels of the whole batch.
    pub n_labels: u64,
    /// Whether any process must stop.
    pub stops: bool,
}

/// Bytes of a number.
const F32: usize = 4;

impl<'a> Team<'a> {
    pub fn new(processes: &'a dyn Processes) -> Self {
        Self { processes, is_over: Cell::new(false) }
    }

    /// Whether this process writes.
    pub fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    /// The range of a batch's `parts` that this process computes: consecutive, and equally many on
    /// every process.
    ///
    /// # Errors
    /// When `parts` is not a multiple of the number of processes.
    pub fn share(&self, parts: usize) -> Result<Share, TrainError> {
        let (rank, n) = (self.processes.rank(), self.processes.count());
        if !parts.is_multiple_of(n) {
            return Err(TrainError::Config {
                key: "micro_batches",
                got: format!("{parts} with {n} processes"),
                expected: "must be a multiple of the number of processes",
            });
        }
        let here = parts / n;
        Ok(Share { own: rank * here..(rank + 1) * here, of: parts })
    }

    /// Reports the number of labels in the parts of this process, and whether it must stop.
    ///
    /// # Errors
    /// When a process failed or cannot be reached.
    pub fn meet(&self, n_labels: u64, is_to_stop: bool) -> Result<Agreement, TrainError> {
        self.exchange(if is_to_stop { Status::IsToStop } else { Status::Continues }, n_labels)
    }

    fn exchange(&self, status: Status, n_labels: u64) -> Result<Agreement, TrainError> {
        let mut sent = vec![status as u8];
        sent.extend(n_labels.to_le_bytes());
        let all = self.received(self.processes.all_gather(&sent))?;
        let mut agreed = Agreement { n_labels: 0, stops: false };
        for (rank, message) in all.chunks_exact(sent.len()).enumerate() {
            if message[0] == Status::Failed as u8 {
                return self.end(TrainError::Elsewhere { rank, n: self.processes.count() });
            }
            agreed.stops |= message[0] == Status::IsToStop as u8;
            agreed.n_labels +=
                message[1..].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
        }
        Ok(agreed)
    }

    /// The sum of `numbers` over all processes, and for each parameter whether any process has a
    /// gradient.
    ///
    /// # Errors
    /// When a process cannot be reached.
    pub fn sum(
        &self,
        numbers: Tensor<1>,
        present: Vec<bool>,
    ) -> Result<(Tensor<1>, Vec<bool>), TrainError> {
        let n = self.processes.count();
        if n == 1 {
            return Ok((numbers, present));
        }
        let (device, [length]) = (numbers.device(), numbers.dims());
        let data = numbers.into_data().convert_dtype(DType::F32);
        let mut bytes = data.as_bytes().to_vec();
        bytes.extend(present.iter().flat_map(|&is| f32::from(u8::from(is)).to_ne_bytes()));
        bytes.resize(bytes.len().next_multiple_of(n * F32), 0);
        // Each process adds up one slice, and all receive all slices.
        let slices = self.received(self.processes.all_to_all(&bytes))?;
        let mut sum = TreeSum::new(|mut earlier: Vec<f32>, later: Vec<f32>| {
            earlier.iter_mut().zip(later).for_each(|(earlier, later)| *earlier += later);
            earlier
        });
        slices.chunks_exact(slices.len() / n).for_each(|slice| sum.push(numbers_of(slice)));
        let slice: Vec<f32> = sum.total().unwrap_or_default();
        let slice = TensorData::new(slice, [bytes.len() / n / F32]);
        let all = self.received(self.processes.all_gather(slice.as_bytes()))?;
        let mut sum = numbers_of(&all);
        let present = sum[length..][..present.len()].iter().map(|&n| n > 0.0).collect();
        sum.truncate(length);
        Ok((Tensor::from_data(TensorData::new(sum, [length]), &device), present))
    }

    /// Asserts that all processes have the same hash.
    ///
    /// # Errors
    /// When the hashes differ, or a process cannot be reached.
    pub fn compare(&self, step: u64, hash: impl FnOnce() -> [u8; 32]) -> Result<(), TrainError> {
        if self.processes.count() == 1 {
            return Ok(());
        }
        let hashes = self.received(self.processes.all_gather(&hash()))?;
        match hashes.chunks_exact(32).position(|hash| *hash != hashes[..32]) {
            Some(rank) => self.end(TrainError::Differ { step, rank }),
            None => Ok(()),
        }
    }

    /// Returns an error that every process has now.
    ///
    /// # Errors
    /// `error`.
    pub fn end<T>(&self, error: TrainError) -> Result<T, TrainError> {
        self.is_over.set(true);
        Err(error)
    }

    /// The result of training on this process, if it succeeded on all.
    ///
    /// # Errors
    /// When it failed on any process.
    pub fn close<T>(&self, ended: Result<T, TrainError>) -> Result<T, TrainError> {
        if self.is_over.get() {
            return ended;
        }
        let status = if ended.is_err() { Status::Failed } else { Status::Continues };
        let agreed = self.exchange(status, 0);
        ended.and_then(|ended| agreed.map(|_| ended))
    }

    fn received(
        &self,
        received: Result<Vec<u8>, crate::processes::LostProcess>,
    ) -> Result<Vec<u8>, TrainError> {
        received.or_else(|lost| self.end(lost.into()))
    }
}

fn numbers_of(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<F32>();
    numbers.iter().map(|&number| f32::from_ne_bytes(number)).collect()
}
