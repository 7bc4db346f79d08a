//! Evaluations that several processes share: each plays a part of the episodes, and the parts put
//! together are the rollout that one process plays.
//!
//! The episodes of a part are played as one batch, apart from all others, and what is computed of
//! several parts is computed of all episodes in order, once they are together. So four quarters
//! have the same bytes whoever plays them, one process or four, but for the time it took. All
//! episodes in one batch have them too, as far as a policy's sums do not depend on the size of its
//! batch (`Policy` of the crate `core`): in returns no difference was seen, in the probabilities of
//! a game's actions one of 1e-9.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{
    Pace, Plan, PlayedDistributions, PlayedEpisode, ReportError, Rollout, Setting, evaluation,
};

/// Version of a part's file.
const FORMAT: u32 = 1;

/// One of several equal parts of the episodes of each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which, from 1.
    number: usize,
    /// How many there are.
    of: usize,
}

/// A part that was played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedPart {
    format: u32,
    /// What was played, and how.
    pub setting: Setting,
    /// The episodes of all parts.
    pub plan: Plan,
    /// Which of them are here.
    pub part: Part,
    /// What came of them.
    pub rollout: Rollout,
}

/// Why parts are none, or do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// Words that name no part.
    #[error("part={0}: expected a number and how many there are, such as part=2/4")]
    Word(String),
    /// More parts than episodes.
    #[error("part={part}: there are fewer episodes than parts; say episodes={} or more", part.of)]
    TooMany {
        /// The part.
        part: Part,
    },
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] ReportError),
    /// A file that is no part of an evaluation.
    #[error("`{path}` is no part of an evaluation, or a damaged one: remove it and play it again")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Parts of different evaluations, or too few.
    #[error("{0} parts that are not those of one evaluation")]
    Apart(usize),
}

impl Part {
    fn is_one(&self) -> bool {
        (1..=self.of).contains(&self.number)
    }

    /// The episodes of it, of so many.
    fn range(self, episodes: usize) -> Range<usize> {
        let end = |number: usize| (episodes as u128 * number as u128 / self.of as u128) as usize;
        end(self.number - 1)..end(self.number)
    }

    /// All parts of which this is one, in order.
    pub fn all(self) -> impl Iterator<Item = Self> {
        (1..=self.of).map(move |number| Self { number, ..self })
    }

    /// So many parts, in order.
    pub fn of(n: usize) -> impl Iterator<Item = Self> {
        Self { number: 1, of: n }.all()
    }

    /// Where this part of the evaluation in the file `report` is kept until all are played: in a
    /// folder beside it.
    pub fn path(self, report: &Path) -> PathBuf {
        report.with_extension("parts").join(format!("{}-of-{}.json", self.number, self.of))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(word: &str) -> Result<Self, PartError> {
        let numbers = word.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
        });
        numbers.filter(Self::is_one).ok_or_else(|| PartError::Word(word.to_owned()))
    }
}

impl Plan {
    /// The episodes of a part.
    ///
    /// # Errors
    /// When there are fewer episodes than parts.
    pub fn part(&self, part: Part) -> Result<Self, PartError> {
        if self.episodes < part.of {
            return Err(PartError::TooMany { part });
        }
        let range = part.range(self.episodes);
        Ok(Self { first: self.first + range.start, episodes: range.len(), ..self.clone() })
    }
}

impl PlayedPart {
    /// A part of what `plan` says, with the `rollout` of its episodes.
    pub fn new(setting: Setting, plan: Plan, part: Part, rollout: Rollout) -> Self {
        Self { format: FORMAT, setting, plan, part, rollout }
    }

    /// Whether both are of one evaluation, however each was called: a run has several names.
    pub fn is_of(&self, setting: &Setting, plan: &Plan, part: Part) -> bool {
        let own = Setting { command: setting.command.clone(), ..self.setting.clone() };
        (&own, &self.plan, self.part.of) == (setting, plan, part.of)
    }

    /// Writes it, as a whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PartError> {
        let json = serde_json::to_vec(self)
            .map_err(|source| ReportError::Format { path: path.to_path_buf(), source })?;
        Ok(evaluation::replace(path, &json)?)
    }

    /// Reads it; none where there is no such file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no part.
    pub fn read(path: &Path) -> Result<Option<Self>, PartError> {
        let json = match std::fs::read(path) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(ReportError::File { path: path.to_path_buf(), source }.into());
            }
        };
        let part: Option<Self> = serde_json::from_slice(&json).ok();
        let damaged = || PartError::Damaged { path: path.to_path_buf() };
        part.filter(Self::is_whole).map(Some).ok_or_else(damaged)
    }

    /// Whether its lists are as long as its plan says.
    fn is_whole(&self) -> bool {
        let Self { plan, part, rollout, .. } = self;
        if self.format != FORMAT || !part.is_one() {
            return false;
        }
        let Ok(own) = plan.part(*part) else { return false };
        let n = rollout.episodes.len();
        let distributions = rollout.played.as_ref().is_none_or(|played| {
            let bins = played.actions.len();
            played.smoothness.len() == n
                && played.sums.len() == n
                && played.sums.iter().all(|sums| sums.len() == bins)
        });
        rollout.finished.len() == plan.targets.len()
            && rollout.finished.iter().all(|finished| *finished <= n)
            && rollout.finished.iter().sum::<usize>() == n
            && own.episodes.checked_mul(own.targets.len()) == Some(n + rollout.failed.len())
            && distributions
    }
}

