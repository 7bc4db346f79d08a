//! Arrays of your own, as `numpy.savez` writes them. They have D4RL's names: `observations`,
//! `actions`, `rewards`, `terminals` (or `terminations`) and `timeouts` (or `truncations`); or
//! other libraries' names for the same arrays (`OBSERVATIONS` and the rest).
//!
//! Two libraries' files do not say why an episode ended, and a warning says how they are read:
//! imitation's transitions (`dones` with `next_obs`) and Stable Baselines 2's (`episode_starts`).
//!
//! One whole number a row is a discrete action; bytes with rows and columns are pictures.
//! `behavior_log_probs` may hold the log-probability of each recorded action; further arrays are
//! [`OptionalArrays`]. `n_actions` may set the number of discrete actions. `action_low` and `action_high` may set the
//! bounds of continuous actions, a number for each of an action's numbers or one for all.
//! `Ogbench` reads OGBench's files, of the same format.

mod element;
mod fortran;
mod ogbench;
mod one_array;

use std::fs;
use std::path::Path;

use self::element::Element;
use self::fortran::Positions;
pub(crate) use self::ogbench::Ogbench;
pub use self::one_array::read_array;
use crate::error::{DataError, Fault};
use crate::read::acted::acted;
use crate::read::array_names::LOG_PROBS;
use crate::read::column::{ActionColumn, MOST_ACTIONS, ObservationColumn};
use crate::read::columns::{Columns, Mixture};
use crate::read::foreign;
use crate::read::hdf5_layout::{cut, doubled};
use crate::read::log_probs;
use crate::read::next_observations::breaks;
use crate::read::npy::Header;
use crate::read::observed::observed;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::recording::{Reader, Recording};
use crate::read::source::{
    Claims, EachStream, Kind, Source, column, flags, missing, same, same_rows, singles, unread,
    unread_arrays, wrong_shape, wrong_type, wrong_value,
};
use crate::read::spaces::Space;
use crate::read::stored::Stored;
use crate::read::zip::{Archive, Entry, Inside, MAGIC};

/// Arrays under D4RL's names.
pub(crate) struct Npz {
    /// Whether bytes with rows and columns are numbers, and not pictures.
    pub numbers: bool,
}

/// Names that mean the same; a file has one of them.
const OBSERVATIONS: &[&str] = &["observations", "obs"];
const ACTIONS: &[&str] = &["actions", "acts", "act"];
const REWARDS: &[&str] = &["rewards", "rews", "rew"];
const ENDS: &[&str] = &["terminals", "terminations", "terminated"];
const LIMITS: &[&str] = &["timeouts", "truncations", "truncated"];
const NEXT: &[&str] = &["next_observations", "next_obs", "obs_next"];
/// Flags of imitation's transitions, and of Stable Baselines 2's recordings.
const DONES: &str = "dones";
const STARTS: &str = "episode_starts";

