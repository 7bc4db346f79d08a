//! Inspection of a D4RL file, a Minari file, or a recording in memory.

use std::fs;

use super::inspection::Inspection;
use super::steps::Steps;
use super::vectors::Look;
use crate::describe::findings::Findings;
use crate::error::DataError;
use crate::read::array_names::LOG_PROBS_IN_INFOS;
use crate::read::column::ObservationColumn;
use crate::read::columns::Columns;
use crate::read::hdf5_arrays::{Arrays, Form, NEXT_OBSERVATIONS};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{Hdf5Layout, check_total, episode_names};
use crate::read::minari_spaces::MinariSpaces;
use crate::read::source::{Source, column, same};
use crate::read::spaces::Space;

/// Inspects a D4RL file.
///
/// # Errors
/// Why it cannot be trained on.
pub(crate) fn check_d4rl(
    file: &Hdf5File,
    findings: &mut Findings<'_>,
) -> Result<Inspection, DataError> {
    let mut look = Look::new(findings.expected);
    let mut arrays = Arrays::read(file, Hdf5Layout::D4rl, None, &MinariSpaces::default());
    forms(file, "", Hdf5Layout::D4rl, shows_pictures(&arrays), findings);
    let refused = look_at_part(file, &mut arrays, &mut None, &mut look, findings);
    if !shows_pictures(&arrays) && file.has(NEXT_OBSERVATIONS) {
        match file.matrix(NEXT_OBSERVATIONS) {
            Ok(next) => {
                look.finite(NEXT_OBSERVATIONS, "", &next.values, next.width);
                let steps = arrays.steps().unwrap_or(next.rows);
                if let Err(error) = same(file, NEXT_OBSERVATIONS, next.rows, steps, "observations")
                {
                    findings.refused(&error);
                }
            }
            Err(error) => findings.refused(&error),
        }
    }
    for name in file.parts("infos").unwrap_or_default() {
        let name = format!("infos/{name}");
        if name == LOG_PROBS_IN_INFOS {
            // It is read with the actions.
            continue;
        }
        // An array that is neither a column nor a matrix is skipped: no reader uses it.
        if let Ok(matrix) = file.matrix(&name) {
            look.finite(&name, "", &matrix.values, matrix.width);
        } else if let Ok(column) = column(file, &name) {
            look.finite(&name, "", &column, 1);
        }
    }
    end(file, Hdf5Layout::D4rl, look, findings, refused)
}

/// Inspects a Minari file, one episode after the other.
///
/// # Errors
/// Why it cannot be trained on.
pub(crate) fn check_minari(
    file: &Hdf5File,
    findings: &mut Findings<'_>,
) -> Result<Inspection, DataError> {
    let names = episode_names(file);
    let mut refused = Ok(());
    let spaces = MinariSpaces::of(file).unwrap_or_else(|error| {
        findings.refused(&error);
        refused = Err(error);
        MinariSpaces::default()
    });
    if let Err(error) = check_total(file, "episode", spaces.total_episodes, names.len()) {
        findings.refused(&error);
        refused = refused.and(Err(error));
    }
    let (mut look, mut form) = (Look::new(findings.expected), None);
    look.described(spaces.actions.as_ref());
    for name in &names {
        let mut arrays = Arrays::read(file, Hdf5Layout::Minari, Some(name), &spaces);
        let sound = look_at_part(file, &mut arrays, &mut form, &mut look, findings);
        refused = refused.and(sound);
    }
    if let Some(first) = names.first() {
        let has_pictures = look.frame.is_some();
        forms(file, &format!("{first}/"), Hdf5Layout::Minari, has_pictures, findings);
    }
    end(file, Hdf5Layout::Minari, look, findings, refused)
}

/// Inspects a recording in memory, of a format without its own inspection; its actions are of the
/// space `actions`, if known.
///
/// # Errors
/// Why it cannot be trained on.
pub(crate) fn look_at(
    columns: &Columns,
    actions: Option<&Space>,
    findings: &mut Findings<'_>,
) -> Result<Inspection, DataError> {
    findings.of(&columns.path);
    columns.check()?;
    let mut look = Look::new(findings.expected);
    look.described(actions);
    look.part(&columns.steps(), &columns.episodes, &columns.finished, findings);
    for odd in &columns.odd {
        findings.tell("as-read", "", odd.as_str());
    }
    look.tell(Hdf5Layout::D4rl, findings);
    let inspection = look.inspection(&columns.path, columns.format);
    Ok(Inspection::Columns(Box::new(inspection)))
}

