//! What `train` and `resume` need before the first step: the data found and prepared, the
//! algorithm beside it.

mod recorded_returns;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use overtone_agents::{Agent, AlgorithmConfig};
use overtone_core::{Episodes, ObservationSpace, Simulation, Task, protocol::ReturnUnits};
use overtone_data::{
    Columns, DataError, Dataset, Expected, Kind, Located, MinariId, Preparation, RecordedTask,
    Recording, ReplayLog, Severity, Split, cache_folder, check_named, columns::OUTSIDE,
    datasets_folder, locate, read,
};
use overtone_env::find_in_table;
use overtone_model::AverageReturn;
use overtone_train::{Initial, TrainingData};

use super::{data::known_task, evaluate::NOT_PLAYABLE};
use crate::{
    interrupt, progress,
    settings::{Profile, Recorded, RunConfig, is_path},
    suites,
};

/// What is left of data that Ctrl-C found half prepared.
const NOTHING_KEPT: &str = "no part of the prepared data was kept";

/// The root mean square of rewards beyond which values are out of reach of a short run: a hundred
/// times the rewards that the algorithms' papers train on.
const LARGEST_REWARDS: f64 = 100.0;

/// What is trained, ready.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What it learns to play.
    pub task: &'static Task,
    /// How it learns.
    pub algorithm: AlgorithmConfig,
    /// From what.
    pub data: TrainingData,
    /// What checkpoints say of it.
    pub agent: Agent,
    /// Whose weights it begins with, where they are not drawn.
    pub init: Option<Initial>,
}

impl RunConfig {
    /// Whether the published data is there.
    pub fn is_published(&self) -> bool {
        self.find().is_ok_and(|located| located.origin.kind == Kind::Published)
    }

    /// Whether there is data.
    ///
    /// # Errors
    /// When there is none, in one sentence.
    pub fn check_data(&self) -> Result<()> {
        self.find().map(drop)
    }

    /// Finds out before training whether the agent can be played afterwards.
    ///
    /// # Errors
    /// When what plays the task is missing, in one sentence.
    pub fn check_playable(&self) -> Result<()> {
        let task = self.task()?;
        if !self.evaluation.plays() {
            return Ok(());
        }
        suites::of(task)?.check(task).context(NOT_PLAYABLE)
    }

    /// Finds the data, prepares it where that was not done yet, says so, and puts the algorithm
    /// beside it. An agent that begins with the weights of another sees what that one saw:
    /// observations normalized as for it, and positions of as many timesteps.
    ///
    /// # Errors
    /// When the data is missing or broken, or the settings describe no agent for it.
    pub fn prepare(&self, init: Option<Initial>) -> Result<Prepared> {
        // To prepare data may take minutes.
        let stop = interrupt::listen()?;
        let task = self.task()?;
        let before = init.as_ref().map(|init| Agent::of(&init.checkpoint)).transpose()?;
        let located = self.find()?;
        say!("{located}");
        if !suites::of(task)?.has_environments() {
            say!("task: {}", suites::describe(task));
        }
        if let unbounded @ [_, ..] = &task.actions.unbounded()[..] {
            say!(
                "actions: {} of {} numbers lack a bound and are not scaled; the agent keeps them \
                 within [-1, 1] and the bound they have",
                unbounded.len(),
                task.actions.size()
            );
        }
        let (dataset, name) = match read::open_as(&located.path, &self.data.layout)? {
            Recording::ReplayLog(log) => {
                (self.convert(log, &located, stop.clone())?, String::new())
            }
            Recording::Columns(columns) => (self.made_of(columns, &located)?, located.dataset),
        };
        interrupt::check(&stop, NOTHING_KEPT)?;
        let dataset = match before.as_ref().and_then(|agent| agent.normalization.as_ref()) {
            Some(normalization) => dataset.with_normalization(normalization),
            None => dataset,
        };
        let longest = dataset.episodes().longest();
        let recording = as_long_as(task, dataset.origin().recording.clone(), longest)?;
        let simulation = recording.as_ref().unwrap_or(&task.simulation);
        let longest = match suites::of(task)?.horizon(task, simulation) {
            Some(horizon) if matches!(task.observations, ObservationSpace::Vectors { .. }) => {
                horizon.max(longest)
            }
            _ => longest,
        };
        let like = before.as_ref().map(|agent| &agent.algorithm);
        let return_scale = match self.data.return_scale {
            0.0 => {
                let scale = recorded_returns::own_scale(dataset.episode_returns().iter());
                say!("returns: divided by {scale}, which 95 % of them do not exceed in size");
                scale
            }
            scale => scale,
        };
        self.say_reward_scale(dataset.rewards(), return_scale);
        let average = AverageReturn { horizon: longest };
        let scaled = |range: [f32; 2]| range.map(|told| told / return_scale);
        let recorded = Recorded {
            longest,
            returns: scaled(recorded_returns::range(dataset.returns_to_go().iter().copied())),
            rates: scaled(recorded_returns::range(recorded_returns::rates(&dataset, average))),
        };
        let algorithm = self.algorithm_config(task, recorded, like)?;
        if let Some(limit) = algorithm.model().and_then(|model| model.head().limit(&task.actions)) {
            say!("head: {limit}");
        }
        let agent = Agent {
            task: task.clone(),
            dataset: name,
            algorithm: algorithm.clone(),
            normalization: dataset.normalization().cloned(),
            return_scale,
            delayed_reward: self.data.delayed_reward,
            recording,
        };
        let data = TrainingData::new(Arc::new(dataset), return_scale);
        Ok(Prepared { task, algorithm, data, agent, init })
    }

