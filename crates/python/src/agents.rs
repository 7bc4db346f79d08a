//! [`Agents`]: a trained agent that acts in many episodes in parallel.

use std::{
    ffi::CString,
    fmt::Display,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use burn::tensor::Device;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArrayDyn};
use overtone::OwnChoice;
use overtone_agents::{Agent, policy};
use overtone_core::{
    ActionSpace, Actions, ObservationSpace, Observations, Play, Policy, Turn, policy::EpisodeStart,
    protocol::ActionChoice, seed,
};
use overtone_data::{Dataset, DatasetOptions, read};
use overtone_judge::Forced;
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::program::{OvertoneError, OvertoneWarning};

/// A checkpoint's agent that acts in several independent episodes. Calls from other threads wait,
/// while other Python code runs.
#[pyclass(module = "overtone._overtone", frozen)]
pub struct Agents {
    acting: Mutex<Acting>,
    agent: Agent,
    /// The weights, for [`replay`](Self::replay).
    checkpoint: Checkpoint,
    play: Play,
    device: Device,
    target_return: f32,
    /// The default choice of actions.
    choice: ActionChoice,
    seed: u64,
    n_agents: usize,
}

/// State that calls change.
struct Acting {
    policy: Box<dyn Policy>,
    /// Number of episodes that each agent has started.
    episodes: Vec<u64>,
    /// The choice of the last actions.
    choice: ActionChoice,
    /// The last call's number of bins, and their probabilities, a row for each turn.
    played: Option<(usize, Vec<f64>)>,
}

/// Observations that no other thread can change.
enum Seen {
    Vectors(Vec<f32>),
    Pixels(Vec<u8>),
}

/// The inputs of each agent other than its observation.
struct Inputs {
    /// The acting agents; `None`: all.
    agents: Option<Vec<i64>>,
    rewards: Option<Vec<f32>>,
    starts: Option<Vec<bool>>,
    targets: Option<Vec<f32>>,
    /// `[n, n_actions]`, the allowed actions; `None`: all.
    allowed: Option<Vec<bool>>,
}

fn failed(error: impl Display) -> PyErr {
    OvertoneError::new_err(error.to_string())
}

/// The numbers of an array that may be absent.
fn numbers<T: numpy::Element + Clone>(
    array: Option<PyReadonlyArray1<'_, T>>,
) -> PyResult<Option<Vec<T>>> {
    Ok(array.map(|array| array.as_slice().map(<[T]>::to_vec)).transpose()?)
}

fn wrong(what: String) -> PyErr {
    PyValueError::new_err(what)
}

