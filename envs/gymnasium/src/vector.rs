//! [`GymnasiumVectorEnv`]: several environments in one interpreter, each with its own episode.
//!
//! One call into Python steps the selected environments, one after the other. Gymnasium's vector
//! environments are not used, because they step all environments or none and reset automatically.

use std::collections::HashMap;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use overtone_core::{ActionSpace, Actions, ObservationSpace, Observations, Outcome, Task};
use overtone_env::{EnvError, Slots, Step, VectorEnv};
use pyo3::prelude::*;
use pyo3::{Py, intern};

use crate::python::{creation_error, failed, helper, options};
use crate::{GymnasiumError, TaskName};
use overtone_core::picture::{Picture, SIDE, STACK};

/// Bytes of an image observation.
const PICTURE: usize = STACK * SIDE * SIDE;

/// Environments of one task.
pub struct GymnasiumVectorEnv {
    /// The helper's batch.
    batch: Py<PyAny>,
    slots: Slots,
    shown: Shown,
    observation_space: ObservationSpace,
    action_space: ActionSpace,
    /// `[n_envs, n_actions]`, once an environment says which actions are allowed.
    allowed: Option<Vec<bool>>,
}

/// The observations of all environments.
enum Shown {
    /// `[n_envs, width]`
    Numbers { width: usize, values: Vec<f32> },
    /// `[n_envs, 4, 84, 84]`
    Pictures { picture: Picture, frames: Vec<u8> },
}

impl GymnasiumVectorEnv {
    /// Creates `n_envs` environments of `task`.
    ///
    /// `image` is the shape of image observations; without it the bytes of an image are numbers.
    /// `max_steps` replaces Gymnasium's limit of an episode's actions; 0 removes it.
    ///
    /// # Errors
    /// When an environment cannot be created.
    pub fn new(
        task: &Task,
        name: &TaskName,
        image: Option<Picture>,
        max_steps: Option<u32>,
        n_envs: usize,
    ) -> Result<Self, GymnasiumError> {
        let batch = Python::attach(|py| {
            let class = helper(py)?.getattr("Batch").map_err(failed("making environments"))?;
            let batch =
                class.call1((&name.id, options(py, name)?, max_steps, n_envs, image.is_none()));
            Ok::<_, GymnasiumError>(
                batch.map_err(|error| creation_error(py, name, &error))?.unbind(),
            )
        })?;
        let shown = match image {
            Some(picture) => Shown::Pictures { picture, frames: vec![0; n_envs * PICTURE] },
            None => {
                let width = task.observations.size();
                Shown::Numbers { width, values: vec![0.0; n_envs * width] }
            }
        };
        Ok(Self {
            batch,
            slots: Slots::new(n_envs),
            shown,
            observation_space: task.observations.clone(),
            action_space: task.actions.clone(),
            allowed: None,
        })
    }

    /// Copies the observation of environment `env`. `first` marks the first step of an episode.
    fn show(&mut self, rows: &Rows<'_>, env: usize, first: bool) -> Result<(), GymnasiumError> {
        match (&mut self.shown, rows) {
            (Shown::Numbers { width, values }, Rows::Numbers(rows)) => {
                let range = env * *width..(env + 1) * *width;
                let Some(row) = rows.as_slice().ok().and_then(|rows| rows.get(range.clone()))
                else {
                    return Err(misshapen());
                };
                if let Some(at) = row.iter().position(|number| !number.is_finite()) {
                    let message = format!("observed {} as number {at}, from 0", row[at]);
                    return Err(GymnasiumError::Environment(message));
                }
                values[range].copy_from_slice(row);
            }
            (Shown::Pictures { picture, frames }, Rows::Images(rows)) => {
                let range = env * picture.size()..(env + 1) * picture.size();
                let Some(row) = rows.as_slice().ok().and_then(|rows| rows.get(range)) else {
                    return Err(misshapen());
                };
                picture.show(row, first, &mut frames[env * PICTURE..(env + 1) * PICTURE]);
            }
            _ => return Err(misshapen()),
        }
        Ok(())
    }

