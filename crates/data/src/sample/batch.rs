//! [`Batch`]: windows of a dataset in the layout of a model's input.

use std::sync::Arc;

use overtone_core::picture::{FRAME, STACK};
use overtone_core::{ActionScale, Outcome, Window};
use rayon::prelude::*;

use crate::error::DataError;
use crate::read::column::ActionColumn;
use crate::sample::dataset::{Dataset, StoredObservations};
use crate::sample::sampler::{Sampling, WindowSampler};

/// A batch of context windows, right-aligned: the last `n_real[row]` of `context_length` places
/// hold timesteps, the places before hold padding (zeros in every column).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of windows.
    pub batch: usize,
    /// Places of a window.
    pub context_length: usize,
    /// The observations.
    pub observations: BatchObservations,
    /// The actions.
    pub actions: BatchActions,
    /// `[batch, context_length]`, the dataset's returns-to-go divided by the return scale, the
    /// step's own reward included.
    pub returns_to_go: Vec<f32>,
    /// `[batch, context_length]`, the factor of each step's loss; empty if the dataset has no
    /// [weights](Dataset::step_weights).
    pub step_weights: Vec<f32>,
    /// `[batch, context_length, actions]`, whether each discrete action is allowed; empty if the
    /// dataset has no [masks](Dataset::has_action_masks). In padding, all are.
    pub allowed_actions: Vec<bool>,
    /// `[batch, context_length]`, steps since the episode began, from 0.
    pub timesteps: Vec<i32>,
    /// `[batch]`, real timesteps of each window.
    pub n_real: Vec<i32>,
    /// `[batch]`, dataset row of each window's last timestep, for reports.
    pub last_indices: Vec<u64>,
    /// Windows the sampler has drawn up to this batch's last: the cursor to store with a
    /// checkpoint made after training on it.
    pub drawn: u64,
    /// `[batch]`: for a window that was drawn from the best episodes, the index of its percentage
    /// in [`WindowSampler::with_top_percents`].
    pub top_percent_idx: Vec<Option<u8>>,
    /// The next steps, if requested ([`BatchOptions::transitions`]).
    pub transitions: Option<Transitions>,
}

/// Observations of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchObservations {
    /// Every frame once: the stack of place `k` is frames `k .. k + stack`, oldest first.
    Frames {
        /// The distinct frames, `[batch, context_length + stack - 1, height, width]`; black
        /// before the episode's start and in padding.
        pixels: Vec<u8>,
        /// Dataset row of each of those frames, `[batch, context_length + stack - 1]`; -1 for
        /// black.
        rows: Vec<i64>,
    },
    /// `[batch, context_length, width]`, normalized.
    Vectors(Vec<f32>),
}

/// Actions of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchActions {
    /// `[batch, context_length]`, indices into the task's actions.
    Discrete(Vec<i32>),
    /// `[batch, context_length, width]`
    Continuous(Vec<f32>),
}

/// How far ahead the target of a value looks: `R = Σ_{i<m} γ^i r_{t+i}` and the value of step
/// `t + m`, with the largest `m ≤ n_steps` at which the recording still gives a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookahead {
    /// The most steps, at least 1.
    pub n_steps: usize,
    /// γ, the discount of each step; without effect on one step.
    pub gamma: f64,
    /// Recorded actions that are one action of the batch, at most `n_steps`: those of the first steps,
    /// which are played whatever is observed meanwhile. A step whose chunk the recording cuts has no
    /// target. After the end of the task, the last action is repeated.
    pub chunk_size: usize,
}

impl Lookahead {
    /// One step.
    pub const ONE: Self = Self { n_steps: 1, gamma: 1.0, chunk_size: 1 };
}

/// The next steps in a batch: those `m` steps later, see [`Lookahead`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// `[batch, context_length]`, `R` divided by the return scale.
    pub rewards: Vec<f32>,
    /// `[batch, context_length]`, `γ^(m − 1)`: the discount of the next value is γ times this.
    pub discounts: Vec<f32>,
    /// `[batch, context_length]`: `true` if the task ended with the last of the `m` steps, or is solved
    /// by it although the trajectory goes on ([`Dataset::stops_at`]).
    pub terminated: Vec<bool>,
    /// `[batch, context_length]`: `true` if the next step is in the recording, `false` at an
    /// episode's last step. The additional last observation of some formats is not used. Undefined
    /// in padding.
    pub next_is_known: Vec<bool>,
    /// As [`Batch::observations`], `m` steps later; if it is not known, vectors are zeros and frames
    /// are undefined.
    pub next_observations: BatchObservations,
    /// As [`Batch::actions`], `m` steps later; zeros if it is not known.
    pub next_actions: BatchActions,
    /// As [`Batch::allowed_actions`], `m` steps later; if it is not known, all are.
    pub next_allowed_actions: Vec<bool>,
}

