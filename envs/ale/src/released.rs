//! [`ReleasedAle`]: the Decision Transformer's released evaluation, from raw screens.
//!
//! It differs from the recording in three ways:
//! - Each of the last two screens is resized bilinearly before their maximum is taken.
//! - An episode starts with 0 to 29 no-ops.
//! - Every episode is reset twice. The first observation comes from the first reset, and the episode
//!   continues after the second.
//!
//! It is meant for comparison with published scores. The emulators run sequentially, one raw frame
//! at a time, under Python's lock. This is slower than [`AleVectorEnv`](crate::AleVectorEnv).

use numpy::{PyArray2, PyArrayMethods};
use overtone_core::seed::{Generator, derive};
use overtone_core::{Actions, Observations, Outcome};
use overtone_env::{ActionSpace, EnvError, ObservationSpace, Slots, Step, VectorEnv};
use pyo3::intern;
use pyo3::prelude::*;
use rand::{RngExt, SeedableRng};

use crate::python::{self, Rom, failed};
use crate::screen::{Bilinear, RAW, SIDE, STACK};
use crate::seed::ale_seed;
use crate::{AleError, Emulation, Game, Resize};

const FRAME: usize = SIDE * SIDE;
const OBSERVATION: usize = STACK * FRAME;

/// Environments of one game, driven by raw frames.
///
/// Observations are `[4, 84, 84]` grey, oldest frame first. Frames before the episode are zero.
pub struct ReleasedAle {
    game: &'static Game,
    emulation: Emulation,
    rom: Rom,
    /// ale-py's class.
    class: Py<PyAny>,
    lanes: Vec<ReleasedLane>,
    slots: Slots,
    observations: Vec<u8>,
    resize: Bilinear,
}

/// One emulator.
struct ReleasedLane {
    ale: Py<PyAny>,
    screen: Py<PyArray2<u8>>,
    /// The last frames. After a double reset they differ from the shown observation.
    stack: Vec<u8>,
    lives: i32,
    /// Whether the emulator failed. It is then restarted before its next episode.
    broken: bool,
}

impl ReleasedAle {
    /// Starts `n_envs` emulators.
    ///
    /// # Errors
    /// When ale-py or the ROM is missing or has another version, or `emulation` has area resizing.
    pub fn new(
        game: &'static Game,
        emulation: &Emulation,
        n_envs: usize,
    ) -> Result<Self, AleError> {
        if emulation.resize != Resize::BilinearThenMax {
            let what = "area resizing from raw screens".into();
            return Err(AleError::Unsupported { what });
        }
        emulation.check()?;
        let rom = Rom::find(game)?;
        let (class, lanes) = Python::attach(|py| {
            let doing = "starting an emulator";
            let module = python::ale_py(py)?;
            let class = module.getattr("ALEInterface").map_err(failed(doing))?;
            let quiet = || {
                class.call_method1(
                    "setLoggerMode",
                    (module.getattr("LoggerMode")?.getattr("Error")?,),
                )
            };
            quiet().map_err(failed(doing))?;
            let lane = |_| ReleasedLane::start(game, &class, emulation, &rom);
            let lanes = (0..n_envs).map(lane).collect::<Result<Vec<_>, AleError>>()?;
            Ok::<_, AleError>((class.unbind(), lanes))
        })?;
        Ok(Self {
            game,
            emulation: emulation.clone(),
            rom,
            class,
            lanes,
            slots: Slots::new(n_envs),
            observations: vec![0; n_envs * OBSERVATION],
            resize: Bilinear::new(RAW, [SIDE, SIDE]),
        })
    }

    /// Checks the ROM and restarts a failed emulator of environment `env`.
    fn make_ready(&mut self, py: Python<'_>, env: usize) -> Result<(), AleError> {
        self.rom.check()?;
        if self.lanes[env].broken {
            let class = self.class.bind(py);
            self.lanes[env] = ReleasedLane::start(self.game, class, &self.emulation, &self.rom)?;
        }
        Ok(())
    }

    fn reset_one(&mut self, py: Python<'_>, env: usize, seed: u64) -> PyResult<()> {
        let mut noops = Generator::seed_from_u64(derive(seed, "noops"));
        let lane = &mut self.lanes[env];
        let ale = lane.ale.bind(py);
        ale.call_method1(intern!(py, "setInt"), ("random_seed", ale_seed(seed)))?;
        ale.call_method1(intern!(py, "loadROM"), (&self.rom.path,))?;
        let shown = &mut self.observations[env * OBSERVATION..(env + 1) * OBSERVATION];
        for reset in 0..=usize::from(self.emulation.double_reset) {
            lane.begin(py, noops.random_range(0..=self.emulation.max_noops))?;
            lane.stack.fill(0);
            let newest = &mut lane.stack[OBSERVATION - FRAME..];
            observe(py, &lane.ale, &lane.screen, &mut self.resize, newest)?;
            // The first of two resets is shown, and the second is played.
            if reset == 0 {
                shown.copy_from_slice(&lane.stack);
            }
        }
        lane.lives = lane.lives_left(py)?;
        Ok(())
    }

