//! The configuration of a run: presets, `key=value` on top, checked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use overtone_core::{Emulation, Protocol};
use overtone_data::Selection;
use overtone_model::{
    AttentionConfig, Conditioning, FourierAttentionConfig, HeadConfig, ModelConfig, RShape,
    head::{
        ActionOrder, Domain, FourierHeadConfig, GmmHeadConfig, InitialCoefficients, Regularizer,
    },
};
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize};

use crate::keys::{self, Keys};

/// Every key with its default and reason.
pub const ATARI: &str = include_str!("../presets/atari.toml");
/// What the paper profile changes.
const ATARI_PAPER: &str = include_str!("../presets/atari-paper.toml");

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

/// A resolved configuration; the fields are the keys of `presets/atari.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct Settings {
    pub game: String,
    pub profile: Profile,
    pub seed: u64,
    pub device: String,
    pub runs: PathBuf,
    pub resume: Resume,
    pub data: DataSettings,
    pub model: ModelSettings,
    pub attention: AttentionSettings,
    pub head: HeadSettings,
    pub train: TrainConfig,
    pub evaluation: EvaluationSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct DataSettings {
    pub path: PathBuf,
    pub run: String,
    pub selection: SelectionKind,
    pub transitions: usize,
    pub cache: PathBuf,
}

/// Which transitions of a log are trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionKind {
    /// Whole episodes from all of the log.
    Uniform,
    /// As the reference selects them.
    Released,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct ModelSettings {
    pub conditioning: Conditioning,
    pub context_length: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub d_model: usize,
    pub dropout: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct HeadSettings {
    pub kind: HeadKind,
    pub frequencies: usize,
    pub gamma: f64,
    pub regularizer: Regularizer,
    pub domain: Domain,
    pub initial: InitialKind,
    pub initial_std: f64,
    pub components: usize,
    pub action_order: OrderKind,
}

/// Which action head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadKind {
    /// One affine layer.
    Linear,
    /// A density of Fourier frequencies.
    Fourier,
    /// A mixture of Gaussians.
    Gmm,
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

/// How a head that is a density orders actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Around the compass.
    Atari,
    /// As the environment numbers them.
    Environment,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct EvaluationSettings {
    pub episodes: usize,
    pub target: String,
    pub protocol: String,
    pub temperature: f32,
    pub seed: u64,
    pub parallel: usize,
}

/// The quick profile's keys.
fn defaults() -> Result<Keys> {
    Ok(keys::flatten(&ATARI.parse().context("presets/atari.toml")?))
}

impl Settings {
    /// The defaults with `overrides` on top. `auto_profile` decides what `profile=auto` is;
    /// it is asked only then.
    ///
    /// # Errors
    /// When an override is wrong, or the whole describes no run.
    pub fn resolve(
        overrides: &[String],
        auto_profile: impl FnOnce(&Settings) -> Profile,
    ) -> Result<Self> {
        let mut quick = defaults()?;
        keys::apply(&mut quick, overrides)?;
        let mut settings = Self::from_keys(&quick)?;
        if settings.game.is_empty() {
            bail!("which game? Say game=seaquest, gravitar, bank_heist or double_dunk");
        }
        if settings.profile == Profile::Auto {
            settings.profile = auto_profile(&settings);
        }
        if settings.profile == Profile::Paper {
            let mut paper = defaults()?;
            paper.extend(keys::flatten(&ATARI_PAPER.parse().context("presets/atari-paper.toml")?));
            keys::apply(&mut paper, overrides)?;
            settings = Self { profile: Profile::Paper, ..Self::from_keys(&paper)? };
        }
        settings.train.validate()?;
        Ok(settings)
    }

    fn from_keys(keys: &Keys) -> Result<Self> {
        let read = |keys: &Keys| keys::unflatten(keys).try_into().map_err(one_line);
        let error = match read(keys) {
            Ok(settings) => return Ok(settings),
            Err(error) => error,
        };
        // The reader does not say which key it was: each is tried alone among the defaults.
        let defaults = defaults()?;
        for (key, value) in keys {
            let mut alone = defaults.clone();
            alone.insert(key.clone(), value.clone());
            if let Err(error) = read(&alone) as Result<Self> {
                bail!("{}={}: {error}", key.trim_end_matches(".kind"), keys::plain(value));
            }
        }
        Err(error)
    }

    /// Reads the configuration of a run.
    ///
    /// # Errors
    /// When the file is missing or says something unknown.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let table = text.parse().map_err(one_line).with_context(damaged)?;
        // A run from before a key existed behaves as the key's default.
        let mut keys = defaults()?;
        keys.extend(keys::flatten(&table));
        Self::from_keys(&keys).with_context(damaged)
    }

    /// The configuration as a document.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }

    /// The rule by which transitions are selected.
    pub fn selection(&self) -> Selection {
        let num_steps = self.data.transitions;
        match self.data.selection {
            SelectionKind::Uniform => Selection::Uniform { num_steps },
            SelectionKind::Released => {
                Selection::Released { num_steps, num_buffers: 50, trajectories_per_buffer: 10 }
            }
        }
    }

    /// The model for data with `n_actions` actions and episodes of up to `longest` steps.
    ///
    /// # Errors
    /// When the keys describe no model.
    pub fn model_config(&self, n_actions: usize, longest: usize) -> Result<ModelConfig> {
        let order = match self.head.action_order {
            OrderKind::Atari if self.head.kind != HeadKind::Linear && n_actions != 18 => bail!(
                "head.action_order=atari orders all 18 actions, and this data has {n_actions}; \
                 use head.action_order=environment"
            ),
            OrderKind::Atari => Some(ActionOrder::atari()),
            OrderKind::Environment => None,
        };
        let config = ModelConfig {
            n_layers: self.model.n_layers,
            n_heads: self.model.n_heads,
            d_model: self.model.d_model,
            context_length: self.model.context_length,
            n_actions,
            max_timestep: longest.saturating_sub(1),
            dropout: self.model.dropout,
            conditioning: self.model.conditioning,
            attention: match self.attention.kind {
                AttentionKind::Softmax => AttentionConfig::Softmax,
                AttentionKind::Fourier => AttentionConfig::Fourier(FourierAttentionConfig {
                    power: self.attention.power,
                    r: self.attention.r,
                    initial: self.attention.initial,
                    epsilon: self.attention.epsilon,
                }),
            },
            head: match self.head.kind {
                HeadKind::Linear => HeadConfig::Linear,
                HeadKind::Fourier => HeadConfig::Fourier(FourierHeadConfig {
                    frequencies: self.head.frequencies,
                    gamma: self.head.gamma,
                    regularizer: self.head.regularizer,
                    action_order: order,
                    domain: self.head.domain,
                    initial: match self.head.initial {
                        InitialKind::Normal => {
                            InitialCoefficients::Normal { std: self.head.initial_std }
                        }
                        InitialKind::Uniform => InitialCoefficients::UniformDensity,
                    },
                }),
                HeadKind::Gmm => HeadConfig::Gmm(GmmHeadConfig {
                    components: self.head.components,
                    action_order: order,
                }),
            },
        };
        config.validate()?;
        Ok(config)
    }

    /// The head in a word: `linear`, `fourier14`, `gmm2`.
    pub fn head_name(&self) -> String {
        match self.head.kind {
            HeadKind::Linear => "linear".into(),
            HeadKind::Fourier => format!("fourier{}", self.head.frequencies),
            HeadKind::Gmm => format!("gmm{}", self.head.components),
        }
    }

    /// The attention in a word: `softmax`, `fourier4`.
    pub fn attention_name(&self) -> String {
        match self.attention.kind {
            AttentionKind::Softmax => "softmax".into(),
            AttentionKind::Fourier => format!("fourier{}", self.attention.power),
        }
    }

    /// Head and attention as a part of a run's name: `linear`, `linear-attention-fourier4`.
    pub fn model_name(&self) -> String {
        match self.attention.kind {
            AttentionKind::Softmax => self.head_name(),
            AttentionKind::Fourier => {
                format!("{}-attention-{}", self.head_name(), self.attention_name())
            }
        }
    }
}

