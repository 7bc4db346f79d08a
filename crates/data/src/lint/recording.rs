//! A D4RL or Minari file.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::Findings;
use super::arrays::{Arrays, LogFormat, forms};
use super::seen::Seen;
use crate::card::ContinuousCard;
use crate::error::DataError;
use crate::locate_columns::{environment_of, known_environment};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_paths::find_file;
use crate::read::{d4rl, minari};

/// Finds what is wrong with the file at `path`.
///
/// # Errors
/// When there is no one file.
pub(super) fn lint(
    path: &Path,
    card: Option<&ContinuousCard>,
    findings: &mut Findings,
) -> Result<(), DataError> {
    let path = find_file(path)?;
    findings.of(&path);
    let opened = Hdf5File::open(&path).and_then(|file| Ok((format_of(&file)?, file)));
    let (format, file) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            findings.refused(&error);
            return Ok(());
        }
    };
    let named = card.and_then(|card| card.named(&path));
    let robot = match named {
        Some((environment, _)) => known_environment(environment).ok(),
        None => environment_of(&path),
    };
    let limit = match card {
        Some(card) => card.recording.fields().count("max_steps").ok(),
        // As in D4RL's data.
        None => robot.map(|_| 1000),
    };
    let mut seen = Seen::new(limit, robot);
    match format {
        LogFormat::D4rl => {
            forms(&file, "", format, findings);
            let arrays = Arrays::of_d4rl(&file, findings);
            seen.finite(&arrays);
            seen.look(&arrays, &spans(&arrays), findings);
        }
        LogFormat::Minari => read_episodes(&file, &mut seen, findings),
    }
    findings.of(&path);
    seen.tell(format, findings);
    let counts = card.zip(named).and_then(|(card, (environment, dataset))| {
        card.counts.get(&ContinuousCard::counted(environment, dataset))
    });
    if let Some(counts) = counts {
        if seen.whole {
            findings.compare("transition-count", "steps", counts.transitions, seen.steps);
            findings.compare("episode-count", "finished episodes", counts.episodes, seen.finished);
        }
        let bytes = fs::metadata(&path).map_or(0, |data| data.len());
        findings.compare("byte-count", "bytes", counts.bytes, bytes);
    }
    Ok(())
}

/// How a file is laid out.
fn format_of(file: &Hdf5File) -> Result<LogFormat, DataError> {
    if minari::is_minari(file) {
        return Ok(LogFormat::Minari);
    }
    d4rl::check(file).map(|()| LogFormat::D4rl)
}

fn read_episodes(file: &Hdf5File, seen: &mut Seen, findings: &mut Findings) {
    let names = match minari::episode_names(file) {
        Ok(names) => names,
        Err(error) => {
            findings.refused(&error);
            return;
        }
    };
    if let Some(total) = file.attribute("total_episodes")
        && usize::try_from(total) != Ok(names.len())
    {
        findings.error(
            "missing-episodes",
            "",
            format!("{total} episodes, as its total_episodes says"),
            names.len().to_string(),
            "Fetch or copy the file again.",
        );
    }
    if let Some(first) = names.first() {
        forms(file, &format!("{first}/"), LogFormat::Minari, findings);
    }
    for name in &names {
        let mut arrays = Arrays::of_minari(file, name, findings);
        seen.finite(&arrays);
        // The last row is where the last action led.
        if let Some(observations) = &mut arrays.observations {
            observations.rows = observations.rows.saturating_sub(1);
            observations.values.truncate(observations.rows * observations.width);
        }
        let span = seen.episode(&arrays, name);
        seen.look(&arrays, span.as_slice(), findings);
    }
}

/// A D4RL file's episodes, and whether a flag ends them.
fn spans(arrays: &Arrays) -> Vec<(Range<usize>, bool)> {
    let Some(terminals) = &arrays.terminals else { return Vec::new() };
    let none = vec![false; terminals.len()];
    let (episodes, finished) = d4rl::cut(terminals, arrays.timeouts.as_ref().unwrap_or(&none));
    episodes.iter().map(|episode| episode.range()).zip(finished).collect()
}
