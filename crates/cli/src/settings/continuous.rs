//! Settings of a run on a robot; `presets/gym.toml` says what each key is.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::{
    DatasetOptions, Fragment, Origin,
    locate_columns::{known_dataset, known_environment},
};
use overtone_model::{
    Conditioning, DecisionTransformerConfig, HeadConfig, ModelConfig, PerceptronConfig,
    PositionsConfig,
    head::{
        BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, FourierLikelihoodConfig,
        GaussianConfig, GmmHeadConfig, GmmLikelihoodConfig, LinearConfig, Regularizer, TanhConfig,
    },
};
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize};

use super::{
    AtariSettings, AttentionSettings, Common, EvaluationSettings, InitialKind, Profile, Resume,
    Settings,
};

/// A resolved configuration; the fields are the keys of `presets/gym.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/gym.toml, which --help prints")]
pub struct ContinuousSettings {
    pub env: String,
    pub dataset: String,
    pub preset: Preset,
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

/// Whose sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The Decision Transformer's on Gym.
    Gym,
    /// FourierFormer's.
    Fourierformer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/gym.toml, which --help prints")]
pub struct DataSettings {
    pub path: PathBuf,
    pub fragment: Fragment,
    pub best_percent: f64,
    pub delayed_reward: bool,
    pub return_scale: f32,
}

/// Which kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// A Decision Transformer.
    Transformer,
    /// A perceptron.
    Mlp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/gym.toml, which --help prints")]
pub struct ModelSettings {
    pub kind: ModelKind,
    pub conditioning: Conditioning,
    pub context_length: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub d_model: usize,
    pub timestep_std: f64,
    pub dropout: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/gym.toml, which --help prints")]
pub struct HeadSettings {
    pub kind: HeadKind,
    pub bins: usize,
    pub frequencies: usize,
    pub gamma: f64,
    pub domain: Domain,
    pub initial: InitialKind,
    pub initial_std: f64,
    pub components: usize,
}

/// Which action head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadKind {
    /// One action, squared error.
    Tanh,
    /// A diagonal Gaussian.
    Gaussian,
    /// Fourier series.
    Fourier,
    /// Mixtures of Gaussians.
    Gmm,
    /// Bins without a form.
    Linear,
}

impl Settings for ContinuousSettings {
    const KEYS: &'static str = include_str!("../../presets/gym.toml");
    const FAMILY: &'static str = "robots (env=…)";
    type Other = AtariSettings;

    fn overlays(&self) -> Vec<(&'static str, &'static str)> {
        let mut overlays = Vec::new();
        if self.profile == Profile::Paper {
            overlays.push((include_str!("../../presets/gym-paper.toml"), "presets/gym-paper.toml"));
        }
        if self.preset == Preset::Fourierformer {
            let document = include_str!("../../presets/fourierformer.toml");
            overlays.push((document, "presets/fourierformer.toml"));
        }
        overlays
    }

    fn check(&self) -> Result<()> {
        if self.env.is_empty() {
            bail!("which robot? Say env=hopper, halfcheetah or walker2d");
        }
        let scale = self.data.return_scale;
        if !(scale.is_finite() && scale > 0.0) {
            bail!("data.return_scale={scale}: must be positive");
        }
        Ok(())
    }

    fn canonical(mut self) -> Self {
        if let Ok(env) = known_environment(&self.env) {
            self.env = env.name.to_lowercase();
        }
        if let Ok(dataset) = known_dataset(&self.dataset) {
            self.dataset = dataset.replace('_', "-");
        }
        self
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }

    fn with(self, resume: Resume) -> Self {
        Self { resume, ..self }
    }

    fn common(&self) -> Common<'_> {
        Common {
            seed: self.seed,
            device: &self.device,
            runs: Path::new(&self.runs),
            resume: self.resume,
            train: &self.train,
            evaluation: &self.evaluation,
        }
    }
}

impl ContinuousSettings {
    /// How data of this origin is prepared.
    pub fn options(&self, origin: Origin) -> DatasetOptions {
        DatasetOptions {
            fragment: self.data.fragment,
            best_percent: self.data.best_percent,
            delayed_reward: self.data.delayed_reward,
            held_out: self.train.held_out,
            seed: self.seed,
            origin,
        }
    }