    /// Says where rewards are of a size that networks of values cannot learn in a short run.
    fn say_reward_scale(&self, rewards: &[f32], return_scale: f32) {
        let learns_values = self.agent.learns_values_of_rewards();
        let squares = rewards.iter().map(|&reward| f64::from(reward / return_scale).powi(2));
        let size = (squares.sum::<f64>() / rewards.len().max(1) as f64).sqrt();
        if learns_values && size > LARGEST_REWARDS {
            warn!(
                "warning: rewards are about {size:.1e} in size, and {} learns values of them: the \
                 loss grows with their square, and learning is slow. data.return_scale=0 divides \
                 them by the size of the recorded returns.",
                self.agent.kind().name()
            );
        }
    }

    /// How long the run is, in a sentence.
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
            Profile::Auto | Profile::Quick => format!(
                "quick, {length}, for a first look; the reference's length is profile=paper"
            ),
        }
    }

    /// Where the data is.
    fn find(&self) -> Result<Located> {
        let task = self.task()?;
        let minari = MinariId::of(&self.dataset)?;
        let path = match (self.data.path.as_os_str().is_empty(), &self.dataset) {
            (true, name) if minari.is_none() && is_path(name) => Some(Path::new(name)),
            (true, _) => None,
            (false, _) => Some(&*self.data.path),
        };
        let (key, dataset) = match task.observations {
            // Of a log each run is a recording.
            ObservationSpace::Pixels { .. } if minari.is_none() => {
                ensure!(
                    path.is_some() || self.dataset.is_empty(),
                    "dataset={}: names none of {}; say a file, a dataset of Minari's \
                     (minari:atari/…), or a run of the published log with data.run=",
                    self.dataset,
                    task.id()
                );
                ("data.run", &self.data.run)
            }
            _ => ("dataset", &self.dataset),
        };
        if self.names_dataset(task)? {
            check_named(&self.data.path, task, &self.dataset)?;
        }
        // Own data needs no folder of datasets; where one is needed, it is missed by its name.
        let datasets = datasets_folder().unwrap_or_else(|_| "datasets".into());
        let mut located = locate(task, dataset, path, &datasets).map_err(|error| match error {
            DataError::UnknownName { .. } => anyhow!("{key}={dataset}: {error}"),
            error => error.into(),
        })?;
        if (path.is_some() || minari.is_some()) && located.origin.recording.is_none() {
            let recorded = RecordedTask::of(&located.path)?;
            located.origin.recording = suites::recorded_simulation(task, &recorded);
        }
        // A folder of the user's own may have any name, but not another task's.
        let named = match &located.task {
            Some(name) => find_in_table(suites::of(task)?, name).ok(),
            None => known_task(&located.path).filter(|other| other.suite == task.suite),
        };
        if let Some(other) = named.filter(|other| *other != task) {
            bail!(
                "{} holds {}, and {}={} was asked for; change one of them",
                located.path.display(),
                located.task.as_ref().unwrap_or(&other.name),
                suites::of(task)?.key(),
                task.name
            );
        }
        Ok(located)
    }

    /// A converted log; it is converted first where that was not done yet.
    fn convert(&self, log: ReplayLog, located: &Located, stop: Arc<AtomicBool>) -> Result<Dataset> {
        let cache = match self.data.cache.as_os_str().is_empty() {
            true => cache_folder()?,
            false => self.data.cache.clone(),
        };
        interrupt::check(&stop, NOTHING_KEPT)?;
        let mut plan =
            Preparation::new(log, located.origin.clone(), self.selection(), self.seed, &cache)?;
        plan.stop = stop;
        say!("plan: {plan}");
        let bar = progress::bytes("converting", plan.ready);
        let dataset = plan.ensure(&mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
        if let Err(DataError::Stopped) = dataset {
            bar.finish_and_clear();
            return Err(interrupt::Stopped(NOTHING_KEPT).into());
        }
        let dataset = dataset.with_context(|| {
            let cache = cache.display();
            format!("preparing {}, which goes to data.cache={cache}", located.path.display())
        })?;
        bar.finish_and_clear();
        dataset.check_spaces(self.task()?)?;
        say!(
            "dataset: {} transitions in {} episodes, {} of them padding rows; content {}",
            dataset.n_transitions(),
            dataset.episodes().as_slice().len(),
            dataset.counts().padding_rows,
            &dataset.content_hash()[..16]
        );
        let split = dataset.split_for(self.train.held_out, self.seed)?;
        say_held_out(&split, dataset.episodes());
        Ok(dataset)
    }

    /// The episodes of a recording in memory that are trained on.
    fn made_of(&self, mut columns: Columns, located: &Located) -> Result<Dataset> {
        if self.task()?.return_units == ReturnUnits::Clipped && columns.clip_rewards() {
            say!("rewards: clipped to [-1, 1], as agents of this task are trained and played");
        }
        let task = self.task()?;
        columns.list_combinations(task)?;
        columns.check_spaces(task)?;
        say_doubts(&columns, task);
        let outside = columns.outside_of(&task.actions);
        let dataset = Dataset::of(columns, &self.dataset_options(located.origin.clone()))?;
        let counts = dataset.counts();
        say!(
            "dataset: {} transitions in {} episodes ({} cut off and left out, {} not among the \
             best); content {}",
            counts.rows,
            counts.episodes,
            counts.fragment_rows,
            counts.filtered_rows,
            &dataset.content_hash()[..16]
        );
        // The readers expect the usual bounds; this task's may be others.
        for odd in dataset.odd().iter().filter(|odd| !odd.starts_with(OUTSIDE)) {
            say!("odd: {odd} (`data lint` says where and what to do)");
        }
        if outside > 0 {
            say!(
                "odd: {outside} steps with actions outside of their bounds, {}, which the agent \
                 keeps to",
                task.actions.describe()
            );
        }
        say_held_out(dataset.split(), dataset.episodes());
        Ok(dataset)
    }
}

