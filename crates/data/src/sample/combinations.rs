//! [`Combinations`]: the whole numbers that discrete actions stand for in their environment.

use overtone_core::{ActionSpace, Task};

use crate::error::{DataError, Fault};
use crate::read::column::ActionColumn;
use crate::read::columns::Columns;

/// Whole numbers, each from its own start, whose combinations are discrete actions: the last number
/// changes fastest. One number is a discrete action that counts from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Combinations {
    starts: Vec<i64>,
    sizes: Vec<usize>,
}

impl Combinations {
    /// The names of the discrete actions: `1`, `2`; or `0|0`, `0|1`.
    pub fn of(actions: &ActionSpace) -> Option<Self> {
        let ActionSpace::Discrete { names } = actions else { return None };
        let numbers = |name: &String| {
            name.split('|').map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()
        };
        let (starts, ends) = (numbers(names.first()?)?, numbers(names.last()?)?);
        if starts.len() != ends.len() {
            return None;
        }
        let size = |(start, end): (&i64, &i64)| {
            usize::try_from(end.checked_sub(*start)?.checked_add(1)?).ok()
        };
        let sizes: Vec<usize> = starts.iter().zip(&ends).map(size).collect::<Option<_>>()?;
        let all = sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        (all == Some(names.len())).then_some(Self { starts, sizes })
    }

    /// How many numbers an action has.
    pub fn width(&self) -> usize {
        self.sizes.len()
    }

    /// The start of the first number.
    pub fn start(&self) -> i64 {
        self.starts[0]
    }

    /// Whether all rows of `values` are such numbers, counted from these starts; or from 0.
    fn has(&self, values: &[f32], from_start: bool) -> bool {
        let width = self.width();
        values.chunks_exact(width).flatten().enumerate().all(|(at, &value)| {
            let start = if from_start { self.starts[at % width] } else { 0 };
            let place = f64::from(value) - start as f64;
            place.fract() == 0.0 && (0.0..self.sizes[at % width] as f64).contains(&place)
        })
    }

    /// The indices of rows of such numbers among the combinations.
    fn places(&self, values: &[f32]) -> Option<Vec<u16>> {
        let place = |row: &[f32]| {
            let numbers = row.iter().zip(self.starts.iter().zip(&self.sizes));
            let place = numbers.fold(0, |place, (&value, (&start, &size))| {
                place * size + (f64::from(value) - start as f64) as usize
            });
            u16::try_from(place).ok()
        };
        values.chunks_exact(self.width()).map(place).collect()
    }
}

/// The discrete actions of `task` whose combinations these rows of several whole numbers are.
/// `None` if they are something else, or if their first number is ambiguous.
pub(crate) fn listed(actions: &ActionColumn, task: &Task) -> Option<ActionColumn> {
    let ActionColumn::Continuous { width, values } = actions else { return None };
    let combinations = Combinations::of(&task.actions)?;
    if *width < 2 || combinations.width() != *width || !combinations.has(values, true) {
        return None;
    }
    let counts_from_0 = combinations.starts.iter().all(|&start| start == 0);
    if !counts_from_0 && combinations.has(values, false) {
        return None;
    }
    let values = combinations.places(values)?;
    Some(ActionColumn::Discrete { n_actions: task.actions.size(), values })
}

/// The start of the discrete actions in `task`, if the recording's actions may count from it too,
/// although recordings count from 0. `None` if their file describes them.
pub(crate) fn other_start(actions: &ActionColumn, described: bool, task: &Task) -> Option<i64> {
    let ActionColumn::Discrete { values, .. } = actions else { return None };
    let combinations = Combinations::of(&task.actions).filter(|known| known.width() == 1)?;
    let start = combinations.start();
    let end = start.saturating_add(combinations.sizes[0] as i64);
    let is_of_it = |&action: &u16| (start..end).contains(&i64::from(action));
    (!described && start != 0 && !values.is_empty() && values.iter().all(is_of_it)).then_some(start)
}

/// Advice for discrete actions that may count from `start`, in words.
pub(crate) fn counted_from(title: &str, start: i64, n: usize) -> String {
    let correction = match start {
        ..0 => format!("add {} to them", start.unsigned_abs()),
        _ => format!("subtract {start} from them"),
    };
    format!(
        "{title} counts its actions from {start}, and recordings count from 0: {correction}; or, \
         if they count from 0 already, save n_actions={n} with them"
    )
}

