//! What each setting of a protocol is worth: one agent, played as it was trained and then with
//! one setting changed at a time.
//!
//! Every protocol plays the same episodes by number, with the same seeds. Differences are
//! therefore taken episode by episode, and intervals are of the mean of these differences
//! (paired): where two protocols play an episode alike the difference is exactly zero, and where
//! their episodes have nothing in common, pairs cost nothing.

use std::collections::BTreeMap;
use std::path::Path;

use overtone_core::protocol::Difference;
use serde::{Deserialize, Serialize};

use crate::evaluation::{ReportError, Setting, replace, write_json};
use crate::statistics::{Bootstrap, Estimate, ScoreMatrix, StatisticsError, mean};
use crate::table::Table;
use crate::{Evaluation, Summary};

/// Version of the file.
pub const FORMAT: u32 = 1;

/// The agent as it was trained, and each deviation from that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ablation {
    /// Version of this layout.
    pub format: u32,
    /// What was played as trained, and how.
    #[serde(flatten)]
    pub setting: Setting,
    /// Seed of the episodes.
    pub seed: u64,
    /// The return asked for, where no row says otherwise.
    pub target_return: f32,
    /// Scores as trained.
    pub matched: Summary,
    /// Episodes as trained whose environment failed.
    pub failed: usize,
    /// How the intervals are made.
    pub bootstrap: Bootstrap,
    /// The deviations.
    pub rows: Vec<AblationRow>,
}

/// One deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationRow {
    /// The setting.
    pub difference: Difference,
    /// What came of it.
    pub result: AblationResult,
}

/// What came of a deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AblationResult {
    /// It was played.
    Played {
        /// Scores.
        raw_return: Summary,
        /// Mean over episodes of the score minus that of the same episode as trained.
        difference: Estimate,
        /// Episodes that ended under both.
        pairs: usize,
        /// Whether each of them has the same length and the same score under both.
        identical: bool,
        /// Episodes whose environment failed.
        failed: usize,
    },
    /// It cannot change an episode of this agent, and was not played.
    Same {
        /// Why.
        reason: String,
    },
    /// It could not be played.
    NotPlayed {
        /// Why.
        reason: String,
    },
}

impl AblationResult {
    /// `deviating` against `matched`, both of one target and of the same seeds. Where no episode
    /// ended under both, the deviation counts as not played.
    ///
    /// # Errors
    /// When a return is not finite, or the bootstrap cannot be made.
    pub fn compare(
        matched: &Evaluation,
        deviating: &Evaluation,
        bootstrap: &Bootstrap,
    ) -> Result<Self, StatisticsError> {
        let task = &matched.setting.task.title;
        let before: BTreeMap<usize, _> = matched.episodes.iter().map(|e| (e.episode, e)).collect();
        let pairs: Vec<_> = deviating
            .episodes
            .iter()
            .filter_map(|episode| before.get(&episode.episode).map(|before| (*before, episode)))
            .collect();
        if pairs.is_empty() {
            let reason = "no episode came to its end under both protocols".into();
            return Ok(Self::NotPlayed { reason });
        }
        let differences: Vec<f64> =
            pairs.iter().map(|(before, now)| now.raw_return - before.raw_return).collect();
        let scores: Vec<f64> = deviating.episodes.iter().map(|e| e.raw_return).collect();
        let raw_return =
            Summary::of(&scores).ok_or_else(|| StatisticsError::NoRun { task: task.clone() })?;
        let difference = bootstrap.estimate(&ScoreMatrix::one_task(task, &differences)?, mean)?;
        Ok(Self::Played {
            raw_return,
            difference,
            pairs: pairs.len(),
            identical: pairs.iter().all(|(before, now)| {
                (before.length, before.raw_return) == (now.length, now.raw_return)
            }),
            failed: deviating.failed.len(),
        })
    }
}

impl Ablation {
    /// Without any deviation yet. `matched` has one target.
    ///
    /// # Errors
    /// When it has none.
    pub fn new(matched: &Evaluation, bootstrap: Bootstrap) -> Result<Self, ReportError> {
        let target = matched.targets.first().ok_or(ReportError::NoScore(f32::NAN))?;
        Ok(Self {
            format: FORMAT,
            setting: matched.setting.clone(),
            seed: matched.seed,
            target_return: target.target_return,
            matched: target.raw_return.clone(),
            failed: matched.failed.len(),
            bootstrap,
            rows: Vec::new(),
        })
    }

