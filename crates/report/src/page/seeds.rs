//! Runs that differ only in their training seed: one group for each protocol and target. In a study
//! the groups are parts of its cells.

use std::collections::BTreeMap;

use super::choices;
use super::document::Block;
use super::run_files::PageError;
use super::scores::{Role, Row, cell as all_digits, conditions, estimate, short, spread};
use super::study_cell::{self, StudyCell};
use super::unique;
use overtone_core::{ObservationSpace, counted};
use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, iqm};
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::{Column, Table, or_dash};
use overtone_eval::{ReportError, Setting, Summary};

/// One agent trained with several seeds and evaluated with one protocol. The score of a run is the
/// mean of its episodes.
pub(super) struct Group<'a> {
    /// A row of each run.
    pub(super) rows: Vec<&'a Row<'a>>,
    /// Summary of the runs' mean raw returns.
    raw: Summary,
    pub(super) iqm: Estimate,
    normalized: Option<Summary>,
    normalized_iqm: Option<Estimate>,
    /// Summary of the runs' success rates.
    success: Option<Summary>,
    success_iqm: Option<Estimate>,
    /// Summary of the runs' mean smoothness, if their policies report action distributions.
    smoothness: Option<Summary>,
}

/// Runs grouped over training seeds.
pub(super) struct Groups<'a> {
    /// The groups of one task, protocol and target are adjacent.
    pub(super) groups: Vec<Group<'a>>,
    /// Sentences about rows that would have counted twice, and about data that differ.
    pub(super) notes: Vec<String>,
    /// Sentences about runs that are not in any group.
    pub(super) ungrouped: Vec<String>,
    /// Whether the groups are parts of a study's cells.
    is_study: bool,
}

/// Key of a row's group: its configuration, protocol and role, then what else its rows share.
type Key = [String; 2];

fn key(row: &Row<'_>) -> Key {
    let (setting, protocol, role) = (row.setting(), &row.protocol, row.role);
    // Each seed has its own held-out-selected checkpoint, with its own updates.
    let is_selected = role == Role::HeldOut;
    if let Some(cell) = row.cell {
        let (place, n_targets) = (row.place(), row.evaluation().target_returns.len());
        // Percentiles with equal returns are evaluated once. The later targets of such a seed are
        // ambiguous, so their number is part of the key.
        let n_targets = if place == 0 { 0 } else { n_targets };
        let file = if is_selected { "" } else { &row.source.file };
        return [
            format!("{:?}", (&cell.label, protocol, role)),
            format!("{:?}", (file, place, n_targets)),
        ];
    }
    // A stopped run also has a last checkpoint, but with fewer updates.
    let step = row.step().filter(|_| !is_selected);
    // A target that the agent does not use can be a different percentile value for each seed.
    let target = row.condition().map(|_| row.target.target_return.to_bits());
    let place = if target.is_some() { 0 } else { row.place() };
    let task = (&setting.task.title, &setting.task.reference);
    [
        format!("{:?}", (task, &setting.policy, row.configuration(&[]), protocol, role)),
        format!("{:?}", (step, target, place, shared_dataset(row))),
    ]
}

/// The hash of a dataset that all seeds share. `None` for frame datasets, from which each seed can
/// sample its own transitions.
fn shared_dataset<'a>(row: &'a Row<'a>) -> Option<&'a String> {
    let setting = row.setting();
    match setting.task.observations {
        ObservationSpace::Vectors { .. } => setting.dataset_hash.as_ref(),
        ObservationSpace::Pixels { .. } => None,
    }
}

