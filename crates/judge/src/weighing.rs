//! [`Weighing`]: importance weights of a replayed policy on a recording.

use overtone_core::{
    Episode,
    judgement::{Method, Overlap, ReturnEstimate},
};
use overtone_data::{ActionColumn, Dataset};

use crate::{
    checks::Comparison,
    fit::mean_and_error,
    forced::ForcedActions,
    judge::DISCOUNTS,
    weights::{Logged, RecordedReturn, Settings, Values, Weighted, WeightsError, estimate},
};

/// A recording with everything that importance weights need, apart from the policy.
#[derive(Clone, Debug)]
pub(crate) struct Weighing<'a> {
    /// The recording.
    pub(crate) data: &'a Dataset,
    /// `[rows]`: log-probabilities of the recorded discrete actions under the recorded policy.
    pub(crate) log_probs: Option<&'a [f32]>,
    /// Number of policies in `values`.
    pub(crate) n_policies: usize,
    /// `Q` of the recorded action and `V`, `[rows · policies]` each.
    pub(crate) values: Option<[Vec<f64>; 2]>,
}

/// Weighted estimates for one policy, and what speaks for and against them.
pub(crate) struct Weighed {
    /// Empty if no episode keeps a weight.
    pub(crate) estimates: Vec<ReturnEstimate>,
    pub(crate) overlap: Overlap,
    /// Differences from the recorded return at other discounts (WPDIS).
    pub(crate) others: Vec<f64>,
    /// The mean weight of whole episodes, which must be 1.
    pub(crate) mean_weight: Option<Comparison>,
}

impl Weighing<'_> {
    /// Estimates for the policy at this position of the values, which takes these actions; `None`
    /// without log-probabilities of discrete actions.
    pub(crate) fn of(
        &self,
        policy: usize,
        actions: &ForcedActions,
        settings: &Settings,
    ) -> Result<Option<Weighed>, WeightsError> {
        let (
            Some(log_probs),
            ActionColumn::Discrete { values: recorded, .. },
            ForcedActions::Probabilities { n, values: probs },
        ) = (self.log_probs, self.data.actions(), actions)
        else {
            return Ok(None);
        };
        let log_ratio = |row: usize| {
            let prob = f64::from(probs[row * n + usize::from(recorded[row])]);
            prob.ln() - f64::from(log_probs[row])
        };
        let episodes = self.logged(&log_ratio, Some(policy));
        let found = match estimate(&episodes, settings) {
            Err(WeightsError::NoWeight { step }) => {
                let overlap = Overlap { effective: Vec::new(), horizon: Some(step) };
                let estimates = Vec::new();
                let others = Vec::new();
                return Ok(Some(Weighed { estimates, overlap, others, mean_weight: None }));
            }
            found => found?,
        };
        let mut others = Vec::new();
        for discount in DISCOUNTS {
            let once = Settings { discount, replications: 1, ..*settings };
            let Weighted { estimates, recorded, .. } = estimate(&episodes, &once)?;
            let wpdis = estimates.iter().find(|of| of.method == Method::Wpdis);
            others.extend(wpdis.map(|of| of.value - recorded.mean));
        }
        let weights: Vec<f64> =
            episodes.iter().map(|of| of.log_ratios.iter().sum::<f64>().exp()).collect();
        let [estimated, standard_error] = mean_and_error(&weights);
        let mean_weight = Comparison { estimated, expected: 1.0, standard_error };
        let Weighted { estimates, overlap, .. } = found;
        Ok(Some(Weighed { estimates, overlap, others, mean_weight: Some(mean_weight) }))
    }

    /// The discounted return of the recorded policy.
    pub(crate) fn recorded(&self, settings: &Settings) -> Result<RecordedReturn, WeightsError> {
        Ok(estimate(&self.logged(&|_| 0.0, None), settings)?.recorded)
    }

    fn logged(&self, log_ratio: &dyn Fn(usize) -> f64, policy: Option<usize>) -> Vec<Logged> {
        let of_one = |episode: &Episode| {
            let rows = episode.range();
            let values = self.values.as_ref().zip(policy).map(|(both, policy)| {
                let [of_actions, of_histories] = both.each_ref().map(|values| {
                    rows.clone().map(|row| values[row * self.n_policies + policy]).collect()
                });
                Values { of_actions, of_histories }
            });
            Logged {
                rewards: rows.clone().map(|row| self.data.rewards()[row].into()).collect(),
                log_ratios: rows.map(log_ratio).collect(),
                values,
            }
        };
        self.data.episodes().as_slice().iter().map(of_one).collect()
    }
}
