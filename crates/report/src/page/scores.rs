//! Scores of all evaluations, with a row for each target.

use std::collections::BTreeMap;

use super::protocols::Protocols;
use super::run_files::{EvaluationFile, PageError, RunFiles};
use super::study_cell::StudyCell;
use overtone_eval::evaluation::{CheckpointRef, SmoothnessResult, outcome_name, success_rate};
use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, iqm};
pub(super) use overtone_eval::summary::estimate;
use overtone_eval::summary::{self, digits, fixed};
use overtone_eval::table::{Column, Table, or_dash};
use overtone_eval::{Choice, Evaluation, ReportError, Setting, Summary, TargetResult};

/// The role of the evaluated checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// The run's last checkpoint.
    Last,
    /// The checkpoint with the lowest loss on held-out episodes.
    HeldOut,
    /// Another checkpoint that the user named.
    Chosen,
    /// A policy without weights.
    NoWeights,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Last, Self::HeldOut, Self::Chosen, Self::NoWeights];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::HeldOut => "held-out",
            Self::Chosen => "chosen",
            Self::NoWeights => "none",
        }
    }

    /// The heading of a table of such checkpoints.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Last => "Last checkpoints",
            Self::HeldOut => "Held-out-selected checkpoints",
            Self::Chosen => "Chosen checkpoints",
            Self::NoWeights => "Policies without weights",
        }
    }

    /// All roles of an evaluation's checkpoint. The last checkpoint can also be the
    /// held-out-selected one.
    fn all_of(run: &RunFiles, evaluation: &Evaluation) -> Vec<Self> {
        let Some(weights) = &evaluation.setting.checkpoint else { return vec![Self::NoWeights] };
        if !is_own(weights) {
            return vec![Self::Chosen];
        }
        let selected = [(run.last_step, Self::Last), (run.held_out_step, Self::HeldOut)];
        let roles = selected.into_iter().filter(|(step, _)| *step == Some(weights.step));
        let roles: Vec<Self> = roles.map(|(_, role)| role).collect();
        if roles.is_empty() { vec![Self::Chosen] } else { roles }
    }
}

/// Whether the weights belong to the run. Weights from another directory do not, even with the same
/// number of updates.
pub(super) fn is_own(weights: &CheckpointRef) -> bool {
    weights.path.starts_with("checkpoints")
}

/// Settings by their dotted keys.
pub(super) type Configuration = BTreeMap<String, String>;

/// Configuration keys that do not identify an agent: seed, format version, directories, evaluation
/// and hardware.
const IGNORED: [&str; 6] = ["format", "seed", "runs", "resume", "device", "evaluation"];

/// Statistics of one target, computed from its episodes.
pub(super) struct Row<'a> {
    pub(super) run: &'a RunFiles,
    /// The run's cell of a study.
    pub(super) cell: Option<&'a StudyCell>,
    pub(super) source: &'a EvaluationFile,
    pub(super) target: &'a TargetResult,
    pub(super) role: Role,
    /// The name in [`Protocols`]. Equal names mean equal protocols.
    pub(super) protocol: String,
    pub(super) raw: Summary,
    /// IQM of the raw returns, with an interval over episodes.
    pub(super) iqm: Estimate,
    pub(super) normalized: Option<Summary>,
    /// The success rate, with Wilson's interval over episodes.
    pub(super) success: Option<Estimate>,
}

impl<'a> Row<'a> {
    fn new(
        (run, cell): (&'a RunFiles, Option<&'a StudyCell>),
        source: &'a EvaluationFile,
        target: &'a TargetResult,
        role: Role,
        protocols: &Protocols,
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let returns: Vec<f64> = source.episodes(target).map(|episode| episode.raw_return).collect();
        let raw = Summary::of(&returns).ok_or(ReportError::NoScore(target.target_return))?;
        let matrix = ScoreMatrix::one_task(&source.evaluation.setting.task.title, &returns)?;
        let reference = source.evaluation.setting.task.reference.as_ref();
        let normalized = reference.and_then(|reference| {
            Summary::of(
                &returns.iter().map(|score| reference.normalize(*score)).collect::<Vec<_>>(),
            )
        });
        let iqm = bootstrap.estimate(&matrix, iqm)?;
        let success = success_rate(source.episodes(target), bootstrap.level);
        let protocol = protocols.label(&source.evaluation.setting);
        Ok(Self { run, cell, source, target, role, protocol, raw, iqm, normalized, success })
    }

