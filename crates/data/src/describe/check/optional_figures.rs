//! [`OptionalFigures`]: what the optional arrays of a recording hold.

use overtone_core::{counted, decimal};

use super::figures::Sums;
use crate::read::action_masks::ActionMasks;
use crate::read::optional_arrays::{MASKS, OptionalArrays, WEIGHTS};

/// Counts of the optional arrays so far.
#[derive(Default)]
pub(super) struct OptionalFigures {
    /// Steps at which a mask is 0; `None` without masks.
    stops: Option<usize>,
    /// Over the steps with weights.
    weights: Option<Sums>,
    /// Allowed actions of all steps with masks, their steps, and the actions of a step.
    allowed: Option<[usize; 3]>,
}

impl OptionalFigures {
    /// Adds the arrays of some steps.
    pub fn add(&mut self, arrays: &OptionalArrays) {
        if let Some(stops) = &arrays.stops {
            *self.stops.get_or_insert(0) += stops.iter().filter(|&&stop| stop).count();
        }
        if let Some(weights) = &arrays.weights {
            let sums = self.weights.get_or_insert_default();
            weights.iter().for_each(|&weight| sums.add(weight));
        }
        if let Some(ActionMasks { n_actions, allowed }) = &arrays.action_masks {
            let [all, steps, n] = self.allowed.get_or_insert_default();
            *all += allowed.iter().filter(|&&is_allowed| is_allowed).count();
            *steps += allowed.len() / n_actions.max(&1);
            *n = *n_actions.max(n);
        }
    }

    /// Each array in a few words, after its name.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let stops = self
            .stops
            .map(|steps| (MASKS, format!("0 at {}: values stop there", counted(steps, "step"))));
        let weights = self.weights.as_ref().map(|sums| (WEIGHTS, sums.range().to_string()));
        let allowed = self.allowed.map(|[all, steps, n]| {
            let mean = all as f64 / steps.max(1) as f64;
            (ActionMasks::NAME, format!("{} of {n} actions allowed on average", decimal(mean, 1)))
        });
        stops.into_iter().chain(weights).chain(allowed).collect()
    }
}
