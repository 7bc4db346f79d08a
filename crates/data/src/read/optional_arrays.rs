//! [`OptionalArrays`]: arrays that a recording may have, with a default for steps without them.
//!
//! `masks` mark rows where the task is solved although the trajectory goes on (OGBench's single
//! tasks). A value method does not look behind such a row, as if the task ended there. Returns and
//! context windows go on. `weights` multiply the loss of their step.

use std::ops::Range;

use overtone_core::Episode;
use sha2::{Digest, Sha256};

use crate::error::{DataError, Fault};
use crate::hex::{hash_reals, hex};
use crate::read::columns::keep_rows;
use crate::read::source::{Source, column, same, wrong_value};

/// The arrays' names.
const MASKS: &str = "masks";
const WEIGHTS: &str = "weights";

/// Optional arrays of a recording; `None`: every step has the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptionalArrays {
    /// `[steps]`, where the task is solved although the trajectory goes on: value methods stop
    /// there. By default nowhere.
    pub stops: Option<Vec<bool>>,
    /// `[steps]`, the factor of each step's loss, finite and at least 0. By default 1.
    pub weights: Option<Vec<f32>>,
}

impl OptionalArrays {
    /// The arrays of `rows` steps. `group` is empty, or ends in a `/`: the group may hold anything
    /// (Minari's `infos`), so an array of another shape is not read.
    ///
    /// # Errors
    /// If an array is not one number for each row, or holds an impossible number.
    pub(crate) fn read(source: &dyn Source, group: &str, rows: usize) -> Result<Self, DataError> {
        let numbers = |own_name: &str, wrong: fn(&f32) -> Option<String>| {
            let name = &format!("{group}{own_name}");
            let is_column = || source.shape(name).is_ok_and(|s| s == [rows] || s == [rows, 1]);
            if !source.has(name) || !group.is_empty() && !is_column() {
                return Ok(None);
            }
            let numbers = column(source, name)?;
            same(source, name, numbers.len(), rows, "actions")?;
            match numbers.iter().enumerate().find_map(|(row, number)| Some((row, wrong(number)?))) {
                Some((row, what)) => Err(wrong_value(source, name, row, what)),
                None => Ok(numbers.iter().any(|&number| number != 1.0).then_some(numbers)),
            }
        };
        let masks = numbers(MASKS, |mask| {
            let is_wrong = ![0.0, 1.0].contains(mask);
            is_wrong.then(|| format!("{mask}, expected 0 (the task is solved) or 1"))
        })?;
        let stops = masks.map(|masks| masks.iter().map(|&mask| mask == 0.0).collect());
        Ok(Self { stops, weights: numbers(WEIGHTS, wrong_weight)? })
    }

    /// The arrays as columns of numbers, by name.
    pub(crate) fn columns(&self) -> Vec<(&'static str, Vec<f32>)> {
        let masks = |stops: &Vec<bool>| stops.iter().map(|&stop| f32::from(!stop)).collect();
        let masks = self.stops.as_ref().map(|stops| (MASKS, masks(stops)));
        let weights = self.weights.clone().map(|weights| (WEIGHTS, weights));
        masks.into_iter().chain(weights).collect()
    }

    /// The rows of some steps.
    pub(crate) fn rows_at(&self, rows: Range<usize>) -> Self {
        Self {
            stops: self.stops.as_ref().map(|stops| stops[rows.clone()].to_vec()),
            weights: self.weights.as_ref().map(|weights| weights[rows].to_vec()),
        }
    }

    /// Keeps the rows of these episodes.
    pub(crate) fn keep(&mut self, spans: &[Episode]) {
        if let Some(stops) = &mut self.stops {
            keep_rows(stops, 1, spans);
        }
        if let Some(weights) = &mut self.weights {
            keep_rows(weights, 1, spans);
        }
    }

    /// Appends the arrays of `n_more` steps to those of `n` steps.
    pub(crate) fn extend(&mut self, n: usize, more: Self, n_more: usize) {
        extend(&mut self.stops, n, more.stops, n_more, false);
        extend(&mut self.weights, n, more.weights, n_more, 1.0);
    }

    /// What is wrong with the arrays of `steps` steps, if anything.
    pub(crate) fn fault(&self, steps: usize) -> Option<Fault> {
        let lengths = [
            (MASKS, self.stops.as_ref().map(Vec::len)),
            (WEIGHTS, self.weights.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            if let Some(length) = length.filter(|&length| length != steps) {
                let reason = format!("it has {length} {name}, expected {steps}");
                return Some(Fault::Inconsistent(reason));
            }
        }
        let weights = self.weights.as_ref()?;
        let wrong = |(row, weight)| Some((row, wrong_weight(weight)?));
        let (row, what) = weights.iter().enumerate().find_map(wrong)?;
        Some(Fault::DatasetValue { dataset: WEIGHTS.into(), row, what })
    }

    /// The hash of rows with these arrays, from the hash of the same rows without.
    pub(crate) fn hashed(&self, mut hash: String) -> String {
        if let Some(stops) = &self.stops {
            let bytes: Vec<u8> = stops.iter().map(|&stop| stop.into()).collect();
            hash = hex(&Sha256::new().chain_update(hash).chain_update(bytes).finalize());
        }
        if let Some(weights) = &self.weights {
            let mut with_weights = Sha256::new().chain_update(hash).chain_update(WEIGHTS);
            hash_reals(&mut with_weights, weights);
            hash = hex(&with_weights.finalize());
        }
        hash
    }
}

fn wrong_weight(weight: &f32) -> Option<String> {
    let is_right = weight.is_finite() && *weight >= 0.0;
    (!is_right).then(|| format!("{weight}, expected a finite number of at least 0"))
}

fn extend<T: Clone>(
    all: &mut Option<Vec<T>>,
    n: usize,
    more: Option<Vec<T>>,
    n_more: usize,
    default: T,
) {
    if all.is_some() || more.is_some() {
        let more = more.unwrap_or_else(|| vec![default.clone(); n_more]);
        all.get_or_insert_with(|| vec![default; n]).extend(more);
    }
}
