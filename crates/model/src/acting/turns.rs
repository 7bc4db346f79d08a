//! Checks of a policy's turns before its agents change their histories, and this change.

use std::collections::BTreeSet;

use overtone_core::{ActionSpace, Actions, Normalization, ObservationSpace, Observations, Turn};

use crate::error::ModelError;

/// Asserts that these turns are valid: one observation of `space` for each, each agent at most
/// once, and an active episode for each agent in mid-episode (`plays`).
///
/// # Errors
/// When turns and observations do not fit each other, the space, or the previous turns.
pub fn check(
    turns: &[Turn],
    observations: Observations<'_>,
    space: &ObservationSpace,
    plays: impl Fn(usize) -> bool,
) -> Result<(), ModelError> {
    let n = turns.len();
    let (expected, got, length) = match (space, observations) {
        (ObservationSpace::Pixels { shape }, Observations::Pixels(pixels)) => {
            (pixels_of(n, shape), format!("{} pixels", pixels.len()), pixels.len())
        }
        (ObservationSpace::Vectors { width }, Observations::Vectors(numbers)) => {
            (vectors_of(n, *width), format!("{} numbers", numbers.len()), numbers.len())
        }
        (ObservationSpace::Pixels { shape }, Observations::Vectors(_)) => {
            return Err(wrong("observations", "vectors", pixels_of(n, shape)));
        }
        (ObservationSpace::Vectors { width }, Observations::Pixels(_)) => {
            return Err(wrong("observations", "pixels", vectors_of(n, *width)));
        }
    };
    if length != n * space.size() {
        return Err(wrong("observations", got, expected));
    }
    let agents: BTreeSet<usize> = turns.iter().map(|turn| turn.agent).collect();
    if agents.len() != n {
        let got = format!("{n} turns of {} agents", agents.len());
        return Err(wrong("turns", got, "one of each".into()));
    }
    if let Some(turn) = turns.iter().find(|turn| turn.start.is_none() && !plays(turn.agent)) {
        let got = format!("agent {} in mid-episode", turn.agent);
        return Err(wrong("turn", got, "an episode start first".into()));
    }
    Ok(())
}

/// Asserts that masks of `actions` fit `n` turns, and that each turn has an allowed action.
///
/// # Errors
/// When they do not fit, or the actions are not discrete.
pub fn check_allowed(allowed: &[bool], n: usize, actions: &ActionSpace) -> Result<(), ModelError> {
    let got = format!("{} flags", allowed.len());
    let ActionSpace::Discrete { names } = actions else {
        return Err(wrong("action mask", got, "none: these actions are continuous".into()));
    };
    if allowed.len() != n * names.len() {
        let expected = format!("one flag for each of {} actions in {n} turns", names.len());
        return Err(wrong("action mask", got, expected));
    }
    match allowed.chunks(names.len()).position(|row| !row.contains(&true)) {
        Some(row) => {
            let got = format!("no allowed action in row {row}");
            Err(wrong("action mask", got, "at least one allowed action in each row".into()))
        }
        None => Ok(()),
    }
}

/// Replaces the states of the agents of `turns`; `None` is an agent before its first episode.
pub fn replace<T>(agents: &mut Vec<Option<T>>, turns: &[Turn], states: Vec<T>) {
    for (turn, state) in turns.iter().zip(states) {
        if agents.len() <= turn.agent {
            agents.resize_with(turn.agent + 1, || None);
        }
        agents[turn.agent] = Some(state);
    }
}

/// The actions of no turns.
pub fn no_actions(space: &ActionSpace) -> Actions {
    match space {
        ActionSpace::Discrete { .. } => Actions::Discrete(Vec::new()),
        ActionSpace::Continuous { .. } => {
            Actions::Continuous { width: space.size(), values: Vec::new() }
        }
    }
}

/// Normalized vectors, one per turn; empty for pixels.
///
/// # Errors
/// When an observation, a reward or a target return is not finite.
pub fn normalized(
    turns: &[Turn],
    observations: Observations<'_>,
    normalization: Option<&Normalization>,
) -> Result<Vec<f32>, ModelError> {
    let mut numbers = match observations {
        Observations::Vectors(numbers) => numbers.to_vec(),
        Observations::Pixels(_) => Vec::new(),
    };
    if let Some(normalization) = normalization {
        normalization.apply(&mut numbers);
    }
    let width = numbers.len() / turns.len().max(1);
    for (row, turn) in turns.iter().enumerate() {
        let return_or_reward = turn.start.map_or(turn.reward, |start| start.target_return);
        let mut all =
            numbers[row * width..(row + 1) * width].iter().copied().chain([return_or_reward]);
        if let Some(number) = all.find(|number| !number.is_finite()) {
            let got = format!("{number} for agent {}", turn.agent);
            let what = "normalized observation, reward or target return";
            return Err(wrong(what, got, "finite numbers".into()));
        }
    }
    Ok(numbers)
}

fn pixels_of(n: usize, shape: &[usize]) -> String {
    match shape {
        [stack, height, width] => {
            format!("{n} stacks of {stack} frames of {height} × {width} pixels")
        }
        _ => format!("{n} observations of {shape:?} pixels"),
    }
}

fn vectors_of(n: usize, width: usize) -> String {
    format!("{n} vectors of {width} numbers")
}

pub(crate) fn wrong(what: &'static str, got: impl ToString, expected: String) -> ModelError {
    ModelError::Input { what, got: got.to_string(), expected }
}
