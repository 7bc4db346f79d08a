//! [`prepare`]: the data and the algorithm for `train` and `resume`, before the first step.

mod recorded_returns;

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::{Context, Result, ensure};
use overtone_agents::{Agent, has_rare_rewards};
use overtone_console::progress;
use overtone_core::{
    ActionSpace, Episodes, ObservationSpace, Simulation, Task, protocol::ReturnUnits,
};
use overtone_data::{
    Columns, DataError, Dataset, Expected, Located, Origin, Preparation, Recording, ReplayLog,
    Split, cache_folder, read,
};
use overtone_model::AverageReturn;
use overtone_settings::{AgentConfig, Recorded, RunConfig, suites};
use overtone_train::{Initial, TrainingData};

use super::find::{common_origin, find};
use crate::interrupt;

/// Message after an interrupt during the preparation of data.
const NOTHING_KEPT: &str = "no part of the prepared data was kept";

/// The root mean square of rewards above which a short run cannot learn values: a hundred times the
/// rewards in the algorithms' papers.
const LARGEST_REWARDS: f64 = 100.0;

/// The part of its bounds that a number of actions at least uses, usually.
const LEAST_SHARE: f32 = 0.01;

/// A prepared training.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The training data.
    pub data: TrainingData,
    /// The description of the agent in checkpoints.
    pub agent: Agent,
    /// Initial weights; `None`: random.
    pub init: Option<Initial>,
}

/// Finds and prepares the data, with progress lines, and configures the algorithm. With `init`,
/// the agent has the same normalization of observations and the same range of timesteps as the
/// initial agent.
///
/// # Errors
/// When the data is missing or damaged, or the settings do not describe an agent for it.
pub fn prepare(settings: &RunConfig, init: Option<Initial>) -> Result<Prepared> {
    // Preparing the data may take minutes.
    let stop = interrupt::listen()?;
    let task = settings.task()?;
    let before = init.as_ref().map(|init| Agent::of(&init.checkpoint)).transpose()?;
    let located = find(settings)?;
    located.iter().for_each(|located| say!("{located}"));
    if !suites::of(task)?.has_environments() {
        say!("task: {}", suites::describe(task));
    }
    let (dataset, name) = match &located[..] {
        [located] => match read::open_as(&located.path, &settings.data.form())? {
            Recording::ReplayLog(log) => {
                let dataset = convert(settings, log, located, stop.clone())?;
                let split = dataset.split_for(settings.train.held_out, settings.seed)?;
                say_held_out(&split, dataset.episodes());
                (dataset, String::new())
            }
            Recording::Columns(columns) => {
                let columns = checked(settings, columns)?;
                (made_of(settings, columns, &located.origin)?, located.dataset.clone())
            }
        },
        several => mixed(settings, several, &stop)?,
    };
    interrupt::check(&stop, NOTHING_KEPT)?;
    let actions = match &before {
        Some(agent) => agent.task.actions.clone(),
        None => {
            let actions = with_bounds(&task.actions, &dataset)?;
            for sentence in narrow_ranges(&actions, &dataset.actions().ranges()) {
                say!("odd: {sentence}");
            }
            actions
        }
    };
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
    let return_scale = match settings.data.return_scale {
        0.0 => {
            let scale = recorded_returns::own_scale(dataset.episode_returns().iter());
            say!("returns: divided by {scale}, the 95th percentile of their absolute values");
            scale
        }
        scale => scale,
    };
    check_rewards(settings, dataset.rewards())?;
    say_reward_scale(settings, dataset.rewards(), return_scale);
    say_optional_arrays(&dataset);
    let average = AverageReturn { horizon: longest };
    let scaled = |range: [f32; 2]| range.map(|value| value / return_scale);
    let recorded = Recorded {
        longest,
        returns: scaled(recorded_returns::range(dataset.returns_to_go().iter().copied())),
        rates: scaled(recorded_returns::range(recorded_returns::rates(&dataset, average))),
    };
    let configured = settings.algorithm_config(task, recorded, like)?;
    let n_updates = settings.train.n_updates(dataset.n_transitions());
    let algorithm = configured.for_run(has_rare_rewards(&dataset), n_updates, like);
    let chunk_size = algorithm.network().chunk_size();
    if chunk_size > 1 {
        say!(
            "actions: {chunk_size} are chosen at once, and played whatever the agent observes \
             meanwhile (iql.chunk_size=1: one at a time)"
        );
    }
    if let Some(limit) = algorithm.model().and_then(|model| model.head().limit(&task.actions)) {
        say!("head: {limit}");
    }
    let agent = Agent {
        task: Task { actions, ..task.clone() },
        dataset: name,
        algorithm,
        normalization: dataset.normalization().cloned(),
        return_scale,
        delayed_reward: settings.data.delayed_reward,
        recording,
        needs_action_mask: dataset.has_action_masks(),
    };
    let data = TrainingData::new(Arc::new(dataset), return_scale);
    Ok(Prepared { data, agent, init })
}

