//! [`Judgement`]: the contents of `judgement.json`, estimates of returns from a recording alone.
//!
//! An estimate is not a score: a score is measured in episodes that an agent plays.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{acting_mode::ActingMode, interval::Interval};

/// Estimates for the acting modes of one run from one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The layout of this file: [`Judgement::FORMAT`].
    pub format: u32,
    /// Name of the run.
    pub run: String,
    /// Update of the run's checkpoint.
    pub step: u64,
    /// The agent's target return.
    pub target_return: f32,
    /// Whether the agent is conditioned on it.
    pub is_conditioned: bool,
    /// The recording.
    pub recording: Recording,
    /// The estimate for a clone of the recorded policy, whose return is known. Absent without
    /// fitted Q-evaluation.
    pub clone: Option<ReturnEstimate>,
    /// Discount of all returns in this file, in (0, 1].
    pub discount: f64,
    /// Fraction of recordings in which all answers together are right, such as 0.95, and the level of
    /// the recording's interval.
    pub level: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// One entry per acting mode.
    pub policies: Vec<Judged>,
}

impl Judgement {
    /// A mode in a few words; `own mode` for an agent that is not conditioned on a return.
    pub fn label(&self, mode: &ActingMode) -> String {
        mode.label_of(self.is_conditioned)
    }

    /// File name in the directory of the run.
    pub const FILE: &str = "judgement.json";

    /// The layout that this version writes. A change of a field increases it.
    pub const FORMAT: u32 = 3;
}

/// The recording behind the estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The dataset's name or path.
    pub dataset: String,
    /// Finished episodes. Fragments are left out.
    pub episodes: usize,
    /// Mean length of these episodes in steps.
    pub mean_length: f64,
    /// Steps of the longest episode.
    pub longest: usize,
    /// Mean discounted return of the recorded policy, in the recording's units.
    pub mean_return: f64,
    /// Interval of the mean. Absent for one episode.
    pub interval: Option<Interval>,
    /// Whether the recording has the log-probabilities of its actions.
    pub has_log_probs: bool,
    /// Whether the run, or a run that initialised it, trained on these episodes.
    pub trained: Trained,
}

/// Whether an agent trained on the episodes that judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trained {
    /// On some of them.
    Yes,
    /// On none of them.
    No,
    /// The training data is missing or has changed, or the episodes cannot be told from it.
    Unknown,
}

/// One acting mode with everything that was estimated for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// The mode.
    pub mode: ActingMode,
    /// Estimates of the mean discounted return, by different methods.
    pub estimates: Vec<ReturnEstimate>,
    /// Overlap with the recorded policy (importance weights only).
    pub overlap: Option<Overlap>,
    /// Share of steps on which the policy's action is rarer than nearly all recorded actions.
    /// Absent without a clone of the recorded policy.
    pub uncovered: Option<f64>,
    /// Level of this mode's intervals: higher than the judgement's if several modes passed the other
    /// checks, because one of these differs by chance more often than one alone.
    pub level: f64,
    /// Comparison with the recorded policy.
    pub verdict: Verdict,
}

/// An estimate of a policy's mean discounted return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnEstimate {
    /// The method.
    pub method: Method,
    /// The estimate, in the recording's units.
    pub value: f64,
    /// Its interval. Absent if it cannot be computed, as for one episode.
    pub interval: Option<Interval>,
    /// Interval of the difference between the estimate and the recorded mean return, from the same
    /// samples.
    pub difference: Option<Interval>,
}

/// A method of estimation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Per-decision importance sampling.
    Pdis,
    /// Weighted per-decision importance sampling.
    Wpdis,
    /// The weighted doubly robust estimator.
    Wdr,
    /// Fitted Q-evaluation.
    FittedQ,
}

/// Number of recorded episodes that the weights leave in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    /// `[steps]`, the effective sample size at each step of an episode, at most the number of
    /// episodes.
    pub effective: Vec<f64>,
    /// The first step with an effective sample size below a tenth of the episodes. Absent if there
    /// is none.
    pub horizon: Option<usize>,
}

/// Comparison of a policy with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// Better than the recorded policy.
    BetterThanRecorded,
    /// Worse than the recorded policy.
    WorseThanRecorded,
    /// No answer.
    CannotTell {
        /// The checks that failed, at least one.
        reasons: Vec<Check>,
    },
}

