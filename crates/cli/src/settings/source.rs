//! `init=RUN[:checkpoint]`: a run begins with the weights of another one's agent, and is as that
//! run is where nothing else is said.

use std::path::Path;

use anyhow::{Context, Result, bail};
use overtone_agents::{Agent, AlgorithmConfig};
use overtone_core::{ObservationSpace, Task};
use overtone_train::{Checkpoint, Initial, RunDir, run_dir::CONFIG};
use toml::Value;

use super::{Settings, given::SEQUENCES, variants};
use crate::{
    keys::{self, Keys},
    runs::open_checkpoint,
    suites,
};

/// Keys of the model that only training reads.
const FREE: [&str; 2] = ["model.dropout", "model.timestep_std"];

/// The run whose weights are begun with.
pub struct Source {
    /// As `init=` has it in a run's settings: the run's folder and the checkpoint's step.
    pub name: String,
    settings: Settings,
    agent: Agent,
}

impl Source {
    /// The run that `words` (each `key=value`) name after `init=`, if they name one.
    ///
    /// # Errors
    /// When there is no such run, or no such checkpoint of it.
    pub fn of(words: &[String]) -> Result<Option<Self>> {
        let name = keys::last(words, "init").filter(|name| !name.is_empty());
        let Some(name) = name else { return Ok(None) };
        let root = Path::new(keys::last(words, "runs").unwrap_or("runs"));
        Self::open(root, name).with_context(|| format!("init={name}")).map(Some)
    }

    fn open(root: &Path, name: &str) -> Result<Self> {
        let (run, checkpoint) = match (RunDir::open(root, name), name.rsplit_once(':')) {
            (Ok(run), _) => (run, "last"),
            (Err(error), None) => return Err(error.into()),
            (Err(_), Some((run, checkpoint))) => (RunDir::open(root, run)?, checkpoint),
        };
        if !["last", "best"].contains(&checkpoint) && checkpoint.parse::<u64>().is_err() {
            bail!("`{checkpoint}` is no checkpoint: say last, best or the number of an update");
        }
        let checkpoint = open_checkpoint(&run, checkpoint)?;
        Ok(Self {
            name: format!("{}:{}", run.path().display(), checkpoint.state.step),
            settings: Settings::load(&run.path().join(CONFIG))?,
            agent: Agent::of(&checkpoint)?,
        })
    }

    /// `words` with the run's task before them, where they name none, and with its data where
    /// they name neither.
    pub fn with_task(&self, words: &[String]) -> Vec<String> {
        let names = |word: &str| {
            let key = word.split_once('=').map_or("", |(key, _)| key);
            let task = key == "task" || suites::by_key(key).is_some();
            (task, task || key == "dataset" || key == "data.path")
        };
        let given: Vec<_> = words.iter().map(|word| names(word)).collect();
        let mut all = Vec::new();
        if !given.iter().any(|(task, _)| *task) {
            all.push(format!("task={}", self.settings.task));
        }
        if !given.iter().any(|(_, data)| *data) {
            let stored = self.keys().unwrap_or_default();
            let own = |key: &str| {
                key == "dataset"
                    || (key.starts_with("data.") && !["data.cache", RETURN_SCALE].contains(&key))
            };
            let stored = stored.iter().filter(|(key, _)| own(key));
            all.extend(stored.map(|(key, value)| format!("{key}={}", keys::plain(value))));
        }
        all.extend_from_slice(words);
        all
    }

    /// What is as in that run where nothing else is said, as words before those that were given.
    ///
    /// # Errors
    /// When its settings cannot be told in keys.
    pub fn words(&self) -> Result<Vec<String>> {
        let mut words = vec![format!("{RETURN_SCALE}={}", self.agent.return_scale)];
        let stored = self.keys()?;
        let delayed = "data.delayed_reward".to_owned();
        let told = ["algorithm".to_owned(), delayed].into_iter();
        for key in told.chain(self.keys_of_agent(&stored)) {
            if let Some(value) = stored.get(&key) {
                words.push(format!("{}={}", keys::short(&key), keys::plain(value)));
            }
        }
        Ok(words)
    }