impl Reader for Npz {
    fn name(&self) -> &'static str {
        "NumPy"
    }

    fn reads(&self, path: &Path) -> bool {
        let named = path.extension().is_some_and(|ending| ending == "npz");
        path.is_file() && (named || begins(path).is_some_and(|bytes| bytes == *MAGIC))
    }

    fn as_numbers(&self) -> Option<&'static dyn Reader> {
        Some(&Self { numbers: true })
    }

    fn action_space(&self, path: &Path) -> Result<Option<Space>, DataError> {
        let file = NpzFile::open(path)?;
        file.space_of(&acted(&file, file.named(ACTIONS)?, None)?)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let file = NpzFile { numbers: self.numbers, ..NpzFile::open(path)? };
        let is_read = [OBSERVATIONS, ACTIONS, REWARDS, ENDS, LIMITS];
        if !is_read.iter().all(|names| file.first(names).is_some())
            && let Some(error) = foreign::by_names(&file)
        {
            return Err(error);
        }
        for names in is_read {
            let mut found = names.iter().filter(|name| file.has(name));
            if let (Some(one), Some(other)) = (found.next(), found.next()) {
                return Err(Fault::Npz(format!(
                    "`{one}` and `{other}` mean the same: save one of them"
                ))
                .at(path));
            }
        }
        let Ends { name: end, terminals, timeouts, taken } = file.ends()?;
        let reward = file.named(REWARDS)?;
        let rewards = column(&file, reward)?;
        let limit = file.first(LIMITS).unwrap_or(end);
        let flagged = [(end, terminals.len()), (limit, timeouts.len()), (reward, rewards.len())];
        let (observations, mut actions, mut stored) = file.steps(&flagged)?;
        let space = file.space_of(&actions)?;
        stored.actions_described = space.is_some();
        if let (ActionColumn::Discrete { n_actions, .. }, Some(Space::Discrete { n, .. })) =
            (&mut actions, &space)
        {
            *n_actions = *n;
        }
        let behavior_log_probs = log_probs::read(&file, &[LOG_PROBS], &actions)?;
        let optional = OptionalArrays::read(&file, "", &actions)?;
        if space.is_none() {
            optional.count_actions(&mut actions);
        }
        let (episodes, finished) = cut(&terminals, &timeouts);
        stored.doubled = doubled(&terminals, &timeouts);
        let mut columns = Columns {
            path: path.to_path_buf(),
            format: self.name(),
            behavior_log_probs,
            optional,
            finished,
            mixture: Mixture::default(),
            odd: taken.map(str::to_owned).into_iter().collect(),
            stored,
            ..Columns::new(observations, actions, rewards, episodes)
        };
        columns.check()?;
        if let Some(next) = file.first(NEXT) {
            columns.stored.breaks = breaks(&file, next, &columns.observations)?;
        }
        columns.stored.unread = unread_arrays(&file, "");
        columns.odd.extend(file.claims.rounding.sentences());
        Ok(Recording::Columns(columns))
    }
}

/// The first bytes of a file.
fn begins(path: &Path) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut file = fs::File::open(path).ok()?;
    std::io::Read::read_exact(&mut file, &mut bytes).ok()?;
    Some(bytes)
}

/// Ends of the episodes in a file.
struct Ends {
    /// The array with the flags.
    name: &'static str,
    /// `[steps]`, the task's end.
    terminals: Vec<bool>,
    /// `[steps]`, the step limit's.
    timeouts: Vec<bool>,
    /// The interpretation of flags that do not say why an episode ended.
    taken: Option<&'static str>,
}

/// The arrays of an `.npz` file.
#[derive(Debug)]
struct NpzFile {
    archive: Archive,
    numbers: bool,
    claims: Claims,
}

/// Bounds of continuous actions.
const LOW_AND_HIGH: [&str; 2] = ["action_low", "action_high"];

/// Maximum number of bytes of elements per read.
const PIECE: usize = 1 << 16;

/// Bytes of the rows of a picture array in Fortran order that are held at a time: each such part
/// takes another pass over the array.
const ROWS_AT_ONCE: usize = 256 << 20;

impl NpzFile {
    fn open(path: &Path) -> Result<Self, DataError> {
        let archive = Archive::open(path)?;
        let bytes = fs::metadata(path).map_err(DataError::io(path, "read"))?.len();
        Ok(Self { archive, numbers: false, claims: Claims::new(bytes) })
    }

    /// Observations and actions, with as many rows as most arrays; `others` are names and rows of
    /// those that were read before.
    fn steps(
        &self,
        others: &[(&str, usize)],
    ) -> Result<(ObservationColumn, ActionColumn, Stored), DataError> {
        let [observation, action] = [self.named(OBSERVATIONS)?, self.named(ACTIONS)?];
        let observations = observed(self, observation, None)?;
        self.check_bounded(action)?;
        let actions = acted(self, action, None)?;
        let stepped = [(observation, observations.rows()), (action, actions.rows())];
        same_rows(self, &[others, &stepped].concat())?;
        let stored = observations.stored(self, observation, None, true);
        Ok((observations.seen(), actions, stored))
    }

    /// Checks that actions with bounds are not one whole number a row, which is a discrete action.
    fn check_bounded(&self, actions: &str) -> Result<(), DataError> {
        let has_bounds = LOW_AND_HIGH.iter().any(|name| self.has(name));
        let is_single = matches!(self.shape(actions)?.as_slice(), [_] | [_, 1]);
        if has_bounds && is_single && self.kind(actions)? != Kind::Real {
            let expected = "real numbers, because of `action_low` and `action_high`";
            return Err(wrong_type(self, actions, "whole numbers", expected));
        }
        Ok(())
    }

