//! [`by_critics`]: answers from fitted Q-evaluation, for recordings without log-probabilities.
//!
//! A clone of the recorded policy, whose return is known, is judged next to the modes. It is fitted
//! first, because the modes whose actions it has hardly seen need no critics.

use overtone_core::{
    ActingMode,
    judgement::{Judged, Method, ReturnEstimate},
};

use crate::{
    behavior_clone::{BehaviorClone, FOLDS},
    checks::{Comparison, Evidence, MOST_UNCOVERED},
    critics::Critics,
    error::{JudgeError, Progress},
    fit::{Fit, FitOptions, Fitted},
    forced::Forced,
    recorded_steps::Recorded,
    statistics::mean_and_error,
    together::levels_together,
};

/// Answers for policies with these modes, and the estimate for the clone if there are critics. `fit`
/// has the policies, without a clone.
pub(crate) fn by_critics(
    modes: &[ActingMode],
    fit: &Fit<'_>,
    options: &FitOptions,
    level: f64,
    progress: &mut Progress<'_>,
) -> Result<(Vec<Judged>, Option<ReturnEstimate>), JudgeError> {
    let Fit { data, policies, action_scale, .. } = *fit;
    let steps = Recorded::of(data, policies, None, action_scale, None, None);
    let steps = steps.ok_or(JudgeError::Pixels)?;
    let mut n_cloned = 0;
    let clone = BehaviorClone::fit(&steps, options.seed, &mut || {
        n_cloned += 1;
        let _ = progress("cloning the recorded policy", n_cloned, FOLDS);
    })?;
    let mut judged = Vec::with_capacity(modes.len());
    let mut covered: Vec<usize> = Vec::new();
    for (i, (&mode, policy)) in modes.iter().zip(policies).enumerate() {
        let uncovered = clone.uncovered(&policy.actions);
        let evidence = Evidence { uncovered: Some(uncovered), ..Evidence::default() };
        if uncovered <= MOST_UNCOVERED {
            covered.push(i);
        }
        judged.push(Judged {
            mode,
            verdict: evidence.verdict(),
            estimates: Vec::new(),
            overlap: None,
            uncovered: Some(uncovered),
            level,
        });
    }
    if covered.is_empty() {
        return Ok((judged, None));
    }
    let mut policies: Vec<Forced> = covered.iter().map(|&i| policies[i].clone()).collect();
    policies.push(clone.policy(options.seed));
    let n = covered.len();
    let critics = Critics { fit: Fit { policies: &policies, ..*fit }, options: options.clone() };
    let fitted = critics.all(progress)?;
    let known_answer = known_answer(&fitted, n);
    let evidence = |at: usize, level: f64| {
        let difference = fitted.difference(at, n);
        let mut others = fitted.differences_over(at, n);
        others.extend(&difference.per_critic);
        Evidence {
            estimate: Some(fitted.estimate(at).value),
            possible: fitted.possible_returns,
            difference: difference.interval(level),
            others,
            known_answer: Some(known_answer),
            mean_weight: None,
            uncovered: judged[covered[at]].uncovered,
            horizon: None,
        }
    };
    let tested: Vec<usize> =
        (0..n).filter(|&at| evidence(at, level).passes_but_difference()).collect();
    let of_tested = levels_together(tested.len(), level, |at, level| {
        Ok::<_, JudgeError>(evidence(tested[at], level).differs())
    })?;
    let mut levels = vec![level; n];
    tested.iter().zip(of_tested).for_each(|(&at, level)| levels[at] = level);
    let mut all: Vec<Evidence> = (0..n).map(|at| evidence(at, levels[at])).collect();
    if all.iter().any(|evidence| evidence.failed().is_empty()) {
        for of_discount in critics.at_other_discounts(progress)? {
            all.iter_mut()
                .zip(of_discount)
                .for_each(|(evidence, other)| evidence.others.push(other));
        }
    }
    for (at, evidence) in all.iter().enumerate() {
        let policy = &mut judged[covered[at]];
        policy.verdict = evidence.verdict();
        policy.level = levels[at];
        let difference = evidence.difference;
        policy
            .estimates
            .push(ReturnEstimate { difference, ..fitted.return_estimate(at, policy.level) });
    }
    Ok((judged, Some(fitted.return_estimate(n, level))))
}

impl Fitted {
    /// The estimate for a policy, without a difference.
    fn return_estimate(&self, policy: usize, level: f64) -> ReturnEstimate {
        let estimate = self.estimate(policy);
        let interval = estimate.interval(level);
        ReturnEstimate {
            method: Method::FittedQ,
            value: estimate.value,
            interval,
            difference: None,
        }
    }
}

/// The estimate for the clone of the recorded policy, and the recorded return.
fn known_answer(fitted: &Fitted, clone: usize) -> Comparison {
    let [expected, of_recorded] = fitted.recorded_return;
    let estimate = fitted.estimate(clone);
    let [_, of_mean] = mean_and_error(&estimate.per_critic);
    // Each critic is one bootstrap sample, so their deviation is the error of one.
    let of_critics = of_mean * (estimate.per_critic.len() as f64).sqrt();
    Comparison {
        estimated: estimate.value,
        expected,
        standard_error: of_critics.hypot(of_recorded),
    }
}