    /// Every key of the agent among `stored`, those that only training reads included.
    fn keys_of_agent(&self, stored: &Keys) -> Vec<String> {
        let algorithm = &*self.settings.algorithm;
        let is_own = |key: &&String| {
            variants::is_of(key, algorithm) || SEQUENCES.contains(&algorithm) && is_of_model(key)
        };
        stored.keys().filter(is_own).cloned().collect()
    }

    /// The run's settings by key, head and attention among them.
    fn keys(&self) -> Result<Keys> {
        keys_of(&self.settings, &self.agent.task)
    }

    /// Whether what `settings` describe can begin with these weights.
    ///
    /// # Errors
    /// Names the first key that says another agent, and both values.
    pub fn check(&self, settings: &Settings, algorithm: &AlgorithmConfig) -> Result<()> {
        let name = &self.name;
        let task = settings.task()?;
        if (&task.observations, &task.actions)
            != (&self.agent.task.observations, &self.agent.task.actions)
        {
            let (own, its) = (describe(task), describe(&self.agent.task));
            let which = match own == its {
                true => format!("{its}, but of other names or bounds"),
                false => format!("{its}, not {own}"),
            };
            bail!("task={}: init={name} is of {}, with {which}", task.id(), self.agent.task.id());
        }
        let (own, its) = (keys_of(settings, task)?, self.keys()?);
        let mut compared = vec!["algorithm".to_owned()];
        if SEQUENCES.contains(&&*settings.algorithm) {
            // Which variant before what only that variant has.
            compared.extend(["model.kind", "head.kind", "attention.kind"].map(str::to_owned));
            let all = own.keys().chain(its.keys()).filter(|key| is_of_model(key));
            compared.extend(all.filter(|key| !FREE.contains(&key.as_str())).cloned());
        }
        let of_weights = algorithm.keys_of_weights().iter();
        compared.extend(of_weights.map(|key| format!("{}.{key}", settings.algorithm)));
        for key in compared {
            let plain = |keys: &Keys| keys.get(&key).map_or("nothing".into(), keys::plain);
            let (own, its, key) = (plain(&own), plain(&its), keys::short(&key));
            if own != its {
                bail!("{key}={own}: the weights of init={name} are of {key}={its}");
            }
        }
        Ok(())
    }
}

const RETURN_SCALE: &str = "data.return_scale";

impl Settings {
    /// The weights that a run of these settings begins with, where they name some: what the run
    /// `begun` has kept of them, or as the run that `init=` names has them.
    ///
    /// # Errors
    /// When they are missing or damaged.
    pub fn initial(&self, begun: Option<&RunDir>) -> Result<Option<Initial>> {
        let Some((run, step)) = self.init.rsplit_once(':') else { return Ok(None) };
        if let Some(begun) = begun {
            return Ok(Some(Initial::kept_in(begun.path(), run)?));
        }
        let init = || format!("init={}", self.init);
        let step = step.parse().with_context(init)?;
        let its = RunDir::open(&self.runs, run).with_context(init)?;
        let checkpoint = Checkpoint::at_step(&its.checkpoints(), step).with_context(init)?;
        Ok(Some(Initial { checkpoint, run: run.to_owned() }))
    }
}

/// Whether a key says what a model of logged actions is made of.
fn is_of_model(key: &str) -> bool {
    ["model.", "attention.", "head."].iter().any(|part| key.starts_with(part))
}

/// Settings by key; of head and attention the keys that they are asked for by.
fn keys_of(settings: &Settings, task: &Task) -> Result<Keys> {
    let mut keys: Keys = keys::flatten(&settings.to_table()?)
        .into_iter()
        .filter(|(key, _)| !key.starts_with("head.") && !key.starts_with("attention."))
        .collect();
    keys.extend(variants::asked("head", &settings.head, task)?);
    if settings.model.kind == super::ModelKind::Transformer {
        keys.extend(variants::asked("attention", &settings.attention, task)?);
    }
    keys.retain(|_, value| !matches!(value, Value::Array(_)));
    Ok(keys)
}

/// What a task shows and takes, in a few words.
fn describe(task: &Task) -> String {
    let shown = match &task.observations {
        ObservationSpace::Pixels { shape } => format!("pixels of shape {shape:?}"),
        ObservationSpace::Vectors { width } => format!("observations of {width} numbers"),
    };
    format!("{shown} and actions that are {}", task.actions.describe())
}