#[pymethods]
impl Agents {
    /// `run` is a run's directory, or a checkpoint's. `target_return` is a number or a percentile
    /// of the data's returns (`"p95"`); empty: the default, or the run's chosen mode.
    #[new]
    #[pyo3(signature = (run, checkpoint, target_return, n_agents, deterministic, temperature, return_quantile, top_percent, seed, device))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        py: Python<'_>,
        run: &str,
        checkpoint: &str,
        target_return: &str,
        n_agents: usize,
        deterministic: Option<bool>,
        temperature: Option<f32>,
        return_quantile: Option<f32>,
        top_percent: Option<f32>,
        seed: u64,
        device: &str,
    ) -> PyResult<Self> {
        let (checkpoint, own) = open(py, run, checkpoint)?;
        let agent = Agent::of(&checkpoint).map_err(failed)?;
        let returns = &checkpoint.state.episode_returns;
        let mode = [temperature, return_quantile, top_percent];
        let (mut play, target_return) =
            overtone::play_of(&agent, returns, &own, target_return, mode)
                .map_err(|error| wrong(format!("{error:#}")))?;
        if let Some(deterministic) = deterministic {
            play.action_choice = choice_of(&agent, deterministic)?;
        }
        let device = device::choose(device).map_err(failed)?;
        let policy = policy(&checkpoint, &play, &device.device).map_err(failed)?;
        let choice = play.action_choice;
        let episodes = vec![0; n_agents];
        let acting = Mutex::new(Acting { policy, episodes, choice, played: None });
        let device = device.device;
        Ok(Self { acting, agent, checkpoint, play, device, target_return, choice, seed, n_agents })
    }

    /// The task, as `suite/name`.
    #[getter]
    fn task(&self) -> String {
        self.agent.task.id()
    }

    /// The target return.
    #[getter]
    fn target_return(&self) -> f32 {
        self.target_return
    }

    /// Shape of one observation.
    #[getter]
    fn observation_shape(&self) -> Vec<usize> {
        match &self.agent.task.observations {
            ObservationSpace::Pixels { shape } => shape.clone(),
            ObservationSpace::Vectors { width } => vec![*width],
        }
    }

    /// Number of discrete actions; `None` for continuous actions.
    #[getter]
    fn n_actions(&self) -> Option<usize> {
        match &self.agent.task.actions {
            ActionSpace::Discrete { names } => Some(names.len()),
            ActionSpace::Continuous { .. } => None,
        }
    }

    /// Numbers of a continuous action; the number of discrete actions.
    #[getter]
    fn action_width(&self) -> usize {
        self.agent.task.actions.size()
    }

    /// The environment's names of the actions; `None` for continuous actions.
    #[getter]
    fn action_names(&self) -> Option<Vec<String>> {
        match &self.agent.task.actions {
            ActionSpace::Discrete { names } => Some(names.clone()),
            ActionSpace::Continuous { .. } => None,
        }
    }

    /// Whether the rewards of earlier steps change later actions.
    #[getter]
    fn reads_rewards(&self) -> bool {
        let has_target = self.play.acting.top_percent == 0.0 && !self.agent.delayed_reward;
        self.agent.algorithm.reads_returns() && has_target
    }

    /// Restarts each agent's first episode at its next observation.
    fn reset(&self, py: Python<'_>) {
        py.detach(|| self.acting().episodes.fill(0));
    }

    /// Actions for `observations`, `[n, …]`, of `agents` (default: all), with the rewards of their
    /// previous actions (default: 0). `starts` marks the first step of an episode, as an agent's
    /// first turn always is; these episodes have `targets` (default: the policy's).
    /// `deterministic`: the most probable actions, or draws (default: as the policy was made).
    /// `allowed`: `[n · n_actions]`, the allowed actions (default: all).
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn act<'py>(
        &self,
        py: Python<'py>,
        observations: &Bound<'py, PyAny>,
        agents: Option<PyReadonlyArray1<'py, i64>>,
        rewards: Option<PyReadonlyArray1<'py, f32>>,
        starts: Option<PyReadonlyArray1<'py, bool>>,
        targets: Option<PyReadonlyArray1<'py, f32>>,
        deterministic: Option<bool>,
        allowed: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inputs = Inputs {
            agents: numbers(agents)?,
            rewards: numbers(rewards)?,
            starts: numbers(starts)?,
            targets: numbers(targets)?,
            allowed: numbers(allowed)?,
        };
        if inputs.targets.is_some() && self.play.acting.top_percent > 0.0 {
            return Err(wrong(format!(
                "target_returns: this agent is conditioned on the top {} % of its dataset, not on \
                 a return. Load it with a target_return, or with top_percent=0",
                self.play.acting.top_percent
            )));
        }
        let seen = match self.agent.task.observations {
            ObservationSpace::Vectors { .. } => {
                let array: PyReadonlyArrayDyn<'_, f32> = observations.extract()?;
                Seen::Vectors(array.as_slice()?.to_vec())
            }
            ObservationSpace::Pixels { .. } => {
                let array: PyReadonlyArrayDyn<'_, u8> = observations.extract()?;
                Seen::Pixels(array.as_slice()?.to_vec())
            }
        };
        let n = inputs.agents.as_ref().map_or(self.n_agents, Vec::len);
        let choice = match deterministic {
            Some(deterministic) => choice_of(&self.agent, deterministic)?,
            None => self.choice,
        };
        let acted = py.detach(|| self.acted(n, &seen, &inputs, choice))?;
        Ok(match acted {
            Actions::Discrete(ids) => {
                let ids: Vec<i64> = ids.into_iter().map(|id| id as i64).collect();
                ids.into_pyarray(py).into_any()
            }
            Actions::Continuous { width, values } => {
                values.into_pyarray(py).call_method1("reshape", ((n, width),))?
            }
        })
    }

    /// Tells which discrete actions `agents` (default: all) took in place of the last ones of
    /// [`act`](Self::act).
    #[pyo3(signature = (actions, agents))]
    fn took_indices(
        &self,
        py: Python<'_>,
        actions: PyReadonlyArray1<'_, i64>,
        agents: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<()> {
        let of = |&index: &i64| {
            usize::try_from(index)
                .map_err(|_| wrong(format!("actions: {index} is not the index of an action")))
        };
        let indices = actions.as_slice()?.iter().map(of).collect::<PyResult<_>>()?;
        self.took(py, numbers(agents)?, &Actions::Discrete(indices))
    }

    /// As [`took_indices`](Self::took_indices), `[n, width]` for continuous actions.
    #[pyo3(signature = (actions, agents))]
    fn took_numbers(
        &self,
        py: Python<'_>,
        actions: PyReadonlyArrayDyn<'_, f32>,
        agents: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<()> {
        let (width, values) = (self.action_width(), actions.as_slice()?.to_vec());
        self.took(py, numbers(agents)?, &Actions::Continuous { width, values })
    }

    /// The actions at every step of the finished episodes of the recording at `path`, with the
    /// recorded actions in the history: `[steps, actions]` probabilities, or `[steps, width]`
    /// numbers.
    fn replay<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let replayed = || -> Result<Forced, String> {
            let text = |error: &dyn Display| format!("{}: {error}", path.display());
            let data = read::columns(&path).and_then(|columns| {
                Dataset::of(columns.fitted_to(&self.agent.task)?, &DatasetOptions::default())
            });
            let data = data.map_err(|error| error.to_string())?;
            let policy = policy(&self.checkpoint, &self.play, &self.device);
            let mut policy = policy.map_err(|error| error.to_string())?;
            Forced::replay(&mut *policy, &self.play, self.target_return, &data, None, self.seed)
                .map_err(|error| text(&error))
        };
        let actions = py.detach(replayed).map_err(OvertoneError::new_err)?.actions;
        let (rows, width) = (actions.values().len() / actions.width().max(1), actions.width());
        PyArray1::from_slice(py, actions.values()).call_method1("reshape", ((rows, width),))
    }

    /// The probabilities of the last actions, `[n, actions]`; `None` for policies without them.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Some((bins, probs)) = py.detach(|| self.acting().played.clone()) else {
            return Ok(None);
        };
        let flat = PyArray1::from_slice(py, &probs);
        let rows = probs.len() / bins.max(1);
        Ok(Some(flat.call_method1("reshape", ((rows, bins),))?.cast_into()?))
    }
}