/// What a TOML reader says, without the picture of the place.
fn one_line(error: toml::de::Error) -> anyhow::Error {
    let message = error.message().trim().replace('\n', " ");
    let message = message.replace("expected usize", "expected a whole number, 0 or more");
    anyhow::anyhow!("{}", message.replace("expected u64", "expected a whole number, 0 or more"))
}

/// The protocol of this name, for data recorded like `recording`.
///
/// # Errors
/// When there is no such protocol.
pub fn protocol(name: &str, recording: &Emulation, temperature: f32) -> Result<Protocol> {
    if !(temperature.is_finite() && temperature > 0.0) {
        bail!("temperature={temperature}: must be positive");
    }
    let preset = match name {
        "matched" => Protocol::matched(recording),
        "released" => Protocol::released(),
        other => bail!("protocol={other}: there are matched and released"),
    };
    Ok(Protocol { temperature, ..preset })
}

/// Target returns: numbers, or percentiles (`p90`) of `returns`, which are ascending.
///
/// # Errors
/// When a part is neither.
pub fn targets(text: &str, returns: &[f32]) -> Result<Vec<f32>> {
    text.split(',')
        .map(|part| {
            let part = part.trim();
            if let Some(percent) = part.strip_prefix('p') {
                let percent: f64 = percent
                    .parse()
                    .ok()
                    .filter(|p| (0.0..=100.0).contains(p))
                    .with_context(|| {
                        format!("target={part}: a percentile is written p0 to p100, such as p90")
                    })?;
                return percentile(returns, percent)
                    .context("the data holds no finished episode to take a percentile of");
            }
            let number: Option<f32> = part.parse().ok().filter(|x: &f32| x.is_finite());
            number.with_context(|| {
                format!("target={part}: expected numbers or percentiles, such as 32 or p90,p99")
            })
        })
        .collect()
}

