//! [`RunConfig`]: the configuration of a run, one typed tree.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use documented::DocumentedFields;
use overtone_agents::AlgorithmConfig;
use overtone_console::keys::Keys;
use overtone_core::{Task, protocol::ActionChoice};
use overtone_data::{DatasetOptions, Form, Fragment, Origin, Selection, TableColumns};
use overtone_train::{Checkpoint, Initial, RunDir, TrainConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{
    agent::AgentConfig,
    auto_or::AutoOr,
    chosen::Choosable,
    positive::Shares,
    recording::{self, datasets_of},
    sequence::Recorded,
    suites,
};

/// Format number of a run's `config.toml`; incremented when a key changes.
pub const FORMAT: i64 = 1;

/// Sections in sections.
const SUBSECTIONS: [&str; 2] = ["train.optimizer", "data.columns"];

/// Longest list of datasets in a run's name.
const LONGEST_NAME: usize = 80;

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
pub struct RunConfig {
    /// The task: ale/seaquest, mujoco/hopper, …; game=seaquest and env=hopper are short forms.
    /// Required.
    pub task: String,
    /// The dataset of the task: a name, a file (/path/to/walker2d_medium-v2.hdf5), or a downloaded
    /// dataset of Minari's hub (minari:mujoco/hopper/medium-v0). MuJoCo names: switching, a starter
    /// set that mixes policies of several levels within an episode; or D4RL's medium (also a
    /// starter set), medium-replay, medium-expert, full-replay, expert, random. Empty (games only):
    /// the published data in datasets/published, else the starter set. Several names or files,
    /// separated by commas, are trained on as one dataset.
    pub dataset: String,
    /// The algorithm, with its own keys.
    #[serde(flatten)]
    pub agent: AgentConfig,
    /// Length of the run: quick (minutes on 2 cores), paper (the reference's length, data and
    /// model), or auto (paper with a GPU and the published data, else quick).
    pub profile: Profile,
    /// Random seed; the reference used 123, 231, 312 and 42 on Atari.
    pub seed: u64,
    /// Compute device: auto (a GPU if there is one), cpu, cuda or cuda:N.
    pub device: String,
    /// Directory in which each run gets its own directory.
    pub runs: PathBuf,
    /// Initial weights, from another run: RUN (its last checkpoint), RUN:best or RUN:1000.
    /// Optimizer and schedule start from scratch. Settings of task, data, algorithm and model that
    /// you do not set are RUN's. Those in train.* and evaluation.* are the defaults.
    pub init: String,
    /// auto: resume an unfinished run of exactly these settings; never: start a new run.
    pub resume: Resume,
    /// The dataset.
    pub data: DataConfig,
    /// Length and optimization of training.
    pub train: TrainConfig,
    /// How the agent is evaluated.
    pub evaluation: EvaluationConfig,
}

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// `Paper` if there is a GPU and published data, else `Quick`.
    Auto,
    /// Minutes on a CPU.
    Quick,
    /// The reference's data and length.
    Paper,
}

/// Treatment of an unfinished run of the same settings by `train`.
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
    /// Directory with data of this task: a DQN-replay log (of a game, or of one run), or files like
    /// hopper_medium.hdf5. Empty: the default directory of the dataset.
    pub path: PathBuf,
    /// Number of the game's published run, 1 to 5 (DQN-replay logs only).
    pub run: String,
    /// Selection of transitions (DQN-replay logs only). uniform: whole episodes from all of the
    /// log. released: the reference's random visits to the first 100,000 slots of each file.
    pub selection: SelectionKind,
    /// Number of transitions to select, by default the reference's (DQN-replay logs only). A
    /// smaller log is used whole.
    pub transitions: usize,
    /// Directory of converted data (DQN-replay logs only). Empty: datasets/cache. Outside of a
    /// clone: overtone/ in the user's cache directory (XDG_CACHE_HOME, ~/.cache).
    pub cache: PathBuf,
    /// Format of the data, if its files do not contain it. ogbench: an .npz file of OGBench, in
    /// which the last row of a trajectory has no action. numbers: bytes with rows and columns are
    /// codes or counts, not images.
    pub layout: String,
    /// Columns of a table.
    pub columns: TableColumns,
    /// Treatment of a final episode that the file truncates (array datasets only). drop: leave it
    /// out, as the reference does, because its return is unknown. keep: train on it as if it ended
    /// there.
    pub fragment: Fragment,
    /// Proportions of several datasets among the contexts (dataset=A,B data.shares=2,1). Empty: in
    /// proportion to their timesteps. The half of the contexts that model.top_percents draws from
    /// the best episodes is not affected.
    pub shares: Shares,
    /// Train on the episodes of highest return that make up this percentage of the timesteps (array
    /// datasets only). 10 with algorithm=behavior_cloning is 10 %BC.
    pub top_percent: f64,
    /// Move all reward to an episode's last step, the reference's delayed mode (array datasets
    /// only).
    pub delayed_reward: bool,
    /// Divisor of returns and rewards. The reference uses 1 on Atari and 1000 on MuJoCo. 0: the
    /// 95th percentile of the data's absolute returns.
    pub return_scale: f32,
}

