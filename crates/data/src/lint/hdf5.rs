//! A D4RL or Minari file.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::arrays::{Arrays, forms};
use super::seen::Seen;
use crate::error::DataError;
use crate::expected::Expected;
use crate::findings::Findings;
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{Layout, cut, episode_names, layout_of};
use crate::read::hdf5_paths::find_file;

/// Finds what is wrong with the file at `path`.
///
/// # Errors
/// When there is no one file.
pub(crate) fn lint(
    path: &Path,
    expected: &Expected<'_>,
    findings: &mut Findings,
) -> Result<(), DataError> {
    let path = find_file(path)?;
    findings.of(&path);
    let opened = Hdf5File::open(&path).and_then(|file| Ok((layout_of(&file)?, file)));
    let (format, file) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            findings.refused(&error);
            return Ok(());
        }
    };
    let mut seen = Seen::new(expected.horizon, expected.task);
    match format {
        Layout::D4rl => {
            forms(&file, "", format, findings);
            let arrays = Arrays::of_d4rl(&file, findings);
            seen.finite(&arrays);
            seen.look(&arrays, &spans(&arrays), findings);
        }
        Layout::Minari => read_episodes(&file, &mut seen, findings),
    }
    findings.of(&path);
    seen.tell(format, findings);
    let counts = expected.card.and_then(|card| card.counts_of(card.named(&path).as_ref()));
    if let Some(counts) = counts {
        if seen.whole {
            if let Some(transitions) = counts.transitions {
                findings.compare("transition-count", "steps", transitions, seen.steps);
            }
            if let Some(episodes) = counts.episodes {
                findings.compare("episode-count", "finished episodes", episodes, seen.finished);
            }
        }
        if let Some(bytes) = counts.bytes {
            let found = fs::metadata(&path).map_or(0, |data| data.len());
            findings.compare("byte-count", "bytes", bytes, found);
        }
    }
    Ok(())
}

fn read_episodes(file: &Hdf5File, seen: &mut Seen, findings: &mut Findings) {
    let names = match episode_names(file) {
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
        forms(file, &format!("{first}/"), Layout::Minari, findings);
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
    let (episodes, finished) = cut(terminals, arrays.timeouts.as_ref().unwrap_or(&none));
    episodes.iter().map(|episode| episode.range()).zip(finished).collect()
}
