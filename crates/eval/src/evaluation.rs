//! The report of an evaluation: every episode, statistics for each target return, and all
//! that is needed to play it again. Written as `evaluation.json`, printed as a table.

mod text;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overtone_core::protocol::Difference;
use overtone_core::{BinOrder, Outcome, Play, Reference, Task};
use serde::{Deserialize, Serialize};

pub use self::text::{describe_differences, ended, n_episodes};
use crate::rollout::ActionHistograms;
use crate::{
    Choice, FailedEpisode, Pace, Plan, PlayedDistributions, PlayedEpisode, Pooled, Rollout, Summary,
};

/// Version of `evaluation.json`.
pub const FORMAT: u32 = 4;

/// Which weights were played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRef {
    /// Where they lie, relative to the run's folder where they are inside it.
    pub path: PathBuf,
    /// Updates they had.
    pub step: u64,
}

/// Which settings of play change what an agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heeds {
    /// The return that is asked for.
    pub target: bool,
    /// [`ActingMode::temperature`](overtone_core::ActingMode::temperature)
    pub temperature: bool,
    /// [`ActingMode::return_quantile`](overtone_core::ActingMode::return_quantile)
    pub return_quantile: bool,
    /// [`ActingMode::top_percent`](overtone_core::ActingMode::top_percent)
    pub top_percent: bool,
}

impl Heeds {
    /// Every setting.
    pub const ALL: Self =
        Self { target: true, temperature: true, return_quantile: true, top_percent: true };
}

/// What was played, and how: the part of a report that is known before the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// What was played.
    pub task: Task,
    /// What ran the environment, such as `MuJoCo 3.17.0, Hopper-v4`.
    pub simulator: String,
    /// MD5 of the game's ROM, for Atari.
    pub rom_md5: Option<String>,
    /// The policy in a few words, such as `decision transformer, linear head`.
    pub policy: String,
    /// The protocol it was played by.
    pub protocol: Play,
    /// What of it, and of the targets, differs from the agent's training.
    pub differences: Vec<Difference>,
    /// Which settings of play change what the agent does.
    pub heeds: Heeds,
    /// How some of it was chosen; absent where all was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The weights; absent for a policy without any.
    pub checkpoint: Option<CheckpointRef>,
    /// Hash of the dataset it was trained on.
    pub dataset_hash: Option<String>,
    /// The command line that plays it again.
    pub command: String,
}

impl Setting {
    /// What the agent was told of `target`, to be read: that number, or `top 10 %`; `None` of one
    /// that is told neither.
    pub fn told(&self, target: f32) -> Option<String> {
        match self.protocol.acting.top_percent {
            _ if self.heeds.target => Some(target.to_string()),
            percent if percent > 0.0 && self.heeds.top_percent => Some(format!("top {percent} %")),
            _ => None,
        }
    }
}

/// Smoothness of the distributions that actions were drawn from (see
/// [`smoothness`](crate::smoothness)): all steps of all episodes of a target, pooled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmoothnessResult {
    /// Bins of each distribution; only numbers of the same count can be compared.
    pub n_bins: usize,
    /// Which bins are neighbours.
    pub order: BinOrder,
    /// Distributions.
    pub n: u64,
    /// Mean over them; lower is smoother.
    pub mean: f64,
    /// Sample standard deviation (`ddof` 1) over them; absent for fewer than two.
    pub sd: Option<f64>,
}

/// An action, and its probability on average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionShare {
    /// The environment's name of the action.
    pub action: String,
    /// Mean over all steps of all episodes of its probability when an action was drawn.
    pub share: f64,
}