impl DataConfig {
    /// How the files are read, as far as they do not say it.
    pub fn form(&self) -> Form {
        Form { layout: self.layout.clone(), columns: self.columns.clone() }
    }
}

/// Selection of a log's transitions for training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionKind {
    /// Whole episodes from all of the log.
    Uniform,
    /// The reference's selection.
    Released,
}

/// Evaluation of an agent after training, or by `evaluate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Evaluation episodes after training, for each target; 0: no evaluation.
    pub episodes: usize,
    /// Target returns in the protocol's units: numbers (32), or percentiles of the dataset's
    /// returns, weighted by episode length (p90,p99). Empty: p95, or with model.top_percents the
    /// mode that is chosen after training. reference: the reference's targets (hopper 3600,1800;
    /// halfcheetah 12000,6000; walker2d 5000,2500), else p95. An acting mode is chosen with the
    /// first target.
    pub target: String,
    /// Evaluation protocol. matched: as the data was recorded. released (games): the reference's
    /// evaluation, bugs included. v4, v5 (robots): that revision of the environment.
    pub protocol: String,
    /// Softmax temperature of sampled actions (discrete actions only). chosen: after training, a
    /// few episodes of another seed choose the best of 1, 0.5 and 0.25. The reference uses 1, which
    /// rarely suits agents that train for minutes.
    pub temperature: Choosable,
    /// Action of a head with a density (continuous actions only): mode, the most probable action,
    /// or sample, a random draw.
    pub actions: ActionChoice,
    /// Upper limit on the conditioning return: this quantile of the predicted return distribution,
    /// in (0, 1]. Low: typical returns; high: good returns; 1: no limit. chosen: after training, a
    /// few episodes of another seed choose the best of 0.9, 0.75, 0.5 and 1. Requires
    /// model.return_head.
    pub return_quantile: Choosable,
    /// Condition the agent on this top percentage of the dataset instead of a target return; 0: use
    /// a target return. chosen: after training, a few episodes choose among these percentages and
    /// the return quantiles. Requires model.top_percents and no target.
    pub top_percent: Choosable,
    /// Episodes that choose the acting mode after training, of all candidate modes together, placed
    /// where the best mode is uncertain (evaluate choose rule=process). 0: none; the lowest top
    /// percent is used, or the first candidate. auto: 20 for each candidate (5 on frames), or
    /// evaluation.episodes if that is less.
    pub budget: AutoOr,
    /// Seed of the episodes; the same for every run, so that all agents face the same episodes.
    pub seed: u64,
    /// Episodes in parallel; 0: all of them, at most 100 games or 200 robots.
    pub parallel: usize,
    /// Evaluations during training, for curves of returns in TensorBoard, checkpoints.csv and the
    /// report; training waits for them. auto: up to seven, evenly spaced, within a tenth of the
    /// run's time; none in a run of less than 5 s or 100 updates. A number: after every so many
    /// checkpoints and after the last one, however long that takes. 0: only after training.
    pub every: AutoOr,
    /// Episodes of each evaluation during training, for each target.
    pub every_episodes: usize,
}

impl EvaluationConfig {
    /// An episode by the agent's own protocol.
    pub fn one_episode() -> Self {
        Self {
            episodes: 1,
            target: String::new(),
            protocol: "matched".into(),
            temperature: Choosable::Chosen,
            actions: ActionChoice::Mode,
            return_quantile: Choosable::Chosen,
            top_percent: Choosable::Chosen,
            budget: AutoOr::Auto,
            seed: 1,
            parallel: 0,
            every: AutoOr::Number(0),
            every_episodes: 0,
        }
    }

    /// Whether a run with these settings is evaluated, during or after training.
    pub fn plays(&self) -> bool {
        self.episodes > 0 || matches!(self.every, AutoOr::Number(1..))
    }

    /// The top percentage that the agent is conditioned on.
    pub fn top_percent(&self) -> Choosable {
        self.top_percent.unless_target(&self.target, self.return_quantile)
    }
}

