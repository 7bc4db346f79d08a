//! The arrays of a D4RL file or of one of Minari's episodes, read as far as possible: training uses
//! them only if all are sound, and an inspection continues with the sound ones.

use overtone_core::picture::SIDE;
use overtone_core::{Episode, Outcome};

use crate::describe::findings::Tally;
use crate::error::{DataError, Fault};
use crate::read::acted::acted;
use crate::read::column::{ActionColumn, ObservationColumn, append};
use crate::read::columns::{Columns, Mixture};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{Hdf5Layout, cut, doubled, outcome};
use crate::read::log_probs;
use crate::read::minari_spaces::MinariSpaces;
use crate::read::next_observations::breaks;
use crate::read::observed::{self, Shown};
use crate::read::optional_arrays::OptionalArrays;
use crate::read::source::{self, Source};
use crate::read::stored::Stored;

/// The array of the observations that the steps led to.
pub(crate) const NEXT_OBSERVATIONS: &str = "next_observations";

/// Arrays that belong together; `None` is one that cannot be read or does not fit the others.
pub(crate) struct Arrays {
    /// How the file is laid out.
    pub layout: Hdf5Layout,
    /// Name of the episode's group and a `/`; empty in a D4RL file.
    pub prefix: String,
    /// The observations before each action; in Minari's files also the one after the last action.
    pub observations: Option<ObservationColumn>,
    /// The actions.
    pub actions: Option<ActionColumn>,
    /// `[steps]`
    pub rewards: Option<Vec<f32>>,
    /// `[steps]`, log-probabilities of the actions, if there are any.
    pub log_probs: Option<Vec<f32>>,
    /// Optional arrays; in Minari's files those in `infos`.
    pub optional: OptionalArrays,
    /// Whether there is an array with such a name, which may have another shape.
    names_log_probs: bool,
    /// `[steps]`, the task's end.
    pub terminals: Option<Vec<bool>>,
    /// `[steps]`, the step limit's.
    pub timeouts: Option<Vec<bool>>,
    /// How they are stored.
    pub stored: Stored,
    /// Why arrays are missing from what was read.
    pub errors: Vec<DataError>,
}

/// The properties that all parts of a recording share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Numbers of an observation.
    observed: usize,
    /// Numbers of an action; `None` if actions are discrete.
    acted: Option<usize>,
    /// Whether observations are pictures.
    pictures: bool,
}

impl Arrays {
    /// Reads the arrays of a D4RL file, or of Minari's episode `episode`, which have these
    /// `spaces`.
    pub fn read(
        file: &Hdf5File,
        layout: Hdf5Layout,
        episode: Option<&str>,
        spaces: &MinariSpaces,
    ) -> Self {
        let prefix = episode.map_or_else(String::new, |episode| format!("{episode}/"));
        let named = |name: &str| format!("{prefix}{name}");
        let [end, limit] = layout.flags();
        let mut errors = Vec::new();
        let timeouts = if layout == Hdf5Layout::D4rl && !file.has(limit) {
            Err(Fault::NoTimeouts.at(file.path()))
        } else {
            source::flags(file, &named(limit))
        };
        let timeouts = kept(timeouts, &mut errors);
        let terminals = kept(source::flags(file, &named(end)), &mut errors);
        let name = named("observations");
        let observations = match layout {
            Hdf5Layout::D4rl => observed::one(file, &name, None),
            Hdf5Layout::Minari => observed::observed(file, &name, spaces.observations.as_ref()),
        };
        let actions = acted(file, &named("actions"), spaces.actions.as_ref());
        let observations = kept(observations, &mut errors);
        let of_flags = layout == Hdf5Layout::D4rl;
        let seen = spaces.observations.as_ref();
        let stored = |shown: &Shown| shown.stored(file, &name, seen, of_flags);
        let stored = observations.as_ref().map(stored).unwrap_or_default();
        let stored = Stored { actions_described: spaces.actions.is_some(), ..stored };
        let mut arrays = Self {
            layout,
            timeouts,
            terminals,
            observations: observations.map(Shown::seen),
            actions: kept(actions, &mut errors),
            rewards: kept(source::column(file, &named("rewards")), &mut errors),
            log_probs: None,
            optional: OptionalArrays::default(),
            names_log_probs: false,
            stored,
            errors,
            prefix,
        };
        arrays.fit(file);
        arrays.read_log_probs(file);
        if let Some(actions) = &mut arrays.actions {
            let group = match layout {
                Hdf5Layout::D4rl => String::new(),
                Hdf5Layout::Minari => format!("{}infos/", arrays.prefix),
            };
            let optional = OptionalArrays::read(file, &group, actions);
            arrays.optional = kept(optional, &mut arrays.errors).unwrap_or_default();
            if spaces.actions.is_none() {
                arrays.optional.count_actions(actions);
            }
        }
        if let (Hdf5Layout::D4rl, Some(observations)) = (layout, &arrays.observations) {
            // Training does not use them, so they need not be readable.
            arrays.stored.breaks =
                breaks(file, NEXT_OBSERVATIONS, observations).unwrap_or_default();
        }
        if let (Some(terminals), Some(timeouts)) = (&arrays.terminals, &arrays.timeouts) {
            arrays.stored.doubled = doubled(terminals, timeouts);
        }
        arrays.stored.unread = source::unread_arrays(file, &arrays.prefix);
        arrays
    }