/// The episodes of one target return, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetResult {
    /// The return asked for, in the protocol's return units.
    pub target_return: f32,
    /// Scores.
    pub raw_return: Summary,
    /// Sums of clipped rewards.
    pub clipped_return: Summary,
    /// Actions per episode.
    pub length: Summary,
    /// Scores, normalized by the setting's reference scores.
    pub normalized: Option<Summary>,
    /// Episodes that a limit cut.
    pub truncated: usize,
    /// Absent for a policy that does not say what it draws from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<SmoothnessResult>,
    /// How probable each action was, in the order of the smoothness' bins; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<ActionShare>>,
    /// Histogram of each dimension of a continuous action; absent for discrete actions and for
    /// those without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_histograms: Option<Vec<ActionHistogram>>,
}

/// How often a dimension of a continuous action had which values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionHistogram {
    /// Lower end of the first bin: the dimension's lower bound.
    pub low: f32,
    /// Upper end of the last bin.
    pub high: f32,
    /// Share of all steps of all episodes in each bin; the bins are equally wide.
    pub shares: Vec<f64>,
}

/// A finished evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Version of this layout.
    pub format: u32,
    /// What was played, and how.
    #[serde(flatten)]
    pub setting: Setting,
    /// The evaluation's seed; episode seeds are derived from it.
    pub seed: u64,
    /// Episodes played at once, at most.
    pub parallel_episodes: usize,
    /// Actions taken, all episodes together.
    pub steps: u64,
    /// Seconds of playing, what was played together with this included.
    pub wall_seconds: f64,
    /// Actions per second, only this evaluation's.
    pub steps_per_second: f64,
    /// Where the time went, for all that was played together.
    pub pace: Pace,
    /// The target returns, in the order in which they were given.
    pub asked: Vec<f32>,
    /// Statistics, in the order the targets were asked for; a target of which every episode
    /// failed is left out.
    pub targets: Vec<TargetResult>,
    /// Every episode that came to its end.
    pub episodes: Vec<PlayedEpisode>,
    /// The episodes whose environment failed: in no statistic. Absent where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedEpisode>,
}

/// The part of a report that every version of it has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// What every version of a report says of the weights.
#[derive(Deserialize)]
struct Weights {
    checkpoint: Option<Step>,
}

#[derive(Deserialize)]
struct Step {
    step: u64,
}

