//! Tables: text with a row for each step. The user says what the columns are ([`TableColumns`]).
//!
//! Nothing is guessed: a table is separated by commas (`.csv`) or tabs (`.tsv`), in UTF-8, with the names
//! of its columns in the first line. A cell that is not a number is an error with its line.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use csv::StringRecord;
use overtone_core::names::nearest;
use overtone_core::{Episode, Outcome, counted};

use crate::error::{DataError, Fault};
use crate::read::action_masks::ActionMasks;
use crate::read::column::{ActionColumn, MOST_ACTIONS, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::form::TableColumns;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::recording::{Reader, Recording};
use crate::read::spaces::Space;
use crate::read::stored::Stored;

/// Endings of tables' names, and what separates their cells.
const ENDINGS: [(&str, u8); 2] = [("csv", b','), ("tsv", b'\t')];

/// Most columns that an error lists.
const MOST_LISTED: usize = 30;

/// A table with named columns; without names it is only described.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Option<TableColumns>,
}

/// A table whose columns are not known.
pub(crate) static UNKNOWN: Table = Table { columns: None };

/// Every table form of this process.
static KNOWN: Mutex<BTreeMap<TableColumns, &'static Table>> = Mutex::new(BTreeMap::new());

impl Table {
    /// Tables with these columns.
    pub(crate) fn with(columns: &TableColumns) -> &'static Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(columns.clone())
            .or_insert_with(|| Box::leak(Box::new(Self { columns: Some(columns.clone()) })))
    }

    fn read(&self, path: &Path) -> Result<Contents, DataError> {
        let separator = separator(path).unwrap_or(b',');
        let file = File::open(path).map_err(DataError::io(path, "open"))?;
        let mut lines = csv::ReaderBuilder::new().delimiter(separator).from_reader(file);
        let heads = lines.headers().map_err(|error| unreadable(path, &error))?.clone();
        let places =
            Places::of(&heads, self.columns.as_ref()).map_err(|reason| refuse(path, reason))?;
        let mut rows = Rows::new(&places);
        for record in lines.records() {
            let record = record.map_err(|error| unreadable(path, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            rows.add(&places, &record)
                .map_err(|reason| refuse(path, format!("line {line}: {reason}")))?;
        }
        rows.contents(path, &places)
    }
}

impl Reader for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn reads(&self, path: &Path) -> bool {
        separator(path).is_some() && path.is_file()
    }

    fn action_space(&self, path: &Path) -> Result<Option<Space>, DataError> {
        Ok(self.read(path)?.names.map(Space::Names))
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(Recording::Columns(self.read(path)?.columns))
    }
}

/// The separator of a table's cells; `None` if the file's name is not a table's.
fn separator(path: &Path) -> Option<u8> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, separator)| *separator)
}

/// Whether a file's name ends like a table's.
pub fn is_table(path: &Path) -> bool {
    separator(path).is_some()
}

fn refuse(path: &Path, reason: String) -> DataError {
    Fault::Inconsistent(reason).at(path)
}

fn unreadable(path: &Path, error: &csv::Error) -> DataError {
    let line = error.position().map(csv::Position::line);
    let reason = match (error.kind(), line) {
        (csv::ErrorKind::UnequalLengths { expected_len, len, .. }, Some(line)) => {
            format!("line {line} has {}, expected {expected_len}", counted(*len as usize, "cell"))
        }
        (csv::ErrorKind::Utf8 { .. }, _) => {
            "it is not in UTF-8: save it so (pandas: `to_csv` writes UTF-8)".into()
        }
        _ => error.to_string(),
    };
    refuse(path, reason)
}

/// A table, and the names of discrete actions that are words.
struct Contents {
    columns: Columns,
    names: Option<Vec<String>>,
}

/// Positions of the columns.
struct Places {
    names: Vec<String>,
    episode: usize,
    observation: Vec<usize>,
    action: Vec<usize>,
    reward: usize,
    termination: Option<usize>,
    log_probs: Option<usize>,
    masks: Option<usize>,
    weights: Option<usize>,
    allowed: Vec<usize>,
}