impl RunConfig {
    /// The task.
    ///
    /// # Errors
    /// When neither a suite nor the dataset defines it.
    pub fn task(&self) -> Result<&'static Task> {
        suites::with_data(&self.task, self.recording().as_ref())
    }

    /// The initial weights of a run of these settings: the copy in the run `begun`, or the weights
    /// of the run that `init=` names. `None` without `init=`.
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

    /// The same settings with another `resume`.
    pub fn with(self, resume: Resume) -> Self {
        Self { resume, ..self }
    }

    /// The configuration as the document of a run's directory.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_toml(&self) -> Result<String> {
        let mut table = self.to_table()?;
        table.insert("format".into(), FORMAT.into());
        Ok(toml::to_string(&table)?)
    }

    /// The selection rule for a log's transitions.
    pub fn selection(&self) -> Selection {
        let num_steps = self.data.transitions;
        match self.data.selection {
            SelectionKind::Uniform => Selection::Uniform { num_steps },
            SelectionKind::Released => {
                Selection::Released { num_steps, num_buffers: 50, trajectories_per_buffer: 10 }
            }
        }
    }

    /// Options for preparing an array dataset of this origin.
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

    /// The profile and the run's length, as text.
    pub fn describe_profile(&self) -> String {
        let batch = self.train.batch_size;
        let length = match self.train.updates {
            0 => {
                let drawn = match self.is_log() {
                    true => format!("{} transitions", self.data.transitions),
                    false => "all transitions".into(),
                };
                let epochs = match self.train.epochs {
                    1 => "1 epoch".into(),
                    n => format!("{n} epochs"),
                };
                format!("{epochs} of {drawn}, batch {batch}")
            }
            updates => format!("{updates} updates of {batch} contexts"),
        };
        match self.profile {
            Profile::Paper if self.train.reference_schedule => {
                format!("paper ({length}, the reference's learning rates)")
            }
            Profile::Paper => format!("paper ({length})"),
            Profile::Auto | Profile::Quick => {
                format!("quick ({length}); use profile=paper for the reference's length")
            }
        }
    }

    /// The algorithm for `task` and a dataset with the statistics `recorded`. The model has the
    /// ranges of timesteps and returns of `like`, if set.
    ///
    /// # Errors
    /// When the keys do not describe an agent for this task.
    pub fn algorithm_config(
        &self,
        task: &Task,
        recorded: Recorded,
        like: Option<&AlgorithmConfig>,
    ) -> Result<AlgorithmConfig> {
        let like = like.and_then(|like| like.model());
        let config = self.agent.algorithm(task, recorded, like.as_ref());
        config.validate(&task.observations, &task.actions)?;
        Ok(config)
    }

    /// The dataset, if the configuration has its path instead of a name.
    pub fn recording(&self) -> Option<suites::Data> {
        recording::at_path(&self.dataset, &self.data.path, self.data.form())
    }

    /// Whether the training data is a log of frames, from which transitions are selected.
    pub fn is_log(&self) -> bool {
        if datasets_of(&self.dataset).len() > 1 {
            return false;
        }
        let is_of = |task| recording::is_log(task, &self.dataset, self.recording().as_ref());
        self.task().is_ok_and(is_of)
    }

    /// The configuration as a tree of values.
    ///
    /// # Errors
    /// Never for a configuration that was resolved.
    pub fn to_table(&self) -> Result<Table> {
        Ok(Table::try_from(self)?)
    }

    /// The configuration by flat key; a value of several parts stays one value.
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
                    Value::Table(inner) if prefix.is_empty() || SUBSECTIONS.contains(&&*key) => {
                        sections.push((format!("{key}."), inner));
                    }
                    value => drop(keys.insert(key, value)),
                }
            }
        }
        Ok(keys)
    }

    /// The keys of the agent, including the algorithm.
    pub(crate) fn agent_keys(&self) -> Result<Keys> {
        let own = Table::try_from(&self.agent)?;
        let is_own = |key: &str| own.contains_key(key.split('.').next().unwrap_or(key));
        Ok(self.keys()?.into_iter().filter(|(key, _)| is_own(key)).collect())
    }

    /// Algorithm, model, head and attention as a part of a run's name: `linear`, `bc-tanh`,
    /// `top10-bc-perceptron-tanh`, `rvs-tanh`, `linear-attention-fourier4`, `cql4`.
    pub fn model_name(&self) -> String {
        let name = match &self.agent {
            AgentConfig::Sequence(config) => config.short_name(),
            AgentConfig::Values(config) => config.short_name(),
        };
        match self.data.top_percent {
            100.0 => name,
            percent => format!("top{percent}-{name}"),
        }
    }

    /// Task and dataset as a part of a run's name: `seaquest`, `hopper-medium`,
    /// `mymodule-myenv-v0`.
    pub fn task_name(&self) -> String {
        let plain = |c: char| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '-' };
        let in_a_name = |text: &str| text.chars().map(plain).collect::<String>();
        let name = &in_a_name(self.task.rsplit('/').next().unwrap_or(&self.task));
        // `hopper_medium` is Hopper's dataset `medium`.
        let stem = |dataset: &str| {
            let stem = Path::new(dataset).file_stem().unwrap_or_default();
            let stem = in_a_name(&stem.to_string_lossy().to_lowercase());
            stem.strip_prefix(&format!("{name}_")).map_or(stem.clone(), str::to_owned)
        };
        let stems: Vec<String> = datasets_of(&self.dataset).into_iter().map(stem).collect();
        match stems.join("-") {
            all if all.is_empty() => name.to_owned(),
            all if all.len() <= LONGEST_NAME || stems.len() == 1 => format!("{name}-{all}"),
            _ => format!("{name}-{}-and-{}-more", stems[0], stems.len() - 1),
        }
    }
}
