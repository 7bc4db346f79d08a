//! Names of cells in a report: the task by its title, the agent by the settings in which the cells
//! of a task differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use overtone_console::keys;
use overtone_settings::{datasets_of, suites};

use super::cells::Resolved;

/// Keys of the task and its data.
const TASK: [&str; 6] = ["task", "dataset", "data.path", "data.run", "data.layout", "data.cache"];
/// Prefix of evaluation keys, which do not name an agent if the task determines them.
const EVALUATION: &str = "evaluation.";

/// The name of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its task, with the dataset if the study has several: `Hopper medium`.
    pub task: String,
    /// The settings that differ from other cells of its task: `head=fourier head.frequencies=14`;
    /// may be empty.
    pub agent: String,
}

/// Values by key, for the keys that a study sets.
type Values = BTreeMap<String, String>;

/// The name of each cell. It contains the resolved values of all keys that any cell sets, including
/// defaults.
///
/// # Errors
/// Never for cells that were resolved.
pub fn of(cells: &[Resolved]) -> Result<Vec<Name>> {
    let words = cells.iter().flat_map(|resolved| &resolved.cell.words);
    let mut keys_set: BTreeSet<String> = words
        .filter_map(|word| Some(keys::split(word).ok()?.0))
        .filter(|key| is_in_names(key))
        .collect();
    // Including its short forms.
    keys_set.insert("task".into());
    let values = |cell: &Resolved| -> Result<Values> {
        let resolved = keys::flatten(&cell.settings.to_table()?);
        let resolved = resolved.iter().map(|(key, value)| (key.clone(), keys::plain(value)));
        // The user's spelling: 0.1 may have become a number close to it.
        let words = cell.cell.words.iter().filter_map(|word| keys::split(word).ok());
        let words =
            words.map(|(key, text)| (key, text.to_owned())).filter(|(key, _)| key != "task");
        Ok(resolved.chain(words).filter(|(key, _)| keys_set.contains(key)).collect())
    };
    let values = cells.iter().map(values).collect::<Result<Vec<_>>>()?;
    let titles = cells.iter().map(|resolved| Ok(resolved.settings.task()?.title.clone()));
    let titles = titles.collect::<Result<Vec<String>>>()?;
    let labels: Vec<&str> = cells.iter().map(|resolved| &*resolved.cell.label).collect();
    Ok(named(&values, &titles, &labels))
}

/// Whether a key may be in a name. Short forms of `task=` stand for it.
fn is_in_names(key: &str) -> bool {
    !["seed", "runs", "device", "resume"].contains(&key) && suites::by_key(key).is_none()
}

/// Names of cells with `values` and the `titles` of their tasks. If the settings of two cells of
/// one task do not differ, their names contain their `labels`.
fn named(values: &[Values], titles: &[String], labels: &[&str]) -> Vec<Name> {
    let all: BTreeSet<&String> = values.iter().flat_map(BTreeMap::keys).collect();
    let differing = all
        .into_iter()
        .filter(|key| values.iter().any(|cell| cell.get(*key) != values[0].get(*key)));
    let (of_task, mut of_agent): (Vec<&String>, Vec<&String>) =
        differing.partition(|key| TASK.contains(&key.as_str()));
    let task =
        |cell: &Values| of_task.iter().map(|key| cell.get(*key).cloned()).collect::<Vec<_>>();
    of_agent.retain(|key| {
        let follows = |cell: &Values| {
            let same_task = values.iter().filter(|other| task(other) == task(cell));
            same_task.map(|other| other.get(*key)).all(|value| value == cell.get(*key))
        };
        !(key.starts_with(EVALUATION) && values.iter().all(follows))
    });
    let mut names: Vec<Name> = values
        .iter()
        .zip(titles)
        .map(|(cell, title)| {
            let data = of_task.iter().filter(|key| key.as_str() != "task").filter_map(|key| {
                let value = cell.get(*key).filter(|value| !value.is_empty())?;
                Some(match key.as_str() {
                    "dataset" => stem(value),
                    key => format!("{key}={value}"),
                })
            });
            let task: Vec<String> = std::iter::once(title.clone()).chain(data).collect();
            let settings = of_agent
                .iter()
                .filter_map(|key| Some(format!("{}={}", keys::short(key), cell.get(*key)?)));
            Name { task: task.join(" "), agent: settings.collect::<Vec<_>>().join(" ") }
        })
        .collect();
    // Two files of one name in two directories, for example.
    let shared = |i: usize| {
        let others = names.iter().zip(labels);
        others.filter(|(name, label)| **name == names[i] && **label != labels[i]).count() > 0
    };
    let shared: Vec<bool> = (0..names.len()).map(shared).collect();
    for (i, _) in shared.iter().enumerate().filter(|(_, shared)| **shared) {
        names[i].agent = labels[i].to_owned();
    }
    names
}

/// A dataset's name, or the file name of a path; of several datasets all names.
fn stem(dataset: &str) -> String {
    let stem = |name| Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    datasets_of(dataset).into_iter().map(stem).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cells: &[&str], expected: &[[&str; 2]]) {
        let keys_set = |line: &&str| -> Values {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let values: Vec<Values> = cells.iter().map(keys_set).collect();
        let titles: Vec<String> = values.iter().map(|cell| cell["task"].to_uppercase()).collect();
        let names = named(&values, &titles, cells);
        let found: Vec<[&str; 2]> = names.iter().map(|name| [&*name.task, &*name.agent]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cells_are_called_by_what_differs() {
        check(&["task=a head.kind=x"], &[["A", ""]]);
        check(
            &["task=a head.kind=x head.bins=3", "task=a head.kind=y head.bins=3", "task=a"],
            &[["A", "head.bins=3 head=x"], ["A", "head.bins=3 head=y"], ["A", ""]],
        );
        check(
            &["task=a dataset=m n=1", "task=a dataset=/d/e.hdf5 n=1", "task=b dataset=m n=1"],
            &[["A m", ""], ["A e", ""], ["B m", ""]],
        );
    }

    #[test]
    fn a_task_by_its_short_form_names_no_agent() {
        for key in ["game", "env", "gymnasium", "own"] {
            assert!(!is_in_names(key), "{key}");
        }
        assert!(is_in_names("head.kind") && is_in_names("dataset"));
    }

    #[test]
    fn how_a_task_is_played_names_no_agent() {
        let cells = |targets: [&str; 4]| {
            let lines = ["task=a n=1", "task=a n=2", "task=b n=1", "task=b n=2"];
            let cells = lines.iter().zip(targets);
            cells.map(|(line, t)| format!("{line} evaluation.target={t}")).collect::<Vec<_>>()
        };
        let expected = [["A", "n=1"], ["A", "n=2"], ["B", "n=1"], ["B", "n=2"]];
        let lines = cells(["32", "32", "p90", "p90"]);
        check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), &expected);
        // The value differs within a task, so it is part of the name.
        let lines = cells(["32", "p90", "32", "p90"]);
        let target = "evaluation.target=32 n=1";
        let other = "evaluation.target=p90 n=2";
        let expected = [["A", target], ["A", other], ["B", target], ["B", other]];
        check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), &expected);
        // Another learning rate is another agent, even if the task determines it.
        check(&["task=a lr=1", "task=b lr=2"], &[["A", "lr=1"], ["B", "lr=2"]]);
    }

    #[test]
    fn no_two_cells_share_a_name() {
        check(
            &["task=a dataset=/x/m.npz", "task=a dataset=/y/m.npz"],
            &[["A m", "task=a dataset=/x/m.npz"], ["A m", "task=a dataset=/y/m.npz"]],
        );
    }
}
