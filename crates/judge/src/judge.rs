//! [`judge`]: estimates for the acting modes of one run, and an answer for each.
//!
//! Discrete actions with recorded log-probabilities get importance weights. Fitted Q-evaluation runs
//! for all recordings; its values also make the weighted estimates less noisy (WDR), from critics
//! that did not learn from the weighted episodes.
//!
//! Log-probabilities of a clone are not used: in 100 recordings of a known task, the intervals of
//! WPDIS covered the truth 83 times, and most mean weights were not 1.

use std::ops::ControlFlow;

use overtone_core::{
    ActingMode, ActionScale, Play, Policy,
    judgement::{Judged, Judgement, Method, Recording, ReturnEstimate, Trained},
};
use overtone_data::{ActionColumn, Dataset, StoredObservations};

use crate::{
    behavior_clone::{BehaviorClone, FOLDS},
    checks::{Comparison, Evidence},
    fit::{Fit, FitOptions, Fitted, fit, mean_and_error},
    forced::{Forced, ReplayError},
    recorded_steps::{Recorded, folds, time_limit},
    weighing::Weighing,
    weights::{Settings, WeightsError},
};

/// Smallest number of episodes: an interval from fewer means little.
pub const LEAST_EPISODES: usize = 20;

/// Discounts that must not change the sign of a difference, in addition to the requested one.
pub const DISCOUNTS: [f64; 3] = [0.95, 0.99, 0.995];

/// An agent in one of its acting modes.
pub struct Candidate {
    /// The mode.
    pub mode: ActingMode,
    /// The agent.
    pub policy: Box<dyn Policy>,
    /// How it acts.
    pub play: Play,
}

/// The recording and the run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Name of the run.
    pub run: &'a str,
    /// Update of the run's checkpoint.
    pub step: u64,
    /// The target return, in the units of the candidates' `Play`.
    pub target_return: f32,
    /// Whether the target return is an input of the agent.
    pub is_conditioned: bool,
    /// Finished episodes of vectors, with rewards as recorded.
    pub data: &'a Dataset,
    /// Name of the recording.
    pub dataset: &'a str,
    /// Whether the run trained on these episodes.
    pub trained: Trained,
    /// The scaling of recorded continuous actions to [-1, 1], if they have another range.
    pub action_scale: Option<&'a ActionScale>,
}

/// Longest episode whose returns may count without a discount, in steps.
pub const LONGEST_UNDISCOUNTED: usize = 100;

/// Options of a judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgeOptions {
    /// Discount γ, in (0, 1]; 1 for episodes of at most [`LONGEST_UNDISCOUNTED`] steps.
    pub discount: f64,
    /// Updates of each critic of fitted Q-evaluation; 0: importance weights only.
    pub updates: usize,
    /// Critics, at least 2 for an interval.
    pub critics: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A judgement that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// Frames.
    #[error("the recording has pixel observations; only vectors can be judged")]
    Pixels,
    /// Too few episodes.
    #[error(
        "the recording has {0} finished episodes; a judgement needs at least {LEAST_EPISODES}. \
         Record more, or check the end flags with data lint"
    )]
    FewEpisodes(usize),
    /// Nothing distinguishes good episodes from bad ones.
    #[error(
        "all {0} recorded episodes have the same return, so the recording cannot tell good actions \
         from bad ones"
    )]
    SameReturns(usize),
    /// Values of long episodes without a discount do not settle.
    #[error(
        "discount=1 needs episodes of at most {LONGEST_UNDISCOUNTED} steps, and the longest has {0}. \
         Use a discount below 1, such as 0.99"
    )]
    Undiscounted(usize),
    /// The caller stopped the judgement.
    #[error("the judgement was stopped")]
    Stopped,
    /// Neither weights nor critics.
    #[error(
        "updates=0 leaves importance weights only, which need discrete actions with recorded \
         log-probabilities (behavior_log_probs). Leave updates out"
    )]
    NoMethod,
    /// The replay failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Every episode has one step and was cut after it.
    #[error("the recording has no step with a known next step or an end of the task")]
    NoStep,
    /// A critic has a value that is not a number.
    #[error("the values of critic {critic} are not finite after {updates} updates")]
    Diverged {
        /// Its number, from 0.
        critic: usize,
        /// Updates that it made.
        updates: usize,
    },
    /// The loss of the clone is not finite.
    #[error(
        "the loss of the clone of the recorded policy is not finite after {updates} updates. Check \
         the recorded observations and actions with data lint"
    )]
    CloneDiverged {
        /// Updates of the clone.
        updates: usize,
    },
    /// The weights failed.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// Receives the name of a step, the number of its parts that are done, and their number; may stop