impl Places {
    /// # Errors
    /// A sentence about the columns to name, or about a faulty first line.
    fn of(heads: &StringRecord, columns: Option<&TableColumns>) -> Result<Self, String> {
        let names: Vec<String> =
            heads.iter().map(|name| name.trim_start_matches('\u{feff}').trim().into()).collect();
        if let ([only], true) =
            (&names[..], heads.iter().any(|name| name.contains([';', '\t', '|'])))
        {
            return Err(format!(
                "its columns are not separated by commas (`{}`): save it with commas, and points in \
                 numbers",
                only.chars().take(40).collect::<String>()
            ));
        }
        if !names.is_empty() && names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err("its first line holds numbers, expected the names of its columns".into());
        }
        let all = || {
            let shown: Vec<&str> = names.iter().take(MOST_LISTED).map(String::as_str).collect();
            let more = if names.len() > MOST_LISTED { ", …" } else { "" };
            format!("{}{more}", shown.join(", "))
        };
        let found = |key: &str, name: &str| {
            let places: Vec<usize> = (0..names.len()).filter(|&at| names[at] == name).collect();
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            match (&places[..], nearest(&known, name)) {
                ([place], _) => Ok(*place),
                ([], Some(near)) => {
                    Err(format!("it has no column `{name}` ({key}): did you mean `{near}`?"))
                }
                ([], None) => Err(format!("it has no column `{name}` ({key}); it has {}", all())),
                _ => {
                    Err(format!("{} of its columns are called `{name}`: rename one", places.len()))
                }
            }
        };
        let one = |key: &str, name: &str| match name {
            "" => Ok(None),
            name => found(key, name).map(Some),
        };
        // A single column may have a comma in its name.
        let several = |key: &str, list: &str| match names.iter().any(|name| name == list) {
            _ if list.is_empty() => Ok(Vec::new()),
            true => found(key, list).map(|place| vec![place]),
            false => list.split(',').map(|name| found(key, name.trim())).collect(),
        };
        let TableColumns {
            episode,
            observation,
            action,
            reward,
            termination,
            behavior_log_probs,
            masks,
            weights,
            action_mask,
        } = columns.cloned().unwrap_or_default();
        let needed = [&episode, &observation, &action, &reward];
        if needed.iter().any(|name| name.is_empty()) {
            return Err(format!(
                "a table with the columns {}: say which are which, as data.columns.episode=…, \
                 data.columns.observation=…,…, data.columns.action=… and data.columns.reward=… \
                 (`overtone data` commands: columns.episode=…)",
                all()
            ));
        }
        let place = |key: &str, name: &str| found(key, name);
        let places = Self {
            episode: place("episode", &episode)?,
            observation: several("observation", &observation)?,
            action: several("action", &action)?,
            reward: place("reward", &reward)?,
            termination: one("termination", &termination)?,
            log_probs: one("behavior_log_probs", &behavior_log_probs)?,
            masks: one("masks", &masks)?,
            weights: one("weights", &weights)?,
            allowed: several("action_mask", &action_mask)?,
            names,
        };
        Ok(places)
    }

    /// The names of the columns that are not read.
    fn unread(&self) -> BTreeSet<String> {
        let Self { episode, observation, action, reward, allowed, .. } = self;
        let mut read: HashSet<usize> = HashSet::from([*episode, *reward]);
        read.extend([observation, action, allowed].into_iter().flatten());
        read.extend([self.termination, self.log_probs, self.masks, self.weights].iter().flatten());
        let others = self.names.iter().enumerate().filter(|(place, _)| !read.contains(place));
        others.map(|(_, name)| name.clone()).collect()
    }
}

/// Actions in one column so far.
enum Acted {
    /// No row yet.
    None,
    Wholes(Vec<i64>),
    Numbers(Vec<f32>),
    /// Each word's position in the order of appearance, and the word of each row.
    Words(HashMap<String, usize>, Vec<usize>),
}

/// The rows so far.
struct Rows {
    episodes: Vec<Episode>,
    /// The names of the episodes.
    seen: HashSet<String>,
    current: String,
    /// Whether the episode's last row so far is its end.
    is_over: bool,
    observations: Vec<f32>,
    one_action: Acted,
    /// `[rows, width]` of several columns.
    actions: Vec<f32>,
    rewards: Vec<f32>,
    log_probs: Option<Vec<f32>>,
    stops: Option<Vec<bool>>,
    weights: Option<Vec<f32>>,
    allowed: Vec<bool>,
}

