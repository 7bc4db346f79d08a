//! Reading a configuration from words or from a run's file.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use overtone_console::keys;
use overtone_core::Task;
use overtone_data::MinariId;
use toml::{Table, Value};

use crate::{
    auto_or::AutoOr,
    chosen::Choosable,
    error::ConfigError,
    recording,
    run_config::{FORMAT, Profile, RunConfig},
    sequence::Recorded,
    source::Source,
    suites::{self, Data},
    words::{Word, check_effects, known_keys, of_words, parse, profile as chosen_profile, unknown},
};

impl RunConfig {
    /// The configuration of `words`, each `key=value`: the defaults of their task, then the
    /// settings of the run that `init=` names, then `words`. `auto_profile` resolves
    /// `profile=auto`.
    ///
    /// # Errors
    /// When a word is invalid, or the words do not describe a run.
    pub fn resolve(words: &[String], auto_profile: impl FnOnce(&Self) -> Profile) -> Result<Self> {
        // A table is read by these names before the other keys are known.
        let columns = words.iter().filter(|word| word.starts_with("data.columns."));
        Self::check_words(&columns.cloned().collect::<Vec<_>>())?;
        let source = Source::of(words)?;
        let (named, mut all) = match &source {
            Some(source) => {
                (task_words(&source.with_task(words))?, parse(&source.words()?, false)?)
            }
            None => (task_words(words)?, Vec::new()),
        };
        for word in parse(&named, true)? {
            // Settings that equal the other run's are inherited, not set by the user.
            let is_explicit = source.is_none() || words.iter().any(|own| word.is(own));
            all.push(Word { is_explicit, ..word });
        }
        let task = all.iter().rev().find(|word| word.key == "task");
        let task = task.map_or("", |word| &*word.text);
        let task = suites::with_data(task, recording::of_words(&named).as_ref())?;
        let mut profile = chosen_profile(&all)?;
        if profile == Profile::Auto {
            profile = auto_profile(&of_words(task, &all, Profile::Quick)?);
        }
        let mut config = of_words(task, &all, profile)?;
        check_effects(&config, task, &all, config.is_log())?;
        config.check()?;
        if let Some(source) = source {
            // Episode lengths and returns are not compared.
            source.check(&config, &config.algorithm_config(task, Recorded::ANY, None)?)?;
            config.init = source.name;
        }
        Ok(config)
    }

    /// Checks that each of `words` (`key=value`) names a setting and has a value of its type. Words
    /// that name the task are not allowed, because they have several forms.
    ///
    /// # Errors
    /// For the first invalid word.
    pub fn check_words(words: &[String]) -> Result<()> {
        let known = known_keys();
        for word in words {
            let (key, text) = keys::split(word)?;
            let like = known.get(&key).ok_or_else(|| unknown(&key))?;
            keys::typed(text, like)
                .map_err(|expected| ConfigError::other_type(&key, text, expected, like))?;
        }
        Ok(())
    }