/// the judgement.
pub type Progress<'a> = dyn FnMut(&'static str, usize, usize) -> ControlFlow<()> + 'a;

/// Judges the candidates, agents of one run, by a recording.
///
/// # Errors
/// See [`JudgeError`].
///
/// # Panics
/// When there are no candidates: a caller's bug.
pub fn judge(
    of: &Request<'_>,
    candidates: &mut [Candidate],
    options: &JudgeOptions,
    progress: &mut Progress<'_>,
) -> Result<Judgement, JudgeError> {
    let (data, scale, n_candidates) = (of.data, of.action_scale, candidates.len());
    check(data, options)?;
    let mut policies = Vec::with_capacity(n_candidates + 1);
    for (i, Candidate { policy, play, .. }) in candidates.iter_mut().enumerate() {
        stop_or_go(progress("replaying the agent", i, n_candidates))?;
        let target = of.target_return;
        policies.push(Forced::replay(&mut **policy, play, target, data, scale, options.seed)?);
    }
    stop_or_go(progress("replaying the agent", n_candidates, n_candidates))?;
    let steps = Recorded::of(data, &policies, None, scale, None, None).ok_or(JudgeError::Pixels)?;
    let mut n_cloned = 0;
    let clone = BehaviorClone::fit(&steps, options.seed, &mut || {
        n_cloned += 1;
        let _ = progress("cloning the recorded policy", n_cloned, FOLDS);
    })?;
    let conditioning = of.is_conditioned.then(|| standardised(&policies[0].returns_to_go));
    policies.push(clone.policy(options.seed));
    let mut critics = Critics {
        fit: Fit {
            data,
            policies: &policies,
            conditioning: conditioning.as_deref(),
            action_scale: scale,
            episodes: None,
            limit: time_limit(data, options.discount),
        },
        options: FitOptions {
            gamma: options.discount,
            updates: options.updates,
            critics: options.critics,
            seed: options.seed,
            ..FitOptions::default()
        }
        .bounded(data.n_transitions()),
        at_other_discounts: None,
    };
    let fitted = match options.updates {
        0 => None,
        _ => Some(critics.all(progress)?),
    };
    let log_probs = data.behavior_log_probs().filter(|_| steps.is_discrete());
    let values = match log_probs.is_some() && options.updates > 0 {
        true => Some(critics.by_folds(progress)?),
        false => None,
    };
    let settings =
        Settings { discount: options.discount, seed: options.seed, ..Settings::default() };
    let weighing = Weighing { data, log_probs, n_policies: policies.len(), values };
    let known_answer = fitted.as_ref().map(|fitted| known_answer(fitted, n_candidates));

    let mut judged = Vec::with_capacity(n_candidates);
    for (i, Candidate { mode, .. }) in candidates.iter().enumerate() {
        let uncovered = clone.uncovered(&policies[i].actions);
        let mut evidence = Evidence {
            difference: None,
            others: Vec::new(),
            known_answer,
            mean_weight: None,
            uncovered: Some(uncovered),
            longest: data.episodes().longest(),
            has_log_probs: false,
            horizon: None,
        };
        let (mut estimates, mut overlap) = (Vec::new(), None);
        if let Some(weighed) = weighing.of(i, &policies[i].actions, &settings)? {
            // The weights need neither the clone nor its value.
            evidence =
                Evidence { has_log_probs: true, known_answer: None, uncovered: None, ..evidence };
            evidence.difference = weighed.estimates.last().and_then(|of| of.difference);
            evidence.others = weighed.others;
            evidence.mean_weight = weighed.mean_weight;
            evidence.horizon = weighed.overlap.horizon;
            (estimates, overlap) = (weighed.estimates, Some(weighed.overlap));
        }
        if let Some(fitted) = &fitted {
            let estimate = fitted.estimate(i);
            let difference = fitted.difference(i, n_candidates);
            if overlap.is_none() {
                evidence.difference = difference.interval;
                evidence.others = fitted.differences_over(i, n_candidates);
                evidence.others.extend(difference.per_critic);
            }
            estimates.push(ReturnEstimate {
                method: Method::FittedQ,
                value: estimate.value,
                interval: estimate.interval,
                difference: difference.interval,
            });
        }
        let is_answer = |evidence: &Evidence| evidence.failed().is_empty();
        if overlap.is_none() && is_answer(&evidence) {
            evidence.others.extend(critics.other_discounts(i, progress)?);
        }
        judged.push(Judged {
            mode: *mode,
            estimates,
            overlap,
            uncovered: Some(uncovered),
            verdict: evidence.verdict(),
        });
    }
    let recorded = weighing.recorded(&settings)?;
    Ok(Judgement {
        format: Judgement::FORMAT,
        run: of.run.to_owned(),
        step: of.step,
        target_return: of.target_return,
        is_conditioned: of.is_conditioned,
        recording: Recording {
            dataset: of.dataset.to_owned(),
            episodes: data.episodes().as_slice().len(),
            mean_length: data.n_transitions() as f64 / data.episodes().as_slice().len() as f64,
            longest: data.episodes().longest(),
            mean_return: recorded.mean,
            interval: recorded.interval,
            has_log_probs: log_probs.is_some(),
            trained: of.trained,
        },
        clone: fitted.as_ref().map(|fitted| {
            let estimate = fitted.estimate(n_candidates);
            ReturnEstimate {
                method: Method::FittedQ,
                value: estimate.value,
                interval: estimate.interval,
                difference: None,
            }
        }),
        discount: options.discount,
        level: settings.level,
        seed: options.seed,
        policies: judged,
    })
}

