//! Runs that differ in their training seed alone, together.

use std::collections::BTreeMap;

use super::over_seeds::OverSeeds;
use super::run_files::PageError;
use super::scores::{self, Configuration, Role, Row, cell, estimate, spread};
use overtone_core::ObservationSpace;
use overtone_eval::statistics::Bootstrap;
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::Table;

/// The same agent trained with several seeds, played alike.
pub(super) struct Group<'a> {
    rows: Vec<&'a Row<'a>>,
    scores: OverSeeds,
}

/// What was put together, and what was not.
pub(super) struct Groups<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// Sentences about rows that would have counted twice, and about data that differ.
    pub(super) notes: Vec<String>,
    /// Sentences about runs that are in no group.
    pub(super) apart: Vec<String>,
}

/// What rows have in common whose runs were configured and played alike.
type Alike = (String, Configuration, String, Role, String);

/// What rows of one group have in common beside that: updates, target, recording.
type Together = (Option<u64>, u32, Option<String>);

fn key(row: &Row<'_>) -> (Alike, Together) {
    let setting = &row.evaluation().setting;
    let alike = (
        setting.task.title.clone(),
        row.configuration(&[]),
        row.protocol.clone(),
        row.role,
        format!("{:?} {}", setting.task.reference, setting.policy),
    );
    // Where held-out episodes choose the checkpoint, each seed has its own. A run that was stopped
    // has a last one too, of fewer updates.
    let step = row.step().filter(|_| row.role != Role::HeldOut);
    // What an agent is told nothing of is a percentile of each seed's own transitions.
    let target = match row.told() {
        Some(_) => row.target.target_return.to_bits(),
        None => row.place() as u32,
    };
    (alike, (step, target, recording(row)))
}

/// The hash of a recording that all seeds learn from; of a log of frames, from which each seed may
/// draw its own transitions, `None`.
pub(super) fn recording(row: &Row<'_>) -> Option<String> {
    let setting = &row.evaluation().setting;
    match setting.task.observations {
        ObservationSpace::Vectors { .. } => setting.dataset_hash.clone(),
        ObservationSpace::Pixels { .. } => None,
    }
}

