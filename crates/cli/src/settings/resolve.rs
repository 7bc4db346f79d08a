//! From words to settings, and from a run's file to them.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use overtone_agents::AlgorithmConfig;
use overtone_core::Task;
use overtone_data::MinariId;
use overtone_model::{AttentionConfig, HeadConfig};
use toml::{Table, Value};

use super::{
    Choosable, Every, Profile, Recorded, Settings, given,
    layers::{DEFAULTS, all_keys, layers},
    read, recording,
    source::Source,
    variants,
};
use crate::{
    keys::{self, Keys},
    suites::{self, Data},
};

impl Settings {
    /// The defaults for the task that `asked` (each `key=value`) name, with the rest of them on
    /// top, and what the run that `init=` names says in between. `auto_profile` decides what
    /// `profile=auto` is; it is asked only then.
    ///
    /// # Errors
    /// When a word is wrong, or the whole describes no run.
    pub fn resolve(asked: &[String], auto_profile: impl FnOnce(&Self) -> Profile) -> Result<Self> {
        let source = Source::of(asked)?;
        let words = match &source {
            Some(source) => [source.words()?, task_words(&source.with_task(asked))?].concat(),
            None => task_words(asked)?,
        };
        let mut keys = all_keys()?;
        keys::apply(&mut keys, &words)?;
        let task =
            suites::with_data(&keys::plain(&keys["task"]), recording::of_keys(&keys).as_ref())?;
        let mut first = from_keys(&layers(task, &words, &[], Profile::Quick)?, Table::new(), task)?;
        if first.profile == Profile::Auto {
            first.profile = auto_profile(&first);
        }
        let profile = first.profile;
        let overlays = first.overlays(task);
        let keys = layers(task, &words, &overlays, profile)?;
        // What is as in another run was given there.
        let own = if source.is_some() { asked } else { &words };
        given::check_heeded(own, &keys, task)?;
        let mut settings = from_keys(&keys, Table::new(), task)?;
        settings.profile = profile;
        settings.check()?;
        if let Some(source) = source {
            // Of how long episodes are and what they earn nothing is compared.
            source.check(&settings, &settings.algorithm_config(task, Recorded::ANY, None)?)?;
            settings.init = source.name;
        }
        Ok(settings)
    }

    /// Checks that each of `words` (`key=value`) names a setting and has a value of its type; those
    /// of the task's name aside, which may be said in several ways.
    ///
    /// # Errors
    /// For the first that does not.
    pub fn check_words(words: &[String]) -> Result<()> {
        keys::apply(&mut all_keys()?, words)
    }

    /// Checks what the types cannot.
    fn check(&self) -> Result<()> {
        let known: Vec<&str> = AlgorithmConfig::ALL.iter().map(|(name, _)| *name).collect();
        if !known.contains(&&*self.algorithm) {
            bail!("algorithm={}: there are {}", self.algorithm, known.join(", "));
        }
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
    /// When the file is missing or says something unknown.
    pub fn load(path: &Path) -> Result<Self> {
        let mut table = read(path)?;
        let damaged = || format!("{} is damaged, or another version wrote it", path.display());
        let given = recording::of_keys(&keys::flatten(&table));
        let Some(task) = table.get("task").and_then(Value::as_str) else {
            bail!(
                "{} names no task: it is of a run that an earlier version made; train it anew",
                path.display()
            );
        };
        let task = suites::with_data(task, given.as_ref()).with_context(damaged)?;
        if table.get("head").is_some_and(|head| head.get("initial_std").is_some()) {
            bail!("{} describes its head as an earlier version did; train it anew", path.display());
        }
        let own = ["head", "attention"].into_iter();
        let stored = own.filter_map(|section| table.remove_entry(section)).collect();
        // A run from before a key existed behaves as the key's own default says, whatever presets
        // have come to say since.
        let mut keys = layers(task, &[], &[], Profile::Quick)?;
        let own = ["head.", "attention."];
        let defaults = keys::flatten(&DEFAULTS.parse()?).into_iter();
        keys.extend(defaults.filter(|(key, _)| !own.iter().any(|part| key.starts_with(part))));
        keys.extend(keys::flatten(&table));
        from_keys(&keys, stored, task).with_context(damaged)
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
/// best episodes; of one from before there was a choice, what agents did then.
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
    let best_percent = said("best_percent", Choosable::Chosen)?.beside(target, return_quantile);
    Ok([temperature, return_quantile, best_percent])
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

impl Settings {
    /// What [`Settings::to_table`] gives. Options of algorithms that were not chosen change nothing,
    /// and are left out: their defaults differ from version to version.
    fn from_table(mut table: Table) -> Result<Self> {
        let all = AlgorithmConfig::ALL.iter().filter_map(|(name, _)| table.remove_entry(*name));
        let mut own: Table = all.collect();
        let chosen = table.get("algorithm").and_then(Value::as_str).unwrap_or_default();
        own.retain(|name, _| name == chosen);
        table.insert("algorithms".into(), Value::Table(own));
        table.try_into().map_err(keys::one_line)
    }
}

/// Settings of these keys. Head and attention are the library's own tables: as they were `stored`,
/// or what the keys choose.
pub(super) fn from_keys(keys: &Keys, stored: Table, task: &Task) -> Result<Settings> {
    let head: HeadConfig = variants::chosen("head", keys, task)?.config(keys)?;
    let attention: AttentionConfig = variants::chosen("attention", keys, task)?.config(keys)?;
    let mut parts = Table::new();
    parts.insert("head".into(), Value::try_from(head)?);
    parts.insert("attention".into(), Value::try_from(attention)?);
    parts.extend(stored);
    let read = |keys: &Keys| {
        let mut table = keys::unflatten(keys);
        table.extend(parts.clone());
        Settings::from_table(table)
    };
    let error = match read(keys) {
        Ok(settings) => return Ok(settings),
        Err(error) => error,
    };
    // The reader does not say which key it was: each is tried alone among the defaults.
    let mut defaults = layers(task, &[], &[], Profile::Quick)?;
    defaults.insert("task".into(), Value::String(task.id()));
    for (key, value) in keys {
        let mut alone = defaults.clone();
        alone.insert(key.clone(), value.clone());
        if let Err(error) = read(&alone) {
            bail!("{}={}: {error}", key.trim_end_matches(".kind"), keys::plain(value));
        }
    }
    Err(error)
}