impl Rows {
    fn new(places: &Places) -> Self {
        Self {
            episodes: Vec::new(),
            seen: HashSet::new(),
            current: String::new(),
            is_over: false,
            observations: Vec::new(),
            one_action: Acted::None,
            actions: Vec::new(),
            rewards: Vec::new(),
            log_probs: places.log_probs.map(|_| Vec::new()),
            stops: places.masks.map(|_| Vec::new()),
            weights: places.weights.map(|_| Vec::new()),
            allowed: Vec::new(),
        }
    }

    /// # Errors
    /// A sentence about the faulty cell.
    fn add(&mut self, places: &Places, record: &StringRecord) -> Result<(), String> {
        let cell = |place: usize| record.get(place).unwrap_or_default().trim();
        let of = |place: usize| (places.names[place].as_str(), cell(place));
        let id = cell(places.episode);
        if id.is_empty() {
            return Err(format!(
                "its `{}` is empty: name the episode",
                places.names[places.episode]
            ));
        }
        if id != self.current || self.episodes.is_empty() {
            if !self.seen.insert(id.to_owned()) {
                return Err(format!(
                    "episode {id} began before: put its rows together, in the order of time"
                ));
            }
            self.current = id.to_owned();
            let start = self.rewards.len();
            self.episodes.push(Episode { start, length: 0, outcome: Outcome::Truncated });
        } else if self.is_over {
            return Err(format!(
                "episode {id} ended in the row before: its end is in its last row"
            ));
        }
        for &place in &places.observation {
            self.observations.push(number(of(place))?);
        }
        match &places.action[..] {
            &[place] => self.one_action.add(of(place))?,
            several => {
                for &place in several {
                    self.actions.push(number(of(place))?);
                }
            }
        }
        self.rewards.push(number(of(places.reward))?);
        if let (Some(log_probs), Some(place)) = (&mut self.log_probs, places.log_probs) {
            log_probs.push(number(of(place))?);
        }
        if let (Some(stops), Some(place)) = (&mut self.stops, places.masks) {
            stops.push(!flag(of(place))?);
        }
        if let (Some(weights), Some(place)) = (&mut self.weights, places.weights) {
            weights.push(number(of(place))?);
        }
        for &place in &places.allowed {
            self.allowed.push(flag(of(place))?);
        }
        self.is_over = match places.termination {
            Some(place) => flag(of(place))?,
            None => false,
        };
        if let Some(episode) = self.episodes.last_mut() {
            episode.length += 1;
            if self.is_over {
                episode.outcome = Outcome::Terminated;
            }
        }
        Ok(())
    }

    /// All rows as a recording.
    fn contents(self, path: &Path, places: &Places) -> Result<Contents, DataError> {
        if self.rewards.is_empty() {
            return Err(refuse(path, "it has no row under its first line".into()));
        }
        let width = places.observation.len();
        let observations = ObservationColumn::Vectors { width, values: self.observations };
        let (mut actions, names) = match places.action.len() {
            1 => self.one_action.column().map_err(|reason| {
                refuse(path, format!("`{}`: {reason}", places.names[places.action[0]]))
            })?,
            width => (ActionColumn::Continuous { width, values: self.actions }, None),
        };
        let action_masks = match (places.allowed.len(), &names) {
            (0, _) => None,
            (_, Some(_)) => {
                let reason =
                    "masks of actions need whole numbers as actions, which say their order";
                return Err(refuse(path, reason.into()));
            }
            (n_actions, None) => Some(ActionMasks { n_actions, allowed: self.allowed }),
        };
        let is_plain = |weights: &Vec<f32>| weights.iter().any(|&weight| weight != 1.0);
        let optional = OptionalArrays {
            stops: self.stops,
            weights: self.weights.filter(is_plain),
            action_masks,
        };
        optional.count_actions(&mut actions);
        let columns = Columns {
            path: path.to_path_buf(),
            format: UNKNOWN.name(),
            behavior_log_probs: self.log_probs,
            optional,
            stored: Stored {
                flagged: places.termination.is_some(),
                actions_described: names.is_some(),
                unread: places.unread(),
                ..Stored::default()
            },
            ..Columns::new(observations, actions, self.rewards, self.episodes)
        };
        columns.check()?;
        Ok(Contents { columns, names })
    }
}