/// How `task` was recorded, with a step limit that its longest episode keeps: a description that
/// says a shorter one is not of these episodes. A limit beyond the task's own is not played.
///
/// # Errors
/// When no suite has the task.
fn as_long_as(
    task: &Task,
    recording: Option<Simulation>,
    longest: usize,
) -> Result<Option<Simulation>> {
    let suite = suites::of(task)?;
    let simulation = recording.as_ref().unwrap_or(&task.simulation);
    let is_vectors = matches!(task.observations, ObservationSpace::Vectors { .. });
    let limit = suite.horizon(task, simulation).filter(|&limit| is_vectors && limit < longest);
    let Some(limit) = limit else { return Ok(recording) };
    let is_within = task.horizon.is_none_or(|horizon| longest <= horizon);
    let steps = u32::try_from(longest).ok().filter(|_| is_within && recording.is_some());
    let longer = steps.and_then(|steps| suite.limited(simulation, steps));
    let played = if longer.is_some() { longest } else { limit };
    warn!(
        "warning: recorded episodes have up to {longest} steps, and the step limit is {limit}: the agent is \
         played for {played} steps at most. If episodes run into one another, check the flags \
         (data lint)"
    );
    Ok(longer.or(recording))
}

/// Says where the numbers of a recording may mean something else than is read.
fn say_doubts(columns: &Columns, task: &Task) {
    // A task without an environment is what its recording was read as.
    let is_known = suites::of(task).is_ok_and(|suite| suite.has_environments());
    let expected = Expected { task: is_known.then_some(task), ..Expected::default() };
    for finding in columns.doubts(&expected) {
        match finding.severity {
            Severity::Note => say!("note: {finding}. {}", finding.advice),
            severity => warn!("{severity}: {finding}. {}", finding.advice),
        }
    }
}

/// Says how much of the data is held out, where any of it is.
fn say_held_out(split: &Split, episodes: &Episodes) {
    if split.held_out.is_empty() {
        return;
    }
    let steps: usize =
        split.held_out.iter().map(|&episode| episodes.as_slice()[episode].length).sum();
    say!(
        "held out: {} of the episodes, {steps} transitions; trained on are {} episodes",
        split.held_out.len(),
        split.training.len()
    );
}
