//! The effect of each setting of a protocol: one agent is evaluated with its training settings, and
//! then with one setting changed at a time.
//!
//! Every protocol uses the same episodes by number, with the same seeds. Differences are therefore
//! paired: they are computed episode by episode, and the intervals are of their mean. If two
//! protocols produce the same episode, its difference is exactly zero. If the episodes are
//! unrelated, pairing does no harm.

use std::collections::BTreeMap;
use std::path::Path;

use overtone_core::protocol::Difference;
use serde::{Deserialize, Serialize};

use crate::evaluation::{ReportError, Setting, replace, write_json};
use crate::statistics::{Bootstrap, Estimate, ScoreMatrix, StatisticsError, mean};
use crate::table::Table;
use crate::{Evaluation, Summary};

/// Version of the file format.
pub const FORMAT: u32 = 1;

/// Results with the training settings, and with each deviation from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ablation {
    /// Version of this layout.
    pub format: u32,
    /// The setting of the evaluation with the training settings.
    #[serde(flatten)]
    pub setting: Setting,
    /// Seed of the episodes.
    pub seed: u64,
    /// The target return of all rows that do not change it.
    pub target_return: f32,
    /// Scores with the training settings.
    pub matched: Summary,
    /// Failed episodes with the training settings.
    pub failed: usize,
    /// Parameters of the intervals.
    pub bootstrap: Bootstrap,
    /// The deviations.
    pub rows: Vec<AblationRow>,
}

/// A row of an ablation: one deviation from the training settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationRow {
    /// The changed setting.
    pub difference: Difference,
    /// The result.
    pub result: AblationResult,
}

/// The result of a deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AblationResult {
    /// The deviation was evaluated.
    Played {
        /// Scores.
        raw_return: Summary,
        /// Mean paired difference: the score minus the score of the same episode with the training
        /// settings.
        difference: Estimate,
        /// Number of episodes that finished under both protocols.
        pairs: usize,
        /// Whether all these episodes have the same length and score under both protocols.
        identical: bool,
        /// Number of failed episodes.
        failed: usize,
    },
    /// The deviation cannot change an episode of this agent, so it was not evaluated.
    Same {
        /// The reason.
        reason: String,
    },
    /// The deviation could not be evaluated.
    NotPlayed {
        /// The reason.
        reason: String,
    },
}

impl AblationResult {
    /// Compares `deviating` with `matched`. Both must have one target and the same seeds. If no
    /// episode finished under both protocols, the result is [`NotPlayed`](Self::NotPlayed).
    ///
    /// # Errors
    /// When a return is not finite, or `bootstrap` is invalid.
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
            let reason = "no episode finished under both protocols".into();
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
    /// An ablation without rows. `matched` must have one target.
    ///
    /// # Errors
    /// When `matched` has no target with a score.
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

    /// A table with a row for the training settings and a row for each deviation.
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
                AblationResult::Same { .. } => ["".into(), "".into(), "same, not evaluated".into()],
                AblationResult::NotPlayed { .. } => ["".into(), "".into(), "not evaluated".into()],
            });
            table.row(row);
        }
        table
    }

    /// Notes for the table: its method, and the reason for each row without numbers.
    pub fn notes(&self) -> Vec<String> {
        let Bootstrap { replications, seed, .. } = self.bootstrap;
        let mut notes = vec![
            format!(
                "Every row uses the same {} episodes (seed {}) and target {}, unless the row \
                 changes them. A difference is the mean over episodes of the score minus the score \
                 of the same episode under `matched`. Its interval is the {} % percentile interval \
                 of {replications} bootstrap replications (seed {seed}) of these pairs. Intervals \
                 are over episodes of one trained agent, not over training seeds.",
                self.matched.n + self.failed,
                self.seed,
                self.target_return,
                self.bootstrap.percent()
            ),
            "Settings are changed one at a time. Their joint effect can differ from the sum."
                .into(),
        ];
        if self.failed > 0 {
            notes.push(format!("matched: {} failed episodes are not included.", self.failed));
        }
        for AblationRow { difference, result } in &self.rows {
            let Difference { setting, consequence, .. } = difference;
            notes.push(match result {
                AblationResult::Played { failed: 0, .. } => format!("{setting}: {consequence}."),
                AblationResult::Played { failed, .. } => {
                    format!("{setting}: {consequence}; {failed} failed episodes are not included.")
                }
                AblationResult::Same { reason } => format!("{setting}: same, because {reason}."),
                AblationResult::NotPlayed { reason } => {
                    format!("{setting}: not evaluated, because {reason}.")
                }
            });
        }
        notes
    }

    /// The ablation as a Markdown page.
    pub fn to_markdown(&self) -> String {
        let setting = &self.setting;
        let mut text = format!(
            "# Effect of the protocol's settings: {}\n\n{}, {}.\n",
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

    /// Writes the page to `path`, and its data to the same path with the ending `json`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let json = path.with_extension("json");
        write_json(&json, self, |source| ReportError::Format { path: json.clone(), source })?;
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