impl Agents {
    /// Locks the state; never call it while Python waits for this thread.
    fn acting(&self) -> MutexGuard<'_, Acting> {
        self.acting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actions of `n` agents.
    fn acted(
        &self,
        n: usize,
        seen: &Seen,
        inputs: &Inputs,
        choice: ActionChoice,
    ) -> PyResult<Actions> {
        let mut acting = self.acting();
        let turns = self.turns(n, inputs, &acting.episodes)?;
        let size = self.agent.task.observations.size();
        let (got, expected) = (seen.len(), n * size);
        if got != expected {
            return Err(wrong(format!(
                "observations: expected {size} numbers for each of {n} agents, got {got} in total"
            )));
        }
        let observations = match seen {
            Seen::Vectors(numbers) => Observations::Vectors(numbers),
            Seen::Pixels(pixels) => Observations::Pixels(pixels),
        };
        if acting.choice != choice {
            acting.policy.choose(choice).map_err(failed)?;
            acting.choice = choice;
        }
        if let Some(allowed) = &inputs.allowed {
            acting.policy.allow(allowed.clone()).map_err(failed)?;
        }
        let acted = acting.policy.act(&turns, observations).map_err(failed)?;
        // Only now, because a failed call does not start an episode.
        for turn in turns.iter().filter(|turn| turn.start.is_some()) {
            acting.episodes[turn.agent] += 1;
        }
        acting.played = acting.policy.played().map(|played| {
            let bins = played.actions.len();
            // In the environment's order of actions, which may differ from the order of the bins.
            let mut probs = vec![0.0; played.probs.len()];
            for (row, mine) in played.probs.chunks(bins).zip(probs.chunks_mut(bins)) {
                for (&prob, &action) in row.iter().zip(played.actions) {
                    mine[action] = prob;
                }
            }
            (bins, probs)
        });
        Ok(acted)
    }

    fn took(&self, py: Python<'_>, agents: Option<Vec<i64>>, actions: &Actions) -> PyResult<()> {
        let agents = agents.unwrap_or_else(|| (0..self.n_agents as i64).collect());
        let turn = |&agent: &i64| {
            let place = usize::try_from(agent).ok().filter(|agent| *agent < self.n_agents);
            let agent = place.ok_or_else(|| {
                wrong(format!("agents: {agent} is not one of {} agents", self.n_agents))
            })?;
            Ok(Turn { agent, reward: 0.0, start: None })
        };
        let turns: Vec<Turn> = agents.iter().map(turn).collect::<PyResult<_>>()?;
        py.detach(|| self.acting().policy.took(&turns, actions)).map_err(failed)
    }

