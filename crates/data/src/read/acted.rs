//! The actions in an array.

use crate::error::DataError;
use crate::read::column::{ActionColumn, MOST_ACTIONS};
use crate::read::observed::indices;
use crate::read::source::{Kind, Source, unread, wrong_shape, wrong_value};
use crate::read::spaces::Space;

/// The maximum number of combinations of several integers that are read as discrete actions.
const MOST_COMBINATIONS: usize = 4096;

/// The actions in array `name`: discrete if it holds one whole number a row, else numbers. Several
/// whole numbers become one discrete action for each combination; the last number changes fastest.
///
/// # Errors
/// If they do not fit the space `space`, or have a space that is not supported.
pub(crate) fn acted(
    source: &dyn Source,
    name: &str,
    space: Option<&Space>,
) -> Result<ActionColumn, DataError> {
    if let (Some(Space::Dict(_) | Space::Tuple(_)), _) | (None, Some(_)) =
        (space, source.parts(name))
    {
        let way_out = "record one array of actions".into();
        return Err(unread(source, format!("`{name}`, actions of several parts,"), way_out));
    }
    let shape = source.shape(name)?;
    let rows = shape.first().copied().unwrap_or(0);
    if let Some((sizes, starts)) = space.and_then(Space::wholes) {
        let is_one = matches!(space, Some(Space::Discrete { .. }));
        let n = space.and_then(Space::n_actions);
        if let Some(n) = n.filter(|&n| is_one && n > MOST_ACTIONS) {
            let way_out = format!("at most {MOST_ACTIONS} are read; save real numbers instead");
            return Err(unread(source, format!("`{name}`, one of {n} discrete actions,"), way_out));
        }
        let Some(n) = n.filter(|&n| is_one || n <= MOST_COMBINATIONS) else {
            let is_bits = matches!(space, Some(Space::MultiBinary { .. }));
            let (n, numbers) = (sizes.len(), if is_bits { "bits" } else { "numbers" });
            let what = format!("`{name}`, {n} {numbers} with too many combinations,");
            let way_out = format!("at most {MOST_COMBINATIONS} are read as discrete actions");
            return Err(unread(source, what, way_out));
        };
        return chosen(source, name, rows, &sizes, &starts).map(|values| listed(n, values));
    }
    match space {
        Some(Space::Other(space)) => {
            let way_out = "record discrete or continuous actions".into();
            Err(unread(source, format!("`{name}`, a {space} space,"), way_out))
        }
        _ => {
            let is_list = matches!(shape.as_slice(), [_] | [_, 1])
                && !matches!(space, Some(Space::Box { .. }))
                && source.kind(name)? != Kind::Real;
            if is_list {
                let values = chosen(source, name, rows, &[MOST_ACTIONS], &[0])?;
                let n = values.iter().max().map_or(0, |&last| usize::from(last) + 1);
                return Ok(listed(n, values));
            }
            let is_one = matches!(space, Some(Space::Box { shape, .. }) if shape.is_empty());
            let width: usize = shape.iter().skip(1).product();
            if (shape.len() < 2 && !(is_one && shape.len() == 1)) || width == 0 {
                let expected = "[rows, width], or [rows] of whole numbers for discrete actions";
                return Err(wrong_shape(source, name, &shape, expected));
            }
            Ok(ActionColumn::Continuous { width, values: source.reals(name)? })
        }
    }
}

fn listed(n_actions: usize, values: Vec<u16>) -> ActionColumn {
    ActionColumn::Discrete { n_actions, values }
}

/// The index of each row's numbers among their combinations.
fn chosen(
    source: &dyn Source,
    name: &str,
    rows: usize,
    sizes: &[usize],
    starts: &[i64],
) -> Result<Vec<u16>, DataError> {
    let indices = indices(source, name, rows, sizes, starts)?;
    let place = |indices: &[usize]| {
        indices.iter().zip(sizes).fold(0, |place, (&index, &size)| place * size + index)
    };
    let places = indices.chunks_exact(sizes.len()).map(place).enumerate();
    let action = |(row, place)| {
        u16::try_from(place).ok().filter(|&action| action < u16::MAX).ok_or_else(|| {
            wrong_value(source, name, row, format!("{place}, expected an action of a list"))
        })
    };
    places.map(action).collect()
}
