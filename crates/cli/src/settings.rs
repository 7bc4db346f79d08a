//! The configuration of a run: one typed tree, [`RunConfig`]. [`defaults()`] gives the values of a
//! task, an algorithm and a profile; words `key=value` are set on it, one by one.

mod agent;
mod chosen;
mod defaults;
mod error;
mod every;
mod head;
mod help;
mod model;
mod percents;
mod recording;
mod resolve;
mod source;
mod targets;
#[cfg(test)]
mod tests;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use documented::DocumentedFields;
use overtone_agents::{
    AlgorithmConfig, BehaviorCloningConfig, DecisionTransformerOptions, RvsConfig,
};
use overtone_core::{Task, protocol::ActionChoice};
use overtone_data::{DatasetOptions, Fragment, Origin, Selection};
use overtone_model::ModelConfig;
use overtone_train::TrainConfig;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use self::agent::{
    AgentConfig, ClonedModel, DecisionTransformerModel, PerceptronModel, ReturnHead, ReturnUnit,
    RvsModel, Time, TransformerModel,
};
pub use self::chosen::Choosable;
pub use self::defaults::{Choices, defaults};
pub use self::error::ConfigError;
pub use self::every::Every;
pub use self::head::HeadKeys;
pub use self::help::help;
pub use self::percents::Percents;
pub use self::recording::is_path;
pub use self::resolve::{chosen_of, device_of, named_tasks};
pub use self::targets::targets;
use crate::{
    keys::{Keys, one_line},
    suites,
};

/// The format of a run's `config.toml`: another number where a key of it changes.
pub const FORMAT: i64 = 1;

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
pub struct RunConfig {
    /// The task to learn and play: ale/seaquest, mujoco/hopper, …; game=seaquest and env=hopper are
    /// short forms. Must be given.
    pub task: String,
    /// Which dataset of the task. MuJoCo: switching, a starter set in which policies of several
    /// levels take turns; or one of D4RL's names: medium (a starter set has it too),
    /// medium-replay, medium-expert, full-replay, expert, random; or a file:
    /// /path/to/walker2d_medium-v2.hdf5; or a dataset of Minari's hub that was downloaded:
    /// minari:mujoco/hopper/medium-v0. Empty, for games: the published data in datasets/published,
    /// else the starter set.
    pub dataset: String,
    /// How to learn, with its own keys.
    #[serde(flatten)]
    pub agent: AgentConfig,
    /// quick: minutes on 2 cores. paper: the reference's length, data and model. auto: paper where a
    /// GPU and the published data are, else quick.
    pub profile: Profile,
    /// Seed of everything random; the reference used 123, 231, 312 and 42 on Atari.
    pub seed: u64,
    /// Where to compute: auto (a GPU if one is there), cpu, cuda or cuda:N.
    pub device: String,
    /// Directory in which each run gets its own directory.
    pub runs: PathBuf,
    /// Start from the weights of another run: RUN, its last checkpoint, or RUN:best, RUN:1000;
    /// optimizer and schedule start anew. Keys that you do not set are as in RUN: task, data,
    /// algorithm and model; not train.* and evaluation.*.
    pub init: String,
    /// auto: continue an unfinished run of exactly these settings, if there is one. never: always
    /// start a new run.
    pub resume: Resume,
    /// The dataset.
    pub data: DataConfig,
    /// How long and how to train.
    pub train: TrainConfig,
    /// How the agent is evaluated.
    pub evaluation: EvaluationConfig,
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
    /// Resumes it.
    Auto,
    /// Starts a new one.
    Never,
}

/// The dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// A directory with data of this task: a DQN-replay log (of a game, or of one run), or files
    /// like hopper_medium.hdf5; empty: where dataset is found.
    pub path: PathBuf,
    /// Logs of frames: which of the published runs of a game, 1 to 5.
    pub run: String,
    /// Logs of frames: which transitions. uniform: whole episodes from all of the log. released: the
    /// reference's random visits to the first 100,000 slots of each file.
    pub selection: SelectionKind,
    /// Logs of frames: transitions to select; a smaller log is used whole. The reference's number.
    pub transitions: usize,
    /// Logs of frames: directory of converted data; empty: datasets/cache, or outside of the project
    /// overtone in the user's directory of caches (XDG_CACHE_HOME, ~/.cache).
    pub cache: PathBuf,
    /// The format of the data, where its files do not say it: ogbench, for an .npz file of OGBench,
    /// in which the last row of a trajectory has no action; numbers, for observations that are
    /// codes or counts in bytes with rows and columns, which are pictures otherwise.
    pub layout: String,
    /// Array datasets: an episode that the end of the file cuts. drop: leave it out, as the
    /// reference does, because its return is not known. keep: train on it as if it ended there.
    pub fragment: Fragment,
    /// Array datasets: train on this percentage of the timesteps, from the episodes of highest
    /// return: 10 with algorithm=behavior_cloning is 10 %BC.
    pub top_percent: f64,
    /// Array datasets: all reward comes with an episode's last step, the reference's delayed mode.
    pub delayed_reward: bool,
    /// Returns and rewards are divided by this. The reference's 1 on Atari, 1000 on MuJoCo;
    /// elsewhere 0: the data's own, which 95 % of its returns do not exceed in size.
    pub return_scale: f32,
}

/// Which transitions of a log a run trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionKind {
    /// Whole episodes from all of the log.
    Uniform,
    /// As the reference selects them.
    Released,
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

