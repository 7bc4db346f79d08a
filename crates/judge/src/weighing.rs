//! [`Weighing`]: importance weights of a replayed policy on a recording.

use overtone_core::{
    Episode,
    judgement::{Method, Overlap, ReturnEstimate},
};
use overtone_data::{ActionColumn, Dataset};

use crate::{
    checks::{Comparison, DISCOUNTS},
    fitted_q::return_bounds,
    forced::{Forced, ForcedActions},
    statistics::mean_and_error,
    weights::{Logged, RecordedReturn, Settings, Values, Weighted, WeightsError, estimate},
};

/// Largest log-ratio that is the rounding of single precision. The recorded policy itself must have
/// weights of 1, and no difference from itself.
const ROUNDING: f64 = 1e-5;

/// A recording with the log-probabilities of its actions.
#[derive(Clone, Debug)]
pub(crate) struct Weighing<'a> {
    /// The recording.
    pub(crate) data: &'a Dataset,
    /// `[rows]`: log-probabilities of the recorded actions under the recorded policy.
    pub(crate) log_probs: &'a [f32],
    /// The smallest and the largest possible discounted return.
    pub(crate) possible: [f64; 2],
}

/// Values of several policies, and the position of one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyValues<'a> {
    /// `Q` of the recorded action, `[rows · policies]`.
    pub(crate) of_actions: &'a [f64],
    /// `V`, `[rows · policies]`.
    pub(crate) of_histories: &'a [f64],
    /// Number of policies.
    pub(crate) n_policies: usize,
    /// The position of the policy.
    pub(crate) policy: usize,
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

impl<'a> Weighing<'a> {
    /// For returns with this discount.
    pub(crate) fn new(data: &'a Dataset, log_probs: &'a [f32], discount: f64) -> Self {
        let rewards = data.rewards().iter().map(|&reward| f64::from(reward));
        let ends = rewards.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], reward| {
            [low.min(reward), high.max(reward)]
        });
        let longest = Some(data.episodes().longest());
        Self { data, log_probs, possible: return_bounds(ends, discount, longest) }
    }

    /// `[rows]`: the logarithms of the ratios between a policy's probabilities of the recorded actions
    /// and the recorded ones.
    pub(crate) fn log_ratios(&self, prob: impl Fn(usize) -> f64) -> Vec<f64> {
        let of_row = |(row, log_prob): (usize, &f32)| {
            let log_ratio = prob(row).ln() - f64::from(*log_prob);
            if log_ratio.abs() < ROUNDING { 0.0 } else { log_ratio }
        };
        self.log_probs.iter().enumerate().map(of_row).collect()
    }

    /// [`log_ratios`](Self::log_ratios) of a replayed policy.
    ///
    /// # Panics
    /// When the recorded or the replayed actions are not discrete: a caller's bug.
    pub(crate) fn log_ratios_of(&self, policy: &Forced) -> Vec<f64> {
        let (
            ActionColumn::Discrete { values: recorded, .. },
            ForcedActions::Probabilities { n, values: probs },
        ) = (self.data.actions(), &policy.actions)
        else {
            panic!("importance weights of continuous actions")
        };
        self.log_ratios(|row| probs[row * n + usize::from(recorded[row])].into())
    }

    /// Estimates for a policy with these log-ratios, with WDR if it has values.
    pub(crate) fn of(
        &self,
        log_ratios: &[f64],
        values: Option<PolicyValues<'_>>,
        settings: &Settings,
    ) -> Result<Weighed, WeightsError> {
        let episodes = logged(self.data, &|row| log_ratios[row], values);
        let weighted = match estimate(&episodes, settings) {
            Err(WeightsError::NoWeight { step }) => {
                let overlap = Overlap { effective: Vec::new(), horizon: Some(step) };
                let estimates = Vec::new();
                let others = Vec::new();
                return Ok(Weighed { estimates, overlap, others, mean_weight: None });
            }
            weighted => weighted?,
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
        let Weighted { estimates, overlap, .. } = weighted;
        Ok(Weighed { estimates, overlap, others, mean_weight: Some(mean_weight) })
    }
}

/// The discounted return of the recorded policy.
pub(crate) fn recorded_return(
    data: &Dataset,
    settings: &Settings,
) -> Result<RecordedReturn, WeightsError> {
    Ok(estimate(&logged(data, &|_| 0.0, None), settings)?.recorded)
}

fn logged(
    data: &Dataset,
    log_ratio: &dyn Fn(usize) -> f64,
    values: Option<PolicyValues<'_>>,
) -> Vec<Logged> {
    let of_one = |episode: &Episode| {
        let of_policy = |values: PolicyValues<'_>| {
            let PolicyValues { of_actions, of_histories, n_policies, policy } = values;
            let [of_actions, of_histories] = [of_actions, of_histories].map(|values| {
                episode.range().map(|row| values[row * n_policies + policy]).collect()
            });
            Values { of_actions, of_histories }
        };
        Logged {
            rewards: episode.range().map(|row| data.rewards()[row].into()).collect(),
            log_ratios: episode.range().map(log_ratio).collect(),
            values: values.map(of_policy),
        }
    };
    data.episodes().as_slice().iter().map(of_one).collect()
}