fn stop_or_go(flow: ControlFlow<()>) -> Result<(), JudgeError> {
    if flow.is_break() { Err(JudgeError::Stopped) } else { Ok(()) }
}

/// Refuses recordings that no method can judge.
fn check(data: &Dataset, options: &JudgeOptions) -> Result<(), JudgeError> {
    if !matches!(data.observations(), StoredObservations::Vectors { .. }) {
        return Err(JudgeError::Pixels);
    }
    let episodes = data.episodes().as_slice();
    if episodes.len() < LEAST_EPISODES {
        return Err(JudgeError::FewEpisodes(episodes.len()));
    }
    let longest = data.episodes().longest();
    if options.discount >= 1.0 && longest > LONGEST_UNDISCOUNTED {
        return Err(JudgeError::Undiscounted(longest));
    }
    let of = |row: usize| f64::from(data.rewards()[row]);
    let mut returns = episodes.iter().map(|episode| episode.range().map(of).sum::<f64>());
    let first = returns.next();
    if returns.all(|other| Some(other) == first) {
        return Err(JudgeError::SameReturns(episodes.len()));
    }
    let is_discrete = matches!(data.actions(), ActionColumn::Discrete { .. });
    if options.updates == 0 && !(is_discrete && data.behavior_log_probs().is_some()) {
        return Err(JudgeError::NoMethod);
    }
    Ok(())
}

