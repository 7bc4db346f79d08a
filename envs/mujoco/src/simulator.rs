//! A model and a simulation of it.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::library::{self, CONTROLS, Library, POSITIONS, RawData, RawModel, TIME, VELOCITIES};
use crate::{MujocoError, Revision, Robot, packages};

/// A robot and its world, read from a model file and immutable.
pub(crate) struct Model {
    library: &'static Library,
    raw: NonNull<RawModel>,
}

// SAFETY: MuJoCo only reads a model during a simulation and does not write to it.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

/// A simulation. Its state contains positions, then velocities.
pub(crate) struct Data {
    model: Arc<Model>,
    raw: NonNull<RawData>,
}

// SAFETY: MuJoCo stores nothing about a simulation in the thread that created it.
unsafe impl Send for Data {}

impl Model {
    /// Reads and checks Gymnasium's model of `robot`.
    ///
    /// # Errors
    /// When the library or the model is missing, unreadable or different from the expected one.
    pub(crate) fn load(robot: &Robot, revision: Revision) -> Result<Arc<Self>, MujocoError> {
        let library = library::load()?;
        let path = packages::model(robot, revision)?;
        let model = Arc::new(Self { library, raw: read(library, &path)? });
        model.check(robot, &path)?;
        Ok(model)
    }

    /// Checks the model's sizes, and its timestep by taking a step.
    fn check(self: &Arc<Self>, robot: &Robot, path: &Path) -> Result<(), MujocoError> {
        let expect = |what: &str, got: f64, expected: f64| {
            if got == expected {
                return Ok(());
            }
            let (got, expected) = (format!("{got} {what}"), expected.to_string());
            Err(MujocoError::OtherModel { path: path.to_owned(), got, expected })
        };
        expect("positions", self.size(POSITIONS), robot.n_positions() as f64)?;
        expect("velocities", self.size(VELOCITIES), robot.n_velocities() as f64)?;
        expect("motors", self.size(CONTROLS), robot.action_width() as f64)?;
        let mut data = Data::new(self)?;
        data.step(&vec![0.0; robot.action_width()], 1)
            .map_err(|message| MujocoError::BadModel { path: path.to_owned(), message })?;
        let mut time = [0.0];
        data.get(&mut time, TIME);
        expect("seconds a step", time[0], robot.step_seconds())
    }

    /// Size of these parts of a state.
    fn size(&self, parts: c_int) -> f64 {
        // SAFETY: the model is valid.
        f64::from(unsafe { (self.library.state_size)(self.raw.as_ptr(), parts) })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: created by `mj_loadXML`. Each simulation holds the model, so none is left.
        unsafe { (self.library.delete_model)(self.raw.as_ptr()) }
    }
}

impl Data {
    /// A simulation in the model's initial state.
    ///
    /// # Errors
    /// When MuJoCo cannot allocate memory.
    pub(crate) fn new(model: &Arc<Model>) -> Result<Self, MujocoError> {
        // SAFETY: the model is valid.
        let raw = unsafe { (model.library.make_data)(model.raw.as_ptr()) };
        let raw = NonNull::new(raw).ok_or(MujocoError::NoMemory)?;
        Ok(Self { model: model.clone(), raw })
    }

    /// Resets the simulation to `state`, `[n_positions + n_velocities]`.
    ///
    /// # Errors
    /// MuJoCo's warning, if any.
    pub(crate) fn reset(&mut self, state: &[f64]) -> Result<(), String> {
        let (library, model, raw) =
            (self.model.library, self.model.raw.as_ptr(), self.raw.as_ptr());
        library::watch(|| {
            // SAFETY: model and simulation are valid and belong together.
            unsafe { (library.reset_data)(model, raw) };
            self.set(state, POSITIONS | VELOCITIES);
            // SAFETY: as above.
            unsafe { (library.forward)(model, raw) };
        })
    }

    /// Takes `n_steps` simulator steps with these controls, `[action_width]`.
    ///
    /// # Errors
    /// MuJoCo's warning, if any. A step warns about huge or non-finite numbers, a singular inertia,
    /// or missing memory. In each case the result is not valid physics.
    pub(crate) fn step(&mut self, controls: &[f64], n_steps: usize) -> Result<(), String> {
        self.set(controls, CONTROLS);
        let (library, model, raw) =
            (self.model.library, self.model.raw.as_ptr(), self.raw.as_ptr());
        // SAFETY: model and simulation are valid and belong together.
        library::watch(|| (0..n_steps).for_each(|_| unsafe { (library.step)(model, raw) }))
    }

    /// Copies the state to `state`, `[n_positions + n_velocities]`.
    pub(crate) fn state(&self, state: &mut [f64]) {
        self.get(state, POSITIONS | VELOCITIES);
    }

    fn get(&self, values: &mut [f64], parts: c_int) {
        assert_eq!(values.len() as f64, self.model.size(parts), "size of the state");
        let (model, raw) = (self.model.raw.as_ptr(), self.raw.as_ptr());
        // SAFETY: as in `step`, and `values` is as long as MuJoCo writes.
        unsafe { (self.model.library.get_state)(model, raw, values.as_mut_ptr(), parts) };
    }

    fn set(&mut self, values: &[f64], parts: c_int) {
        assert_eq!(values.len() as f64, self.model.size(parts), "size of the state");
        let (model, raw) = (self.model.raw.as_ptr(), self.raw.as_ptr());
        // SAFETY: as in `step`, and `values` is as long as MuJoCo reads.
        unsafe { (self.model.library.set_state)(model, raw, values.as_ptr(), parts) };
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: created by `mj_makeData`, and not used again.
        unsafe { (self.model.library.delete_data)(self.raw.as_ptr()) }
    }
}

fn read(library: &Library, path: &Path) -> Result<NonNull<RawModel>, MujocoError> {
    let bad = |message: String| MujocoError::BadModel { path: path.to_owned(), message };
    let name = path.to_str().and_then(|name| CString::new(name).ok());
    let name = name.ok_or_else(|| bad("its path is not valid text".into()))?;
    let mut message: [c_char; 1024] = [0; 1024];
    let (buffer, size) = (message.as_mut_ptr(), message.len() as c_int);
    // SAFETY: a path that ends in zero, no virtual file system, and a buffer of this size.
    let raw = unsafe { (library.load_xml)(name.as_ptr(), std::ptr::null(), buffer, size) };
    NonNull::new(raw).ok_or_else(|| {
        // SAFETY: MuJoCo ends its messages with zero; the buffer was all zeros before.
        let error = unsafe { CStr::from_ptr(message.as_ptr()) };
        bad(error.to_string_lossy().trim_end().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::sentences;

    fn robot(name: &str) -> &'static Robot {
        Robot::named(name).unwrap()
    }

    #[test]
    fn models_of_other_robots_are_rejected() {
        let model = Model::load(robot("hopper"), Revision::V4).unwrap();
        let message = model.check(robot("walker2d"), Path::new("h.xml")).unwrap_err().to_string();
        sentences::check(&message);
        let model = Model::load(robot("walker2d"), Revision::V4).unwrap();
        let message =
            model.check(robot("halfcheetah"), Path::new("w.xml")).unwrap_err().to_string();
        sentences::check(&message);
    }

    #[test]
    fn invalid_model_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robot.xml");
        std::fs::write(&path, "<mujoco><worldbody><body/></mujoco>").unwrap();
        let library = library::load().unwrap();
        let message = read(library, &path).unwrap_err().to_string();
        assert!(message.starts_with("MuJoCo cannot read") && message.len() > 60, "{message}");
    }
}
