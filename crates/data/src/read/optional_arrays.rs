//! [`OptionalArrays`]: arrays that a recording may have, with a default for steps without them.
//!
//! `masks` mark rows where the task is solved although the trajectory continues (OGBench's single
//! tasks). A value method does not read past such a row, as if the task ended there. Returns and
//! context windows continue. `weights` multiply the loss of their step. `action_mask` marks the allowed
//! actions ([`ActionMasks`]).

use std::ops::Range;

use overtone_core::Episode;
use sha2::{Digest, Sha256};

use crate::error::{DataError, Fault};
use crate::hex::{hash_reals, hex};
use crate::read::action_masks::ActionMasks;
use crate::read::column::{ActionColumn, keep_rows};
use crate::read::source::{Source, column, has_shape, same, wrong_value};

/// The arrays' names.
pub(crate) const MASKS: &str = "masks";
pub(crate) const WEIGHTS: &str = "weights";

/// Optional arrays of a recording; `None`: every step has the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptionalArrays {
    /// `[steps]`, where the task is solved although the trajectory continues: value methods stop
    /// there. By default nowhere.
    pub stops: Option<Vec<bool>>,
    /// `[steps]`, the factor of each step's loss, finite and at least 0. By default 1.
    pub weights: Option<Vec<f32>>,
    /// The allowed actions. By default all.
    pub action_masks: Option<ActionMasks>,
}

impl OptionalArrays {
    /// The arrays of steps with these actions. `group` is empty, or ends in a `/`: the group may hold
    /// anything (Minari's `infos`), so an array of another shape is not read.
    ///
    /// # Errors
    /// If an array does not fit the steps, or holds an impossible number.
    pub(crate) fn read(
        source: &dyn Source,
        group: &str,
        actions: &ActionColumn,
    ) -> Result<Self, DataError> {
        let rows = actions.rows();
        let numbers = |own_name: &str, wrong: fn(&f32) -> Option<String>| {
            let name = &format!("{group}{own_name}");
            let fits =
                |shape: &[usize]| group.is_empty() || matches!(shape, [n] | [n, 1] if *n == rows);
            if !has_shape(source, name, fits) {
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
        let weights = numbers(WEIGHTS, wrong_weight)?;
        Ok(Self { stops, weights, action_masks: ActionMasks::read(source, group, actions)? })
    }

    /// Raises the number of these actions to the number in the masks: some actions may never have
    /// been chosen.
    pub(crate) fn count_actions(&self, actions: &mut ActionColumn) {
        if let (ActionColumn::Discrete { n_actions, .. }, Some(masks)) =
            (actions, &self.action_masks)
        {
            *n_actions = masks.n_actions.max(*n_actions);
        }
    }

    /// The arrays as numbers, by name.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, Vec<f32>)> {
        let masks = |stops: &Vec<bool>| stops.iter().map(|&stop| f32::from(!stop)).collect();
        let masks = self.stops.as_ref().map(|stops| (MASKS, masks(stops)));
        let weights = self.weights.clone().map(|weights| (WEIGHTS, weights));
        let flags = |masks: &ActionMasks| masks.allowed.iter().map(|&is| f32::from(is)).collect();
        let flags = self.action_masks.as_ref().map(|masks| (ActionMasks::NAME, flags(masks)));
        masks.into_iter().chain(weights).chain(flags).collect()
    }

    /// The rows of some steps.
    pub(crate) fn rows_at(&self, rows: Range<usize>) -> Self {
        Self {
            stops: self.stops.as_ref().map(|stops| stops[rows.clone()].to_vec()),
            weights: self.weights.as_ref().map(|weights| weights[rows.clone()].to_vec()),
            action_masks: self.action_masks.as_ref().map(|masks| ActionMasks {
                n_actions: masks.n_actions,
                allowed: masks.allowed[rows.start * masks.n_actions..rows.end * masks.n_actions]
                    .to_vec(),
            }),
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
        if let Some(masks) = &mut self.action_masks {
            masks.keep(spans);
        }
    }

    /// Appends the arrays of `n_more` steps to those of `n` steps.
    pub(crate) fn extend(&mut self, n: usize, more: Self, n_more: usize) {
        extend(&mut self.stops, n, more.stops, n_more, false);
        extend(&mut self.weights, n, more.weights, n_more, 1.0);
        ActionMasks::extend(&mut self.action_masks, n, more.action_masks, n_more);
    }

    /// The first fault of the arrays of steps with these actions.
    pub(crate) fn fault(&self, actions: &ActionColumn, episodes: &[Episode]) -> Option<Fault> {
        let steps = actions.rows();
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
        let wrong = |(row, weight)| Some((row, wrong_weight(weight)?));
        let mut weights = self.weights.iter().flatten().enumerate();
        if let Some((row, what)) = weights.find_map(wrong) {
            return Some(Fault::DatasetValue { dataset: WEIGHTS.into(), row, what });
        }
        self.action_masks.as_ref()?.fault(actions, episodes)
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
        if let Some(ActionMasks { n_actions, allowed }) = &self.action_masks {
            let bytes: Vec<u8> = allowed.iter().map(|&is_allowed| is_allowed.into()).collect();
            let with_masks = Sha256::new().chain_update(hash).chain_update(ActionMasks::NAME);
            let with_masks = with_masks.chain_update((*n_actions as u64).to_le_bytes());
            hash = hex(&with_masks.chain_update(bytes).finalize());
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
