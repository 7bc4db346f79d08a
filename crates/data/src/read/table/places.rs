//! [`Places`]: which columns of a table are what.

use std::collections::{BTreeSet, HashSet};

use overtone_core::names::nearest;

use crate::read::form::TableColumns;

/// Most columns that an error lists.
const MOST_LISTED: usize = 30;

/// The columns of a table. A list in each cell is several columns: `state.0`, `state.1`, …
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heads {
    pub names: Vec<String>,
    /// The name of each column, or of the list that it is part of.
    pub fields: Vec<String>,
    /// Names of what is neither a column of numbers or words nor a list of them.
    pub others: Vec<String>,
}

impl Heads {
    /// Columns without lists.
    pub fn of(names: Vec<String>) -> Self {
        Self { fields: names.clone(), names, others: Vec::new() }
    }

    /// Every name that a user may write.
    fn known(&self) -> Vec<&str> {
        let mut known: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        known.dedup();
        known
    }
}

/// How a table is read, as far as its kind says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Whether it may lack a reward, which is 0 then.
    pub may_lack_reward: bool,
    /// Column that is 1 in every row where the task is solved. The last row of an episode ends the
    /// task there; after another row the episode goes on.
    pub solved: Option<String>,
}

/// Positions of the columns.
pub(crate) struct Places {
    pub heads: Heads,
    pub episode: usize,
    pub observation: Vec<usize>,
    pub action: Vec<usize>,
    pub reward: Option<usize>,
    pub termination: Option<usize>,
    pub solved: Option<usize>,
    pub log_probs: Option<usize>,
    pub masks: Option<usize>,
    pub weights: Option<usize>,
    pub allowed: Vec<usize>,
}

impl Places {
    /// # Errors
    /// A sentence about the columns to name.
    pub fn of(heads: Heads, columns: Option<&TableColumns>, rules: &Rules) -> Result<Self, String> {
        let all = || {
            let known = heads.known();
            let more = if known.len() > MOST_LISTED { ", …" } else { "" };
            format!("{}{more}", known[..known.len().min(MOST_LISTED)].join(", "))
        };
        let with = |is: &dyn Fn(usize) -> bool| {
            (0..heads.names.len()).filter(|&at| is(at)).collect::<Vec<_>>()
        };
        let missing = |key: &str, name: &str| match nearest(&heads.known(), name) {
            _ if heads.others.iter().any(|other| other == name) => {
                format!("its `{name}` ({key}) is neither numbers or words nor lists of numbers")
            }
            Some(near) => format!("it has no column `{name}` ({key}): did you mean `{near}`?"),
            None => format!("it has no column `{name}` ({key}); it has {}", all()),
        };
        let one = |key: &str, name: &str| match &with(&|at| heads.names[at] == name)[..] {
            [place] => Ok(*place),
            [] => Err(missing(key, name)),
            several => {
                Err(format!("{} of its columns are called `{name}`: rename one", several.len()))
            }
        };
        let any = |key: &str, name: &str| match name {
            "" => Ok(None),
            name => one(key, name).map(Some),
        };
        // A column, or a list.
        let each = |key: &str, name: &str| {
            let list = with(&|at| heads.fields[at] == name && heads.names[at] != name);
            if list.is_empty() { one(key, name).map(|place| vec![place]) } else { Ok(list) }
        };
        // A single column may have a comma in its name.
        let several = |key: &str, list: &str| match heads.fields.iter().any(|name| name == list) {
            _ if list.is_empty() => Ok(Vec::new()),
            true => each(key, list),
            false => {
                let parts: Result<Vec<_>, _> =
                    list.split(',').map(|name| each(key, name.trim())).collect();
                Ok(parts?.concat())
            }
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
        let lacks_reward = reward.is_empty() && !rules.may_lack_reward;
        if lacks_reward || [&episode, &observation, &action].iter().any(|name| name.is_empty()) {
            return Err(format!(
                "a table with the columns {}: say which are which, as data.columns.episode=…, \
                 data.columns.observation=…,…, data.columns.action=… and data.columns.reward=… \
                 (`overtone data` commands: columns.episode=…)",
                all()
            ));
        }
        let solved = rules.solved.as_deref().filter(|_| termination.is_empty()).unwrap_or_default();
        Ok(Self {
            episode: one("episode", &episode)?,
            observation: several("observation", &observation)?,
            action: several("action", &action)?,
            reward: any("reward", &reward)?,
            termination: any("termination", &termination)?,
            solved: any("solved", solved)?,
            log_probs: any("behavior_log_probs", &behavior_log_probs)?,
            masks: any("masks", &masks)?,
            weights: any("weights", &weights)?,
            allowed: several("action_mask", &action_mask)?,
            heads,
        })
    }

    /// The columns that are read.
    pub fn read(&self) -> HashSet<usize> {
        let Self { observation, action, allowed, .. } = self;
        let mut read = HashSet::from([self.episode]);
        read.extend([observation, action, allowed].into_iter().flatten());
        let optional =
            [self.reward, self.termination, self.solved, self.log_probs, self.masks, self.weights];
        read.extend(optional.iter().flatten());
        read
    }

    /// The names of the columns and lists that are not read.
    pub fn unread(&self) -> BTreeSet<String> {
        let read = self.read();
        let is_read = |name: &String| read.iter().any(|&at| self.heads.fields[at] == *name);
        let all = self.heads.fields.iter().chain(&self.heads.others);
        all.filter(|name| !is_read(name)).cloned().collect()
    }
}
