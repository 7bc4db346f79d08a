//! `overtone data`: summary and checks of a dataset.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use overtone_core::{Task, names::plain};
use overtone_data::{
    Check, DatasetCard, Expected, Finding, Form, ReadFrames, RecordedTask, TableColumns, check_as,
    datasets_folder, description_of, read::reader_of,
};
use overtone_settings::{
    options,
    suites::{self, Data, tasks},
};

use crate::unix_path;

overtone_model::options! {
    /// Options of `data inspect`.
    pub struct InspectOptions {
        /// The dataset, or the first word without =. Required.
        pub path: PathBuf = PathBuf::new(),
        /// The format, if the files do not contain it: ogbench; or numbers, for bytes that are not
        /// images.
        pub layout: String = String::new(),
        /// Columns of a table (.csv, .parquet): columns.episode=…, columns.observation=…,…, columns.action=… and
        /// columns.reward=…; the others are those of train (data.columns).
        pub columns: TableColumns = TableColumns::default(),
        /// Print JSON on standard output.
        pub json: bool = false,
    }
}

overtone_model::options! {
    /// Options of `data lint`.
    pub struct LintOptions {
        /// The dataset, or the first word without =. Required.
        pub path: PathBuf = PathBuf::new(),
        /// As of data inspect.
        pub layout: String = String::new(),
        /// As of data inspect.
        pub columns: TableColumns = TableColumns::default(),
        /// Print JSON on standard output.
        pub json: bool = false,
        /// The dataset card to compare with, a FILE.toml; empty: its card in datasets/.
        pub card: PathBuf = PathBuf::new(),
        /// The task, if the dataset does not name it, such as mujoco/hopper; its spaces and bounds
        /// are compared.
        pub task: String = String::new(),
        /// Read the frames of large datasets too, which takes minutes.
        pub all_frames: bool = false,
    }
}

/// The path of a dataset that `key` sets.
///
/// # Errors
/// When it is empty.
pub fn path_of(key: &str, path: &Path) -> Result<PathBuf> {
    ensure!(!path.as_os_str().is_empty(), "{key}=: no dataset is set. Name a file or a directory");
    Ok(unix_path::of_text(path))
}

/// `overtone data inspect PATH key=value…`.
pub fn inspect(words: &[String]) -> Result<()> {
    let InspectOptions { path, layout, columns, json } = options::read_placed(words, &["path"])?;
    let path = &*path_of("path", &path)?;
    let data = Data::at(path, Form { layout, columns });
    let inspection = check(&data, None, None, ReadFrames::IfSmall)?.inspection?;
    let returns = inspection.returns();
    // Scores are in raw units.
    let scores = known_task(path)
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

/// `overtone data lint PATH key=value…`; returns the exit code.
pub fn lint(words: &[String]) -> Result<u8> {
    let LintOptions { path, layout, columns, json, card, task, all_frames } =
        options::read_placed(words, &["path"])?;
    let path = path_of("path", &path)?;
    let frames = if all_frames { ReadFrames::Always } else { ReadFrames::IfSmall };
    let data = Data::at(&path, Form { layout, columns });
    let card = Some(&*card).filter(|card| !card.as_os_str().is_empty());
    let task = Some(&*task).filter(|task| !task.is_empty());
    let report = check(&data, card, task, frames)?.report;
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(report.exit_code());
    }
    match &report.expected {
        Some(name) => say!("{}, compared with {name}.toml", path.display()),
        None => say!("{}, without a dataset card", path.display()),
    }
    say!("{report}");
    Ok(report.exit_code())
}

/// The warnings about the recording at `path`, a sentence each. `task` is its task, as
/// `suite/name`; a task that is not available here is not compared.
///
/// # Errors
/// When an agent cannot be trained on the recording.
pub fn warnings(path: &Path, task: Option<&str>) -> Result<Vec<String>> {
    let data = Data::at(path, Form::default());
    let task = task.and_then(|id| suites::with_data(id, Some(&data)).ok());
    let expected = Expected { task, ..Expected::default() };
    let Check { inspection, report } = check_as(path, &data.form, &expected)?;
    inspection?;
    Ok(report.findings.iter().filter_map(Finding::warning).collect())
}

/// Checks a dataset against the dataset card in `card`, or else the one in the datasets directory.
/// `task` is the dataset's task, if the user set it.
fn check(
    data: &Data,
    card: Option<&Path>,
    task: Option<&str>,
    frames: ReadFrames,
) -> Result<Check> {
    let path = &data.path;
    let card = match card {
        Some(card) => Some(DatasetCard::load(card)?),
        // A missing datasets directory is not an error here; it only means a missing card.
        None => match datasets_folder() {
            Ok(datasets) => description_of(path, &datasets)?,
            Err(_) => None,
        },
    };
    let task = match task {
        Some(id) => Some(suites::with_data(id, Some(data))?),
        None => known_task(path),
    };
    let described = card.as_ref().map(|card| card.recording.clone());
    let horizon = match task {
        Some(task) => {
            // An unreadable description is ignored.
            let description = || RecordedTask::of(path).unwrap_or_default();
            let recording = described.or_else(|| suites::recorded_simulation(task, &description()));
            suites::of(task)?.horizon(task, recording.as_ref().unwrap_or(&task.simulation))
        }
        // A task that only Gymnasium knows, as the dataset describes it.
        None => {
            let description = RecordedTask::of(path).unwrap_or_default();
            let is_own = description.task.is_some();
            let limit = description.env.filter(|_| !is_own).and_then(|env| env.max_episode_steps);
            limit.map(|steps| steps as usize)
        }
    };
    let horizon = horizon.map(|steps| steps as u64);
    let expected = Expected { card: card.as_ref(), task, horizon, frames };
    Ok(check_as(path, &data.form, &expected)?)
}

/// The task of the dataset at `path`, from its description, else from its name. `None` if no
/// suite's table has it.
pub fn known_task(path: &Path) -> Option<&'static Task> {
    // An unreadable description is ignored.
    let description = RecordedTask::of(path).unwrap_or_default();
    match (&description.task, &description.env) {
        (Some(id), _) => tasks().find(|task| task.id() == *id),
        (None, Some(env)) => suites::in_tables(env),
        (None, None) => task_of(path),
    }
}

/// The task in the name of the dataset at `path`: the start of the file's name, or of the directory
/// of a game's log. Directories above do not matter.
pub fn task_of(path: &Path) -> Option<&'static Task> {
    let reader = reader_of(path).ok()?;
    let stem = |file: PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
    let name = reader.task(path).or_else(|| stem(reader.place(path).ok()?))?;
    let named = |name: &str| tasks().find(|task| plain(&task.name) == plain(name));
    beginnings(&name).into_iter().find_map(named)
}

/// The prefixes of `name` up to each separator, the longest first: for `bank_heist-v2`, that,
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