/// Names the optional arrays of the data: an array of this name may have been meant for something
/// else.
fn say_optional_arrays(dataset: &Dataset) {
    let has_weights = dataset.step_weights().is_some();
    let read = [
        (dataset.has_stops(), "masks: values stop where they are 0"),
        (has_weights, "weights: they multiply the loss of their step"),
        (dataset.has_action_masks(), "masks of actions: only these actions are allowed"),
    ];
    for (_, what) in read.into_iter().filter(|(is_there, _)| *is_there) {
        say!("data has {what}");
    }
}

/// Refuses to learn values of data without rewards.
fn check_rewards(settings: &RunConfig, rewards: &[f32]) -> Result<()> {
    let learns_values = matches!(settings.agent, AgentConfig::Values(_));
    ensure!(
        !learns_values || rewards.iter().any(|&reward| reward != 0.0),
        "every reward of this data is 0, and algorithm={} learns values of rewards. Use \
         algorithm=behavior_cloning, or data with rewards",
        settings.agent.kind().name()
    );
    Ok(())
}

/// Warns about rewards that are too large for value networks in a short run.
fn say_reward_scale(settings: &RunConfig, rewards: &[f32], return_scale: f32) {
    let learns_values = settings.agent.learns_values_of_rewards();
    let squares = rewards.iter().map(|&reward| f64::from(reward / return_scale).powi(2));
    let size = (squares.sum::<f64>() / rewards.len().max(1) as f64).sqrt();
    if learns_values && size > LARGEST_REWARDS {
        warn!(
            "warning: rewards are about {size:.1e} in size, and {} learns values of them. The \
             loss grows with their square, and learning is slow. Use data.return_scale=0 to \
             divide them by the size of the dataset's returns.",
            settings.agent.kind().name()
        );
    }
}

/// The converted log, which is converted first if necessary.
fn convert(
    settings: &RunConfig,
    log: ReplayLog,
    located: &Located,
    stop: Arc<AtomicBool>,
) -> Result<Dataset> {
    let cache = match settings.data.cache.as_os_str().is_empty() {
        true => cache_folder()?,
        false => settings.data.cache.clone(),
    };
    interrupt::check(&stop, NOTHING_KEPT)?;
    let mut plan =
        Preparation::new(log, located.origin.clone(), settings.selection(), settings.seed, &cache)?;
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
        format!("converting {} to data.cache={cache}", located.path.display())
    })?;
    bar.finish_and_clear();
    dataset.check_spaces(settings.task()?)?;
    say!(
        "dataset: {} transitions in {} episodes, {} of them padding rows; content {}",
        dataset.n_transitions(),
        dataset.episodes().as_slice().len(),
        dataset.counts().padding_rows,
        &dataset.content_hash()[..16]
    );
    Ok(dataset)
}

/// The training data of several datasets, and their names.
fn mixed(
    settings: &RunConfig,
    several: &[Located],
    stop: &Arc<AtomicBool>,
) -> Result<(Dataset, String)> {
    let mut parts = Vec::new();
    for located in several {
        let columns = match read::open_as(&located.path, &settings.data.form())? {
            Recording::Columns(columns) => columns,
            // Its frames fit into memory if it is mixed with others.
            Recording::ReplayLog(log) => {
                convert(settings, log, located, stop.clone())?.into_columns()?
            }
        };
        parts.push(checked(settings, columns)?);
    }
    let mut names: Vec<&str> = several.iter().map(|located| located.dataset.as_str()).collect();
    // Their order has no effect.
    names.sort_unstable();
    let origin = common_origin(several);
    let columns = Columns::concat(parts, &settings.data.shares.0)?;
    Ok((made_of(settings, columns, &origin)?, names.join(",")))
}

/// A recording that fits the task, in the task's units.
fn checked(settings: &RunConfig, mut columns: Columns) -> Result<Columns> {
    if settings.task()?.return_units == ReturnUnits::Clipped && columns.clip_rewards() {
        say!("rewards: clipped to [-1, 1], as in this task's training and evaluation");
    }
    let task = settings.task()?;
    columns.list_actions(task)?;
    columns.check_spaces(task)?;
    say_doubts(&columns, task);
    Ok(columns)
}

