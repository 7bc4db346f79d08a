//! [`ActionMasks`]: the discrete actions that are allowed at each step.

use overtone_core::Episode;

use crate::error::{DataError, Fault};
use crate::read::column::{ActionColumn, append, keep_rows};
use crate::read::source::{Kind, Source, has_shape, same, wrong_shape, wrong_value};

/// Names of the array; a recording has one of them.
const NAMES: [&str; 2] = ["action_mask", "admissible_actions"];

/// The discrete actions that are allowed at each step.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionMasks {
    /// Number of actions.
    pub n_actions: usize,
    /// `[steps, n_actions]`. A row of `false` at the end of an episode has no meaning.
    pub allowed: Vec<bool>,
}

impl ActionMasks {
    /// The name of the array that is written.
    pub(crate) const NAME: &str = NAMES[0];

    /// The masks of these actions, if the recording has them. `group` is empty, or ends in a `/`:
    /// the group may hold anything (Minari's `infos`), so an array of another shape is not read, and
    /// one row more belongs to the last observation.
    ///
    /// # Errors
    /// If two arrays have such a name, or the array is not one flag for each action of each step.
    pub(crate) fn read(
        source: &dyn Source,
        group: &str,
        actions: &ActionColumn,
    ) -> Result<Option<Self>, DataError> {
        let names = NAMES.map(|name| format!("{group}{name}"));
        let mut existing = names.iter().filter(|name| source.has(name));
        let Some(name) = existing.next() else { return Ok(None) };
        let (is_info, rows) = (!group.is_empty(), actions.rows());
        let is_discrete = matches!(actions, ActionColumn::Discrete { .. });
        let fits = |shape: &[usize]| match shape {
            _ if !is_info => true,
            [n, _] => is_discrete && (*n == rows || *n == rows + 1),
            _ => false,
        };
        if !has_shape(source, name, fits) {
            return Ok(None);
        }
        if let Some(other) = existing.next() {
            let reason = format!("`{name}` and `{other}` mean the same: keep one of them");
            return Err(Fault::Inconsistent(reason).at(source.path()));
        }
        if !is_discrete {
            let reason = format!("`{name}` needs discrete actions, one whole number a row");
            return Err(Fault::Inconsistent(reason).at(source.path()));
        }
        let shape = source.shape(name)?;
        let &[n, n_actions] = &shape[..] else {
            return Err(wrong_shape(source, name, &shape, "[rows, actions]"));
        };
        if !is_info {
            same(source, name, n, rows, "actions")?;
        }
        let numbers: Vec<f32> = match source.kind(name)? {
            Kind::Real => source.reals(name)?,
            _ => source.wholes(name)?.into_iter().map(|whole| whole as f32).collect(),
        };
        if let Some(at) = numbers.iter().position(|number| ![0.0, 1.0].contains(number)) {
            let what = format!("{}, expected 0 or 1 (an allowed action)", numbers[at]);
            return Err(wrong_value(source, name, at / n_actions, what));
        }
        let allowed = numbers[..rows * n_actions].iter().map(|&number| number == 1.0).collect();
        Ok(Some(Self { n_actions, allowed }))
    }

    /// The actions that are allowed at a step; `None`: all, because the row has no meaning.
    pub(crate) fn at(&self, row: usize) -> Option<&[bool]> {
        let allowed = &self.allowed[row * self.n_actions..][..self.n_actions];
        allowed.contains(&true).then_some(allowed)
    }

    pub(crate) fn keep(&mut self, spans: &[Episode]) {
        keep_rows(&mut self.allowed, self.n_actions, spans);
    }

    /// Appends `more` to the masks of `n` steps, where every action is allowed at steps without
    /// masks. Masks of another number of actions make the whole one that [`fault`](Self::fault)
    /// refuses.
    pub(crate) fn extend(all: &mut Option<Self>, n: usize, more: Option<Self>, n_more: usize) {
        let Some(n_actions) = all.as_ref().or(more.as_ref()).map(|masks| masks.n_actions) else {
            return;
        };
        let every = |steps: usize| Self { n_actions, allowed: vec![true; steps * n_actions] };
        let more = more.unwrap_or_else(|| every(n_more));
        append(&mut all.get_or_insert_with(|| every(n)).allowed, more.allowed);
    }

    /// The first fault of the masks of these actions.
    pub(crate) fn fault(&self, actions: &ActionColumn, episodes: &[Episode]) -> Option<Fault> {
        let name = Self::NAME;
        let ActionColumn::Discrete { n_actions, values } = actions else {
            return Some(Fault::Inconsistent(format!("its {name} needs discrete actions")));
        };
        let (got, expected) = (self.n_actions, *n_actions);
        if got != expected || self.allowed.len() != values.len() * got {
            let steps = values.len();
            return Some(Fault::Inconsistent(format!(
                "its {name} has {} flags in rows of {got}, expected {steps} rows of {expected}, one \
                 for each action",
                self.allowed.len()
            )));
        }
        let is_last = |row: usize| episodes.iter().any(|episode| episode.end() == row + 1);
        let is_wrong = |row: usize| match self.at(row) {
            Some(allowed) => !allowed[usize::from(values[row])],
            None => !is_last(row),
        };
        let row = (0..values.len()).find(|&row| is_wrong(row))?;
        let what = format!("0 for the recorded action {}, expected 1", values[row]);
        Some(Fault::DatasetValue { dataset: name.into(), row, what })
    }
}
