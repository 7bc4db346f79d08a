//! [`judge`]: estimates for the acting modes of one run, and an answer for each.
//!
//! Discrete actions with recorded log-probabilities get importance weights, all other recordings
//! fitted Q-evaluation. The cheapest check refuses first: that of the recording, then those of the
//! weights or of the recorded policy's clone. Critics are fitted only where an answer is still possible.

use overtone_core::{
    ActingMode, ActionScale, Play, Policy,
    judgement::{Check, Judged, Judgement, Recording, Trained, Verdict},
};
use overtone_data::{ActionColumn, Dataset, StoredObservations};

use crate::{
    by_critics::by_critics,
    by_weights::by_weights,
    checks::LONGEST_WITHOUT_LOG_PROBS,
    critics::Critics,
    error::{JudgeError, LEAST_EPISODES, LONGEST_UNDISCOUNTED, Progress, stop_or_go},
    fit::{Fit, FitOptions},
    forced::{Forced, ForcedActions},
    log_probs,
    recorded_steps::time_limit,
    statistics::mean_and_error,
    weighing::{Weighing, recorded_return},
    weights::Settings,
};

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

/// Options of a judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgeOptions {
    /// Discount γ, in (0, 1]; 1 for episodes of at most 100 steps.
    pub discount: f64,
    /// Updates of each critic of fitted Q-evaluation; 0: importance weights only.
    pub updates: usize,
    /// Critics, at least 2 for an interval.
    pub critics: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// An outside policy at the rows of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Its actions at every row.
    Actions(ForcedActions),
    /// `[rows]`: its probabilities, or densities, of the recorded actions.
    OfRecorded(Vec<f32>),
}

/// The policies to judge.
enum Policies<'a> {
    /// An agent in several acting modes, to be replayed.
    Agent(&'a mut [Candidate]),
    /// An outside policy.
    Known(Known),
}

impl Policies<'_> {
    /// The actions of each at the recorded steps.
    fn forced(
        self,
        of: &Request<'_>,
        seed: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Forced>, JudgeError> {
        match self {
            Self::Agent(candidates) => replay(of, candidates, seed, progress),
            Self::Known(Known::Actions(actions)) => {
                Ok(vec![Forced { actions, returns_to_go: Vec::new() }])
            }
            Self::Known(Known::OfRecorded(_)) => Err(JudgeError::NoLogProbs),
        }
    }
}

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
    let modes: Vec<ActingMode> = candidates.iter().map(|of| of.mode).collect();
    judged(of, &modes, Policies::Agent(candidates), options, progress)
}

/// Judges a policy of another program by a recording.
///
/// # Errors
/// See [`JudgeError`].
///
/// # Panics
/// When the policy has other rows or actions than the recording: a caller's bug.
pub fn judge_known(
    of: &Request<'_>,
    policy: Known,
    options: &JudgeOptions,
    progress: &mut Progress<'_>,
) -> Result<Judgement, JudgeError> {
    judged(of, &[ActingMode::default()], Policies::Known(policy), options, progress)
}

