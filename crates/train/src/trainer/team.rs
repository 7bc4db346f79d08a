//! [`Team`]: what the processes of a run say to each other while it trains.
//!
//! All do the same exchanges in the same order: one at the beginning, in every step [`Team::meet`]
//! and then [`Team::sum`], after some steps [`Team::compare`], after the measurement of a checkpoint
//! [`Team::meet`] again, and [`Team::close`] at the end. A
//! process that fails says so where the next meeting is, so that nobody waits for it.

use std::cell::Cell;

use burn::tensor::{DType, Tensor, TensorData};
use overtone_data::Share;

use super::tree::TreeSum;
use crate::{error::TrainError, processes::Processes};

/// The processes of a run.
pub struct Team<'a> {
    processes: &'a dyn Processes,
    /// Whether all know that it ends: nobody waits for another word.
    is_over: Cell<bool>,
}

/// How a process stands when all meet.
#[derive(Clone, Copy)]
enum Stand {
    GoesOn = 0,
    IsToStop = 1,
    Failed = 2,
}

/// What a meeting gave.
pub struct Met {
    /// Action labels of the whole batch.
    pub n_labels: u64,
    /// Whether any process is to stop.
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

    /// Which of a batch's `parts` are computed here: as many consecutive ones as elsewhere.
    ///
    /// # Errors
    /// When they cannot be shared so.
    pub fn share(&self, parts: usize) -> Result<Share, TrainError> {
        let (rank, n) = (self.processes.rank(), self.processes.count());
        if !parts.is_multiple_of(n) {
            return Err(TrainError::Config {
                key: "micro_batches",
                got: format!("{parts} with {n} processes"),
                expected: "must be a multiple of the number of processes",
            });
        }
        let own = parts / n;
        Ok(Share { own: rank * own..(rank + 1) * own, of: parts })
    }

    /// Says how many labels the parts computed here have, and whether this process is to stop.
    ///
    /// # Errors
    /// When a process failed or cannot be reached.
    pub fn meet(&self, n_labels: u64, is_to_stop: bool) -> Result<Met, TrainError> {
        self.say(if is_to_stop { Stand::IsToStop } else { Stand::GoesOn }, n_labels)
    }

    fn say(&self, stand: Stand, n_labels: u64) -> Result<Met, TrainError> {
        let mut own = vec![stand as u8];
        own.extend(n_labels.to_le_bytes());
        let all = self.heard(self.processes.all_gather(&own))?;
        let mut met = Met { n_labels: 0, stops: false };
        for (rank, said) in all.chunks_exact(own.len()).enumerate() {
            if said[0] == Stand::Failed as u8 {
                return self.end(TrainError::Elsewhere { rank, n: self.processes.count() });
            }
            met.stops |= said[0] == Stand::IsToStop as u8;
            met.n_labels += said[1..].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
        }
        Ok(met)
    }

    /// The sum over all processes of numbers that each holds, and which of the parameters have a
    /// gradient on any of them.
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
        // Each adds up a slice, and all get all slices.
        let slices = self.heard(self.processes.all_to_all(&bytes))?;
        let mut sum = TreeSum::new(|mut earlier: Vec<f32>, later: Vec<f32>| {
            earlier.iter_mut().zip(later).for_each(|(earlier, later)| *earlier += later);
            earlier
        });
        slices.chunks_exact(slices.len() / n).for_each(|slice| sum.push(numbers_of(slice)));
        let slice: Vec<f32> = sum.total().unwrap_or_default();
        let slice = TensorData::new(slice, [bytes.len() / n / F32]);
        let all = self.heard(self.processes.all_gather(slice.as_bytes()))?;
        let mut sum = numbers_of(&all);
        let present = sum[length..][..present.len()].iter().map(|&n| n > 0.0).collect();
        sum.truncate(length);
        Ok((Tensor::from_data(TensorData::new(sum, [length]), &device), present))
    }

    /// Asserts that all hold the same.
    ///
    /// # Errors
    /// When they do not, or a process cannot be reached.
    pub fn compare(&self, step: u64, hash: impl FnOnce() -> [u8; 32]) -> Result<(), TrainError> {
        if self.processes.count() == 1 {
            return Ok(());
        }
        let hashes = self.heard(self.processes.all_gather(&hash()))?;
        match hashes.chunks_exact(32).position(|hash| *hash != hashes[..32]) {
            Some(rank) => self.end(TrainError::Differ { step, rank }),
            None => Ok(()),
        }
    }

    /// An error that every process has now.
    ///
    /// # Errors
    /// That one.
    pub fn end<T>(&self, error: TrainError) -> Result<T, TrainError> {
        self.is_over.set(true);
        Err(error)
    }

    /// How training ended here, when it ended well on all.
    ///
    /// # Errors
    /// When it did not.
    pub fn close<T>(&self, ended: Result<T, TrainError>) -> Result<T, TrainError> {
        if self.is_over.get() {
            return ended;
        }
        let stand = if ended.is_err() { Stand::Failed } else { Stand::GoesOn };
        let met = self.say(stand, 0);
        ended.and_then(|ended| met.map(|_| ended))
    }

    fn heard(&self, heard: Result<Vec<u8>, crate::processes::Lost>) -> Result<Vec<u8>, TrainError> {
        heard.or_else(|lost| self.end(lost.into()))
    }
}

fn numbers_of(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<F32>();
    numbers.iter().map(|&number| f32::from_ne_bytes(number)).collect()
}
