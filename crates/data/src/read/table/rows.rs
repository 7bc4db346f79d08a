//! [`Rows`]: the rows of a table as a recording, each checked when it is added.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use overtone_core::{Episode, Outcome};

use super::{Places, refuse};
use crate::error::DataError;
use crate::read::action_masks::ActionMasks;
use crate::read::column::{ActionColumn, MOST_ACTIONS, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::solved::end_solved;
use crate::read::stored::Stored;

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
pub(crate) struct Rows {
    places: Places,
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
    solved: Vec<bool>,
    log_probs: Option<Vec<f32>>,
    stops: Option<Vec<bool>>,
    weights: Option<Vec<f32>>,
    allowed: Vec<bool>,
}

impl Rows {
    /// None yet.
    pub fn new(places: Places) -> Self {
        Self {
            episodes: Vec::new(),
            seen: HashSet::new(),
            current: String::new(),
            is_over: false,
            observations: Vec::new(),
            one_action: Acted::None,
            actions: Vec::new(),
            rewards: Vec::new(),
            solved: Vec::new(),
            log_probs: places.log_probs.map(|_| Vec::new()),
            stops: places.masks.map(|_| Vec::new()),
            weights: places.weights.map(|_| Vec::new()),
            allowed: Vec::new(),
            places,
        }
    }

    /// Which columns are what.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Adds a row, whose cells `cell` gives by their place.
    ///
    /// # Errors
    /// A sentence about the faulty cell.
    pub fn add<'a>(&mut self, cell: &dyn Fn(usize) -> &'a str) -> Result<(), String> {
        let places = &self.places;
        let of = |place: usize| (places.heads.names[place].as_str(), cell(place));
        let (name, id) = of(places.episode);
        if id.is_empty() {
            return Err(format!("its `{name}` is empty: name the episode"));
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
        self.rewards.push(places.reward.map_or(Ok(0.0), |place| number(of(place)))?);
        if let Some(place) = places.solved {
            self.solved.push(flag(of(place))?);
        }
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

    /// All rows as a recording of the format `format`.
    ///
    /// # Errors
    /// When there is none, or the columns do not fit.
    pub fn contents(mut self, path: &Path, format: &'static str) -> Result<Columns, DataError> {
        if self.rewards.is_empty() {
            return Err(refuse(path, "it has no row under its first line".into()));
        }
        let solved = std::mem::take(&mut self.solved);
        if !solved.is_empty() {
            let stops = end_solved(&mut self.episodes, solved);
            self.stops = self.stops.or(stops);
        }
        let places = &self.places;
        let width = places.observation.len();
        let observations = ObservationColumn::Vectors { width, values: self.observations };
        let (mut actions, names) = match places.action[..] {
            [place] => self.one_action.column().map_err(|reason| {
                refuse(path, format!("`{}`: {reason}", places.heads.names[place]))
            })?,
            _ => (
                ActionColumn::Continuous { width: places.action.len(), values: self.actions },
                None,
            ),
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
            format,
            behavior_log_probs: self.log_probs,
            optional,
            stored: Stored {
                flagged: places.termination.or(places.solved).is_some(),
                actions_described: names.is_some(),
                action_names: names,
                unread: places.unread(),
                ..Stored::default()
            },
            ..Columns::new(observations, actions, self.rewards, self.episodes)
        };
        columns.check()?;
        Ok(columns)
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
