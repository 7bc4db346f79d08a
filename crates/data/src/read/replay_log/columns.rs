//! The small files of one number, read and checked.

use crate::error::{DataError, Fault};
use crate::read::npy::{self, NpyStream};
use crate::read::replay_log::parts::MAX_ACTIONS;
use crate::read::run_folder::{Column, RunFolder};

/// The most slots one file may claim; the published files have 1,000,000.
const MAX_SLOTS: usize = 8_000_000;

/// The small columns of one file, in slot order.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallColumns {
    /// Index into the game's action set.
    pub actions: Vec<u8>,
    /// Clipped rewards.
    pub rewards: Vec<f32>,
    /// `true` at an episode's last step.
    pub terminals: Vec<bool>,
}

/// The contents of the small files of one number.
pub(super) struct Loaded {
    pub(super) columns: SmallColumns,
    pub(super) add_count: u64,
}

/// Reads the small files of one number and checks the frames' header against them; all that
/// is wrong with them where something is.
pub(super) fn load(folder: &RunFolder, number: u32) -> Result<Loaded, Vec<DataError>> {
    let actions = read_column(folder, Column::Action, number, None, |action: i32| {
        let small = u8::try_from(action).ok().filter(|&small| usize::from(small) < MAX_ACTIONS);
        small.ok_or_else(|| format!("action {action}, expected 0 to {}", MAX_ACTIONS - 1))
    });
    let slots = actions.as_ref().ok().map(Vec::len);
    let rewards = read_column(folder, Column::Reward, number, slots, |reward: f32| {
        let finite = reward.is_finite().then_some(reward);
        finite.ok_or_else(|| format!("reward {reward}, expected a finite number"))
    });
    let terminals = read_column(folder, Column::Terminal, number, slots, |terminal: u8| {
        let is_flag = terminal <= 1;
        is_flag
            .then_some(terminal == 1)
            .ok_or_else(|| format!("terminal {terminal}, expected 0 or 1"))
    });
    let frames = NpyStream::open(&folder.column(Column::Observation, number))
        .and_then(|frames| frames.expect::<u8>(&[slots, Some(84), Some(84)]));
    let add_count = read_add_count(folder, number);
    match (actions, rewards, terminals, frames, add_count) {
        (Ok(actions), Ok(rewards), Ok(terminals), Ok(()), Ok(add_count)) => {
            Ok(Loaded { columns: SmallColumns { actions, rewards, terminals }, add_count })
        }
        (actions, rewards, terminals, frames, add_count) => {
            let (small, large) = ([actions.err(), rewards.err(), terminals.err()], frames.err());
            Err(small.into_iter().chain([large, add_count.err()]).flatten().collect())
        }
    }
}

fn read_add_count(folder: &RunFolder, number: u32) -> Result<u64, DataError> {
    let path = folder.add_count(number);
    let counts = npy::read_small::<i64>(&path, 1)?;
    let add_count = counts.first().and_then(|&count| u64::try_from(count).ok());
    match add_count {
        Some(add_count) if add_count > 0 => Ok(add_count),
        _ => Err(Fault::Value {
            slot: 0,
            what: format!("{counts:?}, not a positive count of slots written"),
        }
        .at(path)),
    }
}

/// Reads a small column of `slots` elements, or as many as it has, each checked by `value`,
/// which says what an impossible one is.
fn read_column<T: npy::Element, V>(
    folder: &RunFolder,
    column: Column,
    number: u32,
    slots: Option<usize>,
    value: impl Fn(T) -> Result<V, String>,
) -> Result<Vec<V>, DataError> {
    let path = folder.column(column, number);
    let npy = NpyStream::open(&path)?;
    npy.expect::<T>(&[slots])?;
    let slots = npy.shape()[0];
    if slots == 0 || slots > MAX_SLOTS {
        return Err(Fault::Shape {
            got: vec![slots],
            expected: format!("between 1 and {MAX_SLOTS} slots"),
        }
        .at(path));
    }
    let mut values = Vec::new();
    npy.for_each::<T>(|slot, element| match value(element) {
        Ok(value) => {
            values.push(value);
            Ok(())
        }
        Err(what) => Err(Fault::Value { slot, what }.at(&path)),
    })?;
    Ok(values)
}