fn shows_pictures(arrays: &Arrays) -> bool {
    matches!(arrays.observations, Some(ObservationColumn::Frames { .. }))
}

/// Inspects some arrays; returns the reason if they cannot be trained on.
fn look_at_part(
    file: &Hdf5File,
    arrays: &mut Arrays,
    form: &mut Option<Form>,
    look: &mut Look<'_>,
    findings: &mut Findings<'_>,
) -> Result<(), DataError> {
    arrays.errors.iter().for_each(|error| findings.refused(error));
    look.strange.look(arrays);
    look.broken |= arrays.terminals.is_none() || arrays.timeouts.is_none();
    if let Some(ObservationColumn::Vectors { width, values }) = &arrays.observations {
        look.finite("observations", &arrays.prefix, values, *width);
    }
    let sound = arrays.check(file, form);
    if let (Hdf5Layout::Minari, Some(seen)) = (arrays.layout, &mut arrays.observations) {
        // The last one is the one after the last action.
        seen.truncate(seen.rows().saturating_sub(1));
    }
    let flags = || arrays.terminals.as_ref().map(Vec::len);
    let part = Steps {
        prefix: &arrays.prefix,
        n: arrays.actions.as_ref().map(|actions| actions.rows()).or_else(flags).unwrap_or(0),
        observations: arrays.observations.as_ref(),
        actions: arrays.actions.as_ref(),
        rewards: arrays.rewards.as_deref(),
        limited: arrays.timeouts.is_some(),
        stored: &arrays.stored,
        optional: &arrays.optional,
    };
    let (episodes, finished) = arrays.episodes();
    look.part(&part, &episodes, &finished, findings);
    sound
}

/// Reports the findings, and compares the counts with the description's.
fn end(
    file: &Hdf5File,
    layout: Hdf5Layout,
    look: Look<'_>,
    findings: &mut Findings<'_>,
    refused: Result<(), DataError>,
) -> Result<Inspection, DataError> {
    let path = file.path();
    findings.of(path);
    look.tell(layout, findings);
    let unread = look.strange.unread_log_probs().filter(|_| refused.is_ok());
    for sentence in file.claims().rounding.sentences().into_iter().chain(unread) {
        findings.tell("as-read", "", sentence);
    }
    let inspection = look.inspection(path, layout.name());
    let counts = findings.expected.card.and_then(|card| card.counts_of(card.named(path).as_ref()));
    if let Some(counts) = counts {
        let bytes = fs::metadata(path).map_or(0, |data| data.len());
        let whole = [
            ("transition-count", "steps", counts.transitions, inspection.transitions),
            ("episode-count", "finished episodes", counts.episodes, inspection.episodes),
        ];
        let counted = whole.into_iter().filter(|_| !look.broken);
        for (code, what, wanted, found) in
            counted.chain([("byte-count", "bytes", counts.bytes, bytes)])
        {
            findings.compare(code, what, wanted, found);
        }
    }
    refused.map(|()| Inspection::Columns(Box::new(inspection)))
}

/// Reports types and shapes that are read but differ from D4RL's, for the arrays below `prefix`.
fn forms(
    file: &Hdf5File,
    prefix: &str,
    layout: Hdf5Layout,
    shows_pictures: bool,
    findings: &mut Findings<'_>,
) {
    for name in ["observations", "actions", "rewards"] {
        let name = format!("{prefix}{name}");
        if !file.holds_numbers(&name) {
            continue;
        }
        let Ok(element) = file.element(&name) else { continue };
        // Minari's rewards are doubles; pictures stay bytes.
        let usual = layout == Hdf5Layout::Minari && name.ends_with("rewards")
            || name.ends_with("actions") && file.is_chosen(&name)
            || name.ends_with("observations") && shows_pictures;
        if element != "float32" && !usual {
            findings.tell("not-float32", &name, element);
        }
    }
    for name in [&["rewards"], &layout.flags()[..]].concat() {
        let name = format!("{prefix}{name}");
        if let Ok(shape) = file.shape(&name)
            && shape.len() == 2
            && shape[1] == 1
        {
            findings.tell("column-shape", &name, format!("shape {shape:?}"));
        }
    }
}
