//! [`RecordedSpaces`]: the observation and action spaces in a recording, for use without an
//! environment.

use std::collections::BTreeSet;
use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace};

use crate::error::{DataError, Fault};
use crate::read::column::{ActionColumn, MOST_ACTIONS};
use crate::read::form::Form;
use crate::read::reader_as;
use crate::read::recording::{Recording, action_space};
use crate::read::spaces::Space;

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
    /// Whether the recording states its action space.
    pub is_described: bool,
}

impl RecordedSpaces {
    /// Reads all of the recording at `path`, as `form` says.
    ///
    /// # Errors
    /// Anything wrong with the files, and `Fault::NoLog` for a log of frames, whose game
    /// is known.
    pub fn of(path: &Path, form: &Form) -> Result<Self, DataError> {
        let reader = reader_as(path, form)?;
        let Recording::Columns(columns) = reader.open(path)? else {
            return Err(Fault::NoLog(
                "a log of a game's frames; say which game it is (game=NAME)".into(),
            )
            .at(path));
        };
        let described = action_space(reader, path, &columns)?;
        Ok(Self {
            observations: columns.observations.space(),
            actions: actions(&columns.actions, described.as_ref()),
            ranges: columns.actions.ranges(),
            is_described: described.is_some(),
        })
    }

    /// Spaces that also hold `other`'s actions. What one recording states about its actions holds
    /// for both, and words for actions are those of either. Nothing changes if their forms differ; mixing the recordings then reports it.
    ///
    /// # Errors
    /// Two statements that differ, or recorded actions of one beyond the statement of the other.
    pub fn extend(&mut self, other: &Self) -> Result<(), String> {
        match (&mut self.actions, &other.actions) {
            (ActionSpace::Discrete { names }, ActionSpace::Discrete { names: others }) => {
                let are_words =
                    |names: &[String]| names.iter().any(|name| name.parse::<f64>().is_err());
                if self.is_described && other.is_described && are_words(names) && are_words(others)
                {
                    // Tables name the actions that they hold.
                    let all: BTreeSet<String> = names.drain(..).chain(others.clone()).collect();
                    names.extend(all);
                    return Ok(());
                }
                let [n, n_other] = [names.len(), others.len()];
                match [self.is_described, other.is_described] {
                    [true, true] if n != n_other => {
                        return Err(format!("one states {n} actions and another {n_other}"));
                    }
                    [true, false] if n_other > n => {
                        return Err(format!("one states {n} actions, another holds {n_other}"));
                    }
                    [false, true] if n > n_other => {
                        return Err(format!("one states {n_other} actions, another holds {n}"));
                    }
                    _ => {}
                }
                if n_other > n || (other.is_described && !self.is_described) {
                    names.clone_from(others);
                }
            }
            (
                ActionSpace::Continuous { low, high },
                ActionSpace::Continuous { low: other_low, high: other_high },
            ) if low.len() == other_low.len() => {
                for place in 0..low.len() {
                    let recorded = [self.ranges[place], other.ranges[place]];
                    let lows = ([low[place], other_low[place]], recorded.map(|range| range[0]));
                    low[place] = common_bound(lows, f32::lt).map_err(|differ| {
                        format!("lower bounds of action number {place}: {differ}")
                    })?;
                    let highs = ([high[place], other_high[place]], recorded.map(|range| range[1]));
                    high[place] = common_bound(highs, f32::gt).map_err(|differ| {
                        format!("upper bounds of action number {place}: {differ}")
                    })?;
                    let [one, another] = recorded;
                    self.ranges[place] = [one[0].min(another[0]), one[1].max(another[1])];
                }
            }
            _ => return Ok(()),
        }
        self.is_described |= other.is_described;
        Ok(())
    }

    /// The actions, whose numbers end where the recording's do if nothing else is known.
    pub fn bounded_actions(&self) -> ActionSpace {
        self.actions.bounded(&self.ranges)
    }
}

/// The bound that two recordings state; infinite if neither does. `is_beyond` compares a recorded
/// extreme with a bound.
fn common_bound(
    (stated, extremes): ([f32; 2], [f32; 2]),
    is_beyond: fn(&f32, &f32) -> bool,
) -> Result<f32, String> {
    let bound = match stated.map(f32::is_finite) {
        [true, true] if stated[0] != stated[1] => {
            return Err(format!("one states {} and another {}", stated[0], stated[1]));
        }
        [true, _] => stated[0],
        [false, _] => stated[1],
    };
    match extremes.iter().find(|extreme| bound.is_finite() && is_beyond(extreme, &bound)) {
        Some(extreme) if !(stated[0].is_finite() && stated[1].is_finite()) => {
            Err(format!("one states {bound}, another holds {extreme}"))
        }
        _ => Ok(bound),
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
    if let Space::Names(names) = space {
        return Some(names.clone());
    }
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
            is_described: described.is_some(),
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
    }

    /// Two recordings, in either order.
    #[track_caller]
    fn extended(one: &RecordedSpaces, other: &RecordedSpaces) -> Result<ActionSpace, String> {
        let both = [(one, other), (other, one)].map(|(one, other)| {
            let mut all = one.clone();
            all.extend(other).map(|()| all)
        });
        let [first, second] = &both;
        assert_eq!(first.is_ok(), second.is_ok(), "{first:?}, {second:?}");
        let [first, second] = both;
        let (first, second) = (first?, second?);
        assert_eq!(first, second);
        Ok(first.bounded_actions())
    }

    #[test]
    fn statements_of_one_recording_hold_for_both_or_are_refused() {
        let numbers = |[low, high]: [f32; 2], range| RecordedSpaces {
            observations: ObservationSpace::Vectors { width: 1 },
            actions: ActionSpace::Continuous { low: vec![low], high: vec![high] },
            ranges: vec![range],
            is_described: low.is_finite(),
        };
        let open = [f32::NEG_INFINITY, f32::INFINITY];
        let bounded = |low, high| ActionSpace::Continuous { low: vec![low], high: vec![high] };
        let within = numbers(open, [-0.5, 1.0]);
        let stated = numbers([-2.0, 2.0], [-0.75, 0.5]);
        assert_eq!(extended(&stated, &within), Ok(bounded(-2.0, 2.0)));
        assert_eq!(extended(&within, &numbers(open, [-3.0, 0.0])), Ok(bounded(-3.0, 1.0)));
        let error = extended(&stated, &numbers(open, [-3.0, 0.0])).unwrap_err();
        assert_eq!(error, "lower bounds of action number 0: one states -2, another holds -3");
        let error = extended(&stated, &numbers([-2.0, 1.0], [0.0, 0.5])).unwrap_err();
        assert!(error.starts_with("upper bounds of action number 0: one states "), "{error}");
        let listed = |n, is_described| RecordedSpaces {
            actions: ActionSpace::numbered(n),
            ranges: Vec::new(),
            is_described,
            ..within.clone()
        };
        assert_eq!(extended(&listed(3, true), &listed(2, false)), Ok(ActionSpace::numbered(3)));
        assert_eq!(extended(&listed(3, false), &listed(2, false)), Ok(ActionSpace::numbered(3)));
        assert!(extended(&listed(3, false), &listed(2, true)).unwrap_err().contains("states 2"));
        assert!(extended(&listed(3, true), &listed(2, true)).unwrap_err().contains("and another"));
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
