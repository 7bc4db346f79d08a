//! The configuration of a run: defaults, presets by what a task shows and takes, `key=value` on
//! top, checked.

mod chosen;
mod every;
mod given;
mod layers;
mod model;
mod percents;
mod recording;
mod resolve;
mod source;
mod targets;
#[cfg(test)]
mod tests;
mod variants;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use overtone_agents::{
    AlgorithmConfig, BehaviorCloningConfig, DecisionTransformerOptions, RvsConfig,
};
use overtone_core::{Task, protocol::ActionChoice};
use overtone_data::{DatasetOptions, Fragment, Origin, Selection};
use overtone_model::{AttentionConfig, HeadConfig, ModelConfig};
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize};

pub use self::chosen::Choosable;
pub use self::every::Every;
#[cfg(test)]
use self::layers::DEFAULTS;
pub use self::layers::help;
pub use self::percents::Percents;
pub use self::recording::is_path;
pub use self::resolve::{chosen_of, device_of, named_tasks};
pub use self::targets::targets;
use crate::{keys::one_line, suites};

/// The algorithms that learn a model of logged actions, which `[model]` describes.
const DECISION_TRANSFORMER: &str = "decision_transformer";
const BEHAVIOR_CLONING: &str = "behavior_cloning";
const RVS: &str = "rvs";

/// A resolved configuration; the fields are the keys of `presets/defaults.toml`, which says what
/// each is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct Settings {
    pub task: String,
    pub dataset: String,
    pub algorithm: String,
    pub profile: Profile,
    pub seed: u64,
    pub device: String,
    pub runs: PathBuf,
    pub init: String,
    pub resume: Resume,
    pub data: DataSettings,
    pub model: ModelSettings,
    pub attention: AttentionConfig,
    pub head: HeadConfig,
    /// The options of the algorithm, where it has some of its own, by its name. In a document they
    /// are a section beside the others.
    #[serde(default)]
    pub algorithms: BTreeMap<String, toml::Table>,
    pub train: TrainConfig,
    pub evaluation: EvaluationSettings,
}

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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct DataSettings {
    pub path: PathBuf,
    pub run: String,
    pub selection: SelectionKind,
    pub transitions: usize,
    pub cache: PathBuf,
    pub layout: String,
    pub fragment: Fragment,
    pub best_percent: f64,
    pub delayed_reward: bool,
    pub return_scale: f32,
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

/// Which kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// A Decision Transformer.
    Transformer,
    /// A perceptron.
    Perceptron,
}

/// What a token knows of when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// Its timestep in the episode; on frames its context's.
    Episode,
    /// What came before it in its context.
    Context,
}

/// In which units a Decision Transformer is told returns-to-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnUnit {
    /// Divided by the data's return scale.
    Scale,
    /// By their place among the recorded ones.
    Range,
    /// What each step still to come must earn, by its place among the recorded ones.
    Rate,
}

/// How a Decision Transformer learns what may be earned from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnHead {
    /// Not at all.
    None,
    /// As a softmax over bins, of Gaussians around what was earned.
    HlGauss,
    /// As a density by a Fourier series.
    Fourier,
    /// As a mixture of Gaussians.
    Gmm,
    /// As a Gaussian.
    Gaussian,
}

/// What a model has to know of its recording.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Steps of its longest episode; of vectors the most that an episode may have, as it was
    /// recorded, where that is known.
    pub longest: usize,
    /// Returns-to-go that 5 % and 95 % of its steps do not exceed, divided by the return scale.
    pub returns: [f32; 2],
    /// The same of [averages](overtone_model::AverageReturn) over an episode as long as a model knows them.
    pub rates: [f32; 2],
}

impl Recorded {
    /// Where only is asked whether there is such an agent, and not its size.
    pub const ANY: Self = Self { longest: 1000, returns: [-1.0, 1.0], rates: [-1.0, 1.0] };
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct ModelSettings {
    pub kind: ModelKind,
    pub context_length: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub d_model: usize,
    pub time: Time,
    pub timestep_std: f64,
    pub dropout: f64,
    pub return_unit: ReturnUnit,
    pub return_head: ReturnHead,
    #[serde(default)]
    pub best_percents: Percents,
}

/// What is played after training, or by `evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented in presets/, which --help prints")]
pub struct EvaluationSettings {
    pub episodes: usize,
    pub target: String,
    /// What `released` asks for instead of `target`; a key of `evaluate` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released_target: Option<String>,
    pub protocol: String,
    pub temperature: Choosable,
    pub actions: ActionChoice,
    #[serde(default)]
    pub return_quantile: Choosable,
    #[serde(default)]
    pub best_percent: Choosable,
    pub seed: u64,
    pub parallel: usize,
    #[serde(default)]
    pub every: Every,
    #[serde(default)]
    pub every_episodes: usize,
}

impl EvaluationSettings {
    /// Whether a run that is trained by these is played, after its training or meanwhile.
    pub fn plays(&self) -> bool {
        self.episodes > 0 || matches!(self.every, Every::Checkpoints(1..))
    }

