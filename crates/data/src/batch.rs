//! [`AtariBatch`]: windows of a dataset, laid out as the model takes them.

use std::sync::Arc;

use overtone_core::Window;
use rayon::prelude::*;

use crate::dataset::AtariDataset;
use crate::error::DataError;
use crate::replay_log::FRAME;
use crate::sampler::{Sampling, WindowSampler};

/// Frames of an observation: the current one and the three before it.
pub const STACK: usize = 4;

/// A batch of context windows, right-aligned: of `context_length` places, the last
/// `n_real[row]` hold timesteps, the ones before padding (zeros in every column).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtariBatch {
    /// Number of windows.
    pub batch: usize,
    /// Places of a window.
    pub context_length: usize,
    /// The distinct frames, `[batch, context_length + 3, 84, 84]`: the stack of place `k` is
    /// frames `k .. k + 4`, oldest first. Black before the episode's start and in padding.
    pub frames: Vec<u8>,
    /// Dataset row of each of those frames, `[batch, context_length + 3]`; -1 for black.
    pub frame_rows: Vec<i64>,
    /// `[batch, context_length]`, indices into the environment's action set.
    pub actions: Vec<i32>,
    /// `[batch, context_length]`, clipped units, the step's own reward included.
    pub returns_to_go: Vec<f32>,
    /// `[batch, context_length]`, steps since the episode began, from 0.
    pub timesteps: Vec<i32>,
    /// `[batch]`, the timestep at each window's first real place.
    pub first_timesteps: Vec<i32>,
    /// `[batch]`, real timesteps of each window.
    pub n_real: Vec<i32>,
    /// `[batch]`, dataset row of each window's last timestep, for reports.
    pub last_indices: Vec<u64>,
    /// Windows the sampler has drawn up to this batch's last: the cursor to store with a
    /// checkpoint made after training on it.
    pub drawn: u64,
}

impl AtariBatch {
    /// Draws the next `batch` windows of `dataset` into this batch, reusing its memory; frames
    /// are copied by the current rayon pool. `with_frames` off leaves [`AtariBatch::frames`] empty, for
    /// callers that keep all frames elsewhere and need only their rows.
    ///
    /// # Errors
    /// When the frames cannot be read.
    ///
    /// # Panics
    /// When the sampler draws from another dataset's index: a caller's bug.
    pub fn fill(
        &mut self,
        dataset: &AtariDataset,
        sampler: &mut WindowSampler,
        batch: usize,
        with_frames: bool,
    ) -> Result<(), DataError> {
        assert!(Arc::ptr_eq(dataset.index(), sampler.index()), "a sampler of another dataset");
        let context = sampler.context_length();
        let windows: Vec<Window> = (0..batch).map(|_| sampler.draw()).collect();
        // The reference's windows show whatever rows come before, where its dataset keeps the
        // padding rows that make this harmless.
        let across =
            sampler.sampling() == Sampling::Released && dataset.manifest().counts.padding_rows > 0;

        self.batch = batch;
        self.context_length = context;
        self.drawn = sampler.drawn();
        self.n_real.clear();
        self.n_real.extend(windows.iter().map(|window| window.n_real as i32));
        self.last_indices.clear();
        self.last_indices.extend(windows.iter().map(|window| window.range().end as u64 - 1));
        self.first_timesteps.clear();
        self.first_timesteps
            .extend(windows.iter().map(|window| dataset.timestep(window.first) as i32));

        for column in [&mut self.actions, &mut self.timesteps] {
            column.resize(batch * context, 0);
        }
        self.returns_to_go.resize(batch * context, 0.0);
        for (row, window) in windows.iter().enumerate() {
            let places = row * context..(row + 1) * context;
            window.lay(dataset.returns_to_go(), 1, 0.0, &mut self.returns_to_go[places.clone()]);
            let (pad, real) = self.actions[places.clone()].split_at_mut(window.n_padding());
            pad.fill(0);
            for (action, &logged) in real.iter_mut().zip(&dataset.actions()[window.range()]) {
                *action = i32::from(logged);
            }
            let (pad, real) = self.timesteps[places].split_at_mut(window.n_padding());
            pad.fill(0);
            for (timestep, at) in real.iter_mut().zip(window.range()) {
                *timestep = dataset.timestep(at) as i32;
            }
        }

        self.frame_rows.clear();
        for window in &windows {
            let earliest = if across { 0 } else { dataset.episode_start(window.first) } as i64;
            let end = window.range().end as i64;
            let first = end - (context + STACK - 1) as i64;
            self.frame_rows.extend((first..end).map(|at| if at >= earliest { at } else { -1 }));
        }
        if !with_frames {
            self.frames.clear();
            return Ok(());
        }
        let distinct = context + STACK - 1;
        self.frames.resize(self.frame_rows.len() * FRAME, 0);
        let windows = self.frames.par_chunks_mut(distinct * FRAME);
        windows
            .zip(self.frame_rows.par_chunks(distinct))
            .try_for_each(|(frames, rows)| lay_frames(dataset, rows, frames))
    }
}

/// Copies the frames of `rows`, which are -1 up to some place and consecutive from there.
fn lay_frames(dataset: &AtariDataset, rows: &[i64], out: &mut [u8]) -> Result<(), DataError> {
    let black = rows.iter().take_while(|&&row| row < 0).count();
    let (before, real) = out.split_at_mut(black * FRAME);
    before.fill(0);
    rows.get(black).map_or(Ok(()), |&first| dataset.read_frames(first as usize, real))
}