/// Sentences for runs that are alone in their groups, where runs of other seeds have the same
/// configuration.
fn apart(members: &[Vec<&Row<'_>>]) -> Vec<String> {
    let mut alike: BTreeMap<Alike, Vec<&[&Row<'_>]>> = BTreeMap::new();
    for rows in members {
        alike.entry(key(rows[0]).0).or_default().push(rows);
    }
    let mut notes = Vec::new();
    for groups in alike.into_values() {
        let mut seeds = groups.iter().flat_map(|rows| rows.iter()).map(|row| row.seed());
        let first = seeds.next();
        let alone: Vec<&Row<'_>> =
            groups.iter().filter(|rows| rows.len() == 1).map(|rows| rows[0]).collect();
        if alone.is_empty() || !seeds.any(|seed| Some(seed) != first) {
            continue;
        }
        let mut runs: Vec<String> = Vec::new();
        for row in &alone {
            let updates = row.step().map(|step| format!("update {step}"));
            let mine = alone.iter().filter(|other| std::ptr::eq(other.run, row.run));
            let told: Vec<String> = mine.filter_map(|row| row.told()).collect();
            let told = (!told.is_empty()).then(|| format!("asked for {}", told.join(" and ")));
            let how: Vec<String> = updates.into_iter().chain(told).collect();
            let run = format!("{} ({})", row.run.name, how.join(", "));
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        notes.push(format!(
            "Alike in configuration, but not in updates, in the return asked for or in the \
             recording, so not put together over seeds: {}.",
            runs.join("; ")
        ));
    }
    notes
}

impl<'a> Groups<'a> {
    /// Groups of rows, in the order of their first rows. A run counts once in a group, and so
    /// does a seed: the same seed trains the same agent.
    pub(super) fn of(rows: &'a [Row<'a>], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let mut places: BTreeMap<(Alike, Together), usize> = BTreeMap::new();
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
                    let told = row.told().map(|told| format!(" (target {told})"));
                    notes.push(format!(
                        "{} of {}{} is left out: seed {seed} is there already, from {} of {}.",
                        row.source.file,
                        row.run.name,
                        told.unwrap_or_default(),
                        first.source.file,
                        first.run.name
                    ));
                }
                None => group.push(row),
            }
        }
        for rows in &members {
            let hash = |row: &Row<'_>| row.evaluation().setting.dataset_hash.clone();
            let first = rows[0];
            let note = format!(
                "Each run like {} was trained on transitions of its own, drawn with its seed.",
                first.run.name
            );
            if rows.iter().any(|row| hash(row) != hash(first)) && !notes.contains(&note) {
                notes.push(note);
            }
            let played = |row: &Row<'_>| -> Vec<u64> {
                row.source.episodes(row.target).map(|episode| episode.seed).collect()
            };
            let others = rows.iter().filter(|row| played(row) != played(first));
            let others: Vec<String> = others
                .map(|row| format!("{} ({} episodes)", row.run.name, played(row).len()))
                .collect();
            if !others.is_empty() {
                notes.push(format!(
                    "Not played by the same episodes as {} ({} episodes): {}.",
                    first.run.name,
                    played(first).len(),
                    others.join("; ")
                ));
            }
        }
        let apart = apart(&members);
        let groups = members.into_iter().filter(|rows| rows.len() > 1);
        let groups = groups.map(|rows| Group::new(rows, bootstrap)).collect::<Result<_, _>>()?;
        Ok(Self { groups, notes, apart })
    }

    /// To be read; the groups of one role.
    pub(super) fn readable(&self, role: Role) -> Option<Table> {
        let mut table = Table::new(&[
            "run and its like",
            "task",
            "protocol",
            "target",
            "runs",
            "training seeds",
            "raw mean ± sd",
            "IQM [interval]",
            "normalized mean ± sd",
            "normalized IQM [interval]",
            "median",
        ]);
        let groups: Vec<&Group<'_>> =
            self.groups.iter().filter(|group| group.rows[0].role == role).collect();
        groups.first()?;
        let digits = digits(groups.iter().map(|group| &group.scores.raw));
        for group in groups {
            let (row, scores) = (group.rows[0], &group.scores);
            let dash = || "-".to_owned();
            // The policy in words does not tell data sets apart: a run's name does.
            table.row(vec![
                row.run.label.clone(),
                row.evaluation().setting.task.title.clone(),
                row.protocol.clone(),
                Some(group.told()).filter(|told| !told.is_empty()).unwrap_or_else(dash),
                group.rows.len().to_string(),
                group.seeds(),
                spread(&scores.raw, digits),
                estimate(&scores.iqm, digits),
                scores.normalized.as_ref().map_or_else(dash, |summary| spread(summary, 2)),
                scores.normalized_iqm.map_or_else(dash, |iqm| estimate(&iqm, 2)),
                fixed(scores.raw.median, digits),
            ]);
        }
        Some(table)
    }

    /// Every group with all digits.
    pub(super) fn csv(&self) -> Table {
        let mut table = Table::new(&[
            "agent",
            "task",
            "protocol",
            "checkpoint",
            "target",
            "runs",
            "training_seeds",
            "raw_mean",
            "raw_sd",
            "raw_median",
            "raw_iqm",
            "raw_iqm_low",
            "raw_iqm_high",
            "convention",
            "normalized_mean",
            "normalized_sd",
            "normalized_iqm",
            "normalized_iqm_low",
            "normalized_iqm_high",
            "first_run",
        ]);
        for group in &self.groups {
            let (row, raw) = (group.rows[0], &group.scores.raw);
            let setting = &row.evaluation().setting;
            let mut cells = vec![
                setting.policy.clone(),
                setting.task.title.clone(),
                row.protocol.clone(),
                row.role.name().to_owned(),
                group.told(),
                group.rows.len().to_string(),
                group.seeds(),
                raw.mean.to_string(),
                cell(raw.sd),
                raw.median.to_string(),
            ];
            cells.extend(group.scores.raw_iqm_cells());
            let reference = setting.task.reference.as_ref();
            let convention = reference.map_or("", |reference| &reference.convention);
            cells.push(convention.to_owned());
            cells.extend(group.scores.normalized_cells());
            cells.push(row.run.name.clone());
            table.row(cells);
        }
        table
    }
}

impl<'a> Group<'a> {
    fn new(rows: Vec<&'a Row<'a>>, bootstrap: &Bootstrap) -> Result<Self, PageError> {
        Ok(Self { scores: OverSeeds::of(&rows, bootstrap)?, rows })
    }

    fn seeds(&self) -> String {
        self.rows.iter().map(|row| row.seed()).collect::<Vec<_>>().join(" ")
    }

    fn told(&self) -> String {
        scores::told(self.rows.iter().copied(), |target| target.to_string())
    }
}
