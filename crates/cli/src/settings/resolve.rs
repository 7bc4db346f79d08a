//! From words to a configuration, and from a run's file to it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, anyhow, bail};
use overtone_core::Task;
use overtone_data::MinariId;
use toml::{Table, Value};

use super::{
    Choosable, ConfigError, Every, FORMAT, Profile, Recorded, RunConfig, read, recording,
    source::Source,
    words::{self, Word, known_keys, unknown},
};
use crate::{
    keys,
    suites::{self, Data},
};

impl RunConfig {
    /// The defaults for the task that `asked` (each `key=value`) name, with the rest of them on
    /// top, and what the run that `init=` names says in between. `auto_profile` decides what
    /// `profile=auto` is; it is asked only then.
    ///
    /// # Errors
    /// When a word is wrong, or the whole describes no run.
    pub fn resolve(asked: &[String], auto_profile: impl FnOnce(&Self) -> Profile) -> Result<Self> {
        let source = Source::of(asked)?;
        let (named, mut said) = match &source {
            Some(source) => {
                (task_words(&source.with_task(asked))?, words::words(&source.words()?, false)?)
            }
            None => (task_words(asked)?, Vec::new()),
        };
        for word in words::words(&named, true)? {
            // What is as in another run was asked for there.
            let is_asked = source.is_none() || asked.iter().any(|asked| word.is(asked));
            said.push(Word { is_asked, ..word });
        }
        let task = said.iter().rev().find(|word| word.key == "task");
        let task = task.map_or("", |word| &*word.text);
        let task = suites::with_data(task, recording::of_words(&named).as_ref())?;
        let mut profile = words::profile(&said)?;
        if profile == Profile::Auto {
            profile = auto_profile(&Self::of_words(task, &said, Profile::Quick)?);
        }
        let mut config = Self::of_words(task, &said, profile)?;
        config.check_effects(task, &said, config.is_log())?;
        config.check()?;
        if let Some(source) = source {
            // Of how long episodes are and what they earn nothing is compared.
            source.check(&config, &config.algorithm_config(task, Recorded::ANY, None)?)?;
            config.init = source.name;
        }
        Ok(config)
    }

    /// Checks that each of `words` (`key=value`) names a setting and has a value of its type; those
    /// of the task's name aside, which may be said in several ways.
    ///
    /// # Errors
    /// For the first that does not.
    pub fn check_words(words: &[String]) -> Result<()> {
        let mut known = known_keys();
        for word in words {
            let (key, _) = keys::split(word)?;
            if !known.contains_key(&key) {
                return Err(unknown(&key).into());
            }
        }
        keys::apply(&mut known, words)
    }

    /// Checks what the types cannot.
    fn check(&self) -> Result<()> {
        if self.runs.as_os_str().is_empty() {
            bail!("runs=: say a folder, such as runs=runs");
        }
        let scale = self.data.return_scale;
        if !(scale.is_finite() && scale >= 0.0) {
            bail!("data.return_scale={scale}: must be positive, or 0 for the data's own");
        }
        if self.evaluation.every != Every::Checkpoints(0) && self.evaluation.every_episodes == 0 {
            bail!("evaluation.every_episodes=0: say how many episodes evaluation.every plays");
        }
        Ok(self.train.validate()?)
    }

    /// Reads the configuration of a run.
    ///
    /// # Errors
    /// When the file is missing, of another version, or damaged.
    pub fn load(path: &Path) -> Result<Self> {
        let mut table = read(path)?;
        let format = table.remove("format").unwrap_or(Value::String("none".into()));
        if format != Value::Integer(FORMAT) {
            let format = keys::plain(&format);
            return Err(ConfigError::Format { path: path.into(), format }.into());
        }
        Ok(Self::from_table(&table)
            .map_err(|reason| ConfigError::Damaged { path: path.into(), reason })?)
    }

    /// What [`RunConfig::to_table`] gives, with all of its keys and no other.
    fn from_table(table: &Table) -> Result<Self, String> {
        let config: Self = serde_path_to_error::deserialize(table.clone()).map_err(|error| {
            let path = error.path().to_string();
            let reason = keys::one_line(error.into_inner());
            if path == "." { reason.to_string() } else { format!("{path}: {reason}") }
        })?;
        // Sections that a variant chooses read past what is not theirs.
        let own = config.to_table().map_err(|error| error.to_string())?;
        let [own, stored] = [&own, table].map(keys::flatten);
        let odd = stored.keys().find(|key| !own.contains_key(*key));
        match (odd, own.keys().find(|key| !stored.contains_key(*key))) {
            (Some(key), _) => Err(format!("unknown key `{key}`")),
            (None, Some(key)) => Err(format!("missing key `{key}`")),
            (None, None) => Ok(config),
        }
    }
}

