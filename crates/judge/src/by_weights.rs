//! [`by_weights`]: answers from importance weights, for recordings with log-probabilities.
//!
//! The weights themselves need no critics, and refuse most modes. Only where an answer is still
//! possible are critics fitted, whose values make the estimates less noisy (WDR).
//!
//! Log-probabilities of a clone are not used: in 100 recordings of a known task, the intervals of
//! WPDIS covered the truth 83 times, and most mean weights were not 1.

use overtone_core::{
    ActingMode,
    judgement::{Check, Judged, ReturnEstimate},
};

use crate::{
    checks::Evidence,
    critics::Critics,
    error::{JudgeError, Progress},
    fit::Fit,
    forced::Forced,
    together::levels_together,
    weighing::{PolicyValues, Weighed, Weighing},
    weights::{Settings, WeightsError},
};

/// Answers for policies with these modes and `log_ratios`, `[policies][rows]`. `critics` are of the
/// same policies, without a clone; if absent, no values are fitted.
pub(crate) fn by_weights(
    modes: &[ActingMode],
    weighing: &Weighing<'_>,
    settings: &Settings,
    log_ratios: &[Vec<f64>],
    critics: Option<Critics<'_>>,
    progress: &mut Progress<'_>,
) -> Result<Vec<Judged>, JudgeError> {
    let of_each = log_ratios.iter().map(|ratios| weighing.of(ratios, None, settings));
    let mut weighed = of_each.collect::<Result<Vec<_>, _>>()?;
    let is_refused = |weighed: &Weighed| {
        let failed = weighing.evidence(weighed).failed();
        failed.iter().any(|check| matches!(check, Check::Weights | Check::Overlap))
    };
    let open: Vec<usize> = (0..modes.len()).filter(|&i| !is_refused(&weighed[i])).collect();
    let values = match critics {
        Some(Critics { fit, options }) if !open.is_empty() => {
            let policies: Vec<Forced> = open.iter().map(|&i| fit.policies[i].clone()).collect();
            let critics = Critics { fit: Fit { policies: &policies, ..fit }, options };
            Some(critics.by_folds(progress)?)
        }
        _ => None,
    };
    let weigh = |at: usize, level: f64| -> Result<Weighed, WeightsError> {
        let values = values.as_ref().map(|[of_actions, of_histories]| PolicyValues {
            of_actions,
            of_histories,
            n_policies: open.len(),
            policy: at,
        });
        weighing.of(&log_ratios[open[at]], values, &Settings { level, ..*settings })
    };
    let mut tested = Vec::new();
    for (at, &i) in open.iter().enumerate() {
        weighed[i] = weigh(at, settings.level)?;
        if weighing.evidence(&weighed[i]).passes_but_difference() {
            tested.push(at);
        }
    }
    let mut levels = vec![settings.level; modes.len()];
    let differs = |at: usize, level: f64| {
        Ok::<_, JudgeError>(weighing.evidence(&weigh(tested[at], level)?).differs())
    };
    let of_tested = levels_together(tested.len(), settings.level, differs)?;
    for (&at, level) in tested.iter().zip(of_tested) {
        levels[open[at]] = level;
        weighed[open[at]] = weigh(at, level)?;
    }
    let judged = modes.iter().zip(weighed).zip(levels).map(|((&mode, weighed), level)| Judged {
        mode,
        verdict: weighing.evidence(&weighed).verdict(),
        estimates: weighed.estimates,
        overlap: Some(weighed.overlap),
        uncovered: None,
        level,
    });
    Ok(judged.collect())
}

impl Weighing<'_> {
    /// The evidence for and against weighted estimates.
    fn evidence(&self, weighed: &Weighed) -> Evidence {
        let deciding: Option<&ReturnEstimate> = weighed.estimates.last();
        Evidence {
            estimate: deciding.map(|estimate| estimate.value),
            possible: self.possible,
            difference: deciding.and_then(|estimate| estimate.difference),
            others: weighed.others.clone(),
            known_answer: None,
            mean_weight: weighed.mean_weight,
            uncovered: None,
            horizon: weighed.overlap.horizon,
        }
    }
}