    /// What they say of the share of the best episodes that an agent is told.
    pub fn best_percent(&self) -> Choosable {
        self.best_percent.beside(&self.target, self.return_quantile)
    }
}

impl Settings {
    /// The task.
    ///
    /// # Errors
    /// When no suite has it, and the recording does not show it either.
    pub fn task(&self) -> Result<&'static Task> {
        suites::with_data(&self.task, self.recording().as_ref())
    }

    /// The same settings, saying this about unfinished runs.
    pub fn with(self, resume: Resume) -> Self {
        Self { resume, ..self }
    }

    /// The configuration as a document.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(&self.to_table()?)?)
    }

    /// The rule by which transitions of a log are selected.
    pub fn selection(&self) -> Selection {
        let num_steps = self.data.transitions;
        match self.data.selection {
            SelectionKind::Uniform => Selection::Uniform { num_steps },
            SelectionKind::Released => {
                Selection::Released { num_steps, num_buffers: 50, trajectories_per_buffer: 10 }
            }
        }
    }

    /// How a recording of this origin that is read into memory is prepared.
    pub fn dataset_options(&self, origin: Origin) -> DatasetOptions {
        DatasetOptions {
            fragment: self.data.fragment,
            best_percent: self.data.best_percent,
            delayed_reward: self.data.delayed_reward,
            held_out: self.train.held_out,
            seed: self.seed,
            origin,
        }
    }

    /// How to learn `task` from what was `recorded`; the model knows episodes as long as those that
    /// `like` knows, and their returns.
    ///
    /// # Errors
    /// When the keys describe no agent for it.
    pub fn algorithm_config(
        &self,
        task: &Task,
        recorded: Recorded,
        like: Option<&AlgorithmConfig>,
    ) -> Result<AlgorithmConfig> {
        let like = like.and_then(|like| like.model());
        let model = || -> Result<ModelConfig> {
            let model = self.model_config(task, recorded)?;
            Ok(like.iter().fold(model, ModelConfig::scaled_as))
        };
        let config = match (&*self.algorithm, self.algorithms.get(&self.algorithm)) {
            (DECISION_TRANSFORMER, _) => match model()? {
                ModelConfig::Transformer(model) => {
                    AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model))
                }
                ModelConfig::Perceptron(_) => {
                    bail!(
                        "model.kind=perceptron: a Decision Transformer is a transformer; say \
                         algorithm=behavior_cloning, or algorithm=rvs, which reads returns"
                    )
                }
            },
            (BEHAVIOR_CLONING, _) => {
                AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(model()?))
            }
            (RVS, _) => match model()? {
                ModelConfig::Perceptron(model) => AlgorithmConfig::Rvs(RvsConfig(model)),
                ModelConfig::Transformer(_) => bail!(
                    "model.kind=transformer: RvS is a perceptron; say \
                     algorithm=decision_transformer"
                ),
            },
            (name, options) => {
                let mut options = options.cloned().unwrap_or_default();
                options.insert("algorithm".into(), name.into());
                options.try_into().map_err(one_line)?
            }
        };
        config.validate(&task.observations, &task.actions)?;
        Ok(config)
    }

    /// The document of these settings: options of algorithms are sections beside the others.
    pub fn to_table(&self) -> Result<toml::Table> {
        let mut table = toml::Table::try_from(self)?;
        if let Some(toml::Value::Table(own)) = table.remove("algorithms") {
            table.extend(own);
        }
        Ok(table)
    }

    /// Task and recording as a part of a run's name: `seaquest`, `hopper-medium`,
    /// `mymodule-myenv-v0`.
    pub fn task_name(&self) -> String {
        let plain = |c: char| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '-' };
        let in_a_name = |text: &str| text.chars().map(plain).collect::<String>();
        let name = &in_a_name(self.task.rsplit('/').next().unwrap_or(&self.task));
        let dataset = Path::new(&self.dataset).file_stem().unwrap_or_default().to_string_lossy();
        let dataset = in_a_name(&dataset.to_lowercase());
        match (&*dataset, dataset.strip_prefix(&format!("{name}_"))) {
            ("", _) => name.to_owned(),
            (_, Some(rest)) => format!("{name}-{rest}"),
            (dataset, None) => format!("{name}-{dataset}"),
        }
    }
}

/// Reads a configuration's document.
fn read(path: &Path) -> Result<toml::Table> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(one_line).with_context(|| format!("{} is damaged", path.display()))
}
