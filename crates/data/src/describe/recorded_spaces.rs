//! [`RecordedSpaces`]: the observation and action spaces in a recording, for use without an
//! environment.

use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace};

use crate::columns::ActionColumn;
use crate::error::{DataError, Fault};
use crate::read::reader_as;
use crate::recording::Recording;
use crate::spaces::Space;

/// Maximum number of discrete actions: a recording has two bytes for each.
const MOST_ACTIONS: usize = u16::MAX as usize;

/// The spaces of a recording's task, as far as the recording shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSpaces {
    /// The observation space.
    pub observations: ObservationSpace,
    /// The action space. Discrete: as many actions as the recording describes, else up to the
    /// largest recorded action. Continuous: between the bounds in the recording, infinite without
    /// them.
    pub actions: ActionSpace,
    /// The smallest and the largest recorded value of each number of a continuous action.
    pub ranges: Vec<[f32; 2]>,
}

impl RecordedSpaces {
    /// Reads all of the recording at `path`, in the format called `layout`; without a name in the
    /// one that its files have.
    ///
    /// # Errors
    /// Anything wrong with the files, and `Fault::NoLog` for a log of frames, whose game
    /// is known.
    pub fn of(path: &Path, layout: &str) -> Result<Self, DataError> {
        let reader = reader_as(path, layout)?;
        let Recording::Columns(columns) = reader.open(path)? else {
            return Err(Fault::NoLog(
                "a log of a game's frames; say which game it is (game=NAME)".into(),
            )
            .at(path));
        };
        if let ActionColumn::Discrete { n_actions, .. } = columns.actions
            && n_actions > MOST_ACTIONS
        {
            return Err(Fault::Inconsistent(format!(
                "its actions are one of {n_actions}, more than are learned"
            ))
            .at(path));
        }
        let described = reader.action_space(path)?;
        Ok(Self {
            observations: columns.observations.space(),
            actions: actions(&columns.actions, described.as_ref()),
            ranges: columns.actions.ranges(),
        })
    }

    /// Spaces that also hold `other`'s actions: the longer list, or the wider bounds. Nothing
    /// changes if they do not fit; mixing the recordings then reports it.
    pub fn extend(&mut self, other: &Self) {
        match (&mut self.actions, &other.actions) {
            (ActionSpace::Discrete { names }, ActionSpace::Discrete { names: others })
                if others.len() > names.len() =>
            {
                names.clone_from(others);
            }
            (
                ActionSpace::Continuous { low, high },
                ActionSpace::Continuous { low: lows, high: highs },
            ) if low.len() == lows.len() => {
                low.iter_mut().zip(lows).for_each(|(low, other)| *low = low.min(*other));
                high.iter_mut().zip(highs).for_each(|(high, other)| *high = high.max(*other));
                for ([low, high], [lows, highs]) in self.ranges.iter_mut().zip(&other.ranges) {
                    (*low, *high) = (low.min(*lows), high.max(*highs));
                }
            }
            _ => {}
        }
    }

    /// The actions, whose numbers end where the recording's do if nothing else is known.
    pub fn bounded_actions(&self) -> ActionSpace {
        self.actions.bounded(&self.ranges)
    }
}

/// The space of actions that are described so, where they are.
fn actions(done: &ActionColumn, described: Option<&Space>) -> ActionSpace {
    match (done, described) {
        (ActionColumn::Discrete { n_actions, .. }, described) => {
            let names = described.and_then(names).filter(|names| names.len() >= *n_actions);
            names.map_or_else(
                || ActionSpace::numbered(*n_actions),
                |names| ActionSpace::Discrete { names },
            )
        }
        (ActionColumn::Continuous { width, .. }, described) => {
            let [mut low, mut high] =
                [f32::NEG_INFINITY, f32::INFINITY].map(|endless| vec![endless; *width]);
            if let Some(Space::Box { low: lows, high: highs, .. }) = described
                && lows.len() == *width
                && highs.len() == *width
                && lows.iter().zip(highs).all(|(low, high)| low <= high)
            {
                (low, high) = (lows.clone(), highs.clone());
            }
            ActionSpace::Continuous { low, high }
        }
    }
}

