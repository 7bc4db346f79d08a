//! Labels of runs: the settings in which they differ.

use std::collections::{BTreeMap, BTreeSet};

use super::run_files::RunFiles;
use super::scores::{Configuration, settings};

/// Maximum number of settings in a label.
const MOST: usize = 3;

/// Settings that do not affect training.
const IGNORED: [&str; 4] = ["runs", "resume", "device", "evaluation"];

/// Settings by which readers identify a run, the most important first.
const KNOWN: [&str; 8] =
    ["algorithm", "task", "game", "env", "dataset", "head.kind", "attention.kind", "seed"];

/// A label for each run: the differing settings. If these do not make all labels unique, the names
/// of the run directories are used.
pub(super) fn distinct(runs: &[RunFiles]) -> Vec<String> {
    let names = || runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>();
    let all: Vec<Configuration> = runs.iter().map(|run| settings(&run.config, &IGNORED)).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let differs = |key: &&String| all.iter().any(|settings| settings.get(*key) != all[0].get(*key));
    let mut differing: Vec<&String> = keys.into_iter().filter(differs).collect();
    differing.sort_by_key(|key| KNOWN.iter().position(|known| known == key).unwrap_or(KNOWN.len()));
    if differing.len() > MOST {
        // Settings that depend on another setting, such as options of an algorithm, are omitted.
        differing.retain(|key| KNOWN.contains(&key.as_str()));
    }
    differing.truncate(MOST);
    let label = |settings: &Configuration| {
        let words = differing.iter().map(|key| {
            let value = settings.get(*key).map_or("-", String::as_str);
            format!("{}={value}", key.trim_end_matches(".kind"))
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let labels: Vec<String> = all.iter().map(label).collect();
    let n_different = labels.iter().collect::<BTreeSet<_>>().len();
    if runs.len() > 1 && n_different == runs.len() { labels } else { names() }
}