    /// A row for every target of every evaluation of these runs. A checkpoint that is both last and
    /// held-out-selected has two rows. `cells` are the cells of a study, whose runs have this order.
    pub(super) fn all(
        runs: &'a [RunFiles],
        cells: &'a [StudyCell],
        protocols: &Protocols,
        bootstrap: &Bootstrap,
    ) -> Result<Vec<Self>, PageError> {
        let mut rows = Vec::new();
        let cells = cells.iter().flat_map(|cell| std::iter::repeat_n(Some(cell), cell.runs.len()));
        for (run, cell) in runs.iter().zip(cells.chain(std::iter::repeat(None))) {
            for source in &run.evaluations {
                for role in Role::all_of(run, &source.evaluation) {
                    for target in &source.evaluation.targets {
                        rows.push(Self::new(
                            (run, cell),
                            source,
                            target,
                            role,
                            protocols,
                            bootstrap,
                        )?);
                    }
                }
            }
        }
        Ok(rows)
    }

    pub(super) fn evaluation(&self) -> &'a Evaluation {
        &self.source.evaluation
    }

    pub(super) fn setting(&self) -> &'a Setting {
        &self.source.evaluation.setting
    }

    /// The target return or top percent that the agent was conditioned on; `None` if neither.
    pub(super) fn condition(&self) -> Option<String> {
        self.setting().condition(self.target.target_return)
    }

    /// Index of this target among all of the evaluation's targets, including those without a score.
    pub(super) fn place(&self) -> usize {
        let (targets, target) = (&self.evaluation().target_returns, self.target.target_return);
        targets.iter().position(|other| *other == target).unwrap_or_default()
    }

    /// The task, followed by the dataset if the configuration names one; in a study the task of the
    /// cell.
    pub(super) fn task(&self) -> String {
        if let Some(cell) = self.cell {
            return cell.task.clone();
        }
        let task = &self.setting().task.title;
        match self.run.config.get("dataset").and_then(toml::Value::as_str) {
            None | Some("") => task.clone(),
            Some(dataset) => format!("{task} {dataset}"),
        }
    }

    /// Whether the same weights were evaluated with the same protocol and target, perhaps with other
    /// episodes.
    pub(super) fn is_evaluated_as(&self, other: &Row<'_>) -> bool {
        std::ptr::eq(self.run, other.run)
            && (self.step(), self.role) == (other.step(), other.role)
            && (&self.protocol, self.condition()) == (&other.protocol, other.condition())
    }

    /// Updates of the evaluated weights.
    pub(super) fn step(&self) -> Option<u64> {
        self.setting().checkpoint.as_ref().map(|weights| weights.step)
    }

    /// Episodes that chose the agent's acting mode; 0 without a choice.
    pub(super) fn choosing_episodes(&self) -> usize {
        self.setting().choice.as_ref().map_or(0, Choice::episodes)
    }

    /// Whether the evaluated weights belong to the run.
    pub(super) fn is_own(&self) -> bool {
        self.setting().checkpoint.as_ref().is_some_and(is_own)
    }

    /// The run's training seed as text; a dash if its settings do not have one.
    pub(super) fn seed(&self) -> String {
        self.run.config.get("seed").map_or_else(|| "-".to_owned(), ToString::to_string)
    }

    /// The run's training settings without the seed, by dotted keys. Keys and tables in `without`,
    /// such as `env` or `data.path`, are also excluded.
    pub(super) fn configuration(&self, without: &[&str]) -> Configuration {
        settings(&self.run.config, &[&IGNORED[..], without].concat())
    }

    /// The convention of the normalized scores; empty without reference scores.
    pub(super) fn convention(&self) -> &'a str {
        let reference = self.setting().task.reference.as_ref();
        reference.map_or("", |reference| &reference.convention)
    }
}

/// The row with the most episodes among those that were evaluated as `like`; the first of several.
pub(super) fn largest<'r, 'a>(rows: &'r [Row<'a>], like: &Row<'_>) -> Option<&'r Row<'a>> {
    let same = rows.iter().rev().filter(|row| row.is_evaluated_as(like));
    same.max_by_key(|row| row.raw.n)
}

