//! The configuration of a run: presets, `key=value` on top, checked.
//!
//! There is one kind of settings for games ([`AtariSettings`]) and one for robots
//! ([`ContinuousSettings`]); what both have is here.

mod atari;
mod continuous;
mod given;
mod targets;

use std::path::Path;

use anyhow::{Context, Result, bail};
use overtone_core::protocol::ActionChoice;
use overtone_model::{AttentionConfig, FourierAttentionConfig, RShape, head::InitialCoefficients};
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use atari::AtariSettings;
pub use continuous::{ContinuousSettings, ModelKind};
pub use targets::targets;

use crate::keys::{self, Keys};

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// By what is there: a GPU and published data, or not.
    Auto,
    /// Minutes on a CPU.
    Quick,
    /// The reference's data and length.
    Paper,
}

/// What `train` does about an unfinished run of the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// Goes on with it.
    Auto,
    /// Begins a new one.
    Never,
}

/// What all kinds of settings have.
pub trait Settings: Clone + PartialEq + Serialize + DeserializeOwned {
    /// Every key with its default (of the quick profile) and the reason for it.
    const KEYS: &'static str;

    /// What such runs are about, in messages.
    const FAMILY: &'static str;

    /// The other kind.
    type Other: Settings;

    /// What these settings change of the defaults by the presets they name, the later the
    /// stronger: documents, and what they are called in messages.
    fn overlays(&self) -> Vec<(&'static str, &'static str)>;

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// When they describe no run.
    fn check(&self) -> Result<()>;

    /// The same settings with every name in its one spelling, however it was written.
    fn canonical(self) -> Self;

    /// How long.
    fn profile(&mut self) -> &mut Profile;

    /// The keys that belong to all runs.
    fn common(&self) -> Common<'_>;

    /// The same settings, saying this about unfinished runs.
    fn with(self, resume: Resume) -> Self;

    /// The defaults with `overrides` on top. `auto_profile` decides what `profile=auto` is;
    /// it is asked only then.
    ///
    /// # Errors
    /// When an override is wrong, or the whole describes no run.
    fn resolve(overrides: &[String], auto_profile: impl FnOnce(&Self) -> Profile) -> Result<Self> {
        let mut keys = defaults::<Self>()?;
        let families = [Self::FAMILY, Self::Other::FAMILY];
        given::check_own(overrides, &keys, &defaults::<Self::Other>()?, families)?;
        keys::apply(&mut keys, overrides)?;
        let mut asked: Self = from_keys(&keys)?;
        asked.check()?;
        if *asked.profile() == Profile::Auto {
            let profile = auto_profile(&asked);
            *asked.profile() = profile;
        }
        let mut keys = defaults::<Self>()?;
        for (document, name) in asked.overlays() {
            keys.extend(keys::flatten(&document.parse().context(name)?));
        }
        keys::apply(&mut keys, overrides)?;
        given::check_heeded(overrides, &keys)?;
        let mut settings: Self = from_keys(&keys)?;
        *settings.profile() = *asked.profile();
        settings.common().train.validate()?;
        Ok(settings.canonical())
    }

    /// Reads the configuration of a run.
    ///
    /// # Errors
    /// When the file is missing or says something unknown.
    fn load(path: &Path) -> Result<Self> {
        let table = read(path)?;
        // A run from before a key existed behaves as the key's default.
        let mut keys = defaults::<Self>()?;
        keys.extend(keys::flatten(&table));
        let settings: Self =
            from_keys(&keys).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(settings.canonical())
    }

    /// The configuration as a document.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }
}

/// The keys that belong to all runs.
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct Common<'a> {
    pub seed: u64,
    pub device: &'a str,
    pub runs: &'a Path,
    pub resume: Resume,
    pub train: &'a TrainConfig,
    pub evaluation: &'a EvaluationSettings,
}

/// Whether these words are about a robot.
///
/// # Errors
/// When they are about a game as well.
pub fn is_about_a_robot(words: &[String]) -> Result<bool> {
    let says = |start| words.iter().any(|word| word.starts_with(start));
    if says("env=") && says("game=") {
        bail!("game=… and env=… are two runs: give one of them");
    }
    Ok(says("env="))
}

/// Whether the run whose configuration is in `path` is a robot's.
///
/// # Errors
/// When the file is missing or damaged.
pub fn is_a_robots(path: &Path) -> Result<bool> {
    Ok(read(path)?.contains_key("env"))
}

/// Where the run whose configuration is in `path` was computed.
///
/// # Errors
/// When the file is missing or damaged.
pub fn device_of(path: &Path) -> Result<String> {
    let table = read(path)?;
    Ok(table.get("device").and_then(toml::Value::as_str).unwrap_or("auto").to_owned())
}