impl Transitions {
    /// `[batch, context_length]`: 0 if the task ended with the last of the `m` steps, else
    /// `γ^(m − 1)`.
    pub fn continues(&self) -> Vec<f32> {
        let ends = self.discounts.iter().zip(&self.terminated);
        ends.map(|(&discount, &ended)| if ended { 0.0 } else { discount }).collect()
    }
}

/// Options for filling a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchOptions {
    /// Whether frames are copied. Without, [`BatchObservations::Frames`] has rows alone, for
    /// callers that keep all frames elsewhere. It has no effect on vectors.
    pub frames: bool,
    /// The divisor of returns-to-go and rewards.
    pub return_scale: f32,
    /// The scaling of continuous actions to [-1, 1], if they are recorded in another range. Padding
    /// stays 0, as when the agent acts.
    pub action_scale: Option<ActionScale>,
    /// How far ahead [`Batch::transitions`] look; `None`: they are not filled.
    pub transitions: Option<Lookahead>,
}

impl Default for BatchOptions {
    /// Frames, returns and actions in the dataset's units, without transitions.
    fn default() -> Self {
        Self { frames: true, return_scale: 1.0, action_scale: None, transitions: None }
    }
}

impl Default for BatchObservations {
    fn default() -> Self {
        Self::Vectors(Vec::new())
    }
}

impl Default for BatchActions {
    fn default() -> Self {
        Self::Continuous(Vec::new())
    }
}

impl Batch {
    /// Draws the next `batch` windows of `dataset` into this batch, reusing its memory; frames
    /// are copied by the current rayon pool.
    ///
    /// # Errors
    /// If the frames cannot be read, or [`DataError::Sampling`] if the return scale is not a
    /// positive number, or if contexts of several stacks of frames look ahead by several steps.
    ///
    /// # Panics
    /// If the sampler draws from another dataset's index: a caller's bug.
    pub fn fill(
        &mut self,
        dataset: &Dataset,
        sampler: &mut WindowSampler,
        batch: usize,
        options: &BatchOptions,
    ) -> Result<(), DataError> {
        assert!(Arc::ptr_eq(dataset.index(), sampler.index()), "a sampler of another dataset");
        let scale = options.return_scale;
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(DataError::Sampling(format!(
                "expected a return scale above 0, got {scale}"
            )));
        }
        let context = sampler.context_length();
        let (windows, best): (Vec<Window>, _) =
            (0..batch).map(|_| sampler.draw_with_top_percent()).unzip();
        let drawn = Drawn {
            dataset,
            windows: &windows,
            context,
            // The reference's windows include earlier rows of any episode. Its dataset keeps the
            // padding rows that make this harmless.
            across: sampler.sampling() == Sampling::Released && dataset.counts().padding_rows > 0,
        };