    /// The policy's inputs for `n` agents; `episodes` counts each agent's started episodes.
    fn turns(&self, n: usize, inputs: &Inputs, episodes: &[u64]) -> PyResult<Vec<Turn>> {
        let mut turns = Vec::with_capacity(n);
        for row in 0..n {
            let agent = inputs.agents.as_ref().map_or(row as i64, |agents| agents[row]);
            let place = usize::try_from(agent).ok().filter(|agent| *agent < self.n_agents);
            let Some(agent) = place else {
                return Err(wrong(format!(
                    "agents: row {row} is {agent}, but there are only {}",
                    self.n_agents
                )));
            };
            let begun = episodes[agent];
            let begins = begun == 0 || inputs.starts.as_ref().is_some_and(|starts| starts[row]);
            let start = begins.then(|| {
                let of_agent = seed::derive_nth(seed::derive(self.seed, "episodes"), agent as u64);
                EpisodeStart {
                    seed: seed::derive_nth(of_agent, begun + 1),
                    target_return: inputs
                        .targets
                        .as_ref()
                        .map_or(self.target_return, |all| all[row]),
                }
            });
            let reward =
                self.play.return_units.of(inputs.rewards.as_ref().map_or(0.0, |all| all[row]));
            turns.push(Turn { agent, reward, start });
        }
        Ok(turns)
    }
}

impl Seen {
    fn len(&self) -> usize {
        match self {
            Self::Vectors(numbers) => numbers.len(),
            Self::Pixels(pixels) => pixels.len(),
        }
    }
}

/// The choice of the most probable action, or of a draw.
///
/// # Errors
/// When `agent` does not have a distribution.
fn choice_of(agent: &Agent, deterministic: bool) -> PyResult<ActionChoice> {
    let is_discrete = matches!(agent.task.actions, ActionSpace::Discrete { .. });
    match deterministic {
        true => Ok(ActionChoice::Mode),
        false if is_discrete || agent.algorithm.has_distribution() => Ok(ActionChoice::Sample),
        false => Err(wrong(format!(
            "deterministic=False: {} does not have a distribution to sample actions from. Leave \
             deterministic out",
            agent.algorithm.describe()
        ))),
    }
}

/// The checkpoint `name` of a run (`last`, `best`, or a step), or the one in the directory `run`;
/// with the choice of its acting mode.
fn open(py: Python<'_>, run: &str, name: &str) -> PyResult<(Checkpoint, OwnChoice)> {
    let path = Path::new(run);
    if path.join("model.safetensors").is_file() {
        if name != "last" {
            return Err(wrong(format!(
                "checkpoint={name}: {run} is a checkpoint itself. Use the path of its run"
            )));
        }
        let checkpoint = Checkpoint::open(path).map_err(failed)?;
        // RUN/checkpoints/step-N, which may be a relative path.
        let path = path.canonicalize().map_err(failed)?;
        let own = path.ancestors().nth(2).map(|run| RunDir::open(run, &run.to_string_lossy()));
        return match own {
            Some(Ok(run)) => Ok((checkpoint.clone(), chosen_for(&run, &checkpoint)?)),
            _ => Ok((checkpoint, OwnChoice::default())),
        };
    }
    let run = RunDir::open(Path::new("runs"), run).map_err(failed)?;
    let folder = run.checkpoints();
    let checkpoint = match name {
        "last" => Checkpoint::newest(&folder),
        "best" => Checkpoint::best(&folder),
        step => {
            let step = step.parse().map_err(|_| {
                wrong(format!("checkpoint={name}: expected last, best or the number of an update"))
            })?;
            Checkpoint::at_step(&folder, step).map(|checkpoint| (checkpoint, Vec::new()))
        }
    };
    let (checkpoint, skipped) = checkpoint.map_err(failed)?;
    for error in skipped {
        let warning = CString::new(format!("skipped a checkpoint: {error}"))?;
        PyErr::warn(py, &py.get_type::<OvertoneWarning>(), &warning, 3)?;
    }
    let own = chosen_for(&run, &checkpoint)?;
    Ok((checkpoint, own))
}

fn chosen_for(run: &RunDir, checkpoint: &Checkpoint) -> PyResult<OwnChoice> {
    OwnChoice::of(run, checkpoint).map_err(|error| wrong(format!("{error:#}")))
}
