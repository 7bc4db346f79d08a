//! The checks that an estimate must pass before it becomes an answer.
//!
//! A check that fails is a reason to refuse. A check that passes proves nothing: on long episodes,
//! estimates that agreed with each other and with the known return still ordered policies wrongly.
//! The thresholds were set by the reasons at each constant, and not yet confirmed on recordings.

use overtone_core::Interval;
use overtone_core::judgement::{Check, Verdict};

/// Largest distance between an estimate and a known return, in standard errors: a correct method
/// stays below it 19 of 20 times.
pub const MOST_STANDARD_ERRORS: f64 = 2.0;

/// The 97.5 % quantile of the normal distribution.
pub const NORMAL: f64 = 1.96;

/// Largest share of steps with an action that is rarer than the rare recorded ones: five times the
/// share that the recorded policy itself has, which is
/// [`RARE`](crate::behavior_clone::RARE).
pub const MOST_UNCOVERED: f64 = 0.05;

/// Longest episode that can be judged without the log-probabilities of the recorded actions, in
/// steps. On episodes of hundreds of steps, neither fitted Q-evaluation nor a learned simulator
/// ordered policies reliably.
pub const LONGEST_WITHOUT_LOG_PROBS: usize = 20;

/// An estimate and the number that it must reproduce.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The estimate.
    pub estimated: f64,
    /// The number.
    pub expected: f64,
    /// Standard error of the difference between the two.
    pub standard_error: f64,
}

impl Comparison {
    /// Whether the two are within [`MOST_STANDARD_ERRORS`].
    pub fn agrees(self) -> bool {
        (self.estimated - self.expected).abs() <= MOST_STANDARD_ERRORS * self.standard_error
    }
}

/// The evidence for one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Interval of the difference between the policy's estimate and the recorded return.
    pub difference: Option<Interval>,
    /// The estimate for a clone of the recorded policy, and the recorded return.
    pub known_answer: Option<Comparison>,
    /// The mean importance weight of whole episodes, and 1 (importance weights only). It is above 1
    /// if the agent learned the recorded actions by heart.
    pub mean_weight: Option<Comparison>,
    /// The share of steps with an action that is rarer than nearly all recorded ones.
    pub uncovered: Option<f64>,
    /// Differences by other discounts, seeds and numbers of updates.
    pub others: Vec<f64>,
    /// Steps of the longest episode.
    pub longest: usize,
    /// Whether the recording has the log-probabilities of its actions, and the estimate uses them.
    pub has_log_probs: bool,
    /// The first step with too small an effective sample size (importance weights only).
    pub horizon: Option<usize>,
}

impl Evidence {
    /// The checks that fail.
    ///
    /// Without recorded log-probabilities, the known answer and the coverage must be there. With
    /// them, the effective sample size shows the coverage.
    pub fn failed(&self) -> Vec<Check> {
        let is_needless = self.has_log_probs;
        let is_short = self.has_log_probs || self.longest <= LONGEST_WITHOUT_LOG_PROBS;
        let has_overlap = self.horizon.is_none_or(|step| step >= self.longest);
        let excludes_zero = self.difference.is_some_and(|of| of.low > 0.0 || of.high < 0.0);
        let checks = [
            (Check::KnownAnswer, self.known_answer.map_or(is_needless, Comparison::agrees)),
            (Check::Weights, self.mean_weight.is_none_or(Comparison::agrees)),
            (Check::Coverage, self.uncovered.map_or(is_needless, |share| share <= MOST_UNCOVERED)),
            (Check::Order, self.is_ordered()),
            (Check::LongEpisodes, is_short),
            (Check::Overlap, has_overlap),
            (Check::Difference, excludes_zero),
        ];
        checks.into_iter().filter(|(_, passes)| !passes).map(|(check, _)| check).collect()
    }

    /// Whether all differences have the sign of the main one. This is Kendall's τ of 1 between all
    /// orders of the policy and the recorded one; policies that are nearly equal do not matter.
    fn is_ordered(&self) -> bool {
        let Some(difference) = self.difference else { return true };
        let is_above = difference.low + difference.high > 0.0;
        self.others.iter().all(|&other| (other > 0.0) == is_above)
    }

    /// The answer.
    pub fn verdict(&self) -> Verdict {
        let reasons = self.failed();
        match self.difference {
            Some(difference) if reasons.is_empty() && difference.low > 0.0 => {
                Verdict::BetterThanRecorded
            }
            Some(_) if reasons.is_empty() => Verdict::WorseThanRecorded,
            _ => Verdict::CannotTell { reasons },
        }
    }
}
