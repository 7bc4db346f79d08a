//! `init=RUN[:checkpoint]`: a run that is initialised from another run's weights, and inherits its
//! settings.

use std::path::Path;

use anyhow::{Context, Result, bail};
use overtone_agents::{Agent, AlgorithmConfig};
use overtone_console::keys::{self, Keys};
use overtone_core::{ObservationSpace, Task};
use overtone_train::{RunDir, run_dir::CONFIG};

use crate::{run_config::RunConfig, runs::open_checkpoint, suites};

/// Keys of the model that only training reads.
const FREE: [&str; 2] = ["model.dropout", "model.timestep_std"];

/// The run that provides the initial weights.
pub struct Source {
    /// The value of `init=` in a run's settings: the run's directory and the checkpoint's step.
    pub name: String,
    config: RunConfig,
    agent: Agent,
}

impl Source {
    /// The run that `words` (each `key=value`) name after `init=`, if they name one.
    ///
    /// # Errors
    /// When the run or its checkpoint does not exist.
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
            bail!("`{checkpoint}` is not a checkpoint. Use last, best or the number of an update");
        }
        let checkpoint = open_checkpoint(&run, checkpoint)?;
        Ok(Self {
            name: format!("{}:{}", run.path().display(), checkpoint.state.step),
            config: RunConfig::load(&run.path().join(CONFIG))?,
            agent: Agent::of(&checkpoint)?,
        })
    }

    /// `words` after the run's task, unless they name a task, and after its data, unless they name
    /// a task or data.
    pub fn with_task(&self, words: &[String]) -> Vec<String> {
        let names = |word: &str| {
            let key = word.split_once('=').map_or("", |(key, _)| key);
            let task = key == "task" || suites::by_key(key).is_some();
            (task, task || key == "dataset" || key == "data.path")
        };
        let named: Vec<_> = words.iter().map(|word| names(word)).collect();
        let mut all = Vec::new();
        if !named.iter().any(|(task, _)| *task) {
            all.push(format!("task={}", self.config.task));
        }
        if !named.iter().any(|(_, data)| *data) {
            let stored = self.config.keys().unwrap_or_default();
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

    /// The settings that a new run inherits, as words.
    ///
    /// # Errors
    /// When its settings cannot be written as keys.
    pub fn words(&self) -> Result<Vec<String>> {
        let mut words = vec![format!("{RETURN_SCALE}={}", self.agent.return_scale)];
        let config = &self.config;
        words.push(format!("data.delayed_reward={}", config.data.delayed_reward));
        words.extend(
            config
                .agent_keys()?
                .iter()
                .filter(|(_, value)| !value.is_array())
                .map(|(key, value)| format!("{}={}", keys::short(key), keys::plain(value))),
        );
        Ok(words)
    }

    /// Checks that the agent of `settings` can be initialised from these weights.
    ///
    /// # Errors
    /// Names the first key with another agent's value, and both values.
    pub fn check(&self, settings: &RunConfig, algorithm: &AlgorithmConfig) -> Result<()> {
        let name = &self.name;
        let task = settings.task()?;
        let initial = &self.agent.task;
        if task.observations != initial.observations || !task.actions.allows(&initial.actions) {
            let (own, its) = (describe(task), describe(&self.agent.task));
            let which = match own == its {
                true => format!("{its}, but with other names or bounds"),
                false => format!("{its}, not {own}"),
            };
            bail!(
                "task={}: init={name} is an agent for {}, which has {which}. Use a run of the same \
                 task",
                task.id(),
                self.agent.task.id()
            );
        }
        let (current, initial) = (settings.data.return_scale, self.agent.return_scale);
        if current != initial {
            bail!(
                "{RETURN_SCALE}={current}: init={name} has {RETURN_SCALE}={initial}, and its weights \
                 fit returns in this scale. Leave {RETURN_SCALE} out"
            );
        }
        let (own, its) = (settings.agent_keys()?, self.config.agent_keys()?);
        // The variant before the keys that only that variant has.
        let mut compared =
            ["algorithm", "model.kind", "head.kind", "attention.kind"].map(str::to_owned).to_vec();
        let is_of_model = |key: &&String| {
            ["model.", "attention.", "head."].iter().any(|part| key.starts_with(part))
        };
        let all = own.keys().chain(its.keys()).filter(is_of_model);
        compared.extend(all.filter(|key| !FREE.contains(&key.as_str())).cloned());
        let of_weights = algorithm.keys_of_weights().iter();
        let name_of = settings.agent.kind().name();
        compared.extend(of_weights.map(|key| format!("{name_of}.{key}")));
        for key in compared {
            let plain = |keys: &Keys| keys.get(&key).map_or("nothing".into(), keys::plain);
            let (own, its, key) = (plain(&own), plain(&its), keys::short(&key));
            if own != its {
                bail!(
                    "{key}={own}: init={name} has {key}={its}. Use the same value, or leave out \
                     init="
                );
            }
        }
        Ok(())
    }
}

const RETURN_SCALE: &str = "data.return_scale";

/// A short description of a task's observations and actions.
fn describe(task: &Task) -> String {
    let shown = match &task.observations {
        ObservationSpace::Pixels { shape } => format!("pixels of shape {shape:?}"),
        ObservationSpace::Vectors { width } => format!("observations of {width} numbers"),
    };
    format!("{shown} and actions that are {}", task.actions.describe())
}