/// Sentences about runs that are alone in their groups although runs of other seeds have the same
/// configuration.
fn ungrouped(members: &[(Key, Vec<&Row<'_>>)]) -> Vec<String> {
    let mut same_setting: BTreeMap<&str, Vec<&[&Row<'_>]>> = BTreeMap::new();
    for ([setting, _], rows) in members {
        same_setting.entry(setting).or_default().push(rows);
    }
    let mut notes = Vec::new();
    for groups in same_setting.into_values() {
        let mut seeds = groups.iter().flat_map(|rows| rows.iter()).map(|row| row.seed());
        let first = seeds.next();
        let alone: Vec<&Row<'_>> =
            groups.iter().filter(|rows| rows.len() == 1).map(|rows| rows[0]).collect();
        if alone.is_empty() || !seeds.any(|seed| Some(seed) != first) {
            continue;
        }
        let runs = unique(alone.iter().map(|row| {
            let updates = row.step().map(|step| format!("update {step}"));
            let mine = alone.iter().filter(|other| std::ptr::eq(other.run, row.run));
            let targets: Vec<String> = mine.filter_map(|row| row.condition()).collect();
            let targets =
                (!targets.is_empty()).then(|| format!("target {}", targets.join(" and ")));
            let details: Vec<String> = updates.into_iter().chain(targets).collect();
            format!("{} ({})", row.run.name, details.join(", "))
        }));
        notes.push(format!(
            "Same configuration, but different updates, targets or datasets, and therefore not \
             aggregated over seeds: {}.",
            runs.join("; ")
        ));
    }
    notes
}

impl<'a> Groups<'a> {
    /// Groups of rows. Each run and each seed counts once in a group, because the same seed trains
    /// the same agent. `cells` are the cells of a study; its runs may be alone in a group.
    pub(super) fn of(
        cells: &[StudyCell],
        rows: &'a [Row<'a>],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let mut members: Vec<(Key, Vec<&Row<'_>>)> = Vec::new();
        let mut notes = Vec::new();
        for row in rows {
            let key = key(row);
            let Some((_, group)) = members.iter_mut().find(|(known, _)| *known == key) else {
                members.push((key, vec![row]));
                continue;
            };
            let seed = row.seed();
            let Some(first) = group.iter().find(|other| other.seed() == seed) else {
                group.push(row);
                continue;
            };
            let target = row.condition().map(|target| format!(" (target {target})"));
            notes.push(format!(
                "{} of {}{} is not included: seed {seed} is already included, from {} of {}.",
                row.source.file,
                row.run.name,
                target.unwrap_or_default(),
                first.source.file,
                first.run.name
            ));
        }
        let is_study = !cells.is_empty();
        let ungrouped = if is_study { Vec::new() } else { ungrouped(&members) };
        let mut groups = Vec::new();
        for (_, rows) in members.into_iter().filter(|(_, rows)| is_study || rows.len() > 1) {
            groups.push(Group::of(rows, bootstrap)?);
        }
        notes = unique(notes.into_iter().chain(groups.iter().flat_map(Group::notes)));
        let tasks =
            unique(cells.iter().map(|cell| cell.task.clone()).chain(rows.iter().map(Row::task)));
        let protocols = unique(rows.iter().map(|row| &row.protocol));
        groups.sort_by_key(|group| {
            let first = group.first();
            let protocol = protocols.iter().position(|protocol| **protocol == first.protocol);
            (tasks.iter().position(|task| *task == first.task()), protocol, first.place())
        });
        Ok(Self { groups, notes, ungrouped, is_study })
    }

    /// A table for people of the groups with each role, under its heading.
    pub(super) fn tables(&self) -> Vec<Block> {
        let roles = if self.is_study { &Role::ALL[..2] } else { &Role::ALL[..] };
        let mut blocks = Vec::new();
        for role in roles {
            let groups: Vec<&Group<'_>> =
                self.groups.iter().filter(|group| group.first().role == *role).collect();
            if groups.is_empty() {
                continue;
            }
            let n_seeds: Vec<usize> = groups.iter().map(|group| group.rows.len()).collect();
            let caveat =
                study_cell::caveat(if self.is_study { "cells" } else { "groups" }, &n_seeds);
            let caveat = caveat.map_or_else(String::new, |few| format!(": {few}"));
            blocks.push(Block::Subheading(format!("{}{caveat}", role.title())));
            blocks.extend(readable(&groups));
        }
        blocks
    }

    /// Explanation of the numbers in the tables.
    pub(super) fn explanation(&self, bootstrap: &Bootstrap) -> Block {
        let names = if self.is_study {
            "A cell is named after the settings that differ between cells."
        } else {
            "Over training seeds: runs that differ only in their seed and use the same protocol. \
             Each row is named after its first run."
        };
        Block::Text(format!(
            "{names} The score of a run is the mean of its episodes. ±: sample standard deviation \
             (ddof 1) over runs. IQM: interquartile mean over runs. Intervals are over training \
             seeds: {}. With few runs these intervals are too narrow (Agarwal et al. 2021). With \
             fewer than {} runs, the page does not show that one row is better than another.",
            super::how_made(bootstrap),
            study_cell::ENOUGH
        ))
    }

    /// A sentence for each cell whose runs used different datasets.
    pub(super) fn different_datasets(&self) -> Vec<Block> {
        let differ = self.groups.iter().filter(|group| group.differ(shared_dataset));
        let labels = unique(differ.map(|group| group.label()));
        let sentence = |label: String| {
            Block::Text(format!(
                "Runs of {label} used different datasets although their settings are the same: \
                 the file changed between the runs. Do not treat them as seeds of one agent."
            ))
        };
        labels.into_iter().map(sentence).collect()
    }

    /// All groups with all digits: the file's name, and its table.
    pub(super) fn csv(&self) -> (&'static str, Table) {
        let (file, label) = if self.is_study { ("cells", "cell") } else { ("seeds", "agent") };
        let low = |iqm: &Estimate| Some(iqm.interval?.low);
        let high = |iqm: &Estimate| Some(iqm.interval?.high);
        let columns: [Column<'_, &Group<'_>>; 28] = [
            (label, &|group| group.label()),
            ("task", &|group| group.first().task()),
            ("protocol", &|group| group.first().protocol.clone()),
            ("checkpoint", &|group| group.first().role.name().to_owned()),
            ("target", &|group| group.target(|target| target.to_string())),
            ("runs", &|group| group.rows.len().to_string()),
            ("training_seeds", &|group| group.seeds()),
            ("raw_mean", &|group| group.raw.mean.to_string()),
            ("raw_sd", &|group| all_digits(group.raw.sd)),
            ("raw_median", &|group| group.raw.median.to_string()),
            ("raw_iqm", &|group| group.iqm.value.to_string()),
            ("raw_iqm_low", &|group| all_digits(low(&group.iqm))),
            ("raw_iqm_high", &|group| all_digits(high(&group.iqm))),
            ("convention", &|group| group.first().convention().to_owned()),
            ("normalized_mean", &|group| all_digits(group.normalized.as_ref().map(|all| all.mean))),
            ("normalized_sd", &|group| {
                all_digits(group.normalized.as_ref().and_then(|all| all.sd))
            }),
            ("normalized_iqm", &|group| all_digits(group.normalized_iqm.map(|iqm| iqm.value))),
            ("normalized_iqm_low", &|group| {
                all_digits(group.normalized_iqm.as_ref().and_then(low))
            }),
            ("normalized_iqm_high", &|group| {
                all_digits(group.normalized_iqm.as_ref().and_then(high))
            }),
            ("success_mean", &|group| all_digits(group.success.as_ref().map(|all| all.mean))),
            ("success_sd", &|group| all_digits(group.success.as_ref().and_then(|all| all.sd))),
            ("success_iqm", &|group| all_digits(group.success_iqm.map(|iqm| iqm.value))),
            ("success_iqm_low", &|group| all_digits(group.success_iqm.as_ref().and_then(low))),
            ("success_iqm_high", &|group| all_digits(group.success_iqm.as_ref().and_then(high))),
            ("each_raw_mean", &|group| group.each(|mean| mean.to_string())),
            ("smoothness_mean", &|group| all_digits(group.smoothness.as_ref().map(|all| all.mean))),
            ("smoothness_sd", &|group| {
                all_digits(group.smoothness.as_ref().and_then(|all| all.sd))
            }),
            ("first_run", &|group| group.first().run.name.clone()),
        ];
        (file, Table::of(&self.groups, &columns))
    }
}

/// The table for people, and a sentence about the columns that are equal in all rows.
fn readable(groups: &[&Group<'_>]) -> Vec<Block> {
    type Column<'a> = (&'static str, Box<dyn Fn(&Group<'_>) -> String + 'a>);
    let name = if groups[0].first().cell.is_some() { "cell" } else { "first run" };
    // If such a column is equal in all rows, the sentence below the table replaces it.
    let names: [Column<'_>; 6] = [
        ("task", Box::new(|group| group.first().task())),
        ("protocol", Box::new(|group| group.first().protocol.clone())),
        ("target", Box::new(|group| group.target(short))),
        (name, Box::new(|group| group.name())),
        ("seeds", Box::new(|group| group.seeds())),
        (choices::CHOOSING, Box::new(|group| choices::episodes(&group.rows))),
    ];
    let (same, mut columns): (Vec<Column<'_>>, Vec<Column<'_>>) =
        names.into_iter().partition(|(_, of)| groups.iter().all(|row| of(row) == of(groups[0])));
    // Compared groups have the same task, protocol and target.
    let place = columns.iter().position(|(other, _)| *other == name).unwrap_or_default();
    let digits = digits(groups.iter().map(|group| &group.raw));
    let mut settings = groups.iter().flat_map(|group| &group.rows).map(|row| row.setting());
    let is_fourier = settings.any(Setting::has_fourier_head);
    let numbers: [Column<'_>; 8] = [
        ("IQM [interval]", Box::new(move |group| estimate(&group.iqm, digits))),
        (
            "normalized IQM [interval]",
            Box::new(|group| or_dash(group.normalized_iqm.map(|iqm| estimate(&iqm, 2)))),
        ),
        ("raw mean ± sd", Box::new(move |group| spread(&group.raw, digits))),
        (
            "normalized mean ± sd",
            Box::new(|group| or_dash(group.normalized.as_ref().map(|all| spread(all, 2)))),
        ),
        (
            "success IQM [interval]",
            Box::new(|group| or_dash(group.success_iqm.map(|iqm| estimate(&iqm, 2)))),
        ),
        (
            "success mean ± sd",
            Box::new(|group| or_dash(group.success.as_ref().map(|all| spread(all, 2)))),
        ),
        (
            "smoothness ± sd",
            Box::new(move |group| {
                let smoothness = group.smoothness.as_ref().filter(|_| is_fourier);
                or_dash(smoothness.map(|all| spread(all, 4)))
            }),
        ),
        ("each run", Box::new(move |group| group.each(|mean| fixed(mean, digits)))),
    ];
    let has_values = |(_, of): &Column<'_>| groups.iter().any(|row| of(row) != "-");
    columns.extend(numbers.into_iter().filter(has_values));
    let mut table = Table::new(columns.iter().map(|(name, _)| *name));
    for row in groups {
        table.row(columns.iter().map(|(_, of)| of(row)).collect());
    }
    let n_compared = table.rows()[1..].chunk_by(|a, b| a[..place] == b[..place]).count();
    let grouped = if n_compared < groups.len() { place } else { 0 };
    let same: Vec<String> = same
        .iter()
        .map(|(name, of)| (name, of(groups[0])))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let sentence =
        (!same.is_empty()).then(|| Block::Text(format!("In every row: {}.", same.join("; "))));
    std::iter::once(Block::Groups(table, grouped)).chain(sentence).collect()
}

impl<'a> Group<'a> {
    /// Scores of these rows: at least one, all of the same task.
    fn of(rows: Vec<&'a Row<'a>>, bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let means: Vec<f64> = rows.iter().map(|row| row.raw.mean).collect();
        let (task, target) = (&rows[0].setting().task, rows[0].target.target_return);
        let raw = Summary::of(&means).ok_or(ReportError::NoScore(target))?;
        let iqm_of = |scores: &[f64]| -> Result<Estimate, PageError> {
            Ok(bootstrap.estimate(&ScoreMatrix::one_task(&task.title, scores)?, iqm)?)
        };
        let iqm = iqm_of(&means)?;
        let rates = rows.iter().map(|row| Some(row.success?.value)).collect::<Option<Vec<f64>>>();
        let success_iqm = rates.as_deref().map(iqm_of).transpose()?;
        let success = rates.and_then(|rates| Summary::of(&rates));
        let (mut normalized, mut normalized_iqm) = (None, None);
        if let Some(reference) = &task.reference {
            let normalize = |score: f64| reference.normalize(score);
            normalized = Summary::of(&means.into_iter().map(normalize).collect::<Vec<_>>());
            // Normalization is linear, so it also maps the ends of an interval.
            let interval = iqm.interval.map(|mut interval| {
                interval.low = normalize(interval.low);
                interval.high = normalize(interval.high);
                interval
            });
            normalized_iqm =
                normalized.is_some().then(|| Estimate { value: normalize(iqm.value), interval });
        }
        let smoothness = rows.iter().map(|row| Some(row.target.smoothness?.mean));
        let smoothness = smoothness.collect::<Option<Vec<f64>>>().and_then(|all| Summary::of(&all));
        Ok(Self { rows, raw, iqm, normalized, normalized_iqm, success, success_iqm, smoothness })
    }

    /// The row of the first run.
    pub(super) fn first(&self) -> &'a Row<'a> {
        self.rows[0]
    }

    /// The settings that distinguish its cell within the task; without a study the first run.
    pub(super) fn name(&self) -> String {
        let first = self.first();
        first.cell.map_or(&first.run.label, |cell| &cell.agent).clone()
    }

    /// The settings that distinguish its cell; without a study the policy.
    fn label(&self) -> String {
        let first = self.first();
        first.cell.map_or(&first.setting().policy, |cell| &cell.label).clone()
    }

    /// The training seeds as text.
    fn seeds(&self) -> String {
        self.rows.iter().map(|row| row.seed()).collect::<Vec<_>>().join(" ")
    }

    /// The conditions of all rows, with target returns formatted by `number`.
    pub(super) fn target(&self, number: impl Fn(f32) -> String) -> String {
        conditions(self.rows.iter().copied(), number)
    }

    /// The mean of each run, formatted by `number`.
    fn each(&self, number: impl Fn(f64) -> String) -> String {
        self.rows.iter().map(|row| number(row.raw.mean)).collect::<Vec<_>>().join(" ")
    }

    /// Whether `of` is not the same for all rows.
    fn differ<T: PartialEq>(&self, of: impl Fn(&'a Row<'a>) -> T) -> bool {
        let first = of(self.first());
        self.rows.iter().any(|row| of(row) != first)
    }

    /// Sentences about data and episodes that differ between its runs.
    fn notes(&self) -> Vec<String> {
        let first = self.first();
        let mut notes = Vec::new();
        if self.differ(|row| row.setting().dataset_hash.as_ref()) && !self.differ(shared_dataset) {
            notes.push(format!(
                "Each run in the group of {} was trained on its own transitions, sampled with its \
                 seed.",
                first.run.name
            ));
        }
        let seeds = |row: &Row<'_>| -> Vec<u64> {
            row.source.episodes(row.target).map(|episode| episode.seed).collect()
        };
        let others = self.rows.iter().filter(|row| seeds(row) != seeds(first));
        let others: Vec<String> = others
            .map(|row| format!("{} ({})", row.run.name, counted(seeds(row).len(), "episode")))
            .collect();
        if !others.is_empty() {
            notes.push(format!(
                "Evaluated on other episodes than {} ({}): {}.",
                first.run.name,
                counted(seeds(first).len(), "episode"),
                others.join("; ")
            ));
        }
        notes
    }
}
