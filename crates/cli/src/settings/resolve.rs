//! From words to settings: defaults, presets by what the task shows and takes, then `key=value`.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use overtone_agents::AlgorithmConfig;
use overtone_core::{ActionSpace, ObservationSpace, Targets, Task, protocol::ReturnUnits};
use overtone_data::MinariId;
use overtone_model::{AttentionConfig, HeadConfig};
use toml::{Table, Value};

use super::{
    BEHAVIOR_CLONING, Choosable, ModelKind, Preset, Profile, Recorded, Settings, given, read,
    recording, source::Source, variants,
};
use crate::{
    keys::{self, Keys},
    suites::{self, Data},
};

/// Every key with its default (of the quick profile) and the reason for it.
pub const DEFAULTS: &str = include_str!("../../presets/defaults.toml");

/// A document that changes defaults, and its name in messages.
type Overlay = (&'static str, &'static str);

macro_rules! preset {
    ($name:literal) => {
        (include_str!(concat!("../../presets/", $name)), concat!("presets/", $name))
    };
}

const PIXELS: Overlay = preset!("pixels.toml");
const VECTORS: Overlay = preset!("vectors.toml");
const CONTINUOUS: Overlay = preset!("continuous.toml");
const OWN_RETURNS: Overlay = preset!("own-returns.toml");
const NO_ENVIRONMENT: Overlay = preset!("no-environment.toml");
const PIXELS_PAPER: Overlay = preset!("pixels-paper.toml");
const VECTORS_PAPER: Overlay = preset!("vectors-paper.toml");
const PERCEPTRON: Overlay = preset!("perceptron.toml");
const FOURIERFORMER: Overlay = preset!("fourierformer.toml");

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

    /// What these settings change of the defaults by the presets they name, the later the
    /// stronger.
    fn overlays(&self, task: &Task) -> Vec<Overlay> {
        let mut overlays = Vec::new();
        let is_cloning = self.algorithm == BEHAVIOR_CLONING;
        match (self.profile, &task.observations) {
            (Profile::Auto | Profile::Quick, _) => {
                if is_cloning && self.model.kind == ModelKind::Perceptron {
                    overlays.push(PERCEPTRON);
                }
            }
            (Profile::Paper, ObservationSpace::Pixels { .. }) => overlays.push(PIXELS_PAPER),
            (Profile::Paper, ObservationSpace::Vectors { .. }) => overlays.push(VECTORS_PAPER),
        }
        if self.preset == Preset::Fourierformer {
            overlays.push(FOURIERFORMER);
        }
        overlays.extend(
            AlgorithmConfig::ALL
                .iter()
                .filter_map(|&(name, preset)| (name == self.algorithm).then_some((preset, name))),
        );
        overlays
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
        if self.evaluation.every > 0 && self.evaluation.every_episodes == 0 {
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
        let damaged = || format!("{} is damaged", path.display());
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

/// The defaults of `task`, then `overlays`, then `words`. What an overlay's section `vectors` says
/// counts for tasks that show vectors, and its section `paper` in that profile.
fn layers(task: &Task, words: &[String], overlays: &[Overlay], profile: Profile) -> Result<Keys> {
    let stacked = |mut keys: Keys| -> Result<Keys> {
        keys.extend(of_task(task)?);
        for (document, name) in overlays {
            let all = keys::flatten(&document.parse().context(*name)?);
            let sections = ["vectors.", "paper."];
            let part = |section: &str| {
                let mine = |key: &String| {
                    match sections.iter().find(|own| key.starts_with(**own)) {
                        Some(own) => key.strip_prefix(own).filter(|_| *own == section),
                        None => Some(key.as_str()).filter(|_| section.is_empty()),
                    }
                    .map(str::to_owned)
                };
                all.iter().filter_map(|(key, value)| Some((mine(key)?, value.clone()))).collect()
            };
            let [own, vectors, paper]: [Keys; 3] = ["", "vectors.", "paper."].map(part);
            keys.extend(own);
            if let ObservationSpace::Vectors { .. } = task.observations {
                keys.extend(vectors);
            }
            if profile == Profile::Paper {
                keys.extend(paper);
            }
        }
        keys::apply(&mut keys, words)?;
        Ok(keys)
    };
    let mut keys = all_keys()?;
    // The defaults of options are those of the variants that were chosen.
    let asked = stacked(keys.clone())?;
    for section in ["head", "attention"] {
        let own = variants::chosen(section, &asked, task)?.keys;
        keys.extend(own.into_iter().map(|(key, default, _)| (key, default)));
    }
    stacked(keys)
}

/// What is otherwise for tasks like `task`.
fn of_task(task: &Task) -> Result<Keys> {
    let mut keys = Keys::new();
    let mut overlays = match task.observations {
        ObservationSpace::Pixels { .. } => vec![PIXELS],
        ObservationSpace::Vectors { .. } => vec![VECTORS],
    };
    if let ActionSpace::Continuous { .. } = task.actions {
        overlays.push(CONTINUOUS);
    }
    if task.return_units == ReturnUnits::Raw && task.targets == Targets::default() {
        overlays.push(OWN_RETURNS);
    }
    if !suites::of(task)?.has_environments() {
        overlays.push(NO_ENVIRONMENT);
    }
    for (document, name) in overlays {
        keys.extend(keys::flatten(&document.parse().context(name)?));
    }
    Ok(keys)
}

/// Which dataset of `task` is meant where nobody says one.
///
/// # Errors
/// When the defaults cannot be read.
pub(super) fn default_dataset(task: &Task) -> Result<String> {
    let mut keys = keys::flatten(&DEFAULTS.parse().context("the defaults")?);
    keys.extend(of_task(task)?);
    Ok(keys::text(&keys, "dataset"))
}

/// Every key with its default, those of all algorithms, heads and attentions among them.
fn all_keys() -> Result<Keys> {
    let mut keys = keys::flatten(&DEFAULTS.parse().context("the defaults")?);
    for (name, preset) in AlgorithmConfig::ALL {
        let own = keys::flatten(&preset.parse().context(*name)?);
        keys.extend(own.into_iter().filter(|(key, _)| variants::is_of(key, name)));
    }
    for (key, default, _) in variants::all()?.into_iter().flat_map(|variant| variant.keys) {
        keys.entry(key).or_insert(default);
    }
    Ok(keys)
}

/// What `--help` shows: every key with its default and the reason for it.
pub fn help() -> String {
    // The documents are the program's own, and a test reads what is made of them.
    lines_of_help().unwrap_or_else(|error| error.to_string())
}

fn lines_of_help() -> Result<String> {
    let own = AlgorithmConfig::ALL.iter().map(|(name, preset)| {
        let help = keys::help(preset);
        let lines: Vec<&str> = help.lines().collect();
        let own = lines.chunks(2).filter(|pair| variants::is_of(pair[0].trim(), name));
        own.flatten().map(|line| format!("{line}\n")).collect::<String>()
    });
    let otherwise = [
        ("a task that shows vectors", VECTORS.0),
        ("a task that shows pictures", PIXELS.0),
        ("a task with real-valued actions", CONTINUOUS.0),
        ("a task whose returns no reference has scaled (gymnasium=…, own=…)", OWN_RETURNS.0),
        ("a task without an environment (own=…)", NO_ENVIRONMENT.0),
        ("algorithm=behavior_cloning model.kind=perceptron", PERCEPTRON.0),
    ];
    let otherwise = otherwise.into_iter().map(|(of, preset)| (of.to_owned(), preset));
    let by_algorithm =
        AlgorithmConfig::ALL.iter().map(|(name, preset)| (format!("algorithm={name}"), *preset));
    let mut lines = keys::help(DEFAULTS) + &variants::help()? + &own.collect::<String>();
    lines += "\nDefaults that are otherwise, the later the stronger:\n";
    for (of, preset) in otherwise.chain(by_algorithm) {
        let changed = keys::flatten(&preset.parse()?);
        let is_own = |key: &str| {
            key.starts_with("paper.")
                || AlgorithmConfig::ALL.iter().any(|(name, _)| variants::is_of(key, name))
        };
        let (mut always, mut of_vectors) = (Vec::new(), Vec::new());
        for (key, value) in changed.iter().filter(|(key, _)| !is_own(key)) {
            let word = |key| format!("{}={}", keys::short(key), keys::plain(value));
            match key.strip_prefix("vectors.") {
                Some(key) => of_vectors.push(word(key)),
                None => always.push(word(key)),
            }
        }
        for (of, words) in [(of.clone(), always), (format!("{of}, with vectors"), of_vectors)] {
            if !words.is_empty() {
                lines += &format!("  {of}:\n      {}\n", words.join(" "));
            }
        }
    }
    Ok(lines)
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
fn from_keys(keys: &Keys, stored: Table, task: &Task) -> Result<Settings> {
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
