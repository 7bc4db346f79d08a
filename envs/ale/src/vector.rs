//! [`AleVectorEnv`]: ale-py's C++ vector interface with the settings of the recorded data.
//!
//! Each environment is one C++ interface with its own worker thread. A step sends the actions to the
//! selected environments, then collects the results. This takes two C++ calls for each environment
//! and no Python code. The interpreter's lock is released while the emulators run in parallel.
//!
//! A single interface for all environments would step all of them or none, including finished ones,
//! and would reset them automatically. Separate interfaces are not slower: 100 environments on two
//! cores take 5600 actions/s, compared with 5400 for a single interface.

use std::path::Path;

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn};
use overtone_core::{Actions, Observations, Outcome};
use overtone_env::{ActionSpace, EnvError, ObservationSpace, Slots, Step, VectorEnv};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{Py, intern};

use crate::python::{self, Rom, failed};
use crate::screen::{SIDE, STACK};
use crate::seed::ale_seed;
use crate::{AleError, Emulation, Game, Resize};

/// Bytes of one observation, `[STACK, SIDE, SIDE]`.
const OBSERVATION: usize = STACK * SIDE * SIDE;

/// The observation format of an environment.
const VIEW: View = View { frames: STACK, height: SIDE, width: SIDE, grey: true };

/// Environments of one game, each an emulator in its own thread.
///
/// Observations are `[4, 84, 84]` grey, oldest frame first. Frames before the episode are zero, as in
/// the Decision Transformer's reading of the DQN Replay Dataset. A reset reloads the ROM with the
/// episode's seed, so no state of the previous episode remains. It also starts a new game with
/// `terminal_on_life_loss`.
pub struct AleVectorEnv {
    game: &'static Game,
    rom: Rom,
    emulation: Emulation,
    lanes: Vec<Lane>,
    slots: Slots,
    observations: Vec<u8>,
}

/// A reset: the environment, its seed, the row of its observation, and whether it is possible.
type Job<'a> = (((&'a usize, &'a i32), &'a mut [u8]), Result<(), AleError>);

/// One emulator and the arrays of its actions.
pub(crate) struct Lane {
    ale: Py<PyAny>,
    action: Py<PyArray1<i32>>,
    paddle: Py<PyArray1<f32>>,
    /// Whether the emulator failed. It is then restarted before its next episode.
    broken: bool,
}

impl AleVectorEnv {
    /// Starts `n_envs` emulators, one after another. Each takes about 0.1 s, mostly for loading the
    /// ROM.
    ///
    /// # Errors
    /// When ale-py or the ROM is missing or has another version, or `emulation` has bilinear
    /// resizing or a double reset, which this interface does not support.
    pub fn new(
        game: &'static Game,
        emulation: &Emulation,
        n_envs: usize,
    ) -> Result<Self, AleError> {
        check(emulation)?;
        let rom = Rom::find(game)?;
        let lanes = (0..n_envs)
            .map(|_| Lane::start(game, &rom.path, emulation, &VIEW))
            .collect::<Result<Vec<_>, AleError>>()?;
        Ok(Self {
            game,
            rom,
            emulation: emulation.clone(),
            lanes,
            slots: Slots::new(n_envs),
            observations: vec![0; n_envs * OBSERVATION],
        })
    }

    /// [`reset`](VectorEnv::reset) with the emulator's own seeds, `1 ..= 2³¹ − 1`. It allows
    /// replaying a recording with a known seed.
    ///
    /// # Errors
    /// When an environment is unknown or repeated, the lengths differ, or an emulator fails.
    pub fn reset_with_ale_seeds(&mut self, envs: &[usize], seeds: &[i32]) -> Result<(), EnvError> {
        self.slots.check_reset(envs, &vec![0; seeds.len()])?;
        let ready: Vec<_> = envs.iter().map(|&env| self.make_ready(env)).collect();
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let rows = rows(&mut self.observations, envs);
        let lanes = &self.lanes;
        let mut jobs: Vec<Job<'_>> = envs.iter().zip(seeds).zip(rows).zip(ready).collect();
        // Loading a ROM takes about 0.1 s and does not hold the interpreter's lock, so several are
        // loaded in parallel.
        let chunk = envs.len().div_ceil(n_threads).max(1);
        let results: Vec<Result<(), AleError>> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            while !jobs.is_empty() {
                let some: Vec<_> = jobs.drain(..chunk.min(jobs.len())).collect();
                threads.push(scope.spawn(move || {
                    let reset = |(((&env, &seed), row), ready): Job<'_>| {
                        ready.and_then(|()| lanes[env].reset(seed, row))
                    };
                    some.into_iter().map(reset).collect::<Vec<_>>()
                }));
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().flat_map(join).collect()
        });
        self.note_failures(envs, &results);
        self.slots.after_reset(envs, results)
    }

    /// Checks the ROM and restarts a failed emulator of environment `env`.
    fn make_ready(&mut self, env: usize) -> Result<(), AleError> {
        self.rom.check()?;
        if self.lanes[env].broken {
            self.lanes[env] = Lane::start(self.game, &self.rom.path, &self.emulation, &VIEW)?;
        }
        Ok(())
    }

    fn note_failures<T>(&mut self, envs: &[usize], results: &[Result<T, AleError>]) {
        for (&env, result) in envs.iter().zip(results) {
            self.lanes[env].broken |= result.is_err();
        }
    }
}

