//! The order in which windows are drawn.

use std::sync::Arc;

use overtone_core::{Window, seed};
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::read::columns::Mixture;
use crate::sample::best_shares::BestShares;
use crate::sample::episode_index::EpisodeIndex;
use crate::sample::shares::Shares;
use crate::sample::shuffle::{permutation, scale};

/// The kinds of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Every timestep is once an epoch the *last* of its window: contexts are drawn as they occur
    /// in an episode, short ones at its start included.
    #[default]
    Uniform,
    /// As the released Decision Transformer for Atari: for each `idx` in `0 .. rows -
    /// 3·context_length`, the window of `context_length` timesteps that ends at `idx +
    /// context_length`, moved back to the end of the episode of `idx` if that comes first. Always
    /// full; it begins in the previous episode if its own is shorter than the context.
    Released,
    /// As the released Decision Transformer for `gym`: each window *begins* at a timestep drawn
    /// with replacement, all equally likely, and has up to `context_length` timesteps, up to the
    /// episode's end. (The reference draws an episode in proportion to its length, then a timestep
    /// of it, which is equivalent.)
    FromStart,
}

/// Draws windows, as a function of the seed and the number of earlier draws.
///
/// Each epoch is a permutation of all drawable positions, so every position is drawn once before
/// any is drawn again. There are three exceptions. With [`Sampling::FromStart`] or
/// [`WindowSampler::with_shares`] draws are independent. With [`WindowSampler::with_top_percents`]
/// half of the draws are independent draws from the best episodes, and replace draws in the epoch's
/// order.
#[derive(Clone, Debug)]
pub struct WindowSampler {
    index: Arc<EpisodeIndex>,
    sampling: Sampling,
    context_length: usize,
    seed: u64,
    n_positions: usize,
    /// The drawn positions, if only some are drawn.
    among: Option<Arc<[u32]>>,
    /// The fractions of best episodes, if some windows are drawn from these.
    best: Option<BestShares>,
    /// The proportions of several recordings, if they are set.
    shares: Option<Shares>,
    drawn: u64,
    /// The order of epoch `.0`.
    order: (u64, Vec<u32>),
}

impl WindowSampler {
    /// A sampler of a dataset's episodes at its beginning, for the run with seed `run_seed`.
    ///
    /// # Errors
    /// [`DataError::Sampling`] if the dataset has no window of this kind, or `context_length` is 0.
    pub fn new(
        index: Arc<EpisodeIndex>,
        sampling: Sampling,
        context_length: usize,
        run_seed: u64,
    ) -> Result<Self, DataError> {
        let rows = index.n_transitions();
        let refuse = |reason: String| Err(DataError::Sampling(reason));
        if context_length == 0 {
            return refuse("the context length is 0, and a context needs a timestep".into());
        }
        let n_positions = match sampling {
            Sampling::Uniform | Sampling::FromStart => rows,
            Sampling::Released => rows.saturating_sub(3 * context_length),
        };
        if n_positions == 0 {
            return refuse(format!(
                "the dataset has {rows} transitions, too few for contexts of {context_length}"
            ));
        }
        // The reference fails on such a dataset when it first draws the window.
        let first = index.episodes().as_slice().first().map_or(0, |episode| episode.length);
        if sampling == Sampling::Released && first < context_length {
            return refuse(format!(
                "the first episode has {first} transitions, fewer than the context's \
                 {context_length}: released sampling would begin before it"
            ));
        }
        let seed = seed::derive(run_seed, "sampling");
        let mut sampler = Self {
            index,
            sampling,
            context_length,
            seed,
            n_positions,
            among: None,
            best: None,
            shares: None,
            drawn: 0,
            order: (0, Vec::new()),
        };
        if sampling != Sampling::FromStart {
            sampler.order.1 = sampler.order_of(0);
        }
        Ok(sampler)
    }

    /// The same sampler for windows that show only the episodes at positions `episodes`.
    ///
    /// # Errors
    /// [`DataError::Sampling`] if no such window exists.
    ///
    /// # Panics
    /// If the episode does not exist: a caller's bug.
    pub fn among(mut self, episodes: &[usize]) -> Result<Self, DataError> {
        let mut inside = vec![false; self.index.n_transitions()];
        for &episode in episodes {
            inside[self.index.episodes().as_slice()[episode].range()].fill(true);
        }
        // A released window may begin in another episode, or show frames of it.
        let released = self.sampling == Sampling::Released;
        let before = if released { self.index.shown_before() } else { 0 };
        let shows_no_other = |&position: &usize| {
            let range = self.window_at(position).range();
            inside[range.start.saturating_sub(before)..range.end].iter().all(|&inside| inside)
        };
        let positions: Arc<[u32]> =
            (0..self.n_positions).filter(shows_no_other).map(|position| position as u32).collect();
        if positions.is_empty() {
            let n = episodes.len();
            return Err(DataError::Sampling(format!(
                "{n} episodes hold no context of {} steps",
                self.context_length
            )));
        }
        self.n_positions = positions.len();
        self.among = Some(positions);
        if self.sampling != Sampling::FromStart {
            self.order = (0, self.order_of(0));
        }
        Ok(self)
    }