    /// Checks that the types do not express.
    fn check(&self) -> Result<()> {
        if self.runs.as_os_str().is_empty() {
            bail!("runs=: the directory is empty. Set one, such as runs=runs");
        }
        let scale = self.data.return_scale;
        if !(scale.is_finite() && scale >= 0.0) {
            bail!(
                "data.return_scale={scale}: expected a positive number, or 0 to compute it from \
                 the data"
            );
        }
        if self.evaluation.every != AutoOr::Number(0) && self.evaluation.every_episodes == 0 {
            bail!(
                "evaluation.every_episodes=0: expected at least 1 episode for each evaluation \
                 during training. Use evaluation.every=0 for no such evaluations"
            );
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

    /// The configuration of [`RunConfig::to_table`], whose keys must all be there, without others.
    fn from_table(table: &Table) -> Result<Self, String> {
        let config: Self = serde_path_to_error::deserialize(table.clone()).map_err(|error| {
            let path = error.path().to_string();
            let reason = keys::one_line(error.into_inner());
            if path == "." { reason.to_string() } else { format!("{path}: {reason}") }
        })?;
        // The section of a variant ignores unknown keys.
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

/// The device of the run whose configuration is in `path`.
///
/// # Errors
/// When the file is missing or damaged.
pub fn device_of(path: &Path) -> Result<String> {
    let table = read(path)?;
    Ok(table.get("device").and_then(Value::as_str).unwrap_or("auto").to_owned())
}

/// The temperature, return quantile and top percent in the run's configuration in `path`; the
/// agent's defaults for missing keys.
///
/// # Errors
/// When it cannot be read.
pub fn chosen_of(path: &Path) -> Result<[Choosable; 3]> {
    let table = read(path)?;
    let setting = |key: &str, default: Choosable| {
        let value = table.get("evaluation").and_then(|section| section.get(key)).cloned();
        let wrong = |error: String| anyhow!("{}: evaluation.{key}={error}", path.display());
        value.map_or(Ok(default), |value| Choosable::try_from(value).map_err(wrong))
    };
    let temperature = setting("temperature", Choosable::Fixed(1.0))?;
    let return_quantile = setting("return_quantile", Choosable::Chosen)?;
    let target = table.get("evaluation").and_then(|section| section.get("target"));
    let target = target.and_then(Value::as_str).unwrap_or_default();
    let top_percent =
        setting("top_percent", Choosable::Chosen)?.unless_target(target, return_quantile);
    Ok([temperature, return_quantile, top_percent])
}

/// Words with the task as `task=suite/name` and the dataset's name in one spelling.
///
/// # Errors
/// As [`named_tasks`], and when no word names a task.
pub(crate) fn task_words(words: &[String]) -> Result<Vec<String>> {
    let (others, task) = named_tasks(words, recording::of_words(words).as_ref())?;
    let Some(task) = task.map_or_else(|| task_of_data(&others), |task| Ok(Some(task)))? else {
        bail!("no task is set. Use {}", suites::examples())
    };
    let recording = |word: String| match word.strip_prefix("dataset=") {
        Some(name) if !recording::is_path(name) => {
            format!("dataset={}", name.to_lowercase().replace('_', "-"))
        }
        _ => word,
    };
    let task = format!("task={}", task.id());
    Ok(std::iter::once(task).chain(others.into_iter().map(recording)).collect())
}

/// The task that the data of `words` names, if any.
fn task_of_data(words: &[String]) -> Result<Option<&'static Task>> {
    let Some(names) = keys::last(words, "dataset") else { return Ok(None) };
    let name = recording::datasets_of(names).first().copied().unwrap_or_default();
    if let Some(id) = MinariId::of(name)? {
        return suites::of_minari(&id).map(Some);
    }
    match recording::of_words(words).filter(|data| data.path.exists()) {
        Some(data) => suites::of_data(&data),
        None => Ok(None),
    }
}

/// What to write for the word at `at`, which is not `key=value`.
fn advice(words: &[String], at: usize) -> String {
    let word = &*words[at];
    let [before, after, second] = [at.checked_sub(1), Some(at + 1), Some(at + 2)]
        .map(|at| words.get(at?).map(|word| &**word));
    // `env = hopper`, `env =hopper`, `env= hopper`.
    let spaced = match (before, after.and_then(|after| after.strip_prefix('='))) {
        (_, Some("")) => second.map(|value| format!("{word}={value}")),
        (_, Some(value)) => Some(format!("{word}={value}")),
        (Some(before), None) if before.ends_with('=') => Some(format!("{before}{word}")),
        (_, None) => None,
    };
    if let Some(whole) = spaced {
        return format!("write {whole}, without spaces around the `=`");
    }
    let task = suites::named(word).ok().and_then(|task| Some((task, suites::of(task).ok()?)));
    match task {
        Some((task, suite)) => format!("`{word}`: write {}={}", suite.key(), task.name),
        None if recording::is_path(word) => format!("`{word}`: write dataset={word}"),
        None => format!("expected key=value, such as seed=231, got `{word}`"),
    }
}

/// The other words, and the task that `words` (each `key=value`) name by any key, as its suite or
/// else `data` defines it. `None` if no key has a value.
///
/// # Errors
/// When they name two tasks, or no suite has the task.
pub fn named_tasks(
    words: &[String],
    data: Option<&Data>,
) -> Result<(Vec<String>, Option<&'static Task>)> {
    if let Some(at) = words.iter().position(|word| !word.contains('=') || word.starts_with('=')) {
        bail!(advice(words, at));
    }
    // The last value of a repeated key counts.
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
        bail!("{} and {} are two tasks. Use one of them", task.id(), other.id());
    }
    Ok((others, task))
}

/// Reads a configuration's document.
fn read(path: &Path) -> Result<Table> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(keys::one_line).with_context(|| format!("{} is damaged", path.display()))
}
