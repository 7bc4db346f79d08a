//! Settings of a run on a game; `presets/atari.toml` says what each key is.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::{Selection, known_game, snake_case};
use overtone_model::{
    Conditioning, DecisionTransformerConfig, HeadConfig, ModelConfig, PositionsConfig,
    head::{ActionOrder, Domain, FourierHeadConfig, GmmHeadConfig, LinearConfig, Regularizer},
};
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize};

use super::{
    AttentionSettings, Common, ContinuousSettings, EvaluationSettings, InitialKind, Profile,
    Resume, Settings,
};

/// A resolved configuration; the fields are the keys of `presets/atari.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/atari.toml, which --help prints")]
pub struct AtariSettings {
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

/// How a head that is a density orders actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Around the compass.
    Atari,
    /// As the environment numbers them.
    Environment,
}

impl Settings for AtariSettings {
    const KEYS: &'static str = include_str!("../../presets/atari.toml");
    const FAMILY: &'static str = "games (game=…)";
    type Other = ContinuousSettings;

    fn overlays(&self) -> Vec<(&'static str, &'static str)> {
        match self.profile {
            Profile::Paper => {
                vec![(include_str!("../../presets/atari-paper.toml"), "presets/atari-paper.toml")]
            }
            Profile::Auto | Profile::Quick => Vec::new(),
        }
    }

    fn check(&self) -> Result<()> {
        if self.game.is_empty() {
            bail!(
                "which game, or which robot? Say game=seaquest, gravitar, bank_heist or \
                 double_dunk; or env=hopper, halfcheetah or walker2d"
            );
        }
        Ok(())
    }

    fn canonical(mut self) -> Self {
        if let Ok(game) = known_game(&self.game) {
            self.game = snake_case(game);
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

impl AtariSettings {
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
        let config = DecisionTransformerConfig {
            n_layers: self.model.n_layers,
            n_heads: self.model.n_heads,
            d_model: self.model.d_model,
            context_length: self.model.context_length,
            positions: PositionsConfig::LocalAndGlobal { max_timestep: longest.saturating_sub(1) },
            dropout: self.model.dropout,
            conditioning: self.model.conditioning,
            attention: self.attention.config(),
            head: match self.head.kind {
                HeadKind::Linear => HeadConfig::Linear(LinearConfig {}),
                HeadKind::Fourier => HeadConfig::Fourier(FourierHeadConfig {
                    frequencies: self.head.frequencies,
                    gamma: self.head.gamma,
                    regularizer: self.head.regularizer,
                    action_order: order,
                    domain: self.head.domain,
                    initial: self.head.initial.coefficients(self.head.initial_std),
                }),
                HeadKind::Gmm => HeadConfig::Gmm(GmmHeadConfig {
                    components: self.head.components,
                    action_order: order,
                }),
            },
            ..DecisionTransformerConfig::atari(0)
        };
        let config = ModelConfig::Transformer(config);
        let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
        config.validate(&observations, &ActionSpace::numbered(n_actions))?;
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

    /// Head and attention as a part of a run's name: `linear`, `linear-attention-fourier4`.
    pub fn model_name(&self) -> String {
        self.head_name() + &self.attention.suffix()
    }
}

#[cfg(test)]
mod tests {
    use overtone_model::{
        AttentionConfig, FourierAttentionConfig, RShape, head::InitialCoefficients,
    };

    use super::*;
    use crate::keys;

    fn resolve(words: &[&str]) -> Result<AtariSettings> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        AtariSettings::resolve(&words, |_| Profile::Quick)
    }

    #[test]
    fn presets_resolve_and_survive_the_run_folder() {
        for profile in ["quick", "paper"] {
            let settings = resolve(&["game=seaquest", &format!("profile={profile}")]).unwrap();
            let read: AtariSettings = toml::from_str(&settings.to_toml().unwrap()).unwrap();
            assert_eq!(read, settings);
        }
    }

    #[test]
    fn a_game_has_one_name_however_it_is_written() {
        for name in ["bank_heist", "BankHeist", "bankheist", "Bank-Heist"] {
            assert_eq!(resolve(&[&format!("game={name}")]).unwrap().game, "bank_heist");
        }
        assert_eq!(resolve(&["game=Seaquest"]).unwrap().game, "seaquest");
        // A name that is not known is told as it was given.
        assert_eq!(resolve(&["game=Pong"]).unwrap().game, "Pong");
    }

    #[test]
    fn overrides_win_over_the_profile() {
        let settings = resolve(&["game=gravitar", "profile=paper", "train.batch_size=64"]).unwrap();
        assert_eq!((settings.train.batch_size, settings.train.updates), (64, 0));
    }

    #[test]
    fn every_key_has_a_reason() {
        let keys = keys::flatten(&AtariSettings::KEYS.parse().unwrap());
        let help = keys::help(AtariSettings::KEYS);
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
            (settings.head_name(), settings.model_config(18, 100).unwrap().head().clone())
        };
        assert_eq!(head(&[]), ("linear".into(), HeadConfig::Linear(LinearConfig {})));
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
            resolve(&words).unwrap().model_config(18, 100).map(|config| match config {
                ModelConfig::Transformer(config) => config.attention,
                ModelConfig::Perceptron(_) => unreachable!("no perceptron sees frames"),
            })
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
}