/// Why a report could not be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not one episode came to its end.
    #[error("all {failed} episodes failed; the first: {reason}")]
    AllFailed {
        /// How many.
        failed: usize,
        /// What the first failed of.
        reason: String,
    },
    /// A target without an episode, or an episode whose return is not a number.
    #[error("no finite score for a target return of {0}")]
    NoScore(f32),
    /// A file could not be written or read.
    #[error("`{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not a report of this version.
    #[error("`{path}` is no evaluation report")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A report of another version of this program.
    #[error(
        "`{path}` is a report of format {format}, and this program reads {FORMAT}: play the \
         checkpoint again (`overtone evaluate rollouts`)"
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A file does not say how an agent is played.
    #[error("`{path}` is no choice: remove it, and choose again (`overtone evaluate choose`)")]
    Choice {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file beside a video does not tell of one.
    #[error("`{path}` does not say what a video shows")]
    Filmed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Evaluation {
    /// Sums a rollout up.
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
                (result.smoothness, result.actions) = played_in(played, episodes.clone());
            }
            result.action_histograms =
                rollout.histograms.as_ref().and_then(|found| histograms_in(found, episodes));
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
            pace: rollout.pace,
            asked: plan.targets.clone(),
            targets,
            episodes: rollout.episodes,
            failed: rollout.failed,
        })
    }

    /// That episodes failed, in a sentence; nothing where none did.
    pub fn warning(&self) -> Option<String> {
        let first = self.failed.first()?;
        let (failed, all) = (self.failed.len(), self.failed.len() + self.episodes.len());
        Some(format!(
            "{failed} of {all} episodes failed and count in no number here; episode {} of target \
             {} after {} steps: {}",
            first.episode, first.target_return, first.length, first.reason
        ))
    }

    /// Writes the report as JSON: beside `path` first, then renamed, so that `path` is never
    /// half a report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let wrong = |source| ReportError::Format { path: path.to_path_buf(), source };
        write_json(path, self, wrong)
    }

    /// Finds out whether a report can be written to `path`, where nothing is changed.
    ///
    /// # Errors
    /// When its folder is not there or may not be written.
    pub fn check_writable(path: &Path) -> Result<(), ReportError> {
        overtone_files::check_writable(path)
            .map_err(|source| ReportError::File { path: path.to_path_buf(), source })
    }

    /// Reads a report.
    ///
    /// # Errors
    /// When the file cannot be read, or is no report of this version.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let json = fs::read(path)
            .map_err(|source| ReportError::File { path: path.to_path_buf(), source })?;
        let wrong = |source| ReportError::Format { path: path.to_path_buf(), source };
        let Version { format } = serde_json::from_slice(&json).map_err(wrong)?;
        if format != FORMAT {
            return Err(ReportError::OtherFormat { path: path.to_path_buf(), format });
        }
        serde_json::from_slice(&json).map_err(wrong)
    }

    /// A run's report by its own protocol, of its last weights.
    pub const FILE: &str = "evaluation.json";

    /// The reports in a run's folder, by whatever protocol and of whichever weights,
    /// [its own](Self::FILE) first, the others by name.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let failed = |source| ReportError::File { path: folder.to_path_buf(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        // Not what is said of a video of that name.
        let is_report = |name: &str| name.ends_with(".json") && !name.ends_with(".gif.json");
        names.retain(|name| name.starts_with("evaluation") && is_report(name));
        names.sort_by_key(|name| (name != Self::FILE, name.clone()));
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// Updates of the weights that the report in a file is about, of whatever version it is;
    /// `None` of a policy without weights.
    ///
    /// # Errors
    /// When the file cannot be read, or is no report.
    pub fn step_in(path: &Path) -> Result<Option<u64>, ReportError> {
        let json = fs::read(path)
            .map_err(|source| ReportError::File { path: path.to_path_buf(), source })?;
        let Weights { checkpoint } = serde_json::from_slice(&json)
            .map_err(|source| ReportError::Format { path: path.to_path_buf(), source })?;
        Ok(checkpoint.map(|played| played.step))
    }

    /// The result of the first target return; `None` where every episode of it failed.
    pub fn first_target(&self) -> Option<&TargetResult> {
        let first = self.asked.first()?;
        self.targets.iter().find(|result| result.target_return == *first)
    }
}

/// Writes a file, as a whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), ReportError> {
    overtone_files::replace(path, contents)
        .map_err(|source| ReportError::File { path: path.to_path_buf(), source })
}

/// Writes `value` as JSON to be read by people too, as a whole or not at all.
///
/// # Errors
/// When it cannot be written, or `wrong` where it is no JSON.
pub fn write_json(
    path: &Path,
    value: &impl Serialize,
    wrong: impl FnOnce(serde_json::Error) -> ReportError,
) -> Result<(), ReportError> {
    let mut json = serde_json::to_vec_pretty(value).map_err(wrong)?;
    json.push(b'\n');
    replace(path, &json)
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
        smoothness: None,
        actions: None,
        action_histograms: None,
    })
}

/// The histogram of each action dimension in these episodes.
fn histograms_in(found: &ActionHistograms, episodes: Range<usize>) -> Option<Vec<ActionHistogram>> {
    let shares = found.shares(episodes)?;
    let bounds = found.low.iter().zip(&found.high);
    let of = |(shares, (&low, &high))| ActionHistogram { low, high, shares };
    Some(shares.into_iter().zip(bounds).map(of).collect())
}

/// Smoothness and mean of the distributions that were played from in these episodes.
fn played_in(
    played: &PlayedDistributions,
    episodes: Range<usize>,
) -> (Option<SmoothnessResult>, Option<Vec<ActionShare>>) {
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
        .map(|(bin, action)| ActionShare { action: action.clone(), share: share(bin) });
    (Some(smoothness), Some(shares.collect()))
}
