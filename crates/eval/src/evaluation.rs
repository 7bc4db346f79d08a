//! The report of an evaluation: every episode, statistics for each target return, and everything
//! needed to repeat the evaluation. It is written as `evaluation.json` and printed as a table.

mod text;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overtone_core::protocol::Difference;
use overtone_core::{BinOrder, Outcome, Play, Reference, Task};
use serde::{Deserialize, Serialize};

pub use self::text::outcome_name;
use crate::{
    choice::Choice,
    report_file::{FORMAT, ReportError, write_json},
    rollout::{FailedEpisode, Plan, PlayedDistributions, PlayedEpisode, Rollout, Timing},
    smoothness::Pooled,
    statistics::{Bootstrap, Estimate, proportion},
    summary::Summary,
};

/// The contents of `evaluation.json` in an error.
const WHAT: &str = "an evaluation report";

/// Reference to the evaluated weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRef {
    /// Path of the weights, relative to the run directory if they are inside it.
    pub path: PathBuf,
    /// Number of updates.
    pub step: u64,
}

/// The settings of an evaluation that an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedSettings {
    /// The target return.
    pub target: bool,
    /// [`ActingMode::temperature`](overtone_core::ActingMode::temperature)
    pub temperature: bool,
    /// [`ActingMode::return_quantile`](overtone_core::ActingMode::return_quantile)
    pub return_quantile: bool,
    /// [`ActingMode::top_percent`](overtone_core::ActingMode::top_percent)
    pub top_percent: bool,
}

impl UsedSettings {
    /// Every setting.
    pub const ALL: Self =
        Self { target: true, temperature: true, return_quantile: true, top_percent: true };
}

/// Setting of an evaluation: the part of a report that is known before the first episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The task.
    pub task: Task,
    /// The simulator, such as `MuJoCo 3.17.0, Hopper-v4`.
    pub simulator: String,
    /// MD5 of the game's ROM (Atari only).
    pub rom_md5: Option<String>,
    /// Short description of the policy, such as `decision transformer, linear head`.
    pub policy: String,
    /// The protocol.
    pub protocol: Play,
    /// Differences of the protocol and the targets from the agent's training.
    pub differences: Vec<Difference>,
    /// The settings that the agent uses.
    pub used_settings: UsedSettings,
    /// The choice of the acting mode; absent if the mode was set explicitly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The weights; absent for a policy without weights.
    pub checkpoint: Option<CheckpointRef>,
    /// Hash of the training dataset.
    pub dataset_hash: Option<String>,
    /// Command line that repeats the evaluation.
    pub command: String,
}

impl Setting {
    /// Whether the agent has a Fourier head, so that the smoothness of its actions says something.
    pub fn has_fourier_head(&self) -> bool {
        let is_fourier = |part: &str| part.starts_with("fourier") && part.ends_with(" head");
        self.policy.split(", ").any(is_fourier)
    }

    /// The condition of the agent as text: `target` itself or `top 10 %`. `None` if the agent is
    /// not conditioned on either.
    pub fn condition(&self, target: f32) -> Option<String> {
        match self.protocol.acting.top_percent {
            _ if self.used_settings.target => Some(target.to_string()),
            percent if percent > 0.0 && self.used_settings.top_percent => {
                Some(format!("top {percent} %"))
            }
            _ => None,
        }
    }
}

/// Smoothness of the action distributions (see [`smoothness`](crate::smoothness)), pooled over all
/// steps of all episodes of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmoothnessResult {
    /// Number of bins of each distribution. Only values for the same number can be compared.
    pub n_bins: usize,
    /// Order of the bins.
    pub order: BinOrder,
    /// Number of distributions.
    pub n: u64,
    /// Mean over the distributions; lower is smoother.
    pub mean: f64,
    /// Sample standard deviation (`ddof` 1) over the distributions; absent for fewer than two.
    pub sd: Option<f64>,
}

/// An action and its mean probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionProbability {
    /// The environment's name of the action.
    pub action: String,
    /// Mean probability of the action, over all steps of all episodes.
    pub probability: f64,
}

