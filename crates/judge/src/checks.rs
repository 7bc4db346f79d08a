//! The checks that an estimate must pass before it becomes an answer.
//!
//! A check that fails is a reason to refuse. A check that passes proves nothing: on long episodes,
//! estimates that agreed with each other and with the known return still ordered policies wrongly.
//! The thresholds were set by the reasons at each constant, and not yet confirmed on recordings.

use overtone_core::Interval;
use overtone_core::interval::quantile;
use overtone_core::judgement::{Check, Verdict};

/// Largest distance between an estimate and a known return, in standard errors: a correct method
/// stays below it 19 of 20 times.
pub const MOST_STANDARD_ERRORS: f64 = 2.0;

/// Fraction of recorded actions that count as rare.
pub const RARE: f64 = 0.01;

/// Largest share of steps with an action that is rarer than the rare recorded ones: five times the
/// share that the recorded policy itself has, which is [`RARE`].
pub const MOST_UNCOVERED: f64 = 0.05;

/// Smallest rank correlation between two orders of the policies: of the 21 pairs of seven policies,
/// at most two change their order.
pub const LEAST_TAU: f64 = 0.8;

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

/// The share of steps on which the policy's action is less likely than the rarest 1 % of recorded
/// actions; `None` without steps or held-out actions.
///
/// # Shapes
/// - `log_probs`: `[steps]`, log-probability of the policy's action under a clone of the recorded
///   policy
/// - `held_out`: log-probabilities of recorded actions under clones that did not train on them
pub fn uncovered(log_probs: &[f64], held_out: &[f64]) -> Option<f64> {
    if log_probs.is_empty() || held_out.is_empty() {
        return None;
    }
    let mut sorted = held_out.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rare = quantile(&sorted, RARE);
    let below = log_probs.iter().filter(|&&log_prob| log_prob < rare).count();
    Some(below as f64 / log_probs.len() as f64)
}

/// Kendall's rank correlation τ-b (Kendall 1945), in [−1, 1]; `None` if one of the two has no
/// order, because all of its numbers are equal or it has fewer than two.
///
/// ```text
/// τ = (C − D)/√((P − T_x)(P − T_y))
/// ```
///
/// `C` and `D` count the pairs in the same and in opposite order, `P` all pairs, `T` the pairs that
/// are tied.
///
/// # Panics
/// When `x` and `y` have different lengths: a caller's bug.
pub fn kendall_tau(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "two orders of the same policies");
    let order = |of: &[f64], i: usize, j: usize| match of[i].total_cmp(&of[j]) as i64 {
        _ if of[i] == of[j] => 0,
        sign => sign,
    };
    let (mut same, mut untied_x, mut untied_y) = (0i64, 0i64, 0i64);
    for i in 0..x.len() {
        for j in 0..i {
            let (of_x, of_y) = (order(x, i, j), order(y, i, j));
            same += of_x * of_y;
            untied_x += of_x.abs();
            untied_y += of_y.abs();
        }
    }
    let both = (untied_x as f64 * untied_y as f64).sqrt();
    (both > 0.0).then(|| same as f64 / both)
}

/// The smallest τ between any two of the `estimates`, each with one number per policy.
///
/// The estimates come from several discounts, seeds and numbers of updates. The recorded policy may
/// be one of the policies, so that its place in the order is checked too. `Some(1.0)` where nothing
/// can change: fewer than two estimates or policies. `None` if an estimate has no order.
pub fn least_tau(estimates: &[Vec<f64>]) -> Option<f64> {
    if estimates.iter().any(|of_policies| of_policies.len() < 2) {
        return Some(1.0);
    }
    let mut pairs = estimates
        .iter()
        .enumerate()
        .flat_map(|(i, x)| estimates[..i].iter().map(move |y| kendall_tau(x, y)));
    pairs.try_fold(1.0, |least: f64, tau| tau.map(|tau| least.min(tau)))
}

/// The evidence for one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence<'a> {
    /// Interval of the difference between the policy's estimate and the recorded return.
    pub difference: Option<Interval>,
    /// The estimate for a clone of the recorded policy, and the recorded return.
    pub known_answer: Option<Comparison>,
    /// The share of [`uncovered`] steps.
    pub uncovered: Option<f64>,
    /// The estimates of [`least_tau`].
    pub estimates: &'a [Vec<f64>],
    /// The estimate from held-out episodes, and that from all episodes. Absent if the run has no
    /// held-out episodes.
    pub held_out: Option<Comparison>,
    /// Steps of the longest episode.
    pub longest: usize,
    /// Whether the recording has the log-probabilities of its actions, and the estimate uses them.
    pub has_log_probs: bool,
    /// The first step with too small an effective sample size (importance weights only).
    pub horizon: Option<usize>,
}

impl Evidence<'_> {
    /// The checks that fail.
    ///
    /// Without recorded log-probabilities, the known answer and the coverage must be there. With
    /// them, the weights reproduce the recorded return exactly, and the effective sample size shows
    /// the coverage.
    pub fn failed(&self) -> Vec<Check> {
        let is_needless = self.has_log_probs;
        let is_short = self.has_log_probs || self.longest <= LONGEST_WITHOUT_LOG_PROBS;
        let has_episodes = self.horizon.is_none_or(|step| step >= self.longest);
        let excludes_zero = self.difference.is_some_and(|of| of.low > 0.0 || of.high < 0.0);
        let checks = [
            (Check::KnownAnswer, self.known_answer.map_or(is_needless, Comparison::agrees)),
            (Check::Coverage, self.uncovered.map_or(is_needless, |share| share <= MOST_UNCOVERED)),
            (Check::Order, least_tau(self.estimates).is_some_and(|tau| tau >= LEAST_TAU)),
            (Check::HeldOut, self.held_out.is_none_or(Comparison::agrees)),
            (Check::Horizon, is_short && has_episodes),
            (Check::Difference, excludes_zero),
        ];
        checks.into_iter().filter(|(_, passes)| !passes).map(|(check, _)| check).collect()
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
