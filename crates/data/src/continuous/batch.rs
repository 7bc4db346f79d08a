//! [`ContinuousBatch`]: windows of vectors, laid out as the model takes them.

use std::sync::Arc;

use overtone_core::Window;

use crate::continuous::dataset::ContinuousDataset;
use crate::error::DataError;
use crate::sampler::WindowSampler;

/// A batch of context windows, right-aligned: of `context_length` places, the last
/// `n_real[row]` hold timesteps, the ones before padding (zeros in every column).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContinuousBatch {
    /// Number of windows.
    pub batch: usize,
    /// Places of a window.
    pub context_length: usize,
    /// `[batch, context_length, observation_width]`, normalized.
    pub observations: Vec<f32>,
    /// `[batch, context_length, action_width]`
    pub actions: Vec<f32>,
    /// `[batch, context_length]`, raw returns-to-go divided by the return scale, the step's own
    /// reward included.
    pub returns_to_go: Vec<f32>,
    /// `[batch, context_length]`, steps since the episode began, from 0.
    pub timesteps: Vec<i32>,
    /// `[batch]`, real timesteps of each window.
    pub n_real: Vec<i32>,
    /// `[batch]`, dataset row of each window's last timestep, for reports.
    pub last_indices: Vec<u64>,
    /// Windows the sampler has drawn up to this batch's last: the cursor to store with a
    /// checkpoint made after training on it.
    pub drawn: u64,
}

impl ContinuousBatch {
    /// Draws the next `batch` windows of `dataset` into this batch, reusing its memory.
    ///
    /// # Errors
    /// [`DataError::Sampling`] when `return_scale` is not a positive number.
    ///
    /// # Panics
    /// When the sampler draws from another dataset's index: a caller's bug.
    pub fn fill(
        &mut self,
        dataset: &ContinuousDataset,
        sampler: &mut WindowSampler,
        batch: usize,
        return_scale: f32,
    ) -> Result<(), DataError> {
        assert!(Arc::ptr_eq(dataset.index(), sampler.index()), "a sampler of another dataset");
        if !(return_scale > 0.0 && return_scale.is_finite()) {
            return Err(DataError::Sampling {
                reason: format!("the return scale is {return_scale}, and must be above 0"),
            });
        }
        let context = sampler.context_length();
        let (n_observed, n_acted) = (dataset.observation_width(), dataset.action_width());
        let windows: Vec<Window> = (0..batch).map(|_| sampler.draw()).collect();

        self.batch = batch;
        self.context_length = context;
        self.drawn = sampler.drawn();
        self.n_real.clear();
        self.n_real.extend(windows.iter().map(|window| window.n_real as i32));
        self.last_indices.clear();
        self.last_indices.extend(windows.iter().map(|window| window.range().end as u64 - 1));
        self.observations.resize(batch * context * n_observed, 0.0);
        self.actions.resize(batch * context * n_acted, 0.0);
        self.returns_to_go.resize(batch * context, 0.0);
        self.timesteps.resize(batch * context, 0);

        for (row, window) in windows.iter().enumerate() {
            let places = |width: usize| row * context * width..(row + 1) * context * width;
            let observations = &mut self.observations[places(n_observed)];
            window.lay(dataset.observations(), n_observed, 0.0, observations);
            // Padding stays 0 and is not normalized, as when the agent plays.
            dataset.normalization().apply(&mut observations[window.n_padding() * n_observed..]);
            window.lay(dataset.actions(), n_acted, 0.0, &mut self.actions[places(n_acted)]);
            let to_go = &mut self.returns_to_go[places(1)];
            window.lay(dataset.returns_to_go(), 1, 0.0, to_go);
            to_go.iter_mut().for_each(|to_go| *to_go /= return_scale);
            let (pad, real) = self.timesteps[places(1)].split_at_mut(window.n_padding());
            pad.fill(0);
            for (timestep, at) in real.iter_mut().zip(window.range()) {
                *timestep = dataset.index().timestep(at) as i32;
            }
        }
        Ok(())
    }
}