    /// The same sampler with half of its windows drawn from the best episodes: from the ones that
    /// make up one of `percents` of all windows, each as often. `best_first` are all episodes in
    /// order.
    ///
    /// # Panics
    /// If the length of `best_first` differs from the number of episodes, or a percentage is not
    /// above 0 and at most 100: a caller's bug.
    #[must_use]
    pub fn with_top_percents(self, percents: &[f32], best_first: &[usize], run_seed: u64) -> Self {
        assert_eq!(best_first.len(), self.index.episodes().as_slice().len(), "all episodes");
        assert!(percents.iter().all(|p| *p > 0.0 && *p <= 100.0), "shares of {percents:?} %");
        if percents.is_empty() {
            return self;
        }
        let mut of_episodes = vec![0; best_first.len()];
        for (rank, &episode) in best_first.iter().enumerate() {
            of_episodes[episode] = rank as u32;
        }
        let ranks = self.of_rows(|episode| of_episodes[episode]);
        let last = |position: usize| self.window_at(position).range().end - 1;
        let ranks: Vec<u32> = (0..self.n_positions).map(|position| ranks[last(position)]).collect();
        let best = Some(BestShares::new(&ranks, percents, run_seed));
        Self { best, ..self }
    }

    /// The same sampler with windows drawn from several recordings in their shares.
    ///
    /// # Errors
    /// [`DataError::Sampling`] if a recording has no window.
    pub fn with_shares(self, mixture: &Mixture, run_seed: u64) -> Result<Self, DataError> {
        if mixture.shares.is_empty() {
            return Ok(self);
        }
        let of_rows = self.of_rows(|episode| mixture.sources[episode]);
        let last = |position: usize| self.window_at(position).range().end - 1;
        let sources: Vec<u16> =
            (0..self.n_positions).map(|position| of_rows[last(position)]).collect();
        Ok(Self { shares: Some(Shares::new(&sources, mixture, run_seed)?), ..self })
    }

    /// A property of each episode, for each of its rows.
    fn of_rows<T: Copy + Default>(&self, of: impl Fn(usize) -> T) -> Vec<T> {
        let mut rows = vec![T::default(); self.index.n_transitions()];
        for (nth, episode) in self.index.episodes().as_slice().iter().enumerate() {
            rows[episode.range()].fill(of(nth));
        }
        rows
    }

    /// The episodes of the windows.
    pub fn index(&self) -> &Arc<EpisodeIndex> {
        &self.index
    }

    /// The kind of windows.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Timesteps of a window.
    pub fn context_length(&self) -> usize {
        self.context_length
    }

    /// Windows of one epoch; with replacement, as many draws as there are timesteps.
    pub fn epoch_len(&self) -> usize {
        self.n_positions
    }

    /// Windows drawn so far, which is the whole state.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// Moves to the state after `drawn` windows.
    pub fn seek(&mut self, drawn: u64) {
        self.drawn = drawn;
    }

    /// Skips the next `n` windows.
    pub fn pass_over(&mut self, n: usize) {
        self.drawn += n as u64;
    }

    /// The next window.
    pub fn draw(&mut self) -> Window {
        self.draw_with_top_percent().0
    }

    /// The next window and, if it is drawn from the best episodes, the index of its percentage in
    /// [`with_top_percents`](Self::with_top_percents).
    pub fn draw_with_top_percent(&mut self) -> (Window, Option<u8>) {
        match self.best.as_ref().and_then(|best| best.draw(self.drawn)) {
            Some((share, position)) => {
                self.drawn += 1;
                (self.window_at(position), Some(share))
            }
            None => (self.draw_of_all(), None),
        }
    }

    fn draw_of_all(&mut self) -> Window {
        if let Some(shares) = &self.shares {
            let position = shares.draw(self.drawn);
            self.drawn += 1;
            return self.window_at(position);
        }
        let n = self.n_positions as u64;
        if self.sampling == Sampling::FromStart {
            let bits = seed::derive_nth(self.seed, self.drawn);
            self.drawn += 1;
            return self.window_at(scale(bits, self.n_positions));
        }
        let (epoch, place) = (self.drawn / n, (self.drawn % n) as usize);
        if self.order.0 != epoch {
            self.order = (epoch, self.order_of(epoch));
        }
        self.drawn += 1;
        self.window_at(self.order.1[place] as usize)
    }

    /// The window of position `position`, below [`WindowSampler::epoch_len`].
    ///
    /// # Panics
    /// If the position does not exist.
    pub fn window_at(&self, position: usize) -> Window {
        assert!(position < self.n_positions, "position {position} of {}", self.n_positions);
        let position = self.among.as_ref().map_or(position, |among| among[position] as usize);
        match self.sampling {
            Sampling::Uniform => {
                Window::ending_at(self.index.episode_start(position), position, self.context_length)
            }
            Sampling::Released => {
                // The reference's ends are exclusive, and it takes the first end > idx.
                let episode_end = self.index.episode_end(position);
                let end = episode_end.min(position + self.context_length);
                Window {
                    context_length: self.context_length,
                    first: end - self.context_length,
                    n_real: self.context_length,
                }
            }
            Sampling::FromStart => Window {
                context_length: self.context_length,
                first: position,
                n_real: (self.index.episode_end(position) - position).min(self.context_length),
            },
        }
    }

    fn order_of(&self, epoch: u64) -> Vec<u32> {
        permutation(self.n_positions, seed::derive_nth(self.seed, epoch))
    }
}