impl Acted {
    /// # Errors
    /// When a word follows numbers, or a number words.
    fn add(&mut self, (column, cell): (&str, &str)) -> Result<(), String> {
        let whole = cell.parse::<i64>().ok();
        let is_number = cell.parse::<f64>().is_ok();
        if let Self::None = self {
            *self = match (whole, is_number) {
                (Some(_), _) => Self::Wholes(Vec::new()),
                (None, true) => Self::Numbers(Vec::new()),
                (None, false) => Self::Words(HashMap::new(), Vec::new()),
            };
        }
        if let (Self::Wholes(wholes), None, true) = (&mut *self, whole, is_number) {
            *self = Self::Numbers(wholes.iter().map(|&whole| whole as f32).collect());
        }
        match self {
            Self::Wholes(wholes) => match whole {
                Some(whole) => wholes.push(whole),
                None => {
                    return Err(format!(
                        "its `{column}` is `{cell}`, but earlier rows have numbers"
                    ));
                }
            },
            Self::Numbers(numbers) => numbers.push(number((column, cell))?),
            Self::Words(words, rows) => {
                if cell.is_empty() {
                    return Err(format!("its `{column}` is empty: name the action"));
                }
                if is_number {
                    return Err(format!("its `{column}` is `{cell}`, but earlier rows have words"));
                }
                let next = words.len();
                rows.push(*words.entry(cell.to_owned()).or_insert(next));
            }
            Self::None => {}
        }
        Ok(())
    }

    /// The column, and the names of actions that are words, in the order of the alphabet.
    fn column(self) -> Result<(ActionColumn, Option<Vec<String>>), String> {
        let too_many = |n: usize| format!("{n} discrete actions, expected at most {MOST_ACTIONS}");
        match self {
            Self::None => Err("no action".into()),
            Self::Numbers(values) => Ok((ActionColumn::Continuous { width: 1, values }, None)),
            Self::Wholes(wholes) => {
                if let Some(negative) = wholes.iter().find(|&&action| action < 0) {
                    return Err(format!(
                        "the action {negative}: number discrete actions from 0, name them by words, or \
                         write numbers with a point (-1.0) if they are continuous"
                    ));
                }
                let largest = wholes.iter().copied().max().unwrap_or(0);
                let n_actions = usize::try_from(largest).unwrap_or(usize::MAX).saturating_add(1);
                if n_actions > MOST_ACTIONS {
                    return Err(too_many(n_actions));
                }
                let values = wholes.into_iter().map(|action| action as u16).collect();
                Ok((ActionColumn::Discrete { n_actions, values }, None))
            }
            Self::Words(words, rows) => {
                let n_actions = words.len();
                if n_actions > MOST_ACTIONS {
                    return Err(too_many(n_actions));
                }
                let sorted: BTreeMap<String, usize> = words.into_iter().collect();
                let mut places = vec![0; n_actions];
                sorted.values().enumerate().for_each(|(place, &word)| places[word] = place as u16);
                let values = rows.into_iter().map(|word| places[word]).collect();
                let names = sorted.into_keys().collect();
                Ok((ActionColumn::Discrete { n_actions, values }, Some(names)))
            }
        }
    }
}

/// The number in a cell of a column; `true` is 1 and `false` is 0.
fn number((column, cell): (&str, &str)) -> Result<f32, String> {
    let wrong = |expected: &str| Err(format!("its `{column}` is `{cell}`, expected {expected}"));
    match cell.to_ascii_lowercase().as_str() {
        "" => return Err(format!("its `{column}` is empty: fill it, or leave the row out")),
        "true" => return Ok(1.0),
        "false" => return Ok(0.0),
        _ => {}
    }
    match cell.parse::<f64>() {
        Ok(number) if !number.is_finite() => wrong("a finite number"),
        Ok(number) if !(number as f32).is_finite() => wrong("a number within 32 bits (3.4e38)"),
        Ok(number) => Ok(number as f32),
        Err(_) if cell.matches(',').count() == 1 => wrong("a number with a point, not a comma"),
        Err(_) if cell.contains(':') || cell.matches('-').count() == 2 => {
            wrong("a number: write times as seconds, or as the hour of the day")
        }
        Err(_) => wrong("a number"),
    }
}

/// The flag in a cell of a column.
fn flag((column, cell): (&str, &str)) -> Result<bool, String> {
    match number((column, cell)) {
        Ok(1.0) => Ok(true),
        Ok(0.0) => Ok(false),
        _ => Err(format!("its `{column}` is `{cell}`, expected 0 or 1, false or true")),
    }
}