/// The smallest of the ascending `values` that at least `percent` % of them do not exceed.
fn percentile(values: &[f32], percent: f64) -> Option<f32> {
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(words: &[&str]) -> Result<Settings> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Settings::resolve(&words, |_| Profile::Quick)
    }

    #[test]
    fn presets_resolve_and_survive_the_run_folder() {
        for profile in ["quick", "paper"] {
            let settings = resolve(&["game=seaquest", &format!("profile={profile}")]).unwrap();
            let read: Settings = toml::from_str(&settings.to_toml().unwrap()).unwrap();
            assert_eq!(read, settings);
        }
    }

    #[test]
    fn overrides_win_over_the_profile() {
        let settings = resolve(&["game=gravitar", "profile=paper", "train.batch_size=64"]).unwrap();
        assert_eq!((settings.train.batch_size, settings.train.updates), (64, 0));
    }

    #[test]
    fn every_key_has_a_reason() {
        let keys = defaults().unwrap();
        let help = keys::help(ATARI);
        assert_eq!(help.lines().count(), 2 * keys.len());
        let mut lines = help.lines();
        while let (Some(key), Some(reason)) = (lines.next(), lines.next()) {
            assert!(reason.trim().ends_with('.'), "{key}: {reason}");
        }
    }

    #[test]
    fn every_head_can_be_asked_for() {
        let head = |words: &[&str]| {
            let words: Vec<&str> = [&["game=seaquest"], words].concat();
            let settings = resolve(&words).unwrap();
            (settings.head_name(), settings.model_config(18, 100).unwrap().head)
        };
        assert_eq!(head(&[]), ("linear".into(), HeadConfig::Linear));
        let order = Some(ActionOrder::atari());
        let fourier = FourierHeadConfig {
            gamma: 1e-6,
            action_order: order.clone(),
            ..FourierHeadConfig::new(14)
        };
        assert_eq!(head(&["head=fourier"]), ("fourier14".into(), HeadConfig::Fourier(fourier)));
        let fourier = FourierHeadConfig {
            gamma: 0.5,
            regularizer: Regularizer::Paper,
            domain: Domain::HalfRange,
            initial: InitialCoefficients::UniformDensity,
            ..FourierHeadConfig::new(8)
        };
        let words = [
            "head=fourier",
            "head.frequencies=8",
            "head.gamma=0.5",
            "head.regularizer=paper",
            "head.domain=half_range",
            "head.initial=uniform",
            "head.action_order=environment",
        ];
        assert_eq!(head(&words), ("fourier8".into(), HeadConfig::Fourier(fourier)));
        let gmm = GmmHeadConfig { components: 3, action_order: order };
        let words = ["head=gmm", "head.components=3"];
        assert_eq!(head(&words), ("gmm3".into(), HeadConfig::Gmm(gmm)));
    }

    #[test]
    fn heads_without_sense_are_refused() {
        let refused = |word: &str, n_actions| {
            let settings = resolve(&["game=seaquest", "head=gmm", word]).unwrap();
            settings.model_config(n_actions, 100).unwrap_err().to_string()
        };
        assert!(refused("head.components=0", 18).contains("head.components = 0"));
        assert!(refused("head.components=2", 6).contains("head.action_order=environment"));
        assert!(refused("head=fourier", 6).contains("head.action_order=environment"));
        let settings = resolve(&["game=seaquest", "head=fourier", "head.initial_std=0"]).unwrap();
        let error = settings.model_config(18, 100).unwrap_err().to_string();
        assert!(error.contains("head.initial"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |words: &[&str]| resolve(words).unwrap_err().to_string();
        assert!(refused(&[]).contains("which game"));
        assert!(refused(&["game=seaquest", "head=cubic"]).contains("head=cubic"));
        assert!(refused(&["game=seaquest", "train.batch_size=0"]).contains("train.batch_size"));
        assert!(refused(&["game=seaquest", "seed=-1"]).contains("seed=-1"));
    }

    #[test]
    fn attention_is_chosen_by_its_keys() {
        let model = |words: &[&str]| {
            let words = [&["game=seaquest"], words].concat();
            resolve(&words).unwrap().model_config(18, 100).map(|config| config.attention)
        };
        assert_eq!(model(&[]).unwrap(), AttentionConfig::Softmax);
        let fourier = ["attention=fourier", "attention.power=6", "attention.r=per_dimension"];
        let expected = FourierAttentionConfig {
            power: 6,
            r: RShape::PerDimension,
            initial: 1.0,
            epsilon: 0.0,
        };
        assert_eq!(model(&fourier).unwrap(), AttentionConfig::Fourier(expected));
        let error = model(&["attention=fourier", "attention.power=3"]).unwrap_err().to_string();
        assert!(error.contains("attention.power"), "{error}");
        let error = resolve(&["game=seaquest", "attention.r=vector"]).unwrap_err().to_string();
        assert!(error.contains("attention.r=vector"), "{error}");
    }

    #[test]
    fn targets_are_numbers_or_percentiles() {
        let returns = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        assert_eq!(
            targets("p90, 32,p0,p100,-1.5", &returns).unwrap(),
            [9.0, 32.0, 1.0, 10.0, -1.5]
        );
        assert!(targets("p101", &returns).is_err());
        assert!(targets("high", &returns).is_err());
        assert!(targets("p50", &[]).is_err());
    }
}
