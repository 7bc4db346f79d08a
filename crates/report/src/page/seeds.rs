//! Runs that differ in their training seed alone, together.

use std::collections::BTreeMap;

use super::run_files::PageError;
use super::scores::{Configuration, Role, Row, cell, estimate, spread};
use overtone_core::{ObservationSpace, Reference};
use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, iqm};
use overtone_eval::table::Table;
use overtone_eval::{ReportError, Summary};

/// The same agent trained with several seeds, played alike.
pub(super) struct Group<'a> {
    rows: Vec<(&'a Row<'a>, String)>,
    /// Of the runs' mean raw returns.
    raw: Summary,
    iqm: Estimate,
    normalized: Option<Summary>,
}

/// What was put together, and what was not.
pub(super) struct Groups<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// Sentences about rows that would have counted twice, and about data that differ.
    pub(super) notes: Vec<String>,
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
    (alike, (step, row.target.target_return.to_bits(), recording(row)))
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

/// A sentence for runs of one configuration, each of which is alone in its group.
fn apart(members: &[Vec<(&Row<'_>, String)>]) -> Vec<String> {
    let mut alone: BTreeMap<Alike, Vec<(&Row<'_>, &str)>> = BTreeMap::new();
    for rows in members {
        if let [(row, seed)] = &rows[..] {
            alone.entry(key(row).0).or_default().push((row, seed));
        }
    }
    let several = |rows: &&Vec<(&Row<'_>, &str)>| rows.iter().any(|(_, seed)| *seed != rows[0].1);
    let told = |rows: &Vec<(&Row<'_>, &str)>| {
        let mut runs: Vec<String> = Vec::new();
        for (row, _) in rows {
            let updates = row.step().map(|step| format!("update {step}"));
            let mine = rows.iter().filter(|(other, _)| std::ptr::eq(other.run, row.run));
            let asked: Vec<String> =
                mine.filter_map(|(row, _)| Some(row.asked()?.to_string())).collect();
            let asked = (!asked.is_empty()).then(|| format!("asked for {}", asked.join(" and ")));
            let how: Vec<String> = updates.into_iter().chain(asked).collect();
            let run = format!("{} ({})", row.run.name, how.join(", "));
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        format!(
            "Alike in configuration, but not in updates, in the return asked for or in the \
             recording, so not put together over seeds: {}.",
            runs.join("; ")
        )
    };
    alone.values().filter(several).map(told).collect()
}

impl<'a> Groups<'a> {
    /// Groups of rows, in the order of their first rows. A run counts once in a group, and so
    /// does a seed: the same seed trains the same agent.
    pub(super) fn of(rows: &'a [Row<'a>], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let mut places: BTreeMap<(Alike, Together), usize> = BTreeMap::new();
        let mut members: Vec<Vec<(&Row<'_>, String)>> = Vec::new();
        let mut notes = Vec::new();
        for row in rows {
            let place = *places.entry(key(row)).or_insert(members.len());
            if place == members.len() {
                members.push(Vec::new());
            }
            let seed = row.run.config.get("seed").map_or("-".to_owned(), ToString::to_string);
            let group = &mut members[place];
            match group.iter().find(|(_, other)| *other == seed) {
                Some((first, _)) => notes.push(format!(
                    "{} of {} (target {}) is left out: seed {seed} is there already, from {} of {}.",
                    row.source.file, row.run.name, row.target.target_return, first.source.file,
                    first.run.name
                )),
                None => group.push((row, seed)),
            }
        }
        for rows in &members {
            let hash = |row: &Row<'_>| row.evaluation().setting.dataset_hash.clone();
            let first = rows[0].0;
            let note = format!(
                "Each run like {} was trained on transitions of its own, drawn with its seed.",
                first.run.name
            );
            if rows.iter().any(|(row, _)| hash(row) != hash(first)) && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.extend(apart(&members));
        let groups = members.into_iter().filter(|rows| rows.len() > 1);
        let groups = groups.map(|rows| Group::new(rows, bootstrap)).collect::<Result<_, _>>()?;
        Ok(Self { groups, notes })
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
        let mut groups = self.groups.iter().filter(|group| group.first().role == role).peekable();
        groups.peek()?;
        for group in groups {
            let (row, setting) = (group.first(), &group.first().evaluation().setting);
            let dash = || "-".to_owned();
            // The policy in words does not tell data sets apart: a run's name does.
            table.row(vec![
                row.run.name.clone(),
                setting.task.title.clone(),
                row.protocol.clone(),
                row.asked().map_or_else(dash, |target| target.to_string()),
                group.rows.len().to_string(),
                group.seeds(),
                spread(&group.raw, 1),
                estimate(&group.iqm, 1),
                group.normalized.as_ref().map_or_else(dash, |summary| spread(summary, 2)),
                group.normalized_iqm().map_or_else(dash, |iqm| estimate(&iqm, 2)),
                format!("{:.1}", group.raw.median),
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
            let (row, setting) = (group.first(), &group.first().evaluation().setting);
            let (raw, normalized) = (&group.raw, group.normalized.as_ref());
            let of_iqm = |iqm: Option<Estimate>| {
                let interval = iqm.and_then(|iqm| iqm.interval);
                [
                    cell(iqm.map(|iqm| iqm.value)),
                    cell(interval.map(|interval| interval.low)),
                    cell(interval.map(|interval| interval.high)),
                ]
            };
            let mut cells = vec![
                setting.policy.clone(),
                setting.task.title.clone(),
                row.protocol.clone(),
                row.role.name().to_owned(),
                row.target.target_return.to_string(),
                group.rows.len().to_string(),
                group.seeds(),
                raw.mean.to_string(),
                cell(raw.sd),
                raw.median.to_string(),
            ];
            cells.extend(of_iqm(Some(group.iqm)));
            let reference = setting.task.reference.as_ref();
            let convention = reference.map_or("", |reference| &reference.convention);
            cells.push(convention.to_owned());
            cells.push(cell(normalized.map(|summary| summary.mean)));
            cells.push(cell(normalized.and_then(|summary| summary.sd)));
            cells.extend(of_iqm(group.normalized_iqm()));
            cells.push(row.run.name.clone());
            table.row(cells);
        }
        table
    }
}

impl<'a> Group<'a> {
    fn new(rows: Vec<(&'a Row<'a>, String)>, bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let means: Vec<f64> = rows.iter().map(|(row, _)| row.raw.mean).collect();
        let setting = &rows[0].0.evaluation().setting;
        let target = rows[0].0.target.target_return;
        let raw = Summary::of(&means).ok_or(ReportError::NoScore(target))?;
        let matrix = ScoreMatrix::one_task(&setting.task.title, &means)?;
        let normalize = |reference: &Reference| {
            Summary::of(&means.iter().map(|mean| reference.normalize(*mean)).collect::<Vec<_>>())
        };
        let normalized = setting.task.reference.as_ref().and_then(normalize);
        Ok(Self { raw, iqm: bootstrap.estimate(&matrix, iqm)?, normalized, rows })
    }

    fn first(&self) -> &'a Row<'a> {
        self.rows[0].0
    }

    fn seeds(&self) -> String {
        self.rows.iter().map(|(_, seed)| seed.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Normalizing is a straight line: it takes the ends of an interval along.
    fn normalized_iqm(&self) -> Option<Estimate> {
        let reference = self.first().evaluation().setting.task.reference.as_ref()?;
        self.normalized.as_ref()?;
        let normalize = |score| reference.normalize(score);
        let interval = self.iqm.interval.map(|mut interval| {
            interval.low = normalize(interval.low);
            interval.high = normalize(interval.high);
            interval
        });
        Some(Estimate { value: normalize(self.iqm.value), interval })
    }
}