    /// Reads the log-probabilities of the actions. Minari's `infos` may hold anything: an array of
    /// another shape is not an error there.
    fn read_log_probs(&mut self, file: &Hdf5File) {
        let Some(actions) = &self.actions else { return };
        let names = self.layout.log_probs().map(|name| format!("{}{name}", self.prefix));
        self.names_log_probs = names.iter().any(|name| file.has(name));
        let is_read = |name: &&str| {
            self.layout == Hdf5Layout::D4rl || log_probs::is_one_a_step(file, name, actions.rows())
        };
        let names: Vec<&str> = names.iter().map(String::as_str).filter(is_read).collect();
        match log_probs::read(file, &names, actions) {
            Ok(log_probs) => self.log_probs = log_probs,
            Err(error) => self.errors.push(error),
        }
    }

    /// Steps, if an array was read.
    pub fn steps(&self) -> Option<usize> {
        self.usual_steps().map(|(steps, _)| steps)
    }

    /// The number of steps that most arrays have, and the first of them.
    fn usual_steps(&self) -> Option<(usize, &'static str)> {
        let [end, limit] = self.layout.flags();
        let observed = self.observations.as_ref().map(ObservationColumn::rows);
        let acted = self.actions.as_ref().map(ActionColumn::rows);
        let column = |flags: &Option<Vec<bool>>| flags.as_ref().map(Vec::len);
        let steps = [
            ("actions", acted),
            ("rewards", self.rewards.as_ref().map(Vec::len)),
            (end, column(&self.terminals)),
            (limit, column(&self.timeouts)),
            ("observations", observed.and_then(|rows| rows.checked_sub(self.layout.more_rows()))),
        ];
        let read: Vec<_> = steps.into_iter().filter_map(|(name, n)| Some((name, n?))).collect();
        source::usual_steps(&read)
    }

    /// Drops arrays of other lengths.
    fn fit(&mut self, file: &Hdf5File) {
        let Some((steps, other)) = self.usual_steps() else { return };
        let more = self.layout.more_rows();
        let (prefix, errors, [end, limit]) = (&self.prefix, &mut self.errors, self.layout.flags());
        let mut wrong = |name: &str, got: usize, expected: usize| {
            let (name, other) = (format!("{prefix}{name}"), format!("{prefix}{other}"));
            kept(source::same(file, &name, got, expected, &other), errors).is_none()
        };
        self.observations.take_if(|seen| wrong("observations", seen.rows(), steps + more));
        self.actions.take_if(|actions| wrong("actions", actions.rows(), steps));
        self.rewards.take_if(|column| wrong("rewards", column.len(), steps));
        self.terminals.take_if(|flags| wrong(end, flags.len(), steps));
        self.timeouts.take_if(|flags| wrong(limit, flags.len(), steps));
    }

