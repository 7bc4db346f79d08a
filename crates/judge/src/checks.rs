//! The checks that an estimate must pass before it becomes an answer.
//!
//! A check that fails is a reason to refuse. A check that passes proves nothing: on long episodes,
//! estimates that agreed with each other and with the known return still ordered policies wrongly.
//! The thresholds were set by the reasons at each constant, and not yet confirmed on recordings.

use overtone_core::Interval;
use overtone_core::judgement::{Check, Verdict};

/// Discounts that must not change the sign of a difference, in addition to the requested one.
pub const DISCOUNTS: [f64; 3] = [0.95, 0.99, 0.995];

/// Largest distance between an estimate and a known return, in standard errors: a correct method
/// stays below it 19 of 20 times.
pub const MOST_STANDARD_ERRORS: f64 = 2.0;

/// Largest distance of an estimate from the possible returns, as a share of their range: a method
/// with noise may be a little above the return of the best agent.
pub const MOST_OUTSIDE: f64 = 0.01;

/// Largest share of steps with an action that is rarer than the rare recorded ones: five times the
/// share that the recorded policy itself has, which is
/// [`RARE`](crate::behavior_clone::RARE).
pub const MOST_UNCOVERED: f64 = 0.05;

/// Longest episode that can be judged without the log-probabilities of the recorded actions, in
/// steps. On episodes of hundreds of steps, neither fitted Q-evaluation nor a learned simulator
/// ordered policies reliably.
pub const LONGEST_WITHOUT_LOG_PROBS: usize = 20;

/// Largest rounding of a difference, relative to the estimate.
const ROUNDING: f64 = 1e-12;

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

/// The evidence for one policy. A check without its number does not apply to the method.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The estimate.
    pub estimate: Option<f64>,
    /// The smallest and the largest possible discounted return.
    pub possible: [f64; 2],
    /// Interval of the difference between the policy's estimate and the recorded return.
    pub difference: Option<Interval>,
    /// The estimate for a clone of the recorded policy, and the recorded return.
    pub known_answer: Option<Comparison>,
    /// The mean importance weight of whole episodes, and 1. It is above 1 if the agent learned the
    /// recorded actions by heart.
    pub mean_weight: Option<Comparison>,
    /// The share of steps with an action that is rarer than nearly all recorded ones.
    pub uncovered: Option<f64>,
    /// Differences by other discounts, seeds and numbers of updates.
    pub others: Vec<f64>,
    /// The first step with too small an effective sample size.
    pub horizon: Option<usize>,
}

impl Default for Evidence {
    /// No evidence.
    fn default() -> Self {
        Self {
            estimate: None,
            possible: [f64::NEG_INFINITY, f64::INFINITY],
            difference: None,
            known_answer: None,
            mean_weight: None,
            uncovered: None,
            others: Vec::new(),
            horizon: None,
        }
    }
}

impl Evidence {
    /// The checks that fail. Without an estimate, another reason stands for the difference.
    pub fn failed(&self) -> Vec<Check> {
        let is_covered = self.uncovered.is_none_or(|share| share <= MOST_UNCOVERED);
        let checks = [
            (Check::KnownAnswer, self.known_answer.is_none_or(Comparison::agrees)),
            (Check::Weights, self.mean_weight.is_none_or(Comparison::agrees)),
            (Check::Coverage, is_covered),
            (Check::PossibleReturns, self.estimate.is_none_or(|value| self.is_possible(value))),
            (Check::Order, self.is_ordered()),
            (Check::Overlap, self.horizon.is_none()),
        ];
        let mut failed: Vec<Check> =
            checks.into_iter().filter(|(_, passes)| !passes).map(|(check, _)| check).collect();
        if !self.differs() && (self.estimate.is_some() || failed.is_empty()) {
            failed.push(Check::Difference);
        }
        failed
    }

    /// Whether the interval of the difference excludes zero, and the rounding of the estimate: the
    /// recorded policy itself has a difference of some 1e-17.
    pub fn differs(&self) -> bool {
        let rounding = ROUNDING * self.estimate.unwrap_or(0.0).abs();
        self.difference.is_some_and(|interval| interval.low > rounding || interval.high < -rounding)
    }

    /// Whether no check fails but the difference.
    pub fn passes_but_difference(&self) -> bool {
        self.failed().iter().all(|&check| check == Check::Difference)
    }

    fn is_possible(&self, value: f64) -> bool {
        let [low, high] = self.possible;
        let margin = if (high - low).is_finite() { MOST_OUTSIDE * (high - low) } else { 0.0 };
        (low - margin..=high + margin).contains(&value)
    }

    /// Whether all differences have the sign of the main one. This is Kendall's τ of 1 between all
    /// orders of the policy and the recorded one; policies that are nearly equal do not matter.
    fn is_ordered(&self) -> bool {
        let Some(difference) = self.difference.filter(|_| self.differs()) else { return true };
        self.others.iter().all(|&other| (other > 0.0) == (difference.low > 0.0))
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
