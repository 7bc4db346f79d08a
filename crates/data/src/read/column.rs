//! [`ObservationColumn`] and [`ActionColumn`]: the columns of a recording with several numbers a row.

use overtone_core::picture::FRAME;
use overtone_core::{Episode, ObservationSpace};

/// Maximum number of discrete actions: a recording has two bytes for each.
pub(crate) const MOST_ACTIONS: usize = u16::MAX as usize;

/// The observations before each action of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservationColumn {
    /// Frames; an observation stacks the newest four of them.
    Frames {
        /// `[steps, 84, 84]`
        pixels: Vec<u8>,
    },
    /// Numbers.
    Vectors {
        /// Numbers of an observation.
        width: usize,
        /// `[steps, width]`
        values: Vec<f32>,
    },
}

impl ObservationColumn {
    /// Numbers of one row.
    pub fn width(&self) -> usize {
        match self {
            Self::Frames { .. } => FRAME,
            Self::Vectors { width, .. } => *width,
        }
    }

    /// The space of its observations.
    pub fn space(&self) -> ObservationSpace {
        match self {
            Self::Frames { .. } => ObservationSpace::frames(),
            Self::Vectors { width, .. } => ObservationSpace::Vectors { width: *width },
        }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Frames { pixels, .. } => pixels.len() / self.width().max(1),
            Self::Vectors { width, values } => values.len() / (*width).max(1),
        }
    }

    /// Leaves out all but the first `rows`.
    pub(crate) fn truncate(&mut self, rows: usize) {
        let numbers = rows * self.width();
        match self {
            Self::Frames { pixels, .. } => pixels.truncate(numbers),
            Self::Vectors { values, .. } => values.truncate(numbers),
        }
    }

    /// Adds `more` rows; whether they are of the same form.
    pub(crate) fn extend(&mut self, more: Self) -> bool {
        match (self, more) {
            (Self::Vectors { width, values }, Self::Vectors { width: here, values: more })
                if *width == here =>
            {
                append(values, more);
            }
            (Self::Frames { pixels, .. }, Self::Frames { pixels: more, .. }) => {
                append(pixels, more);
            }
            _ => return false,
        }
        true
    }

    /// A copy of these rows.
    pub(crate) fn rows_at(&self, rows: impl Iterator<Item = usize>) -> Self {
        let width = self.width();
        match self {
            Self::Frames { pixels } => Self::Frames { pixels: rows_of(pixels, width, rows) },
            Self::Vectors { values, .. } => {
                Self::Vectors { width, values: rows_of(values, width, rows) }
            }
        }
    }
}

/// The action at each row.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionColumn {
    /// Discrete actions.
    Discrete {
        /// How many there are to choose from.
        n_actions: usize,
        /// `[rows]`, each below `n_actions`.
        values: Vec<u16>,
    },
    /// Numbers.
    Continuous {
        /// Numbers of an action.
        width: usize,
        /// `[rows, width]`
        values: Vec<f32>,
    },
}

impl ActionColumn {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Discrete { values, .. } => values.len(),
            Self::Continuous { width, values } => values.len() / (*width).max(1),
        }
    }

    /// The smallest and largest value of each number of a continuous action; -1 and 1 without rows.
    pub fn ranges(&self) -> Vec<[f32; 2]> {
        let Self::Continuous { width, values } = self else { return Vec::new() };
        let mut rows = values.chunks_exact((*width).max(1));
        let Some(first) = rows.next() else { return vec![[-1.0, 1.0]; *width] };
        let mut ranges: Vec<[f32; 2]> = first.iter().map(|&number| [number, number]).collect();
        for row in rows {
            for ([low, high], &number) in ranges.iter_mut().zip(row) {
                (*low, *high) = (low.min(number), high.max(number));
            }
        }
        // Zero has no sign for a reader.
        ranges.iter_mut().flatten().for_each(|bound| *bound += 0.0);
        ranges
    }

    /// Adds `more` rows; whether they are of the same form.
    pub(crate) fn extend(&mut self, more: Self) -> bool {
        match (self, more) {
            (
                Self::Discrete { n_actions, values },
                Self::Discrete { n_actions: here, values: more },
            ) => {
                *n_actions = here.max(*n_actions);
                append(values, more);
            }
            (
                Self::Continuous { width, values },
                Self::Continuous { width: here, values: more },
            ) if *width == here => {
                append(values, more);
            }
            _ => return false,
        }
        true
    }

    /// A copy of these rows.
    pub(crate) fn rows_at(&self, rows: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Discrete { n_actions, values } => {
                Self::Discrete { n_actions: *n_actions, values: rows_of(values, 1, rows) }
            }
            Self::Continuous { width, values } => {
                Self::Continuous { width: *width, values: rows_of(values, *width, rows) }
            }
        }
    }

    /// Numbers of a continuous action, or the number of discrete actions.
    pub fn size(&self) -> usize {
        match self {
            Self::Discrete { n_actions, .. } => *n_actions,
            Self::Continuous { width, .. } => *width,
        }
    }
}

/// A copy of these rows of `width` elements.
fn rows_of<T: Copy>(all: &[T], width: usize, rows: impl Iterator<Item = usize>) -> Vec<T> {
    let mut copy = Vec::with_capacity(rows.size_hint().0 * width);
    rows.for_each(|row| copy.extend_from_slice(&all[row * width..(row + 1) * width]));
    copy
}

/// Keeps the rows of these episodes.
pub(crate) fn keep_rows<T: Copy>(column: &mut Vec<T>, width: usize, spans: &[Episode]) {
    let mut to = 0;
    for span in spans {
        column.copy_within(span.start * width..span.end() * width, to);
        to += span.length * width;
    }
    column.truncate(to);
}

/// Adds `more`; the first part of a recording may be all of it, and is not copied.
pub(crate) fn append<T>(all: &mut Vec<T>, mut more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}