impl VectorEnv for AleVectorEnv {
    fn n_envs(&self) -> usize {
        self.slots.n_envs()
    }

    fn observation_space(&self) -> &ObservationSpace {
        &self.game.task.observations
    }

    fn action_space(&self) -> &ActionSpace {
        &self.game.task.actions
    }

    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        let seeds: Vec<i32> = seeds.iter().map(|&seed| ale_seed(seed)).collect();
        self.reset_with_ale_seeds(envs, &seeds)
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.game.task.actions)?;
        let Actions::Discrete(actions) = actions else { unreachable!("checked above") };
        let (lanes, observations) = (&self.lanes, &mut self.observations);
        let results: Vec<Result<Step, AleError>> = Python::attach(|py| {
            let send = |(&env, &action): (&usize, &usize)| lanes[env].send(py, action);
            let sent: Vec<PyResult<()>> = envs.iter().zip(actions).map(send).collect();
            let receive = |(&env, sent): (&usize, PyResult<()>)| {
                sent.map_err(failed("sending an action"))?;
                let row = &mut observations[env * OBSERVATION..(env + 1) * OBSERVATION];
                lanes[env].receive(py, row).map_err(failed("playing"))
            };
            envs.iter().zip(sent).map(receive).collect()
        });
        self.note_failures(envs, &results);
        self.slots.after_step(envs, results)
    }

    fn observations(&self) -> Observations<'_> {
        Observations::Pixels(&self.observations)
    }
}

impl Drop for AleVectorEnv {
    /// Joins the emulators' threads immediately.
    fn drop(&mut self) {
        Python::attach(|_| self.lanes.clear());
    }
}

/// Observation format of a lane.
pub(crate) struct View {
    /// Number of stacked frames.
    pub frames: usize,
    pub height: usize,
    pub width: usize,
    /// Whether a pixel has one byte (grey) or three (colour).
    pub grey: bool,
}

impl Lane {
    /// Starts an emulator with this ROM.
    pub(crate) fn start(
        game: &'static Game,
        rom: &Path,
        emulation: &Emulation,
        picture: &View,
    ) -> Result<Self, AleError> {
        let doing = "starting an emulator";
        Python::attach(|py| {
            let class = python::ale_py(py)?.getattr("ALEVectorInterface").map_err(failed(doing))?;
            let settings = settings(py, emulation, picture).map_err(failed(doing))?;
            settings.set_item("rom_path", rom).map_err(failed(doing))?;
            let ale = class.call((), Some(&settings)).map_err(failed(doing))?;
            let actions = ale.call_method0("get_action_set").map_err(failed(doing))?;
            python::check_actions(game, &actions)?;
            Ok(Self {
                ale: ale.unbind(),
                action: PyArray1::from_slice(py, &[0]).unbind(),
                paddle: PyArray1::from_slice(py, &[1.0]).unbind(),
                broken: false,
            })
        })
    }

    /// Starts an episode and writes its first observation to `row`.
    pub(crate) fn reset(&self, seed: i32, row: &mut [u8]) -> Result<(), AleError> {
        Python::attach(|py| {
            let (index, seed) = (PyArray1::from_slice(py, &[0i64]), [i64::from(seed)]);
            let arguments = (index, PyArray1::from_slice(py, &seed));
            let answer = self.ale.bind(py).call_method1(intern!(py, "reset"), arguments)?;
            copy_observation(&answer.cast_into::<PyTuple>()?.get_item(0)?, row)
        })
        .map_err(failed("resetting"))
    }