/// The training episodes of an array dataset.
fn made_of(settings: &RunConfig, columns: Columns, origin: &Origin) -> Result<Dataset> {
    let task = settings.task()?;
    let outside = columns.outside_of(&task.actions);
    let dataset = Dataset::of(columns, &settings.dataset_options(origin.clone()))?;
    let counts = dataset.counts();
    say!(
        "dataset: {} transitions in {} episodes (left out: {} of a truncated episode, {} below \
         the top percent); content {}",
        counts.rows,
        counts.episodes,
        counts.fragment_rows,
        counts.filtered_rows,
        &dataset.content_hash()[..16]
    );
    for odd in dataset.odd() {
        say!("odd: {odd} (`data lint` checks each file)");
    }
    if outside > 0 {
        say!(
            "odd: {outside} steps have actions outside of their bounds, {}; the agent stays \
             within them",
            task.actions.describe()
        );
    }
    say_held_out(dataset.split(), dataset.episodes());
    Ok(dataset)
}

/// The simulation of the recording, with a step limit of at least the longest episode: a shorter
/// limit in the description does not fit these episodes. Limits above the task's own are not used.
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
        "warning: recorded episodes have up to {longest} steps, and the step limit is {limit}. The \
         agent is evaluated for at most {played} steps. If episodes run into one another, check \
         the flags with data lint"
    );
    Ok(longer.or(recording))
}

/// The actions with each missing bound set by the recorded ones, so that they can be scaled.
///
/// # Errors
/// When all recorded values of a number are beyond the bound that it has.
fn with_bounds(actions: &ActionSpace, dataset: &Dataset) -> Result<ActionSpace> {
    let unbounded = actions.unbounded();
    if unbounded.is_empty() {
        return Ok(actions.clone());
    }
    let recorded = dataset.actions().ranges();
    let bounded = actions.bounded(&recorded);
    let mut ranges = Vec::with_capacity(unbounded.len());
    if let ActionSpace::Continuous { low, high } = &bounded {
        for place in unbounded {
            let ([low, high], [least, most]) = ([low[place], high[place]], recorded[place]);
            ensure!(
                low < high || [least, most] == [low, high],
                "actions: number {place} is recorded from {least} to {most}, beyond the task's bound of \
                 {low}. Check the units and the order of the recorded actions"
            );
            ranges.push(format!("number {place} from {low} to {high}"));
        }
    }
    say!(
        "actions: without bounds in the task, scaled by the recorded range: {}",
        ranges.join(", ")
    );
    Ok(bounded)
}

/// A sentence for each number of actions that uses little of its bounds, by which agents scale.
fn narrow_ranges(actions: &ActionSpace, recorded: &[[f32; 2]]) -> Vec<String> {
    let ActionSpace::Continuous { low, high } = actions else { return Vec::new() };
    let mut sentences = Vec::new();
    for (place, ((&low, &high), &[least, most])) in low.iter().zip(high).zip(recorded).enumerate() {
        if least < most && most - least < LEAST_SHARE * (high - low) {
            sentences.push(format!(
                "actions: number {place} is recorded from {least} to {most}, less than {} % of its \
                 bounds, {low} to {high}. Agents scale actions by their bounds, so a small error is \
                 large there. Use narrower bounds (gymnasium.wrappers.RescaleAction)",
                100.0 * LEAST_SHARE
            ));
        }
    }
    sentences
}

/// Prints doubts about the meaning of a dataset's numbers.
fn say_doubts(columns: &Columns, task: &Task) {
    // A task without an environment is defined by its dataset.
    let is_known = suites::of(task).is_ok_and(|suite| suite.has_environments());
    let expected = Expected { task: is_known.then_some(task), ..Expected::default() };
    for finding in columns.doubts(&expected) {
        match finding.warning() {
            Some(text) => warn!("{}: {text}", finding.severity),
            None => say!("note: {finding}. {}", finding.advice),
        }
    }
}

/// Prints the number of held-out episodes, if any.
fn say_held_out(split: &Split, episodes: &Episodes) {
    if split.held_out.is_empty() {
        return;
    }
    let steps: usize =
        split.held_out.iter().map(|&episode| episodes.as_slice()[episode].length).sum();
    say!(
        "held out: {} of the episodes, {steps} transitions; training uses {} episodes",
        split.held_out.len(),
        split.training.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_uses_little_of_its_bounds_is_named() {
        let actions = ActionSpace::Continuous { low: vec![-1e6, -1.0], high: vec![1e6, 1.0] };
        let said = narrow_ranges(&actions, &[[-20.0, 20.0], [-0.5, 0.5]]);
        let [sentence] = &said[..] else { panic!("{said:?}") };
        let expected =
            "number 0 is recorded from -20 to 20, less than 1 % of its bounds, -1000000 to";
        assert!(sentence.contains(expected), "{sentence}");
        // A constant, and a discrete action.
        assert!(narrow_ranges(&actions, &[[2.0, 2.0], [-1.0, 1.0]]).is_empty());
        let discrete = ActionSpace::Discrete { names: vec!["a".into()] };
        assert!(narrow_ranges(&discrete, &[]).is_empty());
    }
}