/// How an agent is evaluated after training, or by `evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Episodes played after training, for each target; 0: none.
    pub episodes: usize,
    /// Target returns, in the protocol's units, as numbers or percentiles of the data's returns, by
    /// actions: 32 or p90,p99; empty: p95, or with model.top_percents what is chosen after
    /// training. reference: the reference's for the task (hopper 3600,1800; halfcheetah 12000,6000;
    /// walker2d 5000,2500), else p95. Of several, the first is the target where an acting mode is
    /// chosen.
    pub target: String,
    /// What `released` asks for instead of `target`; a key of `evaluate` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_target: Option<String>,
    /// How to play. matched: as the data was recorded. released (games): the reference's evaluation,
    /// its accidents included. v4, v5 (robots): that revision of the environment.
    pub protocol: String,
    /// Discrete actions: softmax temperature of the actions that are drawn. chosen: after training,
    /// the agent plays a few episodes of another seed at 1, 0.5 and 0.25, and is played at the best
    /// one. The reference's is 1, which suits few agents that train for minutes.
    pub temperature: Choosable,
    /// Continuous actions, of a head with a density: mode, its most probable action, or sample, a
    /// draw.
    pub actions: ActionChoice,
    /// Agents with model.return_head: whatever the target is, the agent is conditioned on no more
    /// than this quantile of the returns from states like its own, above 0. Low: what is typical
    /// there; high: what is good there; 1: what is left of the target. chosen: after training, the
    /// agent plays a few episodes of another seed at 0.9, 0.75, 0.5 and 1, and is played at the best
    /// one.
    pub return_quantile: Choosable,
    /// Agents with model.top_percents, without a target: the agent imitates the best 10 % of the
    /// recording, say, instead of a target return; 0: it has a target return. chosen: after
    /// training, each percentage is tried next to the return quantiles, and the agent is played at
    /// the best one.
    pub top_percent: Choosable,
    /// Seed of the episodes; the same for every run, so that agents meet the same episodes.
    pub seed: u64,
    /// Episodes played at once; 0: all of them, but no more than 100 games or 200 robots.
    pub parallel: usize,
    /// Curves of returns in TensorBoard, checkpoints.csv and the report: the agent plays while
    /// training waits. auto: up to seven times, evenly spaced, as far as a tenth of the run's time
    /// pays for that; a run of less than 5 s or 100 updates is played after training alone. A
    /// number: every so many checkpoints, and the last, whatever that costs. 0: after training
    /// alone.
    pub every: Every,
    /// Episodes of each evaluation during training, for each target.
    pub every_episodes: usize,
}

impl EvaluationConfig {
    /// Whether a run that is trained by these is played, after its training or meanwhile.
    pub fn plays(&self) -> bool {
        self.episodes > 0 || matches!(self.every, Every::Checkpoints(1..))
    }

    /// The percentage of the best episodes that the agent imitates.
    pub fn top_percent(&self) -> Choosable {
        self.top_percent.beside(&self.target, self.return_quantile)
    }
}

impl RunConfig {
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

    /// The configuration as a document, as a run's directory has it.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_toml(&self) -> Result<String> {
        let mut table = self.to_table()?;
        table.insert("format".into(), FORMAT.into());
        Ok(toml::to_string(&table)?)
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
            top_percent: self.data.top_percent,
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
        let scaled = |model: ModelConfig| match &like {
            Some(like) => model.scaled_as(like),
            None => model,
        };
        let config = match &self.agent {
            AgentConfig::DecisionTransformer { model, attention, head } => {
                let model = model.config(task, recorded, *attention, head.0.clone());
                match scaled(ModelConfig::Transformer(model)) {
                    ModelConfig::Transformer(model) => {
                        AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model))
                    }
                    ModelConfig::Perceptron(_) => unreachable!("scaling keeps the kind"),
                }
            }
            AgentConfig::BehaviorCloning { model, attention, head } => {
                let model = model.config(task, recorded, *attention, head.0.clone());
                AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(scaled(model)))
            }
            AgentConfig::Rvs { model, head } => {
                let model = model.config(recorded, head.0.clone());
                match scaled(ModelConfig::Perceptron(model)) {
                    ModelConfig::Perceptron(model) => AlgorithmConfig::Rvs(RvsConfig(model)),
                    ModelConfig::Transformer(_) => unreachable!("scaling keeps the kind"),
                }
            }
            AgentConfig::DiscreteCql { discrete_cql } => {
                AlgorithmConfig::DiscreteCql(discrete_cql.clone())
            }
            AgentConfig::Td3Bc { td3_bc } => AlgorithmConfig::Td3Bc(td3_bc.clone()),
            AgentConfig::Iql { iql } => AlgorithmConfig::Iql(iql.clone()),
            AgentConfig::Rebrac { rebrac } => AlgorithmConfig::Rebrac(rebrac.clone()),
        };
        config.validate(&task.observations, &task.actions)?;
        Ok(config)
    }

    /// The configuration as a tree of values.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_table(&self) -> Result<Table> {
        Ok(Table::try_from(self)?)
    }

    /// The same by flat key; values of several parts are one value.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn keys(&self) -> Result<Keys> {
        let mut keys = Keys::new();
        let mut sections = vec![(String::new(), self.to_table()?)];
        while let Some((prefix, section)) = sections.pop() {
            for (name, value) in section {
                let key = format!("{prefix}{name}");
                match value {
                    Value::Table(inner) if prefix.is_empty() || key == "train.optimizer" => {
                        sections.push((format!("{key}."), inner));
                    }
                    value => drop(keys.insert(key, value)),
                }
            }
        }
        Ok(keys)
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
fn read(path: &Path) -> Result<Table> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(one_line).with_context(|| format!("{} is damaged", path.display()))
}