/// Statistics of the episodes of one target return. Unknown keys are ignored, because earlier
/// reports have more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetResult {
    /// The target return, in the protocol's return units.
    pub target_return: f32,
    /// Scores.
    pub raw_return: Summary,
    /// Sums of clipped rewards.
    pub clipped_return: Summary,
    /// Actions per episode.
    pub length: Summary,
    /// Scores, normalized by the setting's reference scores.
    pub normalized: Option<Summary>,
    /// Number of truncated episodes.
    pub truncated: usize,
    /// The success rate and Wilson's 95 % interval; see [`success_rate`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<Estimate>,
    /// Smoothness of the action distributions; absent if the policy does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<SmoothnessResult>,
    /// Mean probability of each action, in the order of the bins of `smoothness`; absent if the
    /// policy does not report distributions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<ActionProbability>>,
}

/// A finished evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Version of this layout.
    pub format: u32,
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The evaluation's seed; episode seeds are derived from it.
    pub seed: u64,
    /// Maximum number of episodes in parallel.
    pub parallel_episodes: usize,
    /// Actions taken in all episodes.
    pub steps: u64,
    /// Wall-clock seconds, including other evaluations that ran at the same time.
    pub wall_seconds: f64,
    /// Actions per second of this evaluation only.
    pub steps_per_second: f64,
    /// Breakdown of the time of all evaluations that ran together.
    pub timing: Timing,
    /// The target returns in their given order.
    pub target_returns: Vec<f32>,
    /// Statistics in the order of the targets, without targets whose episodes all failed.
    pub targets: Vec<TargetResult>,
    /// All finished episodes.
    pub episodes: Vec<PlayedEpisode>,
    /// Failed episodes, which are not in any statistic. Absent if none failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedEpisode>,
}

/// The part of a report that all format versions share.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Evaluation {
    /// The report of a rollout.
    ///
    /// # Errors
    /// When every episode failed, or a return is not finite.
    pub fn new(setting: Setting, plan: &Plan, rollout: Rollout) -> Result<Self, ReportError> {
        if let (true, Some(first)) = (rollout.episodes.is_empty(), rollout.failed.first()) {
            let reason = first.reason.clone();
            return Err(ReportError::AllFailed { failed: rollout.failed.len(), reason });
        }
        let mut targets = Vec::with_capacity(plan.targets.len());
        let mut first = 0;
        let reference = setting.task.reference.as_ref();
        for (&target, &finished) in plan.targets.iter().zip(&rollout.finished) {
            let episodes = first..first + finished;
            first = episodes.end;
            let failed = rollout.failed.iter().any(|episode| episode.target_return == target);
            if finished == 0 && failed {
                continue;
            }
            let mut result = summarize(target, &rollout.episodes[episodes.clone()], reference)
                .ok_or(ReportError::NoScore(target))?;
            if let Some(played) = &rollout.played {
                (result.smoothness, result.actions) = distributions_in(played, episodes);
            }
            targets.push(result);
        }
        Ok(Self {
            format: FORMAT,
            setting,
            seed: plan.seed,
            parallel_episodes: rollout.slots,
            steps: rollout.steps,
            wall_seconds: rollout.wall_seconds,
            steps_per_second: rollout.steps as f64 / rollout.wall_seconds.max(1e-9),
            timing: rollout.timing,
            target_returns: plan.targets.clone(),
            targets,
            episodes: rollout.episodes,
            failed: rollout.failed,
        })
    }

    /// A sentence about failed episodes; `None` if none failed.
    pub fn warning(&self) -> Option<String> {
        let first = self.failed.first()?;
        let (failed, all) = (self.failed.len(), self.failed.len() + self.episodes.len());
        Some(format!(
            "{failed} of {all} episodes failed and are not included in the numbers; first: episode \
             {} of target {} after {} steps: {}",
            first.episode, first.target_return, first.length, first.reason
        ))
    }

    /// Writes the report as JSON. It is written to a temporary file and renamed, so `path` is never
    /// incomplete.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        write_json(path, self, WHAT)
    }

    /// Checks whether a report can be written to `path`, without changing anything.
    ///
    /// # Errors
    /// When its directory does not exist or is not writable.
    pub fn check_writable(path: &Path) -> Result<(), ReportError> {
        overtone_files::check_writable(path)
            .map_err(|source| ReportError::File { path: path.to_path_buf(), source })
    }

    /// Reads a report.
    ///
    /// # Errors
    /// When the file cannot be read or is not a report of this version.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let json = fs::read(path)
            .map_err(|source| ReportError::File { path: path.to_path_buf(), source })?;
        let wrong = |source| ReportError::Json { path: path.to_path_buf(), what: WHAT, source };
        let Version { format } = serde_json::from_slice(&json).map_err(wrong)?;
        if format != FORMAT {
            return Err(ReportError::OtherFormat { path: path.to_path_buf(), format });
        }
        serde_json::from_slice(&json).map_err(wrong)
    }

    /// File name of a run's default report: its own protocol and last weights.
    pub const FILE: &str = "evaluation.json";

    /// All reports in a run directory, for any protocol and any weights. The
    /// [default report](Self::FILE) comes first; the others are sorted by name.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let failed = |source| ReportError::File { path: folder.to_path_buf(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        // A video's description (`*.gif.json`) is not a report.
        let is_report = |name: &str| name.ends_with(".json") && !name.ends_with(".gif.json");
        names.retain(|name| name.starts_with("evaluation") && is_report(name));
        names.sort_by_key(|name| (name != Self::FILE, name.clone()));
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// The result of the first target return; `None` if all its episodes failed.
    pub fn first_target(&self) -> Option<&TargetResult> {
        let first = self.target_returns.first()?;
        self.targets.iter().find(|result| result.target_return == *first)
    }
}

