//! `overtone data`: what a recording holds, and what is wrong with it.

use std::path::Path;

use anyhow::Result;
use overtone_core::{Task, names::plain};
use overtone_data::{
    Check, DatasetCard, Expected, ReadFrames, check, datasets_folder, description_of,
    read::reader_of,
};

use crate::suites::{self, SUITES};

/// `overtone data inspect PATH [--json]`.
pub fn inspect(path: &Path, json: bool) -> Result<()> {
    let inspection = look(path, None, ReadFrames::IfSmall)?.inspection?;
    let returns = inspection.returns();
    // Scores are in raw units.
    let scores = task_of(path)
        .filter(|_| inspection.episodes() > 0 && returns.units == "raw")
        .and_then(|task| task.reference.as_ref());
    let normalized =
        scores.map(|scores| (&scores.convention, scores.normalize(returns.spread.mean)));
    if json {
        let mut value = serde_json::to_value(&inspection)?;
        if let Some((convention, normalized)) = normalized {
            value[format!("{convention}_normalized_return")] = normalized.into();
        }
        say!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    say!("{inspection}");
    if let (Some((_, normalized)), Some(scores)) = (normalized, scores) {
        say!("{:<14} mean {normalized:.1} [{}]", "normalized", scores.meaning);
    }
    Ok(())
}

/// `overtone data lint PATH [--json] [--card FILE] [--all-frames]`; gives the exit code.
pub fn lint(path: &Path, json: bool, card: Option<&Path>, all_frames: bool) -> Result<u8> {
    let frames = if all_frames { ReadFrames::Always } else { ReadFrames::IfSmall };
    let report = look(path, card, frames)?.report;
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(report.exit_code());
    }
    match &report.expected {
        Some(name) => say!("{}, compared with {name}.toml", path.display()),
        None => say!("{}, of which there is no description", path.display()),
    }
    say!("{report}");
    Ok(report.exit_code())
}

/// Looks at the recording at `path` once, knowing what the description in `card` says, or else
/// the one in the project's folder of datasets.
fn look(path: &Path, card: Option<&Path>, frames: ReadFrames) -> Result<Check> {
    let card = match card {
        Some(card) => Some(DatasetCard::load(card)?),
        // Without the project's folder there is no description, and that is no error here.
        None => match datasets_folder() {
            Ok(datasets) => description_of(path, &datasets)?,
            Err(_) => None,
        },
    };
    let task = task_of(path);
    let recording = card.as_ref().map(|card| &card.recording);
    let horizon = match task {
        Some(task) => suites::of(task)?.horizon(task, recording.unwrap_or(&task.simulation)),
        None => None,
    };
    let horizon = horizon.map(|steps| steps as u64);
    Ok(check(path, &Expected { card: card.as_ref(), task, horizon, frames })?)
}

/// The task that a path names: files of recordings and their folders begin with it.
pub fn task_of(path: &Path) -> Option<&'static Task> {
    let place = reader_of(path).and_then(|reader| reader.place(path)).ok()?;
    let tasks = || SUITES.into_iter().flat_map(|suite| suite.tasks());
    let named = |part: &str| tasks().find(|task| plain(&task.name) == plain(part));
    let mut parts = place.iter().rev().map(|part| part.to_string_lossy().into_owned());
    parts.find_map(|part| beginnings(&part).into_iter().find_map(named))
}

/// What `name` begins with, up to each separator, the longest first: of `bank_heist-v2`, that,
/// `bank_heist` and `bank`. The game E.T. is not in `etc`.
fn beginnings(name: &str) -> Vec<&str> {
    let separators = name.char_indices().filter(|(_, c)| !c.is_alphanumeric());
    let ends = separators.map(|(at, _)| at).chain([name.len()]);
    let mut beginnings: Vec<&str> = ends.map(|end| &name[..end]).collect();
    beginnings.reverse();
    beginnings
}

#[cfg(test)]
mod tests {
    use super::beginnings;

    #[test]
    fn a_name_begins_with_its_first_words() {
        assert_eq!(beginnings("bank_heist-v2"), ["bank_heist-v2", "bank_heist", "bank"]);
        assert_eq!(beginnings("etc"), ["etc"]);
        assert_eq!(beginnings(""), [""]);
    }
}