/// Where the run whose configuration is in `path` was computed.
///
/// # Errors
/// When the file is missing or damaged.
pub fn device_of(path: &Path) -> Result<String> {
    let table = read(path)?;
    Ok(table.get("device").and_then(Value::as_str).unwrap_or("auto").to_owned())
}

/// What the run's configuration in `path` says of temperature, return quantile and the share of the
/// best episodes; of a file without them the agent's own.
///
/// # Errors
/// When it cannot be read.
pub fn chosen_of(path: &Path) -> Result<[Choosable; 3]> {
    let table = read(path)?;
    let said = |key: &str, before: Choosable| {
        let said = table.get("evaluation").and_then(|section| section.get(key)).cloned();
        let wrong = |error: String| anyhow!("{}: evaluation.{key}={error}", path.display());
        said.map_or(Ok(before), |said| Choosable::try_from(said).map_err(wrong))
    };
    let temperature = said("temperature", Choosable::Fixed(1.0))?;
    let return_quantile = said("return_quantile", Choosable::Chosen)?;
    let target = table.get("evaluation").and_then(|section| section.get("target"));
    let target = target.and_then(Value::as_str).unwrap_or_default();
    let top_percent = said("top_percent", Choosable::Chosen)?.beside(target, return_quantile);
    Ok([temperature, return_quantile, top_percent])
}

/// The same words, the task's as `task=suite/name` and its recording's in one spelling.
///
/// # Errors
/// As [`named_tasks`], and when there is no task among them.
pub(super) fn task_words(words: &[String]) -> Result<Vec<String>> {
    let (others, task) = named_tasks(words, recording::of_words(words).as_ref())?;
    let Some(task) = task.map_or_else(|| task_of_data(&others), |task| Ok(Some(task)))? else {
        bail!("which task? Say {}", suites::examples())
    };
    let recording = |word: String| match word.strip_prefix("dataset=") {
        Some(name) if !name.contains('/') && !name.contains('.') => {
            format!("dataset={}", name.to_lowercase().replace('_', "-"))
        }
        _ => word,
    };
    let task = format!("task={}", task.id());
    Ok(std::iter::once(task).chain(others.into_iter().map(recording)).collect())
}

/// The task of the data that `words` name, where the data says it.
fn task_of_data(words: &[String]) -> Result<Option<&'static Task>> {
    let Some(name) = keys::last(words, "dataset") else { return Ok(None) };
    if let Some(id) = MinariId::of(name)? {
        return suites::of_minari(&id).map(Some);
    }
    match recording::of_words(words).filter(|data| data.path.exists()) {
        Some(data) => suites::of_data(&data),
        None => Ok(None),
    }
}

/// The task that `words` (each `key=value`) name by whatever key, as its suite or else `data` shows
/// it, and the other words; none where they name none, or nothing after the key.
///
/// # Errors
/// When they name two, or no suite has it.
pub fn named_tasks(
    words: &[String],
    data: Option<&Data>,
) -> Result<(Vec<String>, Option<&'static Task>)> {
    // Of a key that is given twice the last one counts, as of every key.
    let (mut others, mut found) = (Vec::new(), BTreeMap::new());
    for word in words {
        let (key, name) = word.split_once('=').unwrap_or(("", word));
        let id = match suites::by_key(key) {
            Some(suite) => format!("{}/{name}", suite.name()),
            None if key == "task" => name.to_owned(),
            None => {
                others.push(word.clone());
                continue;
            }
        };
        found.remove(key);
        if !name.is_empty() {
            found.insert(key, suites::with_data(&id, data)?);
        }
    }
    let mut found = found.into_values();
    let task: Option<&'static Task> = found.next();
    if let (Some(task), Some(other)) = (task, found.find(|other| Some(*other) != task)) {
        bail!("{} and {} are two tasks: give one of them", task.id(), other.id());
    }
    Ok((others, task))
}