fn summarize(
    target_return: f32,
    episodes: &[PlayedEpisode],
    reference: Option<&Reference>,
) -> Option<TargetResult> {
    let column = |of: &dyn Fn(&PlayedEpisode) -> f64| {
        Summary::of(&episodes.iter().map(of).collect::<Vec<_>>())
    };
    let normalized = match reference {
        Some(pair) => Some(column(&|episode| pair.normalize(episode.raw_return))?),
        None => None,
    };
    Some(TargetResult {
        target_return,
        raw_return: column(&|episode| episode.raw_return)?,
        clipped_return: column(&|episode| episode.clipped_return)?,
        length: column(&|episode| episode.length as f64)?,
        normalized,
        truncated: episodes.iter().filter(|e| e.outcome == Outcome::Truncated).count(),
        success: success_rate(episodes, Bootstrap::default().level),
        smoothness: None,
        actions: None,
    })
}

/// The fraction of these episodes that succeeded, with Wilson's interval of this level; `None` if
/// an episode does not say whether it succeeded.
pub fn success_rate<'a>(
    episodes: impl IntoIterator<Item = &'a PlayedEpisode>,
    level: f64,
) -> Option<Estimate> {
    let successes: Vec<bool> =
        episodes.into_iter().map(|episode| episode.success).collect::<Option<_>>()?;
    let n_successes = successes.iter().filter(|success| **success).count();
    (!successes.is_empty()).then(|| proportion(n_successes, successes.len(), level))
}

/// Smoothness and mean of the action distributions in these episodes.
fn distributions_in(
    played: &PlayedDistributions,
    episodes: Range<usize>,
) -> (Option<SmoothnessResult>, Option<Vec<ActionProbability>>) {
    let mut pooled = Pooled::default();
    played.smoothness[episodes.clone()].iter().for_each(|episode| pooled.join(episode));
    if pooled.n == 0 {
        return (None, None);
    }
    let smoothness = SmoothnessResult {
        n_bins: played.actions.len(),
        order: played.order,
        n: pooled.n,
        mean: pooled.mean,
        sd: pooled.sd(),
    };
    let share = |bin: usize| {
        played.sums[episodes.clone()].iter().map(|sums| sums[bin]).sum::<f64>() / pooled.n as f64
    };
    let shares = played
        .actions
        .iter()
        .enumerate()
        .map(|(bin, action)| ActionProbability { action: action.clone(), probability: share(bin) });
    (Some(smoothness), Some(shares.collect()))
}