    /// The first existing one of `names`, if any.
    fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The first existing one of `names`.
    fn named(&self, names: &[&'static str]) -> Result<&'static str, DataError> {
        self.first(names).ok_or_else(|| missing(self, names[0], ""))
    }

    /// Ends of the episodes, by any flags that exist.
    fn ends(&self) -> Result<Ends, DataError> {
        match (self.first(ENDS), self.first(LIMITS)) {
            (Some(end), Some(limit)) => {
                let (terminals, timeouts) = (flags(self, end)?, flags(self, limit)?);
                Ok(Ends { name: end, terminals, timeouts, taken: None })
            }
            (None, None) if self.has(DONES) && self.first(NEXT).is_some() => self.ends_by_dones(),
            (None, None) if self.has(STARTS) => self.ends_by_starts(),
            (None, _) => {
                Err(missing(self, ENDS[0], "`terminals` or `terminations`, 1 where the task ended"))
            }
            (Some(_), None) => Err(missing(
                self,
                LIMITS[0],
                "`timeouts` or `truncations`, 1 where a step limit ended an episode; of a file of \
                 OGBench, which has neither, say so (train data.layout=ogbench, data inspect \
                 layout=ogbench, data convert --layout ogbench)",
            )),
        }
    }

    /// Episode ends in imitation's transitions: an episode without `dones` ends where the next
    /// observation of a row [is not](breaks) the observation of the next row.
    fn ends_by_dones(&self) -> Result<Ends, DataError> {
        let terminals = flags(self, DONES)?;
        let (observations, next) = (self.named(OBSERVATIONS)?, self.named(NEXT)?);
        let here = observed(self, observations, None)?.seen();
        let steps = terminals.len();
        same(self, observations, here.rows(), steps, DONES)?;
        same(self, next, self.shape(next)?.first().copied().unwrap_or(0), steps, DONES)?;
        // Next observations of another form lead nowhere.
        let breaks = breaks(self, next, &here)?;
        let is_break = |at: usize| breaks.get(at).copied().unwrap_or(true);
        let cut = |at: usize| !terminals[at] && at + 1 < steps && is_break(at);
        let timeouts: Vec<bool> = (0..steps).map(cut).collect();
        let cuts = timeouts.iter().filter(|&&cut| cut).count();
        if 2 * cuts > steps {
            let what =
                format!("`{next}` that is not the next row's `{observations}` in {cuts} rows");
            let way_out = "save the steps in the order in which they happened, with `terminals` \
                           and `timeouts`";
            return Err(unread(self, what, way_out.into()));
        }
        let taken = "`dones` are taken as the task's ends: imitation flags what a step limit cut \
                     too (`terminals` and `timeouts` in their place tell them apart)";
        Ok(Ends { name: DONES, terminals, timeouts, taken: Some(taken) })
    }

    /// Episode ends in Stable Baselines 2's recordings: an episode ends before the next one starts.
    fn ends_by_starts(&self) -> Result<Ends, DataError> {
        let starts = flags(self, STARTS)?;
        let complete = self.has("episode_returns")
            && self.shape("episode_returns")? == [starts.iter().filter(|&&start| start).count()];
        let last = complete.then_some(true);
        let terminals: Vec<bool> = starts.iter().skip(1).copied().chain(last).collect();
        let terminals: Vec<bool> =
            terminals.into_iter().chain([false]).take(starts.len()).collect();
        let taken = "the row before each of `episode_starts` is taken as the task's end: it may be \
                     a step limit's (`terminals` and `timeouts` in its place tell them apart)";
        let timeouts = vec![false; starts.len()];
        Ok(Ends { name: STARTS, terminals, timeouts, taken: Some(taken) })
    }

    /// The space of these actions, if an array sets it.
    ///
    /// # Errors
    /// If such an array does not fit these actions.
    fn space_of(&self, actions: &ActionColumn) -> Result<Option<Space>, DataError> {
        let unlike = |got: &str, expected| Err(wrong_type(self, "actions", got, expected));
        let has_bounds = LOW_AND_HIGH.map(|name| self.has(name));
        match actions {
            ActionColumn::Discrete { n_actions, .. } => {
                let n = self.has("n_actions").then(|| self.count_above(*n_actions)).transpose()?;
                Ok(n.map(|n| Space::Discrete { n, start: 0 }))
            }
            ActionColumn::Continuous { .. } if self.has("n_actions") => {
                unlike("real numbers", "one whole number a row, because of `n_actions`")
            }
            ActionColumn::Continuous { .. } if has_bounds == [false, false] => Ok(None),
            ActionColumn::Continuous { width, .. } => {
                let [low, high] = LOW_AND_HIGH.map(|name| self.bounds(name, *width));
                let (low, high) = (low?, high?);
                let is_wrong =
                    |(low, high): (&f32, &f32)| low.is_nan() || high.is_nan() || low > high;
                let at = low.iter().zip(&high).position(is_wrong);
                if let Some(row) = at {
                    let what = format!(
                        "{}, expected at most {}, which is `action_high`",
                        low[row], high[row]
                    );
                    return Err(wrong_value(self, "action_low", row, what));
                }
                Ok(Some(Space::Box { dtype: "float32".into(), shape: vec![*width], low, high }))
            }
        }
    }

    /// The number of discrete actions, from `n_actions`: at least `chosen`, the largest recorded
    /// action plus 1.
    fn count_above(&self, chosen: usize) -> Result<usize, DataError> {
        let name = "n_actions";
        let &[n] = self.wholes(name)?.as_slice() else {
            return Err(wrong_shape(self, name, &self.shape(name)?, "one number"));
        };
        let expected = match usize::try_from(n) {
            Ok(n) if n > MOST_ACTIONS => format!("at most {MOST_ACTIONS}"),
            Ok(n) if n >= chosen.max(1) => return Ok(n),
            _ => format!("more than the largest of `actions`: {chosen} or more"),
        };
        Err(wrong_value(self, name, 0, format!("{n}, expected {expected}")))
    }

    /// A bound for each of `width` numbers.
    fn bounds(&self, name: &str, width: usize) -> Result<Vec<f32>, DataError> {
        if !self.has(name) {
            return Err(Fault::MissingDataset {
                dataset: name.into(),
                hint: format!(
                    "`{}` and `{}` are needed both, or neither",
                    LOW_AND_HIGH[0], LOW_AND_HIGH[1]
                ),
                way_out: format!("save `{name}` too, or leave the other out"),
            }
            .at(self.path()));
        }
        let bounds = self.reals(name)?;
        match bounds.len() {
            1 => Ok(vec![bounds[0]; width]),
            n if n == width => Ok(bounds),
            _ => {
                let expected =
                    format!("[{width}], a number for each of an action's, or one number");
                Err(wrong_shape(self, name, &self.shape(name)?, &expected))
            }
        }
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.archive.entries().iter().find(|entry| entry.name.strip_suffix(".npy") == Some(name))
    }

    /// Begins to read an array.
    fn array(&self, name: &str) -> Result<Array, DataError> {
        let Some(entry) = self.entry(name) else {
            return Err(missing(self, name, ""));
        };
        self.claims.note_read(name);
        let wrong = |reason: String| Fault::Npz(format!("`{name}`: {reason}")).at(self.path());
        let mut file = self.archive.read(entry)?;
        let mut header_size = 0;
        let mut take = |n: usize| {
            let mut bytes = vec![0; n];
            file.read_exact(&mut bytes)?;
            header_size += n as u64;
            Ok(bytes)
        };
        let Header { descr, shape, fortran_order } =
            Header::read(&mut take, &wrong, (self.path(), &format!("`{name}`")))?;
        let Some(element) = Element::of(&descr) else {
            return Err(wrong_type(self, name, &descr, "numbers or booleans"));
        };
        let count: usize = shape.iter().product();
        let bytes = (count as u64).saturating_mul(element.size as u64);
        if bytes.checked_add(header_size) != Some(entry.bytes) {
            return Err(Fault::DatasetClaim {
                dataset: name.into(),
                claimed: bytes,
                stored: entry.bytes.saturating_sub(header_size),
            }
            .at(self.path()));
        }
        let in_fortran_order = fortran_order && shape.len() > 1;
        Ok(Array { file, element, shape, count, in_fortran_order })
    }

    /// Reads all elements, each made by `make` of its bytes, the lowest first.
    fn read<T: Copy + Default>(
        &self,
        name: &str,
        make: impl Fn(Element, [u8; 8]) -> T,
    ) -> Result<Vec<T>, DataError> {
        let array = self.array(name)?;
        let (element, count) = (array.element, array.count);
        self.claim(name, (count as u64).saturating_mul(size_of::<T>() as u64))?;
        let number = |bytes: &[u8]| make(element, element.low_first(bytes));
        let mut all = Vec::new();
        if array.in_fortran_order {
            all.resize(count, T::default());
            let mut positions = Positions::of(&array.shape);
            array.pieces(&mut |bytes| {
                let numbers = bytes.chunks_exact(element.size).map(number);
                numbers.zip(&mut positions).for_each(|(number, at)| all[at] = number);
            })?;
        } else {
            all.reserve_exact(count);
            array.pieces(&mut |bytes| all.extend(bytes.chunks_exact(element.size).map(number)))?;
        }
        Ok(all)
    }
}

impl Source for NpzFile {
    fn path(&self) -> &Path {
        self.archive.path()
    }

    fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn parts(&self, _name: &str) -> Option<Vec<String>> {
        None
    }

    fn listed(&self) -> Vec<String> {
        let names = self.archive.entries().iter().map(|entry| entry.name.trim_end_matches(".npy"));
        names.map(str::to_owned).collect()
    }

    fn shape(&self, name: &str) -> Result<Vec<usize>, DataError> {
        Ok(self.array(name)?.shape)
    }

    fn kind(&self, name: &str) -> Result<Kind, DataError> {
        Ok(self.array(name)?.element.kind())
    }

    fn reals(&self, name: &str) -> Result<Vec<f32>, DataError> {
        let Array { element, shape, .. } = self.array(name)?;
        let width = shape.iter().skip(1).product();
        let values = if element.fits_single() {
            self.read(name, Element::real)?
        } else {
            singles(self, name, self.read(name, Element::double)?, width)?
        };
        if let Some(largest) = element.unsigned_max() {
            self.claims.rounding.note_unsigned(name, &values, width, largest);
        }
        Ok(values)
    }

    fn wholes(&self, name: &str) -> Result<Vec<i64>, DataError> {
        if self.kind(name)? == Kind::Real {
            return Err(wrong_type(self, name, "real numbers", "whole numbers"));
        }
        self.read(name, Element::whole)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, DataError> {
        self.read(name, |_, bytes| bytes[0])
    }

    /// Only one row is held at a time; of an array in Fortran order, some megabytes of rows.
    fn rows(&self, name: &str, size: usize, each: &mut EachStream<'_>) -> Result<(), DataError> {
        let Array { mut file, shape, count, in_fortran_order, .. } = self.array(name)?;
        self.claim(name, count as u64)?;
        if in_fortran_order {
            let pass = |each_piece: &mut dyn FnMut(&[u8])| self.array(name)?.pieces(each_piece);
            return fortran::rows(&pass, &shape, ROWS_AT_ONCE, each);
        }
        let mut bytes = vec![0; size.min(count)];
        for row in 0..count.checked_div(size).unwrap_or(0) {
            file.read_exact(&mut bytes)?;
            each(row, &bytes)?;
        }
        file.finish()
    }

    fn shows_numbers(&self) -> bool {
        self.numbers
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }
}

/// An array that is being read.
struct Array {
    file: Inside,
    element: Element,
    shape: Vec<usize>,
    count: usize,
    /// Whether the first of several axes changes fastest.
    in_fortran_order: bool,
}

impl Array {
    /// Gives all bytes of its elements to `each`, some elements at a time.
    fn pieces(mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), DataError> {
        let at_once = PIECE / self.element.size;
        let mut piece = vec![0; at_once * self.element.size];
        let mut left = self.count;
        while left > 0 {
            let n = left.min(at_once);
            let bytes = &mut piece[..n * self.element.size];
            self.file.read_exact(bytes)?;
            each(bytes);
            left -= n;
        }
        self.file.finish()
    }
}