/// The conditions of `rows`, such as `4002.2; top 10 %; top 50 %`: the target returns, formatted by
/// `number` and as a range if they differ, and the distinct top percents. Empty if the agents are
/// not conditioned.
pub(super) fn conditions<'a>(
    rows: impl IntoIterator<Item = &'a Row<'a>>,
    number: impl Fn(f32) -> String,
) -> String {
    let (mut returns, mut words): (Vec<f32>, Vec<String>) = (Vec::new(), Vec::new());
    for row in rows {
        if row.setting().used_settings.target {
            returns.push(row.target.target_return);
        } else if let Some(top) = row.condition().filter(|top| !words.contains(top)) {
            words.push(top);
        }
    }
    returns.sort_by(f32::total_cmp);
    match (returns.first(), returns.last()) {
        (Some(low), Some(high)) if low != high => {
            words.insert(0, format!("{} to {}", number(*low), number(*high)));
        }
        (Some(only), _) => words.insert(0, number(*only)),
        _ => {}
    }
    words.join("; ")
}

/// The values of a configuration by dotted keys (`train.updates`), except the keys and tables in
/// `without`.
pub(super) fn settings(config: &toml::Table, without: &[&str]) -> Configuration {
    let mut settings = Configuration::new();
    flatten("", config, &mut settings);
    let inside = |key: &str, table: &str| {
        key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    settings.retain(|key, _| !without.iter().any(|table| inside(key, table)));
    settings
}

fn flatten(name: &str, table: &toml::Table, settings: &mut Configuration) {
    for (key, value) in table {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, settings),
            toml::Value::String(word) => drop(settings.insert(name, word.clone())),
            other => drop(settings.insert(name, other.to_string())),
        }
    }
}