fn read(path: &Path) -> Result<toml::Table> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(one_line).with_context(|| format!("{} is damaged", path.display()))
}

fn defaults<S: Settings>() -> Result<Keys> {
    Ok(keys::flatten(&S::KEYS.parse().context("the defaults")?))
}

fn from_keys<S: Settings>(keys: &Keys) -> Result<S> {
    let read = |keys: &Keys| keys::unflatten(keys).try_into().map_err(one_line);
    let error = match read(keys) {
        Ok(settings) => return Ok(settings),
        Err(error) => error,
    };
    // The reader does not say which key it was: each is tried alone among the defaults.
    let defaults = defaults::<S>()?;
    for (key, value) in keys {
        let mut alone = defaults.clone();
        alone.insert(key.clone(), value.clone());
        if let Err(error) = read(&alone) as Result<S> {
            bail!("{}={}: {error}", key.trim_end_matches(".kind"), keys::plain(value));
        }
    }
    Err(error)
}

/// What a TOML reader says, without the picture of the place.
fn one_line(error: toml::de::Error) -> anyhow::Error {
    let message = error.message().trim().replace('\n', " ");
    let message = message.replace("expected usize", "expected a whole number, 0 or more");
    anyhow::anyhow!("{}", message.replace("expected u64", "expected a whole number, 0 or more"))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct AttentionSettings {
    pub kind: AttentionKind,
    pub power: u32,
    pub r: RShape,
    pub initial: f64,
    pub epsilon: f64,
}

/// How queries are compared with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// Softmax of dot products.
    Softmax,
    /// The Fourier integral kernel.
    Fourier,
}

impl AttentionSettings {
    /// The attention of a model.
    pub fn config(&self) -> AttentionConfig {
        match self.kind {
            AttentionKind::Softmax => AttentionConfig::Softmax,
            AttentionKind::Fourier => AttentionConfig::Fourier(FourierAttentionConfig {
                power: self.power,
                r: self.r,
                initial: self.initial,
                epsilon: self.epsilon,
            }),
        }
    }

    /// In a word: `softmax`, `fourier4`.
    pub fn name(&self) -> String {
        match self.kind {
            AttentionKind::Softmax => "softmax".into(),
            AttentionKind::Fourier => format!("fourier{}", self.power),
        }
    }

    /// As a part of a run's name, after a model's: nothing for the usual one.
    pub fn suffix(&self) -> String {
        match self.kind {
            AttentionKind::Softmax => String::new(),
            AttentionKind::Fourier => format!("-attention-{}", self.name()),
        }
    }
}

/// What the Fourier head begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitialKind {
    /// Small random coefficients.
    Normal,
    /// The uniform distribution.
    Uniform,
}

impl InitialKind {
    /// With this standard deviation, where it is random.
    pub fn coefficients(self, std: f64) -> InitialCoefficients {
        match self {
            Self::Normal => InitialCoefficients::Normal { std },
            Self::Uniform => InitialCoefficients::UniformDensity,
        }
    }
}

/// What is played after training, or by `evaluate`; keys that a kind of run does not have are
/// absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct EvaluationSettings {
    pub episodes: usize,
    pub target: String,
    /// What `released` asks for instead of `target`; a key of `evaluate` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub seed: u64,
    pub parallel: usize,
}

#[cfg(test)]
mod tests {
    use overtone_core::seed;
    use overtone_hostile::mutate::mutate;

    use super::*;

    /// Damaged configurations of runs are read or refused, and what is read can be written.
    fn survives<S: Settings>(words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let sound = S::resolve(&words, |_| Profile::Quick).unwrap().to_toml().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let mut generator = seed::generator(1, "config");
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..1000 {
            let bytes = mutate(&[sound.as_bytes(), S::KEYS.as_bytes()], 0, &mut generator);
            std::fs::write(&path, bytes).unwrap();
            let (_, _) = (is_a_robots(&path), device_of(&path));
            match S::load(&path) {
                Ok(settings) => {
                    accepted += 1;
                    settings.to_toml().unwrap();
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
    }

    #[test]
    fn damaged_configurations_are_refused() {
        survives::<AtariSettings>(&["game=seaquest"]);
        survives::<ContinuousSettings>(&["env=hopper"]);
    }

    #[test]
    fn configurations_nested_without_end_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        for text in [
            format!("a = {}", "[".repeat(100_000)),
            format!("{} = 1", vec!["a"; 100_000].join(".")),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(AtariSettings::load(&path).is_err());
            assert!(ContinuousSettings::load(&path).is_err());
        }
    }
}