/// The discrete actions of this space, in the form that Gymnasium's environments take. They are the
/// numbers from the first one, or, for several numbers, all combinations (the last number changes
/// fastest). `None` if the space is not discrete or has too many actions.
fn names(space: &Space) -> Option<Vec<String>> {
    space.n_actions().filter(|&all| all <= MOST_ACTIONS)?;
    let (sizes, starts) = space.wholes()?;
    let mut names = vec![String::new()];
    for (size, start) in sizes.into_iter().zip(starts) {
        let longer = |name: &String| {
            let name = if name.is_empty() { String::new() } else { format!("{name}|") };
            (0..size as i64).map(move |index| format!("{name}{}", start.saturating_add(index)))
        };
        names = names.iter().flat_map(longer).collect();
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_end_where_the_description_says_or_where_the_recording_does() {
        // Two rows of three numbers.
        let values = vec![0.0, 5.0, -2.0, 0.5, 5.0, 3.0];
        let done = ActionColumn::Continuous { width: 3, values };
        assert_eq!(done.ranges(), [[0.0, 0.5], [5.0, 5.0], [-2.0, 3.0]]);
        let described = Space::Box {
            dtype: "float32".into(),
            shape: vec![3],
            low: vec![-1.0, 0.0, f32::NEG_INFINITY],
            high: vec![1.0, f32::INFINITY, 4.0],
        };
        let spaces = |described: Option<&Space>| RecordedSpaces {
            observations: ObservationSpace::Vectors { width: 1 },
            actions: actions(&done, described),
            ranges: done.ranges(),
        };
        let continuous = |low: [f32; 3], high: [f32; 3]| ActionSpace::Continuous {
            low: low.to_vec(),
            high: high.to_vec(),
        };
        let told = spaces(Some(&described));
        let as_told = continuous([-1.0, 0.0, f32::NEG_INFINITY], [1.0, f32::INFINITY, 4.0]);
        assert_eq!(told.actions, as_told);
        assert_eq!(told.bounded_actions(), continuous([-1.0, 0.0, -2.0], [1.0, 5.0, 4.0]));
        assert_eq!(spaces(None).bounded_actions(), continuous([0.0, 5.0, -2.0], [0.5, 5.0, 3.0]));
        let none = ActionColumn::Continuous { width: 1, values: vec![] };
        assert_eq!(none.ranges(), [[-1.0, 1.0]]);
        // Two recordings have the bounds of both, in either order.
        let other = RecordedSpaces {
            actions: continuous([-3.0, 1.0, -1.0], [0.5, 2.0, 5.0]),
            ranges: vec![[-2.0, 0.0], [1.0, 6.0], [-1.0, 1.0]],
            ..spaces(None)
        };
        for (mut one, other) in [(told.clone(), &other), (other.clone(), &told)] {
            one.extend(other);
            let infinite = [-3.0, 0.0, f32::NEG_INFINITY];
            assert_eq!(one.actions, continuous(infinite, [1.0, f32::INFINITY, 5.0]));
            assert_eq!(one.bounded_actions(), continuous([-3.0, 0.0, -2.0], [1.0, 6.0, 5.0]));
        }
    }

    #[test]
    fn a_list_has_the_names_of_its_space() {
        let done = |n_actions| ActionColumn::Discrete { n_actions, values: vec![0] };
        let named = |n, space: Option<Space>| match actions(&done(n), space.as_ref()) {
            ActionSpace::Discrete { names } => names.join(" "),
            ActionSpace::Continuous { .. } => panic!("numbers"),
        };
        assert_eq!(named(3, None), "0 1 2");
        assert_eq!(named(3, Some(Space::Discrete { n: 3, start: -1 })), "-1 0 1");
        // Not every action need have been chosen.
        assert_eq!(named(2, Some(Space::Discrete { n: 4, start: 0 })), "0 1 2 3");
        assert_eq!(named(2, Some(Space::Discrete { n: 1, start: 0 })), "0 1");
        assert_eq!(named(2, Some(Space::Discrete { n: 1 << 60, start: 0 })), "0 1");
        let pairs = Space::MultiDiscrete { sizes: vec![2, 3], starts: vec![0, 1] };
        assert_eq!(named(6, Some(pairs)), "0|1 0|2 0|3 1|1 1|2 1|3");
        assert_eq!(named(4, Some(Space::MultiBinary { n: 2 })), "0|0 0|1 1|0 1|1");
    }
}
