//! Rendered pictures of an environment, for videos.

use numpy::{PyReadonlyArray3, PyUntypedArrayMethods};
use overtone_core::Actions;
use overtone_env::{Camera, EnvError, Picture};
use pyo3::prelude::*;

use crate::python::{creation_error, failed, helper, options, raised};
use crate::{GymnasiumError, TaskName};

/// An environment with rendering. With the same seed and actions it plays the same episode as an
/// environment of [`GymnasiumVectorEnv`](crate::GymnasiumVectorEnv).
pub struct Rendered {
    camera: Py<PyAny>,
    name: TaskName,
    size: [usize; 2],
    rgb: Vec<u8>,
}

impl Rendered {
    /// Creates the environment.
    ///
    /// # Errors
    /// When the environment cannot be created.
    pub fn open(name: &TaskName, max_steps: Option<u32>) -> Result<Self, GymnasiumError> {
        let camera = Python::attach(|py| {
            let class = helper(py)?.getattr("Camera").map_err(failed("making a camera"))?;
            let camera = class.call1((&name.id, options(py, name)?, max_steps));
            Ok::<_, GymnasiumError>(
                camera.map_err(|error| creation_error(py, name, &error))?.unbind(),
            )
        })?;
        Ok(Self { camera, name: name.clone(), size: [0, 0], rgb: Vec::new() })
    }

    fn store(&mut self, py: Python<'_>, image: PyResult<Bound<'_, PyAny>>) -> Result<(), EnvError> {
        let image = image.map_err(|error| {
            let [kind, message] = raised(py, &error);
            GymnasiumError::Environment(format!(
                "{} cannot be rendered: {kind}: {message}",
                self.name
            ))
        })?;
        let image: PyReadonlyArray3<'_, u8> = image.extract().map_err(|_| {
            GymnasiumError::Environment(format!("{} does not render a picture", self.name))
        })?;
        let &[height, width, channels] = image.shape() else { unreachable!("of three axes") };
        let pixels = image.as_slice().map_err(|error| failed("rendering")(error.into()))?;
        let colours = |pixel: &[u8]| [pixel[0], pixel[1 % channels], pixel[2 % channels]];
        self.size = [width, height];
        self.rgb = pixels.chunks(channels.max(1)).flat_map(colours).collect();
        Ok(())
    }
}

impl Camera for Rendered {
    fn reset(&mut self, seed: u64) -> Result<(), EnvError> {
        Python::attach(|py| {
            let image = self.camera.bind(py).call_method1("reset", (seed,));
            self.store(py, image)
        })
    }

    fn step(&mut self, actions: &Actions) -> Result<(), EnvError> {
        Python::attach(|py| {
            let camera = self.camera.bind(py);
            let image = match actions {
                Actions::Discrete(indices) => {
                    camera.call_method1("step", (indices.first().copied().unwrap_or(0),))
                }
                Actions::Continuous { values, .. } => {
                    camera.call_method1("step", (numpy::PyArray1::from_slice(py, values),))
                }
            };
            self.store(py, image)
        })
    }

    fn picture(&self) -> Picture {
        Picture::Screen { size: self.size, rgb: self.rgb.clone() }
    }
}

impl Drop for Rendered {
    /// Closes the environment immediately.
    fn drop(&mut self) {
        Python::attach(|py| {
            // An error of `close` is ignored.
            let _ = self.camera.bind(py).call_method0("close");
        });
    }
}