    /// The episodes, and whether a flag ends each; those without a step are left out.
    pub fn episodes(&self) -> (Vec<Episode>, Vec<bool>) {
        let Some(terminals) = &self.terminals else { return Default::default() };
        let none = vec![false; terminals.len()];
        match (self.layout, &self.timeouts) {
            (Hdf5Layout::D4rl, timeouts) => cut(terminals, timeouts.as_ref().unwrap_or(&none)),
            (Hdf5Layout::Minari, Some(timeouts)) => {
                let Some(last) = terminals.len().min(timeouts.len()).checked_sub(1) else {
                    return Default::default();
                };
                let ending = outcome(terminals[last], timeouts[last]);
                let outcome = ending.unwrap_or(Outcome::Truncated);
                (vec![Episode { start: 0, length: last + 1, outcome }], vec![ending.is_some()])
            }
            (Hdf5Layout::Minari, None) => Default::default(),
        }
    }

    /// Refuses what cannot be trained on, or not with what came first, whose form is `first`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&mut self, file: &Hdf5File, first: &mut Option<Form>) -> Result<(), DataError> {
        if !self.errors.is_empty() {
            return Err(self.errors.swap_remove(0));
        }
        let named = |name: &str| format!("{}{name}", self.prefix);
        if let Some(rewards) = &self.rewards {
            file.check_finite(&named("rewards"), rewards, 1)?;
        }
        let Some(actions) = &self.actions else { return Ok(()) };
        let Some(seen) = &self.observations else { return Ok(()) };
        let (rows, observed) = (seen.rows(), seen.width());
        if let ObservationColumn::Vectors { width, values } = seen {
            file.check_finite(&named("observations"), values, *width)?;
        }
        let acted = match actions {
            ActionColumn::Discrete { .. } => None,
            ActionColumn::Continuous { width, values } => {
                file.check_finite(&named("actions"), values, *width)?;
                Some(*width)
            }
        };
        if let Some(fault) = self.optional.fault(actions, &self.episodes().0) {
            return Err(fault.at(file.path()));
        }
        let form =
            Form { observed, acted, pictures: matches!(seen, ObservationColumn::Frames { .. }) };
        let first = *first.get_or_insert(form);
        let shape =
            |width: Option<usize>| width.map_or("[rows]".into(), |w| format!("[rows, {w}]"));
        if (form.observed, form.pictures) != (first.observed, first.pictures) {
            let got = [rows, form.observed];
            let expected = match first.pictures {
                true => format!("[rows, {SIDE}, {SIDE}], pictures as in the first episode"),
                false => shape(Some(first.observed)),
            };
            return Err(source::wrong_shape(file, &named("observations"), &got, &expected));
        }
        if form.acted != first.acted {
            let got: Vec<usize> = [actions.rows()].into_iter().chain(form.acted).collect();
            return Err(source::wrong_shape(file, &named("actions"), &got, &shape(first.acted)));
        }
        Ok(())
    }
}

/// Puts the parts of a file together; of Minari's also where the last action of each episode led.
/// If an episode lacks log-probabilities of its actions, the whole does not have them.
///
/// # Errors
/// The first thing that is wrong with one.
pub(super) fn columns(
    file: &Hdf5File,
    layout: Hdf5Layout,
    parts: impl Iterator<Item = Arrays>,
) -> Result<(Columns, Option<ObservationColumn>), DataError> {
    let (mut first, mut strange) = (None, Strange::default());
    let (mut rewards, mut log_probs) = (Vec::new(), Some(Vec::new()));
    let (mut observations, mut last): (Option<ObservationColumn>, Option<ObservationColumn>) =
        (None, None);
    let mut actions: Option<ActionColumn> = None;
    let (mut episodes, mut finished) = (Vec::new(), Vec::new());
    let mut optional = OptionalArrays::default();
    let mut stored = Stored::default();
    for mut part in parts {
        part.check(file, &mut first)?;
        let mut here = std::mem::take(&mut part.stored);
        here.doubled.iter_mut().for_each(|row| *row += rewards.len());
        stored = stored.and(here);
        strange.look(&part);
        let steps = part.steps().unwrap_or(0);
        let (mut here, ends) = part.episodes();
        let has_last = layout == Hdf5Layout::Minari && !here.is_empty();
        here.iter_mut().for_each(|episode| episode.start += rewards.len());
        episodes.extend(here);
        finished.extend(ends);
        if let Some(mut seen) = part.observations {
            if has_last {
                add(&mut last, seen.rows_at(steps..seen.rows()));
            }
            seen.truncate(steps);
            add(&mut observations, seen);
        }
        optional.extend(rewards.len(), part.optional, steps);
        append(&mut rewards, part.rewards.unwrap_or_default());
        match (&mut log_probs, part.log_probs) {
            (Some(all), Some(here)) => append(all, here),
            (_, None) if steps > 0 => log_probs = None,
            _ => {}
        }
        match (&mut actions, part.actions) {
            (_, None) => {}
            (None, here) => actions = here,
            (Some(all), Some(here)) => {
                assert!(all.extend(here), "`check` refuses actions of two forms");
            }
        }
    }
    let observations =
        observations.unwrap_or_else(|| ObservationColumn::Vectors { width: 0, values: Vec::new() });
    let last =
        (layout == Hdf5Layout::Minari).then(|| last.unwrap_or_else(|| observations.rows_at(0..0)));
    let mut columns = Columns {
        path: file.path().to_path_buf(),
        format: layout.name(),
        behavior_log_probs: log_probs.filter(|all| !all.is_empty()),
        optional,
        finished,
        mixture: Mixture::default(),
        stored,
        ..Columns::new(
            observations,
            actions.unwrap_or(ActionColumn::Continuous { width: 0, values: Vec::new() }),
            rewards,
            episodes,
        )
    };
    columns.odd = strange.sentences();
    columns.odd.extend(strange.unread_log_probs());
    columns.odd.extend(file.claims().rounding.sentences());
    Ok((columns, last))
}

