//! [`Steps`]: a part of a recording as an inspection sees it.

use overtone_core::Episode;

use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::stored::Stored;

/// Rows of numbers.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// `[rows, width]`
    pub values: &'a [f32],
    pub width: usize,
}

impl<'a> Rows<'a> {
    /// The numbers of `episode`, if there are so many.
    pub fn of(self, episode: &Episode) -> Option<&'a [f32]> {
        self.values.get(episode.start * self.width..episode.end() * self.width)
    }
}

/// Steps of a recording, in order; an array that cannot be read is `None`.
pub(super) struct Steps<'a> {
    /// Name of the episode's group and a `/`; empty where the part is the whole file.
    pub prefix: &'a str,
    /// How many.
    pub n: usize,
    pub observations: Option<&'a ObservationColumn>,
    pub actions: Option<&'a ActionColumn>,
    pub rewards: Option<&'a [f32]>,
    /// Whether it is known where a step limit ended an episode.
    pub limited: bool,
    pub stored: &'a Stored,
    pub optional: &'a OptionalArrays,
}

impl Columns {
    /// All of its steps.
    pub(super) fn steps(&self) -> Steps<'_> {
        Steps {
            prefix: "",
            n: self.n_transitions(),
            observations: Some(&self.observations),
            actions: Some(&self.actions),
            rewards: Some(&self.rewards),
            limited: true,
            stored: &self.stored,
            optional: &self.optional,
        }
    }
}
