//! [`Forced`]: the actions of a policy at every step of a recording.
//!
//! The policy sees each recorded observation and proposes an action; then it receives the recorded
//! action ([`Policy::took`]). Its history is therefore the recording's, and its return-to-go
//! falls by recorded rewards. So the replayed agent has recorded histories: it is the agent itself
//! for a policy without history, and an approximation for others. If recorded actions have a low
//! return, the return-to-go stays high.

use overtone_core::{
    ActionScale, Actions, Observations, Play, Policy, PolicyError, Turn,
    policy::EpisodeStart,
    protocol::ActionChoice,
    seed::{derive, derive_nth},
};
use overtone_data::{ActionColumn, Dataset, StoredObservations};

/// Episodes that are replayed together. It is constant, because sums round by the size of a batch.
const TOGETHER: usize = 256;

/// A replay that failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Frames are not replayed.
    #[error("the recording has pixel observations; only vectors can be replayed")]
    Pixels,
    /// The policy has other actions than the recording.
    #[error("the policy's actions are not of the kind and number of the recorded ones")]
    OtherActions,
    /// The policy failed.
    #[error("the policy failed: {0}")]
    Policy(PolicyError),
}

/// Actions of one policy at the rows of a dataset, with the recorded actions in its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Forced {
    /// The action at each row.
    pub actions: ForcedActions,
    /// `[rows]`: the return-to-go that conditioned the policy, in the units of its `Play`.
    pub returns_to_go: Vec<f32>,
}

/// An action at each row of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum ForcedActions {
    /// Discrete actions.
    Probabilities {
        /// Number of actions.
        n: usize,
        /// `[rows, n]`, each row with the sum 1.
        values: Vec<f32>,
    },
    /// Continuous actions.
    Vectors {
        /// Numbers of an action.
        width: usize,
        /// `[rows, width]`, in [-1, 1].
        values: Vec<f32>,
    },
}

impl ForcedActions {
    /// Numbers of each row.
    pub fn width(&self) -> usize {
        match self {
            Self::Probabilities { n, .. } => *n,
            Self::Vectors { width, .. } => *width,
        }
    }

    /// `[rows, width]`
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Probabilities { values, .. } | Self::Vectors { values, .. } => values,
        }
    }
}