    /// The model for observations and actions of these widths, in episodes of up to `horizon`
    /// steps.
    ///
    /// # Errors
    /// When the keys describe no model.
    pub fn model_config(
        &self,
        observation_width: usize,
        action_width: usize,
        horizon: usize,
    ) -> Result<ModelConfig> {
        let ModelSettings { context_length, n_layers, d_model, dropout, .. } = self.model;
        let head = self.head_config()?;
        let config = match self.model.kind {
            ModelKind::Mlp => ModelConfig::Perceptron(PerceptronConfig {
                context_length,
                n_layers,
                width: d_model,
                dropout,
                head,
            }),
            ModelKind::Transformer => ModelConfig::Transformer(DecisionTransformerConfig {
                n_layers,
                n_heads: self.model.n_heads,
                d_model,
                context_length,
                positions: PositionsConfig::Timestep { horizon, std: self.model.timestep_std },
                dropout,
                conditioning: self.model.conditioning,
                attention: self.attention.config(),
                head,
                ..DecisionTransformerConfig::gym(horizon)
            }),
        };
        let observations = ObservationSpace::Vectors { width: observation_width };
        config.validate(&observations, &ActionSpace::unit(action_width))?;
        Ok(config)
    }

    fn head_config(&self) -> Result<HeadConfig> {
        let HeadSettings { kind, bins, frequencies, gamma, domain, components, .. } = self.head;
        let initial = self.head.initial.coefficients(self.head.initial_std);
        let binned = |head| HeadConfig::Binned(BinnedConfig { bins, head });
        Ok(match (kind, bins) {
            (HeadKind::Tanh, 0) => HeadConfig::Tanh(TanhConfig {}),
            (HeadKind::Gaussian, 0) => HeadConfig::Gaussian(GaussianConfig {}),
            (HeadKind::Fourier, 0) => HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
                frequencies,
                gamma,
                domain,
                initial,
            }),
            (HeadKind::Gmm, 0) => HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components }),
            (HeadKind::Linear, 0) => {
                bail!("head=linear needs bins: say how many, such as head.bins=50")
            }
            (HeadKind::Tanh | HeadKind::Gaussian, _) => bail!(
                "head.bins={bins}: bins are for head=linear, fourier and gmm; the others take \
                 head.bins=0"
            ),
            (HeadKind::Linear, _) => binned(BinsHeadConfig::Linear(LinearConfig {})),
            (HeadKind::Fourier, _) => binned(BinsHeadConfig::Fourier(FourierHeadConfig {
                frequencies,
                gamma,
                regularizer: Regularizer::default(),
                action_order: None,
                domain,
                initial,
            })),
            (HeadKind::Gmm, _) => {
                binned(BinsHeadConfig::Gmm(GmmHeadConfig { components, action_order: None }))
            }
        })
    }

    /// The head in a word: `tanh`, `fourier14`, `linear-bins50`.
    pub fn head_name(&self) -> String {
        let name = match self.head.kind {
            HeadKind::Tanh => "tanh".into(),
            HeadKind::Gaussian => "gaussian".into(),
            HeadKind::Fourier => format!("fourier{}", self.head.frequencies),
            HeadKind::Gmm => format!("gmm{}", self.head.components),
            HeadKind::Linear => "linear".into(),
        };
        match self.head.bins {
            0 => name,
            bins => format!("{name}-bins{bins}"),
        }
    }

    /// Kind, head and attention as a part of a run's name: `tanh`, `bc-tanh`,
    /// `mlp-fourier14`, `tanh-attention-fourier4`.
    pub fn model_name(&self) -> String {
        let kind = match (self.model.kind, self.model.conditioning) {
            (ModelKind::Mlp, _) => "mlp-",
            (ModelKind::Transformer, Conditioning::None) => "bc-",
            (ModelKind::Transformer, Conditioning::Return) => "",
        };
        let best = match self.data.best_percent {
            100.0 => String::new(),
            percent => format!("best{percent}-"),
        };
        let attention = match self.model.kind {
            ModelKind::Mlp => String::new(),
            ModelKind::Transformer => self.attention.suffix(),
        };
        format!("{best}{kind}{}{attention}", self.head_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    fn resolve(words: &[&str]) -> Result<ContinuousSettings> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        ContinuousSettings::resolve(&words, |_| Profile::Quick)
    }

    #[test]
    fn presets_resolve_and_survive_the_run_folder() {
        for words in [
            &["env=hopper"][..],
            &["env=walker2d", "profile=paper"],
            &["env=halfcheetah", "preset=fourierformer", "profile=paper"],
        ] {
            let settings = resolve(words).unwrap();
            let read: ContinuousSettings = toml::from_str(&settings.to_toml().unwrap()).unwrap();
            assert_eq!(read, settings);
        }
    }

    #[test]
    fn a_recording_has_one_name_however_it_is_written() {
        for words in [
            ["env=HalfCheetah", "dataset=medium_replay"],
            ["env=halfcheetah", "dataset=Medium-Replay"],
        ] {
            let settings = resolve(&words).unwrap();
            assert_eq!((&*settings.env, &*settings.dataset), ("halfcheetah", "medium-replay"));
        }
        let file = resolve(&["env=hopper", "dataset=/A/hopper_medium.hdf5"]).unwrap();
        assert_eq!(file.dataset, "/A/hopper_medium.hdf5");
    }

    #[test]
    fn the_fourierformer_preset_is_the_paper_s() {
        let settings = resolve(&["env=hopper", "preset=fourierformer", "profile=paper"]).unwrap();
        let expected = DecisionTransformerConfig::fourierformer(1000);
        let got = settings.model_config(11, 3, 1000).unwrap();
        assert_eq!(got, ModelConfig::Transformer(expected));
        assert_eq!(settings.train.learning_rate, 1e-3);
        let softmax = ["env=hopper", "preset=fourierformer", "attention=softmax"];
        assert_eq!(resolve(&softmax).unwrap().attention.name(), "softmax");
    }

    #[test]
    fn the_paper_profile_is_the_reference_s() {
        let settings = resolve(&["env=hopper", "profile=paper"]).unwrap();
        let expected = DecisionTransformerConfig::gym(1000);
        let got = settings.model_config(11, 3, 1000).unwrap();
        assert_eq!(got, ModelConfig::Transformer(expected));
        let train = &settings.train;
        assert_eq!((train.updates, train.warmup_updates, train.batch_size), (100_000, 10_000, 64));
        assert_eq!((train.learning_rate, train.optimizer.clip_norm), (1e-4, 0.25));
    }

    #[test]
    fn every_key_has_a_reason() {
        let keys = keys::flatten(&ContinuousSettings::KEYS.parse().unwrap());
        let help = keys::help(ContinuousSettings::KEYS);
        assert_eq!(help.lines().count(), 2 * keys.len());
        let mut lines = help.lines();
        while let (Some(key), Some(reason)) = (lines.next(), lines.next()) {
            assert!(reason.trim().ends_with('.'), "{key}: {reason}");
        }
    }

    #[test]
    fn every_head_can_be_asked_for() {
        let name = |words: &[&str]| {
            let settings = resolve(&[&["env=hopper"], words].concat()).unwrap();
            settings.model_config(11, 3, 1000).unwrap();
            settings.model_name()
        };
        assert_eq!(name(&[]), "tanh");
        assert_eq!(name(&["head=gaussian", "attention=fourier"]), "gaussian-attention-fourier4");
        assert_eq!(name(&["head=fourier", "model.conditioning=none"]), "bc-fourier14");
        assert_eq!(name(&["head=gmm", "data.best_percent=10"]), "best10-gmm2");
        assert_eq!(name(&["head=linear", "head.bins=20", "model.kind=mlp"]), "mlp-linear-bins20");
        assert_eq!(name(&["head=fourier", "head.bins=50"]), "fourier14-bins50");
        assert_eq!(name(&["head=gmm", "head.bins=50"]), "gmm2-bins50");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |words: &[&str]| {
            let settings = resolve(words).map(|settings| settings.model_config(11, 3, 1000));
            settings.and_then(|model| model).unwrap_err().to_string()
        };
        assert!(refused(&[]).contains("which robot"));
        assert!(refused(&["env=hopper", "head=linear"]).contains("head.bins=50"));
        assert!(refused(&["env=hopper", "head.bins=9"]).contains("head=linear, fourier and gmm"));
        assert!(refused(&["env=hopper", "data.return_scale=0"]).contains("return_scale=0"));
        assert!(refused(&["env=hopper", "model.n_heads=3"]).contains("n_heads"));
        assert!(refused(&["env=hopper", "game=seaquest"]).contains("no option `game`"));
    }
}
