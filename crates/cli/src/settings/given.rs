//! Checks of what was given for a run, beyond the types of the values: every key that is said
//! must do something.
//!
//! Presets set keys of variants that may not be chosen; only those given by a person are checked.
//! Which keys a head or an attention has, the library says.

use anyhow::{Result, bail};
use overtone_agents::AlgorithmConfig;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use toml::Value;

use super::{recording, variants};
use crate::keys::{self, Keys};

/// A key, or all of a section, that has a meaning only where another has one of these values.
struct Only {
    key: &'static str,
    of: &'static str,
    values: &'static [&'static str],
}

impl Only {
    fn is_of(&self, given: &str) -> bool {
        match self.key.strip_suffix('*') {
            Some(section) => given.starts_with(section),
            None => given == self.key,
        }
    }
}

const fn only(key: &'static str, of: &'static str, values: &'static [&'static str]) -> Only {
    Only { key, of, values }
}

const TRANSFORMER: &[&str] = &["transformer"];
const WITH_PARTS: &[&str] = &["decision_transformer", "behavior_cloning", "rvs"];
/// Those that learn a model of logged actions.
pub(super) const SEQUENCES: &[&str] = WITH_PARTS;
/// That may be told shares of the best episodes in place of returns.
const WITH_SHARES: &[&str] = &["decision_transformer", "rvs"];
/// A transformer that is told returns.
const TOLD: &[&str] = &["decision_transformer"];
const PIXELS: &[&str] = &["pixels"];
const VECTORS: &[&str] = &["vectors"];
const LIST: &[&str] = &["a list"];
const NUMBERS: &[&str] = &["real-valued"];

const LOG: &[&str] = &["a log of frames"];
const ARRAYS: &[&str] = &["a file of arrays"];

/// What a task shows and takes, and what it was recorded in, stands among the keys under these
/// names.
const OBSERVATIONS: &str = "the task's observations";
const ACTIONS: &str = "the task's actions";
const RECORDING: &str = "the recording";

const ONLY: [Only; 38] = [
    only("data.run", OBSERVATIONS, PIXELS),
    only("data.selection", OBSERVATIONS, PIXELS),
    only("data.transitions", OBSERVATIONS, PIXELS),
    only("data.cache", OBSERVATIONS, PIXELS),
    only("data.run", RECORDING, LOG),
    only("data.selection", RECORDING, LOG),
    only("data.transitions", RECORDING, LOG),
    only("data.cache", RECORDING, LOG),
    only("data.fragment", RECORDING, ARRAYS),
    only("data.best_percent", RECORDING, ARRAYS),
    only("data.delayed_reward", RECORDING, ARRAYS),
    only("model.timestep_std", OBSERVATIONS, VECTORS),
    only("train.frames_on_gpu_gb", OBSERVATIONS, PIXELS),
    only("head.bins", ACTIONS, NUMBERS),
    only("head.action_order", ACTIONS, LIST),
    only("evaluation.temperature", ACTIONS, LIST),
    only("evaluation.actions", ACTIONS, NUMBERS),
    only("model.*", "algorithm", SEQUENCES),
    only("attention.*", "algorithm", SEQUENCES),
    only("head.*", "algorithm", SEQUENCES),
    only("train.micro_batches", "algorithm", WITH_PARTS),
    only("model.return_unit", "algorithm", TOLD),
    only("model.return_unit", "model.kind", TRANSFORMER),
    only("model.return_head", OBSERVATIONS, VECTORS),
    only("model.return_head", "algorithm", TOLD),
    only("model.return_head", "model.return_unit", &["range", "rate"]),
    only(
        "evaluation.return_quantile",
        "model.return_head",
        &["hl_gauss", "fourier", "gmm", "gaussian"],
    ),
    only("evaluation.return_quantile", "algorithm", TOLD),
    only("model.best_percents", "algorithm", WITH_SHARES),
    only("evaluation.best_percent", "algorithm", WITH_SHARES),
    only("model.n_heads", "model.kind", TRANSFORMER),
    only("model.time", "model.kind", TRANSFORMER),
    only("model.timestep_std", "model.kind", TRANSFORMER),
    only("model.timestep_std", "model.time", &["episode"]),
    only("attention.*", "model.kind", TRANSFORMER),
    only("train.warmup_updates", "train.schedule", &["constant"]),
    only("train.warmup_tokens", "train.schedule", &["cosine"]),
    only("train.decay_horizon", "train.schedule", &["cosine"]),
];

/// Whether every key of `words` (each `key=value`) does something, `keys` being all that came
/// of them for `task`.
///
/// # Errors
/// For the first that belongs to another variant than the one chosen.
pub fn check_heeded(words: &[String], keys: &Keys, task: &Task) -> Result<()> {
    let mut keys = keys.clone();
    let observations = match task.observations {
        ObservationSpace::Pixels { .. } => PIXELS,
        ObservationSpace::Vectors { .. } => VECTORS,
    };
    let actions = match task.actions {
        ActionSpace::Discrete { .. } => LIST,
        ActionSpace::Continuous { .. } => NUMBERS,
    };
    let recording = if recording::of_log(task, &keys) { LOG } else { ARRAYS };
    for (key, value) in [(OBSERVATIONS, observations), (ACTIONS, actions), (RECORDING, recording)] {
        keys.insert(key.into(), Value::String(value[0].into()));
    }
    for word in words {
        let (given, text) = keys::split(word)?;
        // Nothing is what every other variant has too.
        if text == "none" {
            continue;
        }
        for Only { of, values, .. } in ONLY.iter().filter(|only| only.is_of(&given)) {
            let Some(chosen) = keys.get(*of).map(keys::plain) else { continue };
            if values.contains(&chosen.as_str()) {
                continue;
            }
            let (key, of, values) = (keys::short(&given), keys::short(of), values.join(" or "));
            if of == RECORDING {
                bail!("{key}={text} is for {values}; this recording is {chosen}");
            }
            if of.contains(' ') {
                bail!(
                    "{key}={text} is for tasks whose {} are {values}; those of {} are {chosen}",
                    of.rsplit(' ').next().unwrap_or(of),
                    task.id()
                );
            }
            bail!("{key}={text} is for {of}={values}; this run has {of}={chosen}");
        }
        variants::check_own(&given, text, &keys, task)?;
        let chosen = keys::plain(&keys["algorithm"]);
        let mut others = AlgorithmConfig::ALL.iter().filter(|(name, _)| *name != chosen);
        if let Some((name, _)) = others.find(|(name, _)| variants::is_of(&given, name)) {
            bail!("{given}={text} is for algorithm={name}; this run has algorithm={chosen}");
        }
        if given == "evaluation.every_episodes"
            && keys.get("evaluation.every").is_some_and(|n| keys::plain(n) == "0")
        {
            bail!(
                "{given}={text} is for evaluation.every=auto, or 1 and more; this run has \
                 evaluation.every=0"
            );
        }
        if given == "evaluation.best_percent"
            && text != "0"
            && keys
                .get("model.best_percents")
                .map(keys::plain)
                .is_none_or(|own| own == "none" || own.is_empty())
        {
            bail!("{given}={text} is for model.best_percents=10,50,100, say; this run has none");
        }
        if given == "train.epochs"
            && keys.get("train.updates").is_some_and(|n| n.as_integer() != Some(0))
        {
            let updates = keys::plain(&keys["train.updates"]);
            bail!(
                "train.epochs={text} is for train.updates=0; this run has train.updates={updates}"
            );
        }
    }
    Ok(())
}