/// A condition of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The method reproduces the known return of the recorded policy.
    KnownAnswer,
    /// The policy's actions are like recorded actions.
    Coverage,
    /// The estimate is a return that episodes can have.
    PossibleReturns,
    /// The recorded log-probabilities can be those of the recorded actions.
    LogProbabilities,
    /// Discounts, seeds and numbers of updates do not change the sign of the difference from the
    /// recorded policy.
    Order,
    /// The importance weights have the mean 1. It is higher if the agent learned these episodes by
    /// heart.
    Weights,
    /// The episodes are short enough for the method.
    LongEpisodes,
    /// Enough recorded episodes are like the agent's, up to their end.
    Overlap,
    /// The difference from the recorded policy is larger than its uncertainty.
    Difference,
}

impl Method {
    /// The method in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pdis => "per-decision importance weights (PDIS)",
            Self::Wpdis => "weighted importance weights (WPDIS)",
            Self::Wdr => "weighted doubly robust (WDR)",
            Self::FittedQ => "fitted Q-evaluation",
        }
    }
}

impl Judged {
    /// The estimate behind the verdict: WDR, else WPDIS, else fitted Q-evaluation.
    pub fn deciding(&self) -> Option<&ReturnEstimate> {
        let by = |method| self.estimates.iter().find(|estimate| estimate.method == method);
        [Method::Wdr, Method::Wpdis, Method::FittedQ].into_iter().find_map(by)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KnownAnswer => "known answer",
            Self::Coverage => "coverage",
            Self::PossibleReturns => "possible returns",
            Self::LogProbabilities => "log probabilities",
            Self::Order => "order",
            Self::Weights => "weights",
            Self::LongEpisodes => "long episodes",
            Self::Overlap => "overlap",
            Self::Difference => "difference",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BetterThanRecorded => f.write_str("better than recorded"),
            Self::WorseThanRecorded => f.write_str("worse than recorded"),
            Self::CannotTell { reasons } => {
                let reasons: Vec<String> = reasons.iter().map(Check::to_string).collect();
                write!(f, "cannot tell: {}", reasons.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_in_words() {
        let verdict =
            Verdict::CannotTell { reasons: vec![Check::KnownAnswer, Check::LongEpisodes] };
        assert_eq!(verdict.to_string(), "cannot tell: known answer, long episodes");
        let words =
            [Verdict::BetterThanRecorded, Verdict::WorseThanRecorded].map(|v| v.to_string());
        assert_eq!(words, ["better than recorded", "worse than recorded"]);
    }

    #[test]
    fn a_judgement_survives_json() {
        let interval = Some(Interval { low: 1.5, high: 2.5 });
        let estimate = ReturnEstimate {
            method: Method::FittedQ,
            value: 2.0,
            interval,
            difference: Some(Interval { low: -0.25, high: 0.75 }),
        };
        let judged = Judged {
            mode: ActingMode::default(),
            estimates: vec![ReturnEstimate { method: Method::Wdr, ..estimate }, estimate],
            overlap: Some(Overlap { effective: vec![30.0, 2.5], horizon: Some(1) }),
            uncovered: Some(0.0125),
            level: 0.975,
            verdict: Verdict::CannotTell { reasons: vec![Check::LongEpisodes] },
        };
        let better = Judged { verdict: Verdict::BetterThanRecorded, ..judged.clone() };
        let judgement = Judgement {
            format: Judgement::FORMAT,
            run: "clinic-1".into(),
            step: 500,
            target_return: 0.75,
            is_conditioned: true,
            clone: Some(estimate),
            recording: Recording {
                dataset: "clinic".into(),
                episodes: 30,
                mean_length: 8.5,
                longest: 12,
                mean_return: 1.75,
                interval,
                has_log_probs: true,
                trained: Trained::Yes,
            },
            discount: 0.99,
            level: 0.95,
            seed: 1,
            policies: vec![judged, better],
        };
        assert_eq!(judgement.label(&ActingMode::default()), "target return");
        let cloning = Judgement { is_conditioned: false, ..judgement.clone() };
        assert_eq!(cloning.label(&ActingMode::default()), "own mode");
        let json = serde_json::to_string(&judgement).unwrap();
        assert_eq!(serde_json::from_str::<Judgement>(&json).unwrap(), judgement);
        for written in [
            r#""method":"fitted_q""#,
            r#""verdict":{"cannot_tell":{"reasons":["long_episodes"]}}"#,
            r#""verdict":"better_than_recorded""#,
        ] {
            assert!(json.contains(written), "{json}");
        }
        assert!(!json.contains("score"), "an estimate is not a score");
    }
}
