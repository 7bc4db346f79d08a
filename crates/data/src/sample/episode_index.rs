//! [`EpisodeIndex`]: the episode of each row of a dataset.

use overtone_core::{Episode, Episodes};

/// The episodes of a dataset, by row: everything that a sampler needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeIndex {
    episodes: Episodes,
    /// For each row, the first row of its episode.
    starts: Vec<u32>,
    shown_before: usize,
}

impl EpisodeIndex {
    /// The index of `episodes`; `None` if their rows cannot be numbered in 32 bits.
    pub fn new(episodes: Episodes) -> Option<Self> {
        u32::try_from(episodes.n_transitions()).ok()?;
        let mut starts = Vec::with_capacity(episodes.n_transitions());
        for episode in episodes.as_slice() {
            starts.extend(std::iter::repeat_n(episode.start as u32, episode.length));
        }
        Some(Self { episodes, starts, shown_before: 0 })
    }

    /// The same, of rows whose observations show up to `shown_before` rows before them as well:
    /// a stack of frames.
    pub fn showing_before(self, shown_before: usize) -> Self {
        Self { shown_before, ..self }
    }

    /// Rows before a row that its observation shows as well.
    pub fn shown_before(&self) -> usize {
        self.shown_before
    }

    /// The episodes, which cover all rows in order.
    pub fn episodes(&self) -> &Episodes {
        &self.episodes
    }

    /// Number of rows.
    pub fn n_transitions(&self) -> usize {
        self.starts.len()
    }

    /// First row of the episode that row `row` belongs to.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn episode_start(&self, row: usize) -> usize {
        self.starts[row] as usize
    }

    /// One past the last row of the episode that row `row` belongs to.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn episode_end(&self, row: usize) -> usize {
        let episode = self.episodes.containing(row);
        episode.map_or_else(|| panic!("row {row} of {}", self.n_transitions()), Episode::end)
    }

    /// Whether row `row` is the last of its episode.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn is_last(&self, row: usize) -> bool {
        self.starts.get(row + 1).is_none_or(|&next| next != self.starts[row])
    }

    /// The in-episode timestep of row `row`, from 0.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn timestep(&self, row: usize) -> usize {
        row - self.episode_start(row)
    }
}