/// A table for people of rows with the same role.
pub(super) fn readable(rows: &[&Row<'_>]) -> Table {
    let digits = digits(rows.iter().map(|row| &row.raw));
    let is_fourier = rows.iter().any(|row| row.setting().has_fourier_head());
    let columns: [Column<'_, &Row<'_>>; 14] = [
        ("run", &|row| row.run.label.clone()),
        ("task", &|row| row.setting().task.title.clone()),
        ("protocol", &|row| row.protocol.clone()),
        ("updates", &|row| or_dash(row.step())),
        ("target", &|row| or_dash(row.condition())),
        ("n", &|row| row.raw.n.to_string()),
        ("raw mean ± sd", &|row| spread(&row.raw, digits)),
        ("IQM [interval]", &|row| estimate(&row.iqm, digits)),
        ("normalized mean ± sd", &|row| {
            or_dash(row.normalized.as_ref().map(|summary| spread(summary, 2)))
        }),
        ("median", &|row| fixed(row.raw.median, digits)),
        ("min to max", &|row| {
            format!("{} to {}", fixed(row.raw.min, digits), fixed(row.raw.max, digits))
        }),
        ("length", &|row| spread(&row.target.length, 0)),
        ("success [interval]", &|row| or_dash(row.success.map(|rate| estimate(&rate, 2)))),
        ("smoothness (bins)", &|row| {
            let text = |smoothness: SmoothnessResult| {
                format!(
                    "{} ({})",
                    summary::spread(smoothness.mean, smoothness.sd, 4),
                    smoothness.n_bins
                )
            };
            or_dash(row.target.smoothness.filter(|_| is_fourier).map(text))
        }),
    ];
    Table::of(rows.iter().copied(), &columns).without_dashes()
}

/// All rows with all digits, for programs.
pub(super) fn csv(rows: &[Row<'_>]) -> Table {
    let low = |row: &Row<'_>| row.iqm.interval.map(|interval| interval.low);
    let high = |row: &Row<'_>| row.iqm.interval.map(|interval| interval.high);
    Table::of(
        rows,
        &[
            ("run", &|row| row.run.name.clone()),
            ("evaluation", &|row| row.source.file.clone()),
            ("task", &|row| row.setting().task.title.clone()),
            ("policy", &|row| row.setting().policy.clone()),
            ("protocol", &|row| row.protocol.clone()),
            ("checkpoint", &|row| row.role.name().to_owned()),
            ("updates", &|row| cell(row.step())),
            ("target", &|row| cell(row.condition())),
            ("n", &|row| row.raw.n.to_string()),
            ("raw_mean", &|row| row.raw.mean.to_string()),
            ("raw_sd", &|row| cell(row.raw.sd)),
            ("raw_median", &|row| row.raw.median.to_string()),
            ("raw_iqm", &|row| row.iqm.value.to_string()),
            ("raw_iqm_low", &|row| cell(low(row))),
            ("raw_iqm_high", &|row| cell(high(row))),
            ("raw_min", &|row| row.raw.min.to_string()),
            ("raw_max", &|row| row.raw.max.to_string()),
            ("convention", &|row| row.convention().to_owned()),
            ("normalized_mean", &|row| cell(row.normalized.as_ref().map(|summary| summary.mean))),
            ("normalized_sd", &|row| cell(row.normalized.as_ref().and_then(|summary| summary.sd))),
            ("normalized_iqm", &|row| cell(row.normalized.as_ref().map(|summary| summary.iqm))),
            ("success", &|row| cell(row.success.map(|rate| rate.value))),
            ("success_low", &|row| cell(row.success.and_then(|rate| Some(rate.interval?.low)))),
            ("success_high", &|row| cell(row.success.and_then(|rate| Some(rate.interval?.high)))),
            ("clipped_mean", &|row| row.target.clipped_return.mean.to_string()),
            ("length_mean", &|row| row.target.length.mean.to_string()),
            ("truncated", &|row| row.target.truncated.to_string()),
            ("smoothness_mean", &|row| {
                cell(row.target.smoothness.map(|smoothness| smoothness.mean))
            }),
            ("smoothness_sd", &|row| {
                cell(row.target.smoothness.and_then(|smoothness| smoothness.sd))
            }),
            ("smoothness_bins", &|row| {
                cell(row.target.smoothness.map(|smoothness| smoothness.n_bins))
            }),
            ("dataset_hash", &|row| cell(row.setting().dataset_hash.as_ref())),
            ("choosing_episodes", &|row| row.choosing_episodes().to_string()),
        ],
    )
}

/// The episodes of all rows, for programs.
pub(super) fn episodes_csv(rows: &[Row<'_>]) -> Table {
    // A checkpoint that is both last and held-out-selected has two rows but one evaluation.
    let again = |row: &&Row<'_>| row.role == Role::HeldOut && row.step() == row.run.last_step;
    let rows = rows.iter().filter(|row| !again(row));
    Table::of(
        rows.flat_map(|row| std::iter::repeat(row).zip(row.source.episodes(row.target))),
        &[
            ("run", &|(row, _)| row.run.name.clone()),
            ("evaluation", &|(row, _)| row.source.file.clone()),
            ("task", &|(row, _)| row.setting().task.title.clone()),
            ("protocol", &|(row, _)| row.protocol.clone()),
            ("checkpoint", &|(row, _)| row.role.name().to_owned()),
            ("updates", &|(row, _)| cell(row.step())),
            ("target", &|(row, _)| cell(row.condition())),
            ("episode", &|(_, episode)| episode.episode.to_string()),
            ("seed", &|(_, episode)| episode.seed.to_string()),
            ("length", &|(_, episode)| episode.length.to_string()),
            ("raw_return", &|(_, episode)| episode.raw_return.to_string()),
            ("clipped_return", &|(_, episode)| episode.clipped_return.to_string()),
            ("ended", &|(_, episode)| outcome_name(episode.outcome).to_owned()),
            ("success", &|(_, episode)| cell(episode.success)),
        ],
    )
}

/// A value with all digits; empty for `None`.
pub(super) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// An estimate and the ends of its interval, with all digits. Missing values are empty.
pub(super) fn ends(estimate: Option<Estimate>) -> [String; 3] {
    let interval = estimate.and_then(|estimate| estimate.interval);
    [
        cell(estimate.map(|estimate| estimate.value)),
        cell(interval.map(|interval| interval.low)),
        cell(interval.map(|interval| interval.high)),
    ]
}

/// `mean ± sd`.
pub(super) fn spread(summary: &Summary, digits: usize) -> String {
    summary::spread(summary.mean, summary.sd, digits)
}

/// A target for people, with at most one decimal: a percentile of the data can have many digits.
pub(super) fn short(target: f32) -> String {
    if target.fract() == 0.0 { target.to_string() } else { fixed(f64::from(target), 1) }
}
