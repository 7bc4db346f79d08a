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
    let both = (untied_x as f64).sqrt() * (untied_y as f64).sqrt();
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
    let pairs = estimates.iter().enumerate().flat_map(|(i, x)| {
        estimates[..i].iter().map(move |y| kendall_tau(x, y))
    });
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
        let unknown = self.has_log_probs;
        let is_short = self.has_log_probs || self.longest <= LONGEST_WITHOUT_LOG_PROBS;
        let has_episodes = self.horizon.is_none_or(|step| step >= self.longest);
        let excludes_zero = self.difference.is_some_and(|of| of.low > 0.0 || of.high < 0.0);
        let checks = [
            (Check::KnownAnswer, self.known_answer.map_or(unknown, Comparison::agrees)),
            (Check::Coverage, self.uncovered.map_or(unknown, |share| share <= MOST_UNCOVERED)),
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

#[cfg(test)]
mod tests {
    use super::*;

    const AGREES: Comparison = Comparison { estimated: 9.0, expected: 10.0, standard_error: 0.5 };
    const DIFFERS: Comparison = Comparison { estimated: 8.9, ..AGREES };
    const ABOVE: Interval = Interval { low: 0.5, high: 2.0 };

    /// Every check passes, without recorded log-probabilities.
    fn evidence(estimates: &[Vec<f64>]) -> Evidence<'_> {
        Evidence {
            difference: Some(ABOVE),
            known_answer: Some(AGREES),
            uncovered: Some(MOST_UNCOVERED),
            estimates,
            held_out: Some(AGREES),
            longest: 20,
            has_log_probs: false,
            horizon: None,
        }
    }

    #[track_caller]
    fn fails(evidence: &Evidence<'_>, check: Check) {
        assert_eq!(evidence.verdict(), Verdict::CannotTell { reasons: vec![check] });
    }

    #[test]
    fn passing_every_check_gives_an_answer() {
        let estimates = [vec![3.0, 1.0], vec![30.0, 20.0]];
        let all = evidence(&estimates);
        assert_eq!(all.verdict(), Verdict::BetterThanRecorded);
        let below = Evidence { difference: Some(Interval { low: -2.0, high: -0.1 }), ..all };
        assert_eq!(below.verdict(), Verdict::WorseThanRecorded);
    }

    #[test]
    fn each_check_fails_alone() {
        let stable = [vec![3.0, 1.0], vec![30.0, 20.0]];
        let all = || evidence(&stable);
        fails(&Evidence { known_answer: Some(DIFFERS), ..all() }, Check::KnownAnswer);
        fails(&Evidence { known_answer: None, ..all() }, Check::KnownAnswer);
        fails(&Evidence { uncovered: Some(0.051), ..all() }, Check::Coverage);
        fails(&Evidence { uncovered: None, ..all() }, Check::Coverage);
        let turned = [vec![3.0, 1.0], vec![10.0, 20.0]];
        fails(&evidence(&turned), Check::Order);
        fails(&Evidence { held_out: Some(DIFFERS), ..all() }, Check::HeldOut);
        fails(&Evidence { longest: 21, ..all() }, Check::Horizon);
        fails(&Evidence { difference: None, ..all() }, Check::Difference);
        let both_sides = Interval { low: -0.5, high: 2.0 };
        fails(&Evidence { difference: Some(both_sides), ..all() }, Check::Difference);
        let several = Evidence { uncovered: None, longest: 1000, ..all() };
        assert_eq!(several.verdict().to_string(), "cannot tell: coverage, horizon");
    }

    #[test]
    fn recorded_log_probs_make_long_episodes_judgeable() {
        let weighted = Evidence {
            known_answer: None,
            uncovered: None,
            held_out: None,
            longest: 200,
            has_log_probs: true,
            ..evidence(&[])
        };
        assert_eq!(weighted.verdict(), Verdict::BetterThanRecorded);
        fails(&Evidence { horizon: Some(199), ..weighted.clone() }, Check::Horizon);
        // A number that is there is checked all the same.
        fails(&Evidence { uncovered: Some(0.3), ..weighted }, Check::Coverage);
    }

    #[test]
    fn not_a_number_never_passes() {
        let odd = Comparison { estimated: f64::NAN, ..AGREES };
        fails(&Evidence { known_answer: Some(odd), ..evidence(&[]) }, Check::KnownAnswer);
        fails(&Evidence { uncovered: Some(f64::NAN), ..evidence(&[]) }, Check::Coverage);
        let ends = Interval { low: f64::NAN, high: 1.0 };
        assert!(matches!(
            Evidence { difference: Some(ends), ..evidence(&[]) }.verdict(),
            Verdict::CannotTell { .. }
        ));
    }

    #[test]
    fn tau_of_equal_opposite_and_tied_orders() {
        let up = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(kendall_tau(&up, &[10.0, 20.0, 21.0, 90.0]), Some(1.0));
        assert_eq!(kendall_tau(&up, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
        // One of 6 pairs is in opposite order: (5 − 1)/6.
        assert_eq!(kendall_tau(&up, &[1.0, 3.0, 2.0, 4.0]), Some(4.0 / 6.0));
        // One pair is tied in y, the other five agree: 5/√(6 · 5).
        let tied = kendall_tau(&up, &[1.0, 2.0, 2.0, 4.0]).unwrap();
        assert!((tied - 5.0 / 30f64.sqrt()).abs() < 1e-15, "{tied}");
        // 0 and −0 are equal.
        assert_eq!(kendall_tau(&[1.0, 2.0], &[0.0, -0.0]), None);
        assert_eq!(kendall_tau(&[1.0], &[2.0]), None);
    }

    #[test]
    fn the_least_tau_is_over_all_pairs() {
        let [a, b, c] = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0]].map(|x| x.to_vec());
        // τ(a, b) = 1/3, τ(a, c) = −1, τ(b, c) = −1/3.
        assert_eq!(least_tau(&[a.clone(), b.clone(), c]), Some(-1.0));
        assert_eq!(least_tau(&[a.clone(), a.clone()]), Some(1.0));
        assert_eq!(least_tau(&[a.clone(), vec![2.0; 3]]), None, "an estimate without an order");
        assert_eq!(least_tau(&[vec![1.0], vec![2.0]]), Some(1.0), "one policy");
        assert_eq!((least_tau(&[a]), least_tau(&[])), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn one_percent_of_recorded_actions_is_uncovered() {
        // Log-probabilities ln 1/1000 … ln 1: the quantile 0.01 lies between the 10th and the 11th.
        let recorded: Vec<f64> = (1..=1000).map(|i| (f64::from(i) / 1000.0).ln()).collect();
        assert_eq!(uncovered(&recorded, &recorded), Some(0.01));
        // Half of the actions are never recorded.
        let half: Vec<f64> = (0..8).map(|i| if i < 4 { f64::NEG_INFINITY } else { -0.5 }).collect();
        assert_eq!(uncovered(&half, &recorded), Some(0.5));
        // With equal log-probabilities nothing is rarer.
        assert_eq!(uncovered(&[-1.0; 3], &[-1.0; 5]), Some(0.0));
        assert_eq!((uncovered(&[], &recorded), uncovered(&half, &[])), (None, None));
    }
}