impl Forced {
    /// Replays `policy`, which acts by `play`, on every episode of `data`, which has raw rewards.
    /// `target_return` is in the units of `play`. `scale` converts continuous actions to [-1, 1].
    ///
    /// Discrete actions have the probabilities of [`Policy::played`]; a policy without them, or with
    /// [`ActionChoice::Mode`], has probability 1 for the action that it took. `seed` is of actions
    /// that are drawn.
    ///
    /// # Errors
    /// When observations are frames, the policy fails, or its actions do not fit the recording.
    pub fn replay(
        policy: &mut dyn Policy,
        play: &Play,
        target_return: f32,
        data: &Dataset,
        scale: Option<&ActionScale>,
        seed: u64,
    ) -> Result<Self, ReplayError> {
        let StoredObservations::Vectors { width: observation, values: observations, .. } =
            data.observations()
        else {
            return Err(ReplayError::Pixels);
        };
        let width = match data.actions() {
            ActionColumn::Discrete { n_actions, .. } => *n_actions,
            ActionColumn::Continuous { width, .. } => *width,
        };
        let (rewards, episodes) = (data.rewards(), data.episodes().as_slice());
        let mut values = vec![0.0; data.n_transitions() * width];
        let mut returns_to_go = vec![0.0; data.n_transitions()];
        let seed = derive(seed, "judge");
        for first in (0..episodes.len()).step_by(TOGETHER) {
            let group = &episodes[first..episodes.len().min(first + TOGETHER)];
            let longest = group.iter().map(|episode| episode.length).max().unwrap_or(0);
            for t in 0..longest {
                let running = group.iter().enumerate().filter(|(_, episode)| t < episode.length);
                let (turns, rows): (Vec<Turn>, Vec<usize>) = running
                    .map(|(agent, episode)| {
                        let row = episode.start + t;
                        let seed = derive_nth(seed, (first + agent) as u64);
                        let start = (t == 0).then_some(EpisodeStart { seed, target_return });
                        let reward = if t == 0 { 0.0 } else { rewards[row - 1] };
                        (Turn { agent, reward: play.return_units.of(reward), start }, row)
                    })
                    .unzip();
                for (turn, &row) in turns.iter().zip(&rows) {
                    returns_to_go[row] = match turn.start {
                        Some(start) => start.target_return,
                        None if play.delayed_reward => returns_to_go[row - 1],
                        None => returns_to_go[row - 1] - turn.reward,
                    };
                }
                let seen: Vec<f32> = rows
                    .iter()
                    .flat_map(|row| &observations[row * observation..(row + 1) * observation])
                    .copied()
                    .collect();
                if data.has_action_masks() {
                    let all = vec![true; width];
                    let allowed = |row: &usize| data.allowed_at(*row).unwrap_or(&all);
                    let allowed = rows.iter().flat_map(allowed).copied().collect();
                    policy.allow(allowed).map_err(ReplayError::Policy)?;
                }
                let acted = policy.act(&turns, Observations::Vectors(&seen));
                let acted = acted.map_err(ReplayError::Policy)?;
                write(policy, play, &acted, &rows, width, scale, &mut values)?;
                let taken = recorded(data.actions(), &rows);
                policy.took(&turns, &taken).map_err(ReplayError::Policy)?;
            }
        }
        let actions = match data.actions() {
            ActionColumn::Discrete { .. } => ForcedActions::Probabilities { n: width, values },
            ActionColumn::Continuous { .. } => ForcedActions::Vectors { width, values },
        };
        Ok(Self { actions, returns_to_go })
    }
}

/// Writes the actions of a step to the `rows` of `values`, `[rows, width]`.
fn write(
    policy: &dyn Policy,
    play: &Play,
    acted: &Actions,
    rows: &[usize],
    width: usize,
    scale: Option<&ActionScale>,
    values: &mut [f32],
) -> Result<(), ReplayError> {
    match acted {
        Actions::Discrete(indices) => {
            let played = policy.played().filter(|_| play.action_choice == ActionChoice::Sample);
            for (at, (&row, &index)) in rows.iter().zip(indices).enumerate() {
                let row_values = &mut values[row * width..(row + 1) * width];
                match &played {
                    Some(played) if played.actions.len() == width => {
                        let probs = &played.probs[at * width..(at + 1) * width];
                        for (&prob, &action) in probs.iter().zip(played.actions) {
                            *row_values.get_mut(action).ok_or(ReplayError::OtherActions)? =
                                prob as f32;
                        }
                    }
                    None if index < width => row_values[index] = 1.0,
                    _ => return Err(ReplayError::OtherActions),
                }
            }
        }
        Actions::Continuous { width: got, values: acted } => {
            if *got != width {
                return Err(ReplayError::OtherActions);
            }
            let mut acted = acted.clone();
            if let Some(scale) = scale {
                scale.to_unit(&mut acted);
            }
            for (&row, action) in rows.iter().zip(acted.chunks_exact(width)) {
                values[row * width..(row + 1) * width].copy_from_slice(action);
            }
        }
    }
    Ok(())
}

/// The recorded actions of these rows.
fn recorded(actions: &ActionColumn, rows: &[usize]) -> Actions {
    match actions {
        ActionColumn::Discrete { values, .. } => {
            Actions::Discrete(rows.iter().map(|&row| usize::from(values[row])).collect())
        }
        ActionColumn::Continuous { width, values } => {
            let action = |row: &usize| &values[row * width..(row + 1) * width];
            let values = rows.iter().flat_map(action).copied().collect();
            Actions::Continuous { width: *width, values }
        }
    }
}