    fn step_one(&mut self, py: Python<'_>, env: usize, action: usize) -> PyResult<Step> {
        let lane = &mut self.lanes[env];
        let mut frames = vec![0; 2 * FRAME];
        // The raw-frame interface expects the emulator's ids, not indices.
        let action = self.game.action_ids[action];
        let mut reward = 0;
        let mut outcome = None;
        let skip = self.emulation.frame_skip;
        for frame in 0..skip {
            reward += lane.act(py, action)?;
            // The last two screens are read before the check for the end of the game.
            if frame + 2 >= skip {
                let place = (frame + 2 - skip) as usize * FRAME;
                let out = &mut frames[place..place + FRAME];
                observe(py, &lane.ale, &lane.screen, &mut self.resize, out)?;
            }
            outcome = lane.outcome(py)?;
            if outcome.is_some() {
                break;
            }
        }
        lane.stack.copy_within(FRAME.., 0);
        let newest = &mut lane.stack[OBSERVATION - FRAME..];
        let (third, fourth) = frames.split_at(FRAME);
        for ((out, &a), &b) in newest.iter_mut().zip(third).zip(fourth) {
            *out = a.max(b);
        }
        let lives = lane.lives_left(py)?;
        if self.emulation.terminal_on_life_loss && lives < lane.lives && outcome.is_none() {
            outcome = Some(Outcome::Terminated);
        }
        lane.lives = lives;
        let shown = &mut self.observations[env * OBSERVATION..(env + 1) * OBSERVATION];
        shown.copy_from_slice(&lane.stack);
        Ok(Step { reward: reward as f32, outcome, success: None })
    }
}

impl ReleasedLane {
    fn start(
        game: &'static Game,
        class: &Bound<'_, PyAny>,
        emulation: &Emulation,
        rom: &Rom,
    ) -> Result<Self, AleError> {
        let doing = "starting an emulator";
        let py = class.py();
        let ale = start(py, class, emulation, &rom.path).map_err(failed(doing))?;
        let actions = ale.call_method0("getMinimalActionSet").map_err(failed(doing))?;
        python::check_actions(game, &actions)?;
        Ok(Self {
            ale: ale.unbind(),
            screen: PyArray2::zeros(py, RAW, false).unbind(),
            stack: vec![0; OBSERVATION],
            lives: 0,
            broken: false,
        })
    }

    /// Starts a new game and runs `noops` raw frames without input.
    fn begin(&self, py: Python<'_>, noops: u32) -> PyResult<()> {
        let ale = self.ale.bind(py);
        ale.call_method0(intern!(py, "reset_game"))?;
        for _ in 0..noops {
            self.act(py, 0)?;
            if ale.call_method0(intern!(py, "game_over"))?.extract()? {
                ale.call_method0(intern!(py, "reset_game"))?;
            }
        }
        Ok(())
    }

    /// Runs one raw frame and returns its raw reward.
    fn act(&self, py: Python<'_>, action: usize) -> PyResult<i64> {
        self.ale.bind(py).call_method1(intern!(py, "act"), (action,))?.extract()
    }

    fn lives_left(&self, py: Python<'_>) -> PyResult<i32> {
        self.ale.bind(py).call_method0(intern!(py, "lives"))?.extract()
    }

    fn outcome(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        let ale = self.ale.bind(py);
        if !ale.call_method0(intern!(py, "game_over"))?.extract()? {
            return Ok(None);
        }
        let truncated: bool = ale.call_method0(intern!(py, "game_truncated"))?.extract()?;
        Ok(Some(if truncated { Outcome::Truncated } else { Outcome::Terminated }))
    }
}

/// Writes the emulator's resized screen to `out`.
fn observe(
    py: Python<'_>,
    ale: &Py<PyAny>,
    screen: &Py<PyArray2<u8>>,
    resize: &mut Bilinear,
    out: &mut [u8],
) -> PyResult<()> {
    let screen = screen.bind(py);
    ale.bind(py).call_method1(intern!(py, "getScreenGrayscale"), (screen,))?;
    resize.resize(screen.readonly().as_slice()?, out);
    Ok(())
}

fn start<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    emulation: &Emulation,
    rom: &std::path::Path,
) -> PyResult<Bound<'py, PyAny>> {
    let ale = class.call0()?;
    let sticky = ("repeat_action_probability", emulation.sticky_probability);
    ale.call_method1(intern!(py, "setFloat"), sticky)?;
    let limit = ("max_num_frames_per_episode", emulation.max_frames);
    ale.call_method1(intern!(py, "setInt"), limit)?;
    ale.call_method1(intern!(py, "loadROM"), (rom,))?;
    Ok(ale)
}

impl VectorEnv for ReleasedAle {
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
        self.slots.check_reset(envs, seeds)?;
        let mut results = Vec::with_capacity(envs.len());
        for (&env, &seed) in envs.iter().zip(seeds) {
            let result = Python::attach(|py| {
                self.make_ready(py, env)?;
                self.reset_one(py, env, seed).map_err(failed("resetting"))
            });
            self.lanes[env].broken = result.is_err();
            results.push(result);
        }
        self.slots.after_reset(envs, results)
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.game.task.actions)?;
        let Actions::Discrete(actions) = actions else { unreachable!("checked above") };
        let mut results = Vec::with_capacity(envs.len());
        for (&env, &action) in envs.iter().zip(actions) {
            let result =
                Python::attach(|py| self.step_one(py, env, action)).map_err(failed("playing"));
            self.lanes[env].broken = result.is_err();
            results.push(result);
        }
        self.slots.after_step(envs, results)
    }

    fn observations(&self) -> Observations<'_> {
        Observations::Pixels(&self.observations)
    }
}

impl Drop for ReleasedAle {
    fn drop(&mut self) {
        Python::attach(|_| self.lanes.clear());
    }
}