    /// A row for playing as trained, and one for each deviation.
    pub fn table(&self) -> Table {
        let level = self.bootstrap.percent();
        let difference = format!("difference [{level} % interval]");
        let mut table =
            Table::new(&["setting", "trained", "played", "n", "raw mean ± sd", &difference]);
        table.row(vec![
            "matched".into(),
            String::new(),
            String::new(),
            self.matched.n.to_string(),
            self.matched.with_spread(),
        ]);
        for AblationRow { difference, result } in &self.rows {
            let Difference { setting, trained, played, .. } = difference;
            let mut row = vec![setting.clone(), trained.clone(), played.clone()];
            row.extend(match result {
                AblationResult::Played { raw_return, identical: true, .. } => [
                    raw_return.n.to_string(),
                    raw_return.with_spread(),
                    "0: the same episodes".into(),
                ],
                AblationResult::Played { raw_return, difference, .. } => {
                    [raw_return.n.to_string(), raw_return.with_spread(), signed(difference)]
                }
                AblationResult::Same { .. } => ["".into(), "".into(), "same, not played".into()],
                AblationResult::NotPlayed { .. } => ["".into(), "".into(), "not played".into()],
            });
            table.row(row);
        }
        table
    }

    /// What the table leaves open: how it was made, and why rows have no number.
    pub fn notes(&self) -> Vec<String> {
        let Bootstrap { replications, seed, .. } = self.bootstrap;
        let mut notes = vec![
            format!(
                "Every row plays the same {} episodes (seed {}) and asks for {}, but where it says \
                 otherwise. A difference is the mean over episodes of the score minus that of the \
                 same episode under `matched`; its interval is the {} % percentile interval of \
                 {replications} bootstrap replications (seed {seed}) of these pairs. It is over \
                 episodes of one trained agent, and says nothing about another training seed.",
                self.matched.n + self.failed,
                self.seed,
                self.target_return,
                self.bootstrap.percent()
            ),
            "Settings are changed one at a time; together they may do more or less than the sum."
                .into(),
        ];
        if self.failed > 0 {
            notes.push(format!("matched: {} episodes failed and are left out.", self.failed));
        }
        for AblationRow { difference, result } in &self.rows {
            let Difference { setting, consequence, .. } = difference;
            notes.push(match result {
                AblationResult::Played { failed: 0, .. } => format!("{setting}: {consequence}."),
                AblationResult::Played { failed, .. } => {
                    format!("{setting}: {consequence}; {failed} episodes failed and are left out.")
                }
                AblationResult::Same { reason } => format!("{setting}: same, because {reason}."),
                AblationResult::NotPlayed { reason } => {
                    format!("{setting}: not played, because {reason}.")
                }
            });
        }
        notes
    }

    /// The ablation as a page.
    pub fn to_markdown(&self) -> String {
        let setting = &self.setting;
        let mut text = format!(
            "# What the protocol is worth: {}\n\n{}, {}.\n",
            setting.task.title, setting.policy, setting.simulator
        );
        if let Some(checkpoint) = &setting.checkpoint {
            let path = checkpoint.path.display();
            text += &format!("Checkpoint {path} ({} updates).\n", checkpoint.step);
        }
        text += &format!("\n```text\n{}\n```\n\n", setting.command);
        text += &self.table().to_markdown();
        text += "\n";
        self.notes().iter().for_each(|note| text += &format!("- {note}\n"));
        text
    }

    /// Writes the page to `path`, and everything in it as JSON beside that, with the ending
    /// `json`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let beside = path.with_extension("json");
        write_json(&beside, self, |source| ReportError::Format { path: beside.clone(), source })?;
        replace(path, self.to_markdown().as_bytes())
    }
}

fn signed(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(interval) => {
            format!("{:+.1} [{:+.1}, {:+.1}]", estimate.value, interval.low, interval.high)
        }
        None => format!("{:+.1}", estimate.value),
    }
}