    pub(crate) fn send(&self, py: Python<'_>, action: usize) -> PyResult<()> {
        let array = self.action.bind(py);
        array.readwrite().as_slice_mut()?[0] = action as i32;
        let arguments = (array, self.paddle.bind(py));
        self.ale.bind(py).call_method1(intern!(py, "send"), arguments).map(drop)
    }

    pub(crate) fn receive(&self, py: Python<'_>, row: &mut [u8]) -> PyResult<Step> {
        let answer = self.ale.bind(py).call_method0(intern!(py, "recv"))?;
        let answer = answer.cast_into::<PyTuple>()?;
        copy_observation(&answer.get_item(0)?, row)?;
        let reward: i32 = first(&answer.get_item(1)?)?;
        let terminated: bool = first(&answer.get_item(2)?)?;
        let truncated: bool = first(&answer.get_item(3)?)?;
        let outcome = match (terminated, truncated) {
            (true, _) => Some(Outcome::Terminated),
            (false, true) => Some(Outcome::Truncated),
            (false, false) => None,
        };
        Ok(Step { reward: reward as f32, outcome, success: None })
    }
}

/// The observation rows of the distinct `envs`, in their order.
fn rows<'a>(observations: &'a mut [u8], envs: &[usize]) -> Vec<&'a mut [u8]> {
    let mut all: Vec<Option<&mut [u8]>> = observations.chunks_mut(OBSERVATION).map(Some).collect();
    envs.iter().filter_map(|&env| all[env].take()).collect()
}

/// The value of an array of length one.
fn first<T: numpy::Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<T> {
    let array: PyReadonlyArrayDyn<'_, T> = array.extract()?;
    let values = array.as_slice()?;
    values.first().copied().ok_or_else(|| pyo3::exceptions::PyValueError::new_err("empty array"))
}

fn copy_observation(array: &Bound<'_, PyAny>, row: &mut [u8]) -> PyResult<()> {
    let array: PyReadonlyArrayDyn<'_, u8> = array.extract()?;
    let pixels = array.as_slice()?;
    if pixels.len() != row.len() {
        let message = format!("expected {} bytes of observation, got {}", row.len(), pixels.len());
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    row.copy_from_slice(pixels);
    Ok(())
}

pub(crate) fn check(emulation: &Emulation) -> Result<(), AleError> {
    let unsupported = |what: String| Err(AleError::Unsupported { what });
    if emulation.resize != Resize::MaxThenArea {
        return unsupported("bilinear resizing in the vector interface".into());
    }
    if emulation.double_reset {
        return unsupported("area resizing and a double reset together".into());
    }
    emulation.check()
}

/// All arguments of the interface, because its defaults clip rewards, press fire, and use up to 29
/// no-ops.
fn settings<'py>(
    py: Python<'py>,
    emulation: &Emulation,
    picture: &View,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = PyDict::new(py);
    settings.set_item("num_envs", 1)?;
    settings.set_item("batch_size", 0)?;
    settings.set_item("num_threads", 1)?;
    settings.set_item("thread_affinity_offset", -1)?;
    // We reset a finished environment with a seed before its next step, so it never resets itself.
    settings.set_item("autoreset_mode", "NextStep")?;
    settings.set_item("frame_skip", emulation.frame_skip)?;
    settings.set_item("stack_num", picture.frames)?;
    settings.set_item("img_height", picture.height)?;
    settings.set_item("img_width", picture.width)?;
    settings.set_item("grayscale", picture.grey)?;
    settings.set_item("maxpool", true)?;
    // The number is uniform over `0 .. noop_max`, exclusive; 0 means none.
    let noop_max = if emulation.max_noops == 0 { 0 } else { emulation.max_noops + 1 };
    settings.set_item("noop_max", noop_max)?;
    settings.set_item("use_fire_reset", false)?;
    settings.set_item("episodic_life", emulation.terminal_on_life_loss)?;
    settings.set_item("life_loss_info", false)?;
    settings.set_item("reward_clipping", false)?;
    settings.set_item("max_episode_steps", emulation.max_frames)?;
    settings.set_item("repeat_action_probability", emulation.sticky_probability)?;
    settings.set_item("full_action_space", false)?;
    Ok(settings)
}
