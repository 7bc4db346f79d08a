//! [`Agents`]: a trained agent that acts, many episodes at once.

use std::{
    ffi::CString,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArrayDyn};
use overtone::OwnChoice;
use overtone_agents::{Agent, policy};
use overtone_core::{
    ActionSpace, Actions, ObservationSpace, Observations, Policy, Turn,
    policy::EpisodeStart,
    protocol::{ActionChoice, ReturnUnits},
    seed,
};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir};
use pyo3::{
    exceptions::{PyUserWarning, PyValueError},
    prelude::*,
};

use crate::program::OvertoneError;

/// A checkpoint's agent, acting in several episodes that know nothing of one another; on any
/// thread, which waits its turn while other Python code runs on.
#[pyclass(module = "overtone._overtone", frozen)]
pub struct Agents {
    acting: Mutex<Acting>,
    agent: Agent,
    target_return: f32,
    /// Those of what is asked for: environments give raw rewards.
    units: ReturnUnits,
    /// Told in place of a return; 0: a return is told.
    top_percent: f32,
    /// How actions are chosen where a call does not say it.
    choice: ActionChoice,
    seed: u64,
    n_agents: usize,
}

/// What a call changes.
struct Acting {
    policy: Box<dyn Policy>,
    /// Episodes begun, by each agent.
    episodes: Vec<u64>,
    /// How the last actions were chosen.
    choice: ActionChoice,
    /// The bins of the last call: how many, and their probabilities, a row for each turn.
    played: Option<(usize, Vec<f64>)>,
}

/// Observations that no other thread can change.
enum Seen {
    Vectors(Vec<f32>),
    Pixels(Vec<u8>),
}

/// What each agent is told beside its observation.
struct Told {
    /// Which act; all where none is said.
    agents: Option<Vec<i64>>,
    rewards: Option<Vec<f32>>,
    starts: Option<Vec<bool>>,
    targets: Option<Vec<f32>>,
}