fn judged(
    of: &Request<'_>,
    modes: &[ActingMode],
    policies: Policies<'_>,
    options: &JudgeOptions,
    progress: &mut Progress<'_>,
) -> Result<Judgement, JudgeError> {
    let data = of.data;
    check(data, options.discount)?;
    // Ratios need the probability of each recorded action, which agents have for discrete ones only.
    let of_recorded = matches!(policies, Policies::Known(Known::OfRecorded(_)));
    let is_discrete = matches!(data.actions(), ActionColumn::Discrete { .. });
    let log_probs = data.behavior_log_probs().filter(|_| is_discrete || of_recorded);
    if options.updates == 0 && log_probs.is_none() {
        return Err(JudgeError::NoMethod);
    }
    if of_recorded && log_probs.is_none() {
        return Err(JudgeError::NoLogProbs);
    }
    let settings =
        Settings { discount: options.discount, seed: options.seed, ..Settings::default() };
    let (policies, clone) = match (refusal(data, log_probs), policies, log_probs) {
        (Some(check), ..) => {
            let refused = |&mode: &ActingMode| Judged {
                mode,
                estimates: Vec::new(),
                overlap: None,
                uncovered: None,
                level: settings.level,
                verdict: Verdict::CannotTell { reasons: vec![check] },
            };
            (modes.iter().map(refused).collect(), None)
        }
        (None, Policies::Known(Known::OfRecorded(probs)), Some(log_probs)) => {
            let weighing = Weighing::new(data, log_probs, options.discount);
            let ratios = weighing.log_ratios(|row| probs[row].into());
            (by_weights(modes, &weighing, &settings, &[ratios], None, progress)?, None)
        }
        (None, policies, log_probs) => {
            let policies = policies.forced(of, options.seed, progress)?;
            let conditioning = of.is_conditioned.then(|| standardised(&policies[0].returns_to_go));
            let fit = Fit {
                data,
                policies: &policies,
                conditioning: conditioning.as_deref(),
                action_scale: of.action_scale,
                episodes: None,
                limit: time_limit(data, options.discount),
            };
            let fit_options = FitOptions {
                gamma: options.discount,
                updates: options.updates,
                critics: options.critics,
                seed: options.seed,
                ..FitOptions::default()
            }
            .bounded(data.n_transitions());
            match log_probs {
                Some(log_probs) => {
                    let weighing = Weighing::new(data, log_probs, options.discount);
                    let ratios: Vec<Vec<f64>> =
                        policies.iter().map(|policy| weighing.log_ratios_of(policy)).collect();
                    let critics = Critics { fit, options: fit_options };
                    let critics = Some(critics).filter(|_| options.updates > 0);
                    let judged =
                        by_weights(modes, &weighing, &settings, &ratios, critics, progress)?;
                    (judged, None)
                }
                None => by_critics(modes, &fit, &fit_options, settings.level, progress)?,
            }
        }
    };
    let recorded = recorded_return(data, &settings)?;
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
        clone,
        discount: options.discount,
        level: settings.level,
        seed: options.seed,
        policies,
    })
}

/// The check that refuses every agent by this recording, if there is one.
fn refusal(data: &Dataset, log_probs: Option<&[f32]>) -> Option<Check> {
    let Some(log_probs) = log_probs else {
        let is_long = data.episodes().longest() > LONGEST_WITHOUT_LOG_PROBS;
        return is_long.then_some(Check::LongEpisodes);
    };
    (!log_probs::fit_actions(data, log_probs)).then_some(Check::LogProbabilities)
}

/// The actions of each candidate at the recorded steps.
fn replay(
    of: &Request<'_>,
    candidates: &mut [Candidate],
    seed: u64,
    progress: &mut Progress<'_>,
) -> Result<Vec<Forced>, JudgeError> {
    let (what, n) = ("replaying the agent", candidates.len());
    let mut policies = Vec::with_capacity(n + 1);
    for (i, Candidate { policy, play, .. }) in candidates.iter_mut().enumerate() {
        stop_or_go(progress(what, i, n))?;
        let (policy, target) = (&mut **policy, of.target_return);
        policies.push(Forced::replay(policy, play, target, of.data, of.action_scale, seed)?);
    }
    stop_or_go(progress(what, n, n))?;
    Ok(policies)
}

/// Refuses recordings that no method can judge.
fn check(data: &Dataset, discount: f64) -> Result<(), JudgeError> {
    if !matches!(data.observations(), StoredObservations::Vectors { .. }) {
        return Err(JudgeError::Pixels);
    }
    if data.has_stops() {
        return Err(JudgeError::Stops);
    }
    let episodes = data.episodes().as_slice();
    if episodes.len() < LEAST_EPISODES {
        return Err(JudgeError::FewEpisodes(episodes.len()));
    }
    let longest = data.episodes().longest();
    if discount >= 1.0 && longest > LONGEST_UNDISCOUNTED {
        return Err(JudgeError::Undiscounted(longest));
    }
    let of = |row: usize| f64::from(data.rewards()[row]);
    let mut returns = episodes.iter().map(|episode| episode.range().map(of).sum::<f64>());
    let first = returns.next();
    if returns.all(|other| Some(other) == first) {
        return Err(JudgeError::SameReturns(episodes.len()));
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