/// The rollout of all `parts`, as of one process that plays `slots` episodes at once; its times
/// are the parts' together.
///
/// # Errors
/// When they are not all the parts of one evaluation.
pub fn joined(mut parts: Vec<PlayedPart>, slots: usize) -> Result<Rollout, PartError> {
    let apart = PartError::Apart(parts.len());
    parts.sort_by_key(|part| part.part.number);
    let Some(first) = parts.first() else { return Err(apart) };
    let is_next = |(i, part): (usize, &PlayedPart)| {
        part.is_of(&first.setting, &first.plan, first.part) && part.part.number == i + 1
    };
    if parts.len() != first.part.of || !parts.iter().enumerate().all(is_next) {
        return Err(apart);
    }
    let targets = first.plan.targets.clone();
    let rollouts: Vec<Rollout> = parts.into_iter().map(|part| part.rollout).collect();
    let mut episodes: Vec<PlayedEpisode> = Vec::new();
    // A part of which every episode failed may not say what was drawn from.
    let of = |rollout: &'_ Rollout| rollout.played.clone().filter(|_| !rollout.episodes.is_empty());
    let mut played = rollouts.iter().find_map(of).map(|told| PlayedDistributions {
        smoothness: Vec::new(),
        sums: Vec::new(),
        ..told
    });
    for target in 0..targets.len() {
        for rollout in &rollouts {
            let start: usize = rollout.finished[..target].iter().sum();
            let range = start..start + rollout.finished[target];
            episodes.extend_from_slice(&rollout.episodes[range.clone()]);
            let (Some(all), Some(own)) = (&mut played, of(rollout)) else { continue };
            if (&own.actions, own.order) != (&all.actions, all.order) {
                return Err(apart);
            }
            all.smoothness.extend_from_slice(&own.smoothness[range.clone()]);
            all.sums.extend_from_slice(&own.sums[range]);
        }
    }
    if played.as_ref().is_some_and(|played| played.smoothness.len() != episodes.len()) {
        return Err(apart);
    }
    let finished = (0..targets.len())
        .map(|target| rollouts.iter().map(|rollout| rollout.finished[target]).sum());
    let finished = finished.collect();
    let mut failed: Vec<_> = rollouts.iter().flat_map(|rollout| &rollout.failed).cloned().collect();
    let place = |target: f32| targets.iter().position(|known| *known == target);
    failed.sort_by_key(|episode| (place(episode.target_return), episode.episode));
    Ok(Rollout {
        finished,
        failed,
        played,
        // Parts do not keep them together.
        histograms: None,
        steps: episodes.iter().map(|episode| episode.length).sum(),
        slots: slots.min(rollouts.iter().map(|r| r.episodes.len() + r.failed.len()).sum()),
        episodes,
        wall_seconds: rollouts.iter().map(|rollout| rollout.wall_seconds).sum(),
        pace: pace(&rollouts),
    })
}

/// Shares of the time of all together.
fn pace(rollouts: &[Rollout]) -> Pace {
    let seconds: f64 = rollouts.iter().map(|rollout| rollout.wall_seconds).sum();
    let mean = |of: fn(&Pace) -> f64| {
        let weighted = rollouts.iter().map(|rollout| rollout.wall_seconds * of(&rollout.pace));
        weighted.sum::<f64>() / seconds.max(1e-9)
    };
    Pace {
        steps_per_second: mean(|pace| pace.steps_per_second),
        acting: mean(|pace| pace.acting),
        waiting: mean(|pace| pace.waiting),
        stepping: mean(|pace| pace.stepping),
        full: mean(|pace| pace.full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_and_share_all_episodes_out() {
        for word in ["", "2", "0/4", "5/4", "1/0", "a/b", "1/2/3"] {
            let error = word.parse::<Part>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("part={word}: ")), "{error}");
        }
        let part: Part = "2/4".parse().unwrap();
        assert_eq!(part.to_string(), "2/4");
        let path = part.path(Path::new("runs/a/evaluation-t0.5.json"));
        assert_eq!(path, Path::new("runs/a/evaluation-t0.5.parts/2-of-4.json"));
        let ranges = |n| Part::of(n).map(|part| part.range(10)).collect::<Vec<_>>();
        assert_eq!(ranges(4), [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(ranges(3), [0..3, 3..6, 6..10]);
    }
}