        self.batch = batch;
        self.context_length = context;
        self.drawn = sampler.drawn();
        self.top_percent_idx = best;
        self.n_real.clear();
        self.n_real.extend(windows.iter().map(|window| window.n_real as i32));
        self.last_indices.clear();
        self.last_indices.extend(windows.iter().map(|window| window.range().end as u64 - 1));
        let action_scale = options.action_scale.as_ref();
        let now = |_| 0;
        let chunk_size = options.transitions.map_or(1, |lookahead| lookahead.chunk_size);
        drawn.actions(now, chunk_size, action_scale, &mut self.actions);
        drawn.scaled(dataset.returns_to_go(), scale, &mut self.returns_to_go);
        drawn.each(&mut self.timesteps, |row| dataset.index().timestep(row) as i32);
        match dataset.step_weights() {
            Some(weights) => drawn.each(&mut self.step_weights, |row| weights[row]),
            None => self.step_weights.clear(),
        }
        drawn.allowed_actions(now, &mut self.allowed_actions);
        drawn.observations(now, options.frames, &mut self.observations)?;
        let Some(Lookahead { n_steps, gamma, .. }) = options.transitions else {
            self.transitions = None;
            return Ok(());
        };
        let has_frames = matches!(dataset.observations(), StoredObservations::Frames(_));
        if has_frames && context > 1 && n_steps > 1 {
            return Err(DataError::Sampling(format!(
                "targets of {n_steps} steps need contexts of one step, got contexts of {context}"
            )));
        }
        let ahead = |row| drawn.ahead(row, n_steps);
        let transitions = self.transitions.get_or_insert_default();
        drawn.each(&mut transitions.rewards, |row| {
            let rewards = dataset.rewards()[row..row + ahead(row)].iter().enumerate();
            let discounted = rewards.map(|(i, &reward)| gamma.powi(i as i32) * f64::from(reward));
            discounted.sum::<f64>() as f32 / scale
        });
        drawn.each(&mut transitions.discounts, |row| gamma.powi(ahead(row) as i32 - 1) as f32);
        let last = |row| row + ahead(row) - 1;
        let is_known = |row| ahead(row) >= chunk_size && !dataset.index().is_last(last(row));
        drawn.each(&mut transitions.next_is_known, is_known);
        drawn.each(&mut transitions.terminated, |row| drawn.terminates(last(row)));
        drawn.actions(ahead, chunk_size, action_scale, &mut transitions.next_actions);
        drawn.allowed_actions(ahead, &mut transitions.next_allowed_actions);
        drawn.observations(ahead, options.frames, &mut transitions.next_observations)
    }
}

/// Drawn windows, to be laid out column by column.
struct Drawn<'a> {
    dataset: &'a Dataset,
    windows: &'a [Window],
    context: usize,
    /// Whether the first observations include frames from before their episode.
    across: bool,
}

