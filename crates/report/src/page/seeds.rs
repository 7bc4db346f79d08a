//! Aggregates of runs that differ only in their training seed.

use std::collections::BTreeMap;

use super::choices;
use super::document::Block;
use super::over_seeds::{self, OverSeeds};
use super::run_files::PageError;
use super::scores::{Configuration, Role, Row, estimate, spread};
use super::unique;
use overtone_core::ObservationSpace;
use overtone_core::counted;
use overtone_eval::statistics::Bootstrap;
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::{Table, or_dash};

/// Runs grouped over training seeds.
pub(super) struct Groups<'a> {
    /// Each group is one agent trained with several seeds and evaluated with one protocol.
    pub(super) groups: Vec<OverSeeds<'a>>,
    /// Sentences about rows that would have counted twice, and about data that differ.
    pub(super) notes: Vec<String>,
    /// Sentences about runs that are not in any group.
    pub(super) ungrouped: Vec<String>,
}

/// Key of rows with the same task, configuration, protocol and role.
type SettingKey = (String, Configuration, String, Role, String);

/// Key of the additional conditions for one group: updates, target and dataset.
type DataKey = (Option<u64>, u32, Option<String>);

fn key(row: &Row<'_>) -> (SettingKey, DataKey) {
    let setting = row.setting();
    let setting_key = (
        setting.task.title.clone(),
        row.configuration(&[]),
        row.protocol.clone(),
        row.role,
        format!("{:?} {}", setting.task.reference, setting.policy),
    );
    // Each seed has its own held-out-selected checkpoint. A stopped run also has a last checkpoint,
    // but with fewer updates.
    let step = row.step().filter(|_| row.role != Role::HeldOut);
    // A target that the agent does not use can be a different percentile value for each seed.
    let target = match row.condition() {
        Some(_) => row.target.target_return.to_bits(),
        None => row.place() as u32,
    };
    (setting_key, (step, target, shared_dataset(row)))
}

/// The hash of a dataset that all seeds share. `None` for frame datasets, from which each seed can
/// sample its own transitions.
pub(super) fn shared_dataset(row: &Row<'_>) -> Option<String> {
    let setting = row.setting();
    match setting.task.observations {
        ObservationSpace::Vectors { .. } => setting.dataset_hash.clone(),
        ObservationSpace::Pixels { .. } => None,
    }
}

/// Sentences about runs that are alone in their groups although runs of other seeds have the same
/// configuration.
fn ungrouped(members: &[Vec<&Row<'_>>]) -> Vec<String> {
    let mut same_setting: BTreeMap<SettingKey, Vec<&[&Row<'_>]>> = BTreeMap::new();
    for rows in members {
        same_setting.entry(key(rows[0]).0).or_default().push(rows);
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
    /// Groups of rows, in the order of their first rows. Each run and each seed counts once in a
    /// group, because the same seed trains the same agent.
    pub(super) fn of(rows: &'a [Row<'a>], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let mut places: BTreeMap<(SettingKey, DataKey), usize> = BTreeMap::new();
        let mut members: Vec<Vec<&Row<'_>>> = Vec::new();
        let mut notes = Vec::new();
        for row in rows {
            let place = *places.entry(key(row)).or_insert(members.len());
            if place == members.len() {
                members.push(Vec::new());
            }
            let (seed, group) = (row.seed(), &mut members[place]);
            match group.iter().find(|other| other.seed() == seed) {
                Some(first) => {
                    let target = row.condition().map(|target| format!(" (target {target})"));
                    notes.push(format!(
                        "{} of {}{} is not included: seed {seed} is already included, from {} of \
                         {}.",
                        row.source.file,
                        row.run.name,
                        target.unwrap_or_default(),
                        first.source.file,
                        first.run.name
                    ));
                }
                None => group.push(row),
            }
        }
        for rows in &members {
            let hash = |row: &Row<'_>| row.setting().dataset_hash.clone();
            let first = rows[0];
            let note = format!(
                "Each run in the group of {} was trained on its own transitions, sampled with its \
                 seed.",
                first.run.name
            );
            if rows.iter().any(|row| hash(row) != hash(first)) && !notes.contains(&note) {
                notes.push(note);
            }
            let seeds = |row: &Row<'_>| -> Vec<u64> {
                row.source.episodes(row.target).map(|episode| episode.seed).collect()
            };
            let others = rows.iter().filter(|row| seeds(row) != seeds(first));
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
        }
        let ungrouped = ungrouped(&members);
        let groups = members.into_iter().filter(|rows| rows.len() > 1);
        let groups = groups.map(|rows| OverSeeds::of(rows, bootstrap)).collect::<Result<_, _>>()?;
        Ok(Self { groups, notes, ungrouped })
    }

    /// A table for people of the groups with one role.
    pub(super) fn readable(&self, role: Role) -> Option<Vec<Block>> {
        let groups: Vec<&OverSeeds<'_>> =
            self.groups.iter().filter(|group| group.first().role == role).collect();
        groups.first()?;
        let digits = digits(groups.iter().map(|group| &group.raw));
        let table = Table::of(
            groups.iter().copied(),
            &[
                // The policy's description does not distinguish datasets, but the run's name does.
                ("first run", &|group| group.first().run.label.clone()),
                ("task", &|group| group.first().setting().task.title.clone()),
                ("protocol", &|group| group.first().protocol.clone()),
                ("target", &|group| {
                    or_dash(Some(group.target()).filter(|target| !target.is_empty()))
                }),
                ("runs", &|group| group.rows.len().to_string()),
                ("training seeds", &|group| group.seeds()),
                ("raw mean ± sd", &|group| spread(&group.raw, digits)),
                ("IQM [interval]", &|group| estimate(&group.iqm, digits)),
                ("normalized mean ± sd", &|group| {
                    or_dash(group.normalized.as_ref().map(|all| spread(all, 2)))
                }),
                ("normalized IQM [interval]", &|group| {
                    or_dash(group.normalized_iqm.map(|iqm| estimate(&iqm, 2)))
                }),
                ("median", &|group| fixed(group.raw.median, digits)),
            ],
        );
        let episodes = groups.iter().map(|group| choices::episodes(&group.rows)).collect();
        Some(choices::counted(table, episodes))
    }

    /// All groups with all digits.
    pub(super) fn csv(&self) -> Table {
        let mut table = Table::of(
            &self.groups,
            &[
                ("agent", &|group| group.first().setting().policy.clone()),
                ("task", &|group| group.first().setting().task.title.clone()),
            ],
        );
        over_seeds::add_columns(&mut table, self.groups.iter(), &[]);
        let first_runs = self.groups.iter().map(|group| group.first().run.name.clone());
        table.column("first_run", first_runs.collect());
        table
    }
}