    /// The results of `envs`. Their observations are in the helper's rows, and `failures` has the
    /// errors by position in the call.
    fn collect(
        &mut self,
        py: Python<'_>,
        envs: &[usize],
        failures: Vec<(usize, String)>,
        first: bool,
    ) -> Result<Vec<Result<(), GymnasiumError>>, GymnasiumError> {
        let rows = self.batch.bind(py).getattr(intern!(py, "rows")).map_err(failed("looking"))?;
        let rows = match &self.shown {
            Shown::Numbers { .. } => rows.extract().map(Rows::Numbers),
            Shown::Pictures { .. } => rows.extract().map(Rows::Images),
        };
        let rows = rows.map_err(failed("looking"))?;
        let masks = self.batch.bind(py).getattr(intern!(py, "masks"));
        let masks = masks.and_then(|masks| masks.extract::<Option<PyReadonlyArray2<'_, bool>>>());
        let masks = masks.map_err(failed("looking"))?;
        self.allowed = masks.and_then(|masks| masks.as_slice().ok().map(<[bool]>::to_vec));
        let mut results: Vec<Result<(), GymnasiumError>> = envs.iter().map(|_| Ok(())).collect();
        for (position, message) in failures {
            if let Some(result) = results.get_mut(position) {
                *result = Err(GymnasiumError::Environment(message));
            }
        }
        for (&env, result) in envs.iter().zip(&mut results) {
            if result.is_ok() {
                *result = self.show(&rows, env, first);
                if result.is_err() {
                    self.give_up(py, env)?;
                }
            }
        }
        Ok(results)
    }

    /// Closes the failed environment `env`. It is created again for its next episode.
    fn give_up(&self, py: Python<'_>, env: usize) -> Result<(), GymnasiumError> {
        let given_up = self.batch.bind(py).call_method1(intern!(py, "give_up"), (env,));
        given_up.map(drop).map_err(failed("closing an environment"))
    }
}

/// The helper's array of observations.
enum Rows<'py> {
    Numbers(PyReadonlyArray2<'py, f32>),
    Images(PyReadonlyArray2<'py, u8>),
}

fn misshapen() -> GymnasiumError {
    GymnasiumError::Environment("the observations do not match the observation space".into())
}

impl VectorEnv for GymnasiumVectorEnv {
    fn n_envs(&self) -> usize {
        self.slots.n_envs()
    }

    fn observation_space(&self) -> &ObservationSpace {
        &self.observation_space
    }

    fn action_space(&self) -> &ActionSpace {
        &self.action_space
    }

    /// Many environments store a seed in 32 bits, some with a sign.
    fn seed_bits(&self) -> u32 {
        31
    }

    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.slots.check_reset(envs, seeds)?;
        if envs.is_empty() {
            return Ok(());
        }
        let results = Python::attach(|py| {
            let answer = self
                .batch
                .bind(py)
                .call_method1(intern!(py, "reset"), (envs.to_vec(), seeds.to_vec()));
            let failures = answer.and_then(|answer| answer.extract());
            let failures = failures.map_err(failed("resetting"))?;
            self.collect(py, envs, failures, true)
        })?;
        self.slots.after_reset(envs, results)
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.action_space)?;
        let results = Python::attach(|py| {
            let batch = self.batch.bind(py);
            let method = intern!(py, "step");
            let answer = match actions {
                Actions::Discrete(indices) => {
                    batch.call_method1(method, (envs.to_vec(), indices.clone()))
                }
                Actions::Continuous { width, values } => {
                    let numbers = PyArray1::from_slice(py, values);
                    numbers.reshape([envs.len(), *width]).and_then(
                        |rows: Bound<'_, PyArray2<f32>>| {
                            batch.call_method1(method, (envs.to_vec(), rows))
                        },
                    )
                }
            };
            type Successes = HashMap<usize, Option<bool>>;
            type Answer = (Vec<f64>, Vec<u8>, Successes, Vec<(usize, String)>);
            let answer: PyResult<Answer> = answer.and_then(|answer| answer.extract());
            let (rewards, endings, successes, failures) = answer.map_err(failed("playing"))?;
            let results = self.collect(py, envs, failures, false)?;
            let steps: Vec<_> = results
                .into_iter()
                .zip(rewards.into_iter().zip(endings))
                .enumerate()
                .map(|(position, (seen, (reward, ending)))| {
                    let success = successes.get(&position).copied().flatten();
                    seen.and_then(|()| step(reward, ending, success))
                })
                .collect();
            for (&env, step) in envs.iter().zip(&steps) {
                if step.is_err() {
                    self.give_up(py, env)?;
                }
            }
            Ok::<_, GymnasiumError>(steps)
        })?;
        self.slots.after_step(envs, results)
    }

    fn allowed_actions(&self) -> Option<&[bool]> {
        self.allowed.as_deref()
    }

    fn observations(&self) -> Observations<'_> {
        match &self.shown {
            Shown::Numbers { values, .. } => Observations::Vectors(values),
            Shown::Pictures { frames, .. } => Observations::Pixels(frames),
        }
    }
}

/// The step of one environment.
fn step(reward: f64, ending: u8, success: Option<bool>) -> Result<Step, GymnasiumError> {
    if !(reward as f32).is_finite() {
        return Err(GymnasiumError::Environment(format!("returned a reward of {reward}")));
    }
    let outcome = match ending {
        0 => None,
        1 => Some(Outcome::Terminated),
        _ => Some(Outcome::Truncated),
    };
    Ok(Step { reward: reward as f32, outcome, success })
}

impl Drop for GymnasiumVectorEnv {
    /// Closes the environments immediately.
    fn drop(&mut self) {
        Python::attach(|py| {
            // An error of `close` is ignored.
            let _ = self.batch.bind(py).call_method0("close");
        });
    }
}