fn add(all: &mut Option<ObservationColumn>, more: ObservationColumn) {
    match all {
        None => *all = Some(more),
        Some(all) => assert!(all.extend(more), "`check` refuses observations of two forms"),
    }
}

/// Flags that are not as the formats have them.
#[derive(Default)]
pub(crate) struct Strange {
    /// Episodes flagged as ended before their last step.
    pub early: Tally,
    /// Episodes without a step.
    pub empty: Tally,
    /// Parts with steps, and how many of them have log-probabilities of their actions.
    n_parts: usize,
    n_with_log_probs: usize,
    /// Whether an array has the name of log-probabilities.
    names_log_probs: bool,
}

impl Strange {
    /// Inspects one part of a file.
    pub fn look(&mut self, part: &Arrays) {
        if part.steps().is_some_and(|steps| steps > 0) {
            self.n_parts += 1;
            self.n_with_log_probs += usize::from(part.log_probs.is_some());
            self.names_log_probs |= part.names_log_probs;
        }
        let (Some(terminals), Some(timeouts)) = (&part.terminals, &part.timeouts) else { return };
        let flags = || terminals.iter().zip(timeouts).enumerate();
        if part.layout == Hdf5Layout::D4rl {
            return;
        }
        match flags().count().checked_sub(1) {
            None => self.empty.add(|| part.prefix.trim_end_matches('/').to_owned()),
            Some(last) => {
                if let Some((row, _)) = flags().take(last).find(|&(_, (&ended, &cut))| ended || cut)
                {
                    self.early.add(|| place(&part.prefix, row));
                }
            }
        }
    }

    /// A sentence about log-probabilities of actions that are not read, if any.
    pub fn unread_log_probs(&self) -> Option<String> {
        let Self { n_parts, n_with_log_probs: n, names_log_probs, .. } = self;
        (*names_log_probs && n < n_parts).then(|| {
            format!(
                "log-probabilities of actions, not read: {n} of {n_parts} episodes have one for \
                 each step"
            )
        })
    }

    /// A sentence for each kind.
    fn sentences(&self) -> Vec<String> {
        let counted = [
            (self.empty.count, "episodes without a step, left out"),
            (self.early.count, "episodes flagged as ended before their last step, taken as whole"),
        ];
        let some = counted.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{what}: {count}")).collect()
    }
}

/// The location of row `row`, in words.
pub(crate) fn place(prefix: &str, row: usize) -> String {
    match prefix.trim_end_matches('/') {
        "" => format!("row {row}"),
        episode => format!("{episode}, row {row}"),
    }
}

fn kept<T>(read: Result<T, DataError>, errors: &mut Vec<DataError>) -> Option<T> {
    read.map_err(|error| errors.push(error)).ok()
}
