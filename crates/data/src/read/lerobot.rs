//! LeRobot's datasets, versions 2 and 3: a folder with `meta/info.json` and Parquet files in `data`,
//! whose columns have known names. Pictures lie in videos, which are not read.
//!
//! An episode is cut by a limit, unless its last row is a success (`next.success`). `next.done` marks
//! the last row of any episode and says nothing more. Demonstrations have no reward as a rule: it is 0
//! then.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{DataError, Fault};
use crate::read::columns::Columns;
use crate::read::form::TableColumns;
use crate::read::recording::{Reader, Recording};
use crate::read::table::{ParquetFile, Places, Rows, Rules, is_parquet, refuse};

/// The description in a dataset's folder.
const INFO: &str = "meta/info.json";

/// Columns of an observation, of those that are there.
const OBSERVATIONS: [&str; 2] = ["observation.state", "observation.environment_state"];

/// A folder of LeRobot's.
pub(crate) struct LeRobot {
    /// The columns that the user named.
    pub columns: Option<TableColumns>,
}

/// The part of a description that is read.
#[derive(Deserialize)]
struct Info {
    codebase_version: String,
    total_episodes: Option<usize>,
    total_frames: Option<usize>,
    features: Map<String, Value>,
}

impl Info {
    fn of(folder: &Path) -> Result<Self, DataError> {
        let path = folder.join(INFO);
        let text = fs::read_to_string(&path).map_err(DataError::io(&path, "read"))?;
        let info: Self = serde_json::from_str(&text).map_err(|error| {
            Fault::NoLog(format!("it is not LeRobot's description: {error}")).at(&path)
        })?;
        if !["v2", "v3"].iter().any(|version| info.codebase_version.starts_with(version)) {
            let what = format!("a LeRobot dataset of version {}", info.codebase_version);
            let way_out = "convert it to version 3 with LeRobot's scripts".into();
            return Err(Fault::Unread { what, way_out }.at(&path));
        }
        Ok(info)
    }

    /// The user's columns, and LeRobot's names for those that are not named.
    fn columns(&self, named: Option<&TableColumns>) -> TableColumns {
        let named = named.cloned().unwrap_or_default();
        let or = |named: String, usual: &[&str]| match named.is_empty() {
            true => {
                let there = usual.iter().copied().filter(|name| self.features.contains_key(*name));
                there.collect::<Vec<_>>().join(",")
            }
            false => named,
        };
        TableColumns {
            episode: or(named.episode, &["episode_index"]),
            observation: or(named.observation, &OBSERVATIONS),
            action: or(named.action, &["action"]),
            reward: or(named.reward, &["next.reward"]),
            ..named
        }
    }

    /// Names of the pictures.
    fn pictures(&self) -> impl Iterator<Item = String> {
        let is_picture = |value: &&Value| {
            value["dtype"].as_str().is_some_and(|dtype| matches!(dtype, "video" | "image"))
        };
        let pictures = self.features.iter().filter(move |(_, value)| is_picture(value));
        pictures.map(|(name, _)| name.clone())
    }
}

impl LeRobot {
    fn read(&self, folder: &Path) -> Result<Columns, DataError> {
        let info = Info::of(folder)?;
        let columns = info.columns(self.columns.as_ref());
        if columns.observation.is_empty() {
            let names: Vec<&str> = info.features.keys().map(String::as_str).collect();
            let what = "a LeRobot dataset without `observation.state`".into();
            let way_out = format!(
                "name columns of numbers with data.columns.observation=… (it has {})",
                names.join(", ")
            );
            return Err(Fault::Unread { what, way_out }.at(folder));
        }
        let solved =
            Some("next.success".into()).filter(|name: &String| info.features.contains_key(name));
        let rules = Rules { may_lack_reward: true, solved };
        let mut rows: Option<Rows> = None;
        let mut n_rows = 0;
        for path in parts(folder)? {
            let file = ParquetFile::open(&path)?;
            let heads = file.heads();
            let rows = match &mut rows {
                None => rows.insert(Rows::new(
                    Places::of(heads, Some(&columns), &rules)
                        .map_err(|reason| refuse(&path, reason))?,
                )),
                Some(rows) if rows.places().heads == heads => rows,
                Some(_) => {
                    let reason = "its columns are not those of the first file of this dataset";
                    return Err(refuse(&path, reason.into()));
                }
            };
            n_rows += file.add_to(rows)?;
        }
        let Some(rows) = rows else {
            let what = "data/*/*.parquet".to_owned();
            return Err(Fault::NoLog(format!("a LeRobot dataset without a file {what}")).at(folder));
        };
        let mut recording = rows.contents(folder, self.name())?;
        let found = [n_rows, recording.episodes.len()];
        let said = [info.total_frames, info.total_episodes];
        for ((said, found), what) in said.into_iter().zip(found).zip(["rows", "episodes"]) {
            if let Some(said) = said.filter(|&said| said != found) {
                let reason = format!(
                    "its {INFO} says {said} {what}, and its files hold {found}: fetch it again"
                );
                return Err(refuse(folder, reason));
            }
        }
        recording.stored.unread.extend(info.pictures());
        if columns.reward.is_empty() {
            let sentence = "no column `next.reward`: every reward is 0";
            recording.odd.push(sentence.into());
            recording.stored.without_rewards = true;
        }
        Ok(recording)
    }
}

impl Reader for LeRobot {
    fn name(&self) -> &'static str {
        "LeRobot"
    }

    fn reads(&self, path: &Path) -> bool {
        path.join(INFO).is_file()
    }

    fn with_columns(&self, columns: &TableColumns) -> Option<Box<dyn Reader>> {
        Some(Box::new(Self { columns: Some(columns.clone()) }))
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(Recording::Columns(self.read(path)?))
    }
}

/// The Parquet files of a dataset, in order.
fn parts(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let data = folder.join("data");
    let listed = |folder: &Path| -> Result<Vec<PathBuf>, DataError> {
        let entries = fs::read_dir(folder).map_err(DataError::io(folder, "list"))?;
        let paths: Result<Vec<_>, _> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths: Vec<PathBuf> = paths.map_err(DataError::io(folder, "list"))?;
        paths.sort();
        Ok(paths)
    };
    let mut parts = Vec::new();
    for chunk in listed(&data)?.iter().filter(|path| path.is_dir()) {
        parts.extend(listed(chunk)?.into_iter().filter(|path| is_parquet(path)));
    }
    Ok(parts)
}