impl Drawn<'_> {
    /// Fills `[batch, context_length]` with `value` of each row; the default in padding.
    fn each<T: Copy + Default>(&self, out: &mut Vec<T>, value: impl Fn(usize) -> T) {
        out.resize(self.windows.len() * self.context, T::default());
        for (window, places) in self.windows.iter().zip(out.chunks_exact_mut(self.context)) {
            let (pad, real) = places.split_at_mut(window.n_padding());
            pad.fill(T::default());
            for (place, row) in real.iter_mut().zip(window.range()) {
                *place = value(row);
            }
        }
    }

    /// `column`, `[rows]`, divided by `scale`.
    fn scaled(&self, column: &[f32], scale: f32, out: &mut Vec<f32>) {
        self.each(out, |row| column[row] / scale);
    }

    /// Whether the task ended with a step, or was solved by it.
    fn terminates(&self, row: usize) -> bool {
        let outcome = || self.dataset.episodes().containing(row).map(|episode| episode.outcome);
        self.dataset.stops_at(row)
            || self.dataset.index().is_last(row) && outcome() == Some(Outcome::Terminated)
    }

    /// The number of steps, at most `n_steps`, whose rewards the target of a step has: until the task
    /// ends, or until the last observation of a truncated episode, whose value continues it.
    fn ahead(&self, row: usize, n_steps: usize) -> usize {
        if n_steps == 1 {
            return 1;
        }
        let end = self.dataset.index().episode_end(row);
        let has_target = |row: usize| row + 1 < end || row + 1 == end && self.terminates(row);
        let goes_on = |row: usize| !self.terminates(row) && has_target(row + 1);
        1 + (row..).take(n_steps - 1).take_while(|&row| goes_on(row)).count()
    }

    /// Whether `later` steps after `row`, its episode is over.
    fn is_past(&self, row: usize, later: usize) -> bool {
        later > 0 && self.dataset.index().is_last(row + later - 1)
    }

    /// The action that is `later(row)` steps after each step, or as many as a chunk has.
    fn actions(
        &self,
        later: impl Fn(usize) -> usize,
        chunk_size: usize,
        scale: Option<&ActionScale>,
        out: &mut BatchActions,
    ) {
        match self.dataset.actions() {
            ActionColumn::Discrete { values, .. } => {
                if !matches!(out, BatchActions::Discrete(_)) {
                    *out = BatchActions::Discrete(Vec::new());
                }
                let BatchActions::Discrete(out) = out else { return };
                self.each(out, |row| match later(row) {
                    later if self.is_past(row, later) => 0,
                    later => i32::from(values[row + later]),
                });
            }
            ActionColumn::Continuous { width, values } => {
                if !matches!(out, BatchActions::Continuous(_)) {
                    *out = BatchActions::Continuous(Vec::new());
                }
                let BatchActions::Continuous(out) = out else { return };
                self.rows(later, chunk_size, (*width, values), out, |place| {
                    if let Some(scale) = scale {
                        scale.to_unit(place);
                    }
                });
            }
        }
    }

    /// The actions that are allowed `later(row)` steps after each step; empty without masks.
    fn allowed_actions(&self, later: impl Fn(usize) -> usize, out: &mut Vec<bool>) {
        out.clear();
        if !self.dataset.has_action_masks() {
            return;
        }
        let n_actions = self.dataset.actions().size();
        out.resize(self.windows.len() * self.context * n_actions, true);
        let windows = self.windows.iter().zip(out.chunks_exact_mut(self.context * n_actions));
        for (window, places) in windows {
            let real = places[window.n_padding() * n_actions..].chunks_exact_mut(n_actions);
            for (place, row) in real.zip(window.range()) {
                let later = later(row);
                let is_past = self.is_past(row, later);
                if let Some(allowed) = (!is_past).then(|| self.dataset.allowed_at(row + later)) {
                    allowed.iter().for_each(|allowed| place.copy_from_slice(allowed));
                }
            }
        }
    }

    /// `n` rows of `values`, `[rows, width]`, from `later(row)` steps after each step on, each
    /// changed by `change`; zeros in padding and past an episode's end, as when the agent acts. If the
    /// episode ends within the rows, the last one is repeated.
    fn rows(
        &self,
        later: impl Fn(usize) -> usize,
        n: usize,
        (width, values): (usize, &[f32]),
        out: &mut Vec<f32>,
        change: impl Fn(&mut [f32]),
    ) {
        let size = n * width;
        out.resize(self.windows.len() * self.context * size, 0.0);
        let windows = self.windows.iter().zip(out.chunks_exact_mut(self.context * size));
        for (window, places) in windows {
            let (pad, real) = places.split_at_mut(window.n_padding() * size);
            pad.fill(0.0);
            for (place, row) in real.chunks_exact_mut(size).zip(window.range()) {
                let later = later(row);
                if self.is_past(row, later) {
                    place.fill(0.0);
                    continue;
                }
                let first = row + later;
                let last = match n {
                    1 => first,
                    _ => self.dataset.index().episode_end(row) - 1,
                };
                for (place, row) in place.chunks_exact_mut(width).zip(first..) {
                    place.copy_from_slice(&values[row.min(last) * width..][..width]);
                    change(place);
                }
            }
        }
    }

    /// The observation that is `later(row)` steps after each step.
    fn observations(
        &self,
        later: impl Fn(usize) -> usize,
        with_frames: bool,
        out: &mut BatchObservations,
    ) -> Result<(), DataError> {
        match self.dataset.observations() {
            StoredObservations::Vectors { width, values, normalization } => {
                if !matches!(out, BatchObservations::Vectors(_)) {
                    *out = BatchObservations::Vectors(Vec::new());
                }
                let BatchObservations::Vectors(out) = out else { return Ok(()) };
                self.rows(later, 1, (*width, values), out, |place| normalization.apply(place));
                Ok(())
            }
            StoredObservations::Frames(frames) => {
                if !matches!(out, BatchObservations::Frames { .. }) {
                    *out = BatchObservations::Frames { pixels: Vec::new(), rows: Vec::new() };
                }
                let BatchObservations::Frames { pixels, rows } = out else { return Ok(()) };
                self.frame_rows(later, rows);
                if !with_frames {
                    pixels.clear();
                    return Ok(());
                }
                let distinct = self.context + STACK - 1;
                pixels.resize(rows.len() * FRAME, 0);
                let windows = pixels.par_chunks_mut(distinct * FRAME);
                let rows = rows.par_chunks(distinct);
                windows.zip(rows).try_for_each(|(pixels, rows)| frames.lay(rows, pixels))
            }
        }
    }

    /// The rows whose frames each window shows, later than its own by `later` of its last row.
    fn frame_rows(&self, later: impl Fn(usize) -> usize, out: &mut Vec<i64>) {
        let index = self.dataset.index();
        out.clear();
        for window in self.windows {
            let earliest = if self.across { 0 } else { index.episode_start(window.first) } as i64;
            let range = window.range();
            let past = index.episode_end(range.end - 1) as i64;
            let end = (range.end + later(range.end - 1)) as i64;
            let first = end - (self.context + STACK - 1) as i64;
            let shown = |row: i64| if (earliest..past).contains(&row) { row } else { -1 };
            out.extend((first..end).map(shown));
        }
    }
}