fn failed(error: impl std::fmt::Display) -> PyErr {
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
    /// `run` is a run's folder, or a checkpoint's; `target_return` a number or a percentile of
    /// the data's returns (`"p95"`); empty: the default's, and what was chosen for the run.
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
        let (top_percent, units) = (play.acting.top_percent, play.return_units);
        Ok(Self { acting, agent, target_return, units, top_percent, choice, seed, n_agents })
    }

    /// The task, as `suite/name`.
    #[getter]
    fn task(&self) -> String {
        self.agent.task.id()
    }

    /// What the agent is asked for.
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

    /// How many actions there are; `None` for real-valued ones.
    #[getter]
    fn n_actions(&self) -> Option<usize> {
        match &self.agent.task.actions {
            ActionSpace::Discrete { names } => Some(names.len()),
            ActionSpace::Continuous { .. } => None,
        }
    }

    /// The names of the actions, as the environment has them; `None` for real-valued ones.
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
        let is_told_return = self.top_percent == 0.0 && !self.agent.delayed_reward;
        self.agent.algorithm.reads_returns() && is_told_return
    }

    /// Lets each agent's next observation begin its first episode again.
    fn reset(&self, py: Python<'_>) {
        py.detach(|| self.acting().episodes.fill(0));
    }

    /// Actions for `observations`, `[n, …]`, of `agents` (all of them); rewards for their previous
    /// actions (0); `starts` where an episode begins, as an agent's first turn does, which is
    /// asked for `targets` (what all are). `deterministic`: the most probable actions, or draws
    /// (as the policy was made).
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
    ) -> PyResult<Bound<'py, PyAny>> {
        let told = Told {
            agents: numbers(agents)?,
            rewards: numbers(rewards)?,
            starts: numbers(starts)?,
            targets: numbers(targets)?,
        };
        if told.targets.is_some() && self.top_percent > 0.0 {
            return Err(wrong(format!(
                "target_returns: this agent acts as in the top {} % of the recording and is told \
                 no return; load it with a target_return, or with top_percent=0",
                self.top_percent
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
        let n = told.agents.as_ref().map_or(self.n_agents, Vec::len);
        let choice = match deterministic {
            Some(deterministic) => choice_of(&self.agent, deterministic)?,
            None => self.choice,
        };
        let acted = py.detach(|| self.acted(n, &seen, &told, choice))?;
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

    /// The probabilities that the last actions were drawn from, `[n, actions]`; `None` for
    /// policies that keep none.
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
    /// Its turn: never while Python waits for this thread.
    fn acting(&self) -> MutexGuard<'_, Acting> {
        self.acting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actions of `n` agents.
    fn acted(&self, n: usize, seen: &Seen, told: &Told, choice: ActionChoice) -> PyResult<Actions> {
        let mut acting = self.acting();
        let turns = self.turns(n, told, &acting.episodes)?;
        let size = self.agent.task.observations.size();
        let (got, expected) = (seen.len(), n * size);
        if got != expected {
            return Err(wrong(format!(
                "observations: {got} numbers for {n} agents, {size} each expected"
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
        let acted = acting.policy.act(&turns, observations).map_err(failed)?;
        // Not before: a call that is refused begins no episode.
        for turn in turns.iter().filter(|turn| turn.start.is_some()) {
            acting.episodes[turn.agent] += 1;
        }
        acting.played = acting.policy.played().map(|played| {
            let bins = played.actions.len();
            // By the environment's numbers, whatever the order of the bins.
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

    /// What the policy is told of `n` agents, of which each has begun so many episodes.
    fn turns(&self, n: usize, told: &Told, episodes: &[u64]) -> PyResult<Vec<Turn>> {
        let mut turns = Vec::with_capacity(n);
        for row in 0..n {
            let agent = told.agents.as_ref().map_or(row as i64, |agents| agents[row]);
            let place = usize::try_from(agent).ok().filter(|agent| *agent < self.n_agents);
            let Some(agent) = place else {
                return Err(wrong(format!(
                    "agents: row {row} is {agent}, and there are {}",
                    self.n_agents
                )));
            };
            let begun = episodes[agent];
            let begins = begun == 0 || told.starts.as_ref().is_some_and(|starts| starts[row]);
            let start = begins.then(|| {
                let of_agent = seed::derive_nth(seed::derive(self.seed, "episodes"), agent as u64);
                EpisodeStart {
                    seed: seed::derive_nth(of_agent, begun + 1),
                    target_return: told.targets.as_ref().map_or(self.target_return, |all| all[row]),
                }
            });
            let reward = self.units.of(told.rewards.as_ref().map_or(0.0, |all| all[row]));
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

/// The most probable action, or a draw.
///
/// # Errors
/// When `agent` has nothing to draw from.
fn choice_of(agent: &Agent, deterministic: bool) -> PyResult<ActionChoice> {
    let is_list = matches!(agent.task.actions, ActionSpace::Discrete { .. });
    match deterministic {
        true => Ok(ActionChoice::Mode),
        false if is_list || agent.algorithm.has_distribution() => Ok(ActionChoice::Sample),
        false => Err(wrong(format!(
            "deterministic=False: {} has no distribution that actions are drawn from; leave \
             deterministic out",
            agent.algorithm.describe()
        ))),
    }
}

/// The checkpoint `name` of a run (`last`, `best`, or a step), or the one in the folder `run`; and
/// what was chosen of how it is played.
fn open(py: Python<'_>, run: &str, name: &str) -> PyResult<(Checkpoint, OwnChoice)> {
    let path = Path::new(run);
    if path.join("model.safetensors").is_file() {
        if name != "last" {
            return Err(wrong(format!("checkpoint={name}: {run} is one itself; name its run")));
        }
        let checkpoint = Checkpoint::open(path).map_err(failed)?;
        // RUN/checkpoints/step-N, which may be named from within.
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
                wrong(format!("checkpoint={name}: last, best or the number of an update"))
            })?;
            Checkpoint::at_step(&folder, step).map(|checkpoint| (checkpoint, Vec::new()))
        }
    };
    let (checkpoint, skipped) = checkpoint.map_err(failed)?;
    for error in skipped {
        let told = CString::new(format!("skipped a checkpoint: {error}"))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &told, 3)?;
    }
    let own = chosen_for(&run, &checkpoint)?;
    Ok((checkpoint, own))
}

fn chosen_for(run: &RunDir, checkpoint: &Checkpoint) -> PyResult<OwnChoice> {
    OwnChoice::of(run, checkpoint).map_err(|error| wrong(format!("{error:#}")))
}