/// The numbers with mean 0 and deviation 1.
fn standardised(numbers: &[f32]) -> Vec<f32> {
    let wide: Vec<f64> = numbers.iter().map(|&number| number.into()).collect();
    let [mean, error] = mean_and_error(&wide);
    let deviation = (error * (wide.len() as f64).sqrt()).max(f64::MIN_POSITIVE);
    wide.iter().map(|number| ((number - mean) / deviation) as f32).collect()
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

/// Fits of critics with the same policies; the last policy is the clone of the recorded one.
struct Critics<'a> {
    fit: Fit<'a>,
    options: FitOptions,
    /// `[discounts][policies]`: differences from the clone, after the first use.
    at_other_discounts: Option<Vec<Vec<f64>>>,
}

impl Critics<'_> {
    /// Critics of all episodes.
    fn all(&self, progress: &mut Progress<'_>) -> Result<Fitted, JudgeError> {
        let of_one = self.options.updates.div_ceil(self.options.estimate_every);
        let (mut done, all) = (0, self.options.critics * of_one);
        fit(&self.fit, &self.options, &mut || {
            done += 1;
            progress("fitting critics", done, all)
        })
    }

    /// `Q` and `V` at every row, `[rows · policies]`, from critics that did not learn from the
    /// row's fold.
    fn by_folds(&self, progress: &mut Progress<'_>) -> Result<[Vec<f64>; 2], JudgeError> {
        let (data, n_policies) = (self.fit.data, self.fit.policies.len());
        let episodes = data.episodes().as_slice();
        let n = data.n_transitions() * n_policies;
        let mut all = [vec![0.0; n], vec![0.0; n]];
        let options = FitOptions { critics: 1, ..self.options.clone() };
        for (fold, left_out) in folds(episodes.len(), FOLDS, options.seed).iter().enumerate() {
            let others: Vec<usize> =
                (0..episodes.len()).filter(|of| left_out.binary_search(of).is_err()).collect();
            let of_fold = Fit { episodes: Some(&others), ..self.fit };
            let mut go_on = || progress("fitting critics without a fold", fold, FOLDS);
            let fitted = fit(&of_fold, &options, &mut go_on)?;
            let rows: Vec<usize> =
                left_out.iter().flat_map(|&episode| episodes[episode].range()).collect();
            for (all, values) in all.iter_mut().zip(fitted.values(&rows)) {
                for (&row, values) in rows.iter().zip(values.chunks_exact(n_policies)) {
                    all[row * n_policies..][..n_policies].copy_from_slice(values);
                }
            }
            let _ = progress("fitting critics without a fold", fold + 1, FOLDS);
        }
        Ok(all)
    }

    /// The differences of a policy from the clone at the other [`DISCOUNTS`], by one critic each.
    fn other_discounts(
        &mut self,
        policy: usize,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<f64>, JudgeError> {
        if self.at_other_discounts.is_none() {
            let others = DISCOUNTS.map(|gamma| (gamma != self.options.gamma).then_some(gamma));
            let others: Vec<f64> = others.into_iter().flatten().collect();
            let mut all = Vec::new();
            for &gamma in &others {
                let options = FitOptions { gamma, critics: 1, ..self.options.clone() };
                let of_discount = Fit { limit: time_limit(self.fit.data, gamma), ..self.fit };
                let what = "fitting critics at other discounts";
                let mut go_on = || progress(what, all.len(), others.len());
                let fitted = fit(&of_discount, &options, &mut go_on)?;
                let clone = self.fit.policies.len() - 1;
                all.push((0..clone).map(|of| fitted.difference(of, clone).value).collect());
                let _ = progress(what, all.len(), others.len());
            }
            self.at_other_discounts = Some(all);
        }
        let all = self.at_other_discounts.iter().flatten();
        Ok(all.map(|of_discount: &Vec<f64>| of_discount[policy]).collect())
    }
}