impl Columns {
    /// Converts actions to the discrete actions of `task`: words by its names for them, and rows of
    /// several whole numbers if its actions are their combinations (`MultiDiscrete`), like files that
    /// describe their space.
    ///
    /// # Errors
    /// `Fault::Inconsistent` for a word that the task does not have, and for actions that may count
    /// from another number than 0, as the task does.
    pub fn list_actions(&mut self, task: &Task) -> Result<(), DataError> {
        if let Some(words) = self.stored.action_names.take() {
            return self.number_words(&words, task);
        }
        if let Some(list) = listed(&self.actions, task) {
            self.actions = list;
            return Ok(());
        }
        match other_start(&self.actions, self.stored.actions_described, task) {
            None => Ok(()),
            Some(start) => {
                Err(Fault::Inconsistent(counted_from(&task.title, start, task.actions.size()))
                    .at(&self.path))
            }
        }
    }
}

impl Columns {
    /// Numbers discrete actions, which were numbered by their position in `words`, as `task` does.
    fn number_words(&mut self, words: &[String], task: &Task) -> Result<(), DataError> {
        let ActionSpace::Discrete { names } = &task.actions else { return Ok(()) };
        let ActionColumn::Discrete { n_actions, values } = &mut self.actions else { return Ok(()) };
        let mut places = Vec::with_capacity(words.len());
        for word in words {
            let Some(place) = names.iter().position(|name| name == word) else {
                let reason = format!(
                    "its action `{word}` is not one of {}: {}",
                    task.title,
                    names.join(", ")
                );
                return Err(Fault::Inconsistent(reason).at(&self.path));
            };
            places.push(place as u16);
        }
        values.iter_mut().for_each(|action| *action = places[usize::from(*action)]);
        *n_actions = names.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::ObservationSpace;

    use super::*;

    fn task(names: &[&str]) -> Task {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let shown = ObservationSpace::Vectors { width: 1 };
        Task::own("plant", shown, ActionSpace::Discrete { names })
    }

    #[test]
    fn names_say_which_numbers_a_list_has() {
        let combinations = |names: &[&str]| {
            Combinations::of(&task(names).actions).map(|known| (known.starts, known.sizes))
        };
        assert_eq!(combinations(&["0", "1", "2"]), Some((vec![0], vec![3])));
        assert_eq!(combinations(&["-1", "0"]), Some((vec![-1], vec![2])));
        let pairs = ["0|1", "0|2", "0|3", "1|1", "1|2", "1|3"];
        assert_eq!(combinations(&pairs), Some((vec![0, 1], vec![2, 3])));
        for other in [&["NOOP", "FIRE"][..], &["0", "2"], &["0|0", "1"], &["1", "0"], &[]] {
            assert_eq!(combinations(other), None, "{other:?}");
        }
    }

    #[test]
    fn rows_of_several_whole_numbers_are_the_list_of_their_combinations() {
        let pairs = task(&["0|0", "0|1", "0|2", "1|0", "1|1", "1|2"]);
        let rows =
            |width, values: &[f32]| ActionColumn::Continuous { width, values: values.into() };
        let list = |values: &[u16]| ActionColumn::Discrete { n_actions: 6, values: values.into() };
        assert_eq!(listed(&rows(2, &[1.0, 2.0, 0.0, 1.0]), &pairs), Some(list(&[5, 1])));
        // Beyond, not whole, of another width.
        for other in [rows(2, &[2.0, 0.0]), rows(2, &[0.5, 0.0]), rows(1, &[1.0, 0.0])] {
            assert_eq!(listed(&other, &pairs), None, "{other:?}");
        }
        // From 1 on: if no row has a 0 or a 3, the start is ambiguous.
        let later = task(&["1|1", "1|2", "1|3", "2|1", "2|2", "2|3"]);
        assert_eq!(listed(&rows(2, &[2.0, 3.0, 1.0, 1.0]), &later), Some(list(&[5, 0])));
        assert_eq!(listed(&rows(2, &[1.0, 2.0, 1.0, 1.0]), &later), None);
        assert_eq!(listed(&rows(2, &[0.0, 2.0, 1.0, 1.0]), &later), None);
    }

    #[test]
    fn a_list_may_count_from_the_start_of_its_task() {
        let of = |values: &[u16], described, names: &[&str]| {
            let done = ActionColumn::Discrete { n_actions: 3, values: values.into() };
            other_start(&done, described, &task(names))
        };
        let from_1 = ["1", "2", "3"];
        assert_eq!(of(&[1, 2, 1], false, &from_1), Some(1));
        assert_eq!(of(&[1, 3], false, &from_1), Some(1));
        // A 0 shows that the list counts from 0; the file's own description is not in doubt.
        assert_eq!(of(&[0, 2], false, &from_1), None);
        assert_eq!(of(&[1, 2], true, &from_1), None);
        assert_eq!(of(&[1, 2], false, &["0", "1", "2"]), None);
        assert_eq!(of(&[0, 1], false, &["-1", "0", "1"]), Some(-1));
        assert_eq!(of(&[0, 2], false, &["-1", "0", "1"]), None);
        assert!(counted_from("Plant", -1, 3).contains("add 1 to them"));
    }
}
