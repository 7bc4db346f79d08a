//! [`Recorded`]: all steps of a recording with the actions of several policies, as input of critics.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};
use overtone_agents::value::Rescaling;
use overtone_core::{ActionScale, Episode, Outcome, seed};
use overtone_data::{ActionColumn, Dataset, StoredObservations};
use overtone_model::head::penalty;
use rand::seq::SliceRandom;

use crate::forced::{Forced, ForcedActions};

/// A batch of steps without gradients.
#[derive(Clone, Debug)]
pub struct RecordedSteps {
    /// `[n, observation]`
    pub observations: Tensor<2>,
    /// `[n, action]`, or `[n, 1]` with the index of a discrete action.
    pub actions: Tensor<2>,
    /// `[n, 1]`
    pub rewards: Tensor<2>,
    /// `[n, 1]`: 0 if the task ended with this step, else 1.
    pub continues: Tensor<2>,
    /// `[n, observation]`; undefined if the task ended.
    pub next_observations: Tensor<2>,
    /// `[n, policies · width]`: the policies' actions at the next observation; undefined if the
    /// task ended.
    pub next_policies: Tensor<2>,
    /// `[n, 1]`: the weight of each step in the loss.
    pub weights: Tensor<2>,
}

/// One step with a target: the task ended, or the recording has a next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its row.
    pub row: usize,
    /// The position of its episode among all episodes.
    pub episode: usize,
    /// Whether the task continues.
    pub continues: bool,
}

/// A recording with the actions of several policies at every row.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `[rows, observation]`, normalized, with the conditioning number as last column if there is
    /// one.
    observations: Tensor<2>,
    /// `[rows, action]`, or `[rows, 1]` with the index of a discrete action.
    actions: Tensor<2>,
    /// The same numbers on the host.
    acted: Vec<f32>,
    /// `[rows, n]`: the [`penalty`] of each discrete action; `None`: all are allowed.
    penalties: Option<Tensor<2>>,
    /// `[rows, policies · width]`
    policies: Tensor<2>,
    /// `[rows]`, in the recording's units.
    rewards: Vec<f32>,
    /// Steps with a target, in order.
    steps: Vec<Step>,
    /// Rows of the used episodes, and why each ended.
    episodes: Vec<(Range<usize>, Outcome)>,
    limit: Option<usize>,
    /// Numbers of a policy's action at a row.
    width: usize,
    is_discrete: bool,
}

/// The time limit of a recording's episodes, if its end matters at this discount: the length of the
/// longest episode, if most cut episodes have it.
///
/// After a long episode the rest has hardly a weight, and the values of an unlimited episode are as
/// good and need no clock.
pub fn time_limit(data: &Dataset, gamma: f64) -> Option<usize> {
    let (episodes, longest) = (data.episodes().as_slice(), data.episodes().longest());
    let cut = episodes.iter().filter(|episode| episode.outcome == Outcome::Truncated);
    let [mut at_limit, mut earlier] = [0, 0];
    cut.for_each(|episode| {
        *(if episode.length == longest { &mut at_limit } else { &mut earlier }) += 1
    });
    (at_limit > earlier && gamma.powf(longest as f64) > LEAST_WEIGHT).then_some(longest)
}

/// Smallest weight of a reward after the time limit that matters.
const LEAST_WEIGHT: f64 = 0.01;

impl Recorded {
    /// The steps of `episodes` (positions; `None`: all). `conditioning` is a number for each row
    /// that is the same for all policies. `scale` converts recorded actions to [-1, 1].
    ///
    /// With a time limit (see [`time_limit`]), an episode that it cut has ended: returns count up to
    /// the limit, and the share of elapsed time is an input. Otherwise the last step of a cut
    /// episode has no target.
    ///
    /// `None` if observations are frames.
    ///
    /// # Panics
    /// When a policy has another kind or number of actions than the recording: a caller's bug.
    pub fn of(
        data: &Dataset,
        policies: &[Forced],
        conditioning: Option<&[f32]>,
        scale: Option<&ActionScale>,
        episodes: Option<&[usize]>,
        limit: Option<usize>,
    ) -> Option<Self> {
        let StoredObservations::Vectors { width: observation, values, normalization } =
            data.observations()
        else {
            return None;
        };
        let rows = data.n_transitions();
        let elapsed = limit.map(|limit| {
            let times =
                |episode: &Episode| (0..episode.length).map(move |t| t as f32 / limit as f32);
            data.episodes().as_slice().iter().flat_map(times).collect::<Vec<f32>>()
        });
        let mut inputs = Vec::with_capacity(rows * (observation + 2));
        let rescaling = Rescaling::new(Some(normalization), true);
        for (row, numbers) in values.chunks_exact(*observation).enumerate() {
            let start = inputs.len();
            inputs.extend_from_slice(numbers);
            normalization.apply(&mut inputs[start..]);
            rescaling.apply(&mut inputs[start..]);
            inputs.extend(conditioning.map(|numbers| numbers[row]));
            inputs.extend(elapsed.as_ref().map(|numbers| numbers[row]));
        }
        let (actions, width, is_discrete) = match data.actions() {
            ActionColumn::Discrete { n_actions, values } => {
                let indices = values.iter().copied().map(f32::from).collect();
                (indices, *n_actions, true)
            }
            ActionColumn::Continuous { width, values } => {
                let mut actions = values.clone();
                if let Some(scale) = scale {
                    scale.to_unit(&mut actions);
                }
                (actions, *width, false)
            }
        };
        for Forced { actions, .. } in policies {
            let fits = matches!(actions, ForcedActions::Probabilities { .. }) == is_discrete;
            let is_whole = actions.values().len() == rows * width;
            assert!(fits && is_whole && actions.width() == width, "actions of another recording");
        }
        let of_policies =
            |row: usize| policies.iter().flat_map(move |forced| of_row(&forced.actions, row));
        let policies = (0..rows).flat_map(of_policies).collect();

        let of_masks = |row: usize| match data.allowed_at(row) {
            None => vec![0.0; width],
            Some(mask) => mask.iter().copied().map(penalty).collect(),
        };
        let penalties =
            data.has_action_masks().then(|| matrix((0..rows).flat_map(of_masks).collect(), rows));

        let all = data.episodes().as_slice();
        let used: Vec<usize> = match episodes {
            Some(some) => some.to_vec(),
            None => (0..all.len()).collect(),
        };
        let mut steps = Vec::with_capacity(rows);
        for &episode in &used {
            let recorded = &all[episode];
            let is_open = recorded.outcome == Outcome::Truncated && limit != Some(recorded.length);
            let is_cut = |row: usize| row + 1 == recorded.end() && is_open;
            let step = |row: usize| Step { row, episode, continues: row + 1 < recorded.end() };
            steps.extend(recorded.range().filter(|&row| !is_cut(row)).map(step));
        }
        Some(Self {
            observations: matrix(inputs, rows),
            actions: matrix(actions.clone(), rows),
            acted: actions,
            penalties,
            policies: matrix(policies, rows),
            rewards: data.rewards().to_vec(),
            steps,
            episodes: used.iter().map(|&at| (all[at].range(), all[at].outcome)).collect(),
            limit,
            width,
            is_discrete,
        })
    }

    /// All steps with a target.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Numbers of an observation, of a policy's action, and of all policies' actions.
    pub fn widths(&self) -> [usize; 3] {
        [self.observations.dims()[1], self.width, self.policies.dims()[1]]
    }

    /// Whether actions are discrete.
    pub fn is_discrete(&self) -> bool {
        self.is_discrete
    }

    /// Smallest and largest reward of a step with a target.
    pub fn reward_ends(&self) -> [f64; 2] {
        let rewards = self.steps.iter().map(|step| f64::from(self.rewards[step.row]));
        rewards.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], reward| {
            [low.min(reward), high.max(reward)]
        })
    }

    /// The steps at these positions of [`steps`](Self::steps), with rewards multiplied by `factor`
    /// and the weight of each episode.
    pub fn batch(&self, drawn: &[usize], factor: f32, weights: &[f32]) -> RecordedSteps {
        let steps: Vec<Step> = drawn.iter().map(|&at| self.steps[at]).collect();
        let column =
            |of: &dyn Fn(&Step) -> f32| matrix(steps.iter().map(of).collect(), steps.len());
        let [observations, actions, _] = self.at(steps.iter().map(|step| step.row));
        // The policies' actions at the next observation stand in the next row.
        let next = steps.iter().map(|step| step.row + usize::from(step.continues));
        let [next_observations, _, next_policies] = self.at(next);
        RecordedSteps {
            observations,
            actions,
            rewards: column(&|step| self.rewards[step.row] * factor),
            continues: column(&|step| f32::from(u8::from(step.continues))),
            next_observations,
            next_policies,
            weights: column(&|step| weights[step.episode]),
        }
    }

    /// Observations, recorded actions and the policies' actions at these rows.
    pub fn at(&self, rows: impl Iterator<Item = usize>) -> [Tensor<2>; 3] {
        let rows = indices(rows);
        [&self.observations, &self.actions, &self.policies]
            .map(|table| table.clone().select(0, rows.clone()))
    }

    /// Added to the logits of discrete actions at these rows, `[rows, n]`; `None`: all are allowed.
    pub fn penalties(&self, rows: impl Iterator<Item = usize>) -> Option<Tensor<2>> {
        self.penalties.as_ref().map(|table| table.clone().select(0, indices(rows)))
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.rewards.len()
    }

    /// The recorded action of a row: its numbers in [-1, 1], or the index of a discrete action.
    pub fn action(&self, row: usize) -> &[f32] {
        let width = if self.is_discrete { 1 } else { self.width };
        &self.acted[row * width..][..width]
    }

    /// Number of used episodes.
    pub fn n_episodes(&self) -> usize {
        self.episodes.len()
    }

    /// Rows of the used episodes: of those with `is_inside`, and of the others.
    pub fn split_rows(&self, is_inside: impl Fn(usize) -> bool) -> [Vec<usize>; 2] {
        let mut split = [Vec::new(), Vec::new()];
        for (episode, (range, _)) in self.episodes.iter().enumerate() {
            split[usize::from(!is_inside(episode))].extend(range.clone());
        }
        split
    }

    /// The first rows of the used episodes.
    pub fn starts(&self) -> Vec<usize> {
        self.episodes.iter().map(|(range, _)| range.start).collect()
    }

    /// Discounted sums of rewards to the end of each episode, `[rows]`, and 0 in other episodes. An
    /// episode that was cut is continued by its mean reward, up to the time limit if there is one.
    pub fn returns_to_go(&self, gamma: f64) -> Vec<f64> {
        let mut to_go = vec![0.0; self.rewards.len()];
        for (range, outcome) in &self.episodes {
            let rewards = self.rewards[range.clone()].iter().map(|&reward| f64::from(reward));
            let mut tail = match outcome {
                Outcome::Truncated if gamma < 1.0 => {
                    let left = self
                        .limit
                        .map_or(0.0, |limit| gamma.powf(limit.saturating_sub(range.len()) as f64));
                    rewards.sum::<f64>() / range.len() as f64 * (1.0 - left) / (1.0 - gamma)
                }
                _ => 0.0,
            };
            for row in range.clone().rev() {
                tail = f64::from(self.rewards[row]) + gamma * tail;
                to_go[row] = tail;
            }
        }
        to_go
    }

    /// The discounted return of each episode, up to a cut.
    pub fn returns(&self, gamma: f64) -> Vec<f64> {
        let discounted = |(range, _): &(Range<usize>, Outcome)| {
            let rewards = self.rewards[range.clone()].iter().rev();
            rewards.fold(0.0, |tail, &reward| f64::from(reward) + gamma * tail)
        };
        self.episodes.iter().map(discounted).collect()
    }
}

fn indices(rows: impl Iterator<Item = usize>) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.map(|row| row as i32).collect();
    let n = rows.len();
    Tensor::from_data(TensorData::new(rows, [n]), &Device::flex())
}

/// `n_episodes` episodes in `n_folds` folds, drawn by `seed`; each in order.
pub fn folds(n_episodes: usize, n_folds: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..n_episodes).collect();
    order.shuffle(&mut seed::generator(seed, "folds"));
    let fold = |fold: usize| {
        let mut episodes: Vec<usize> = order.iter().copied().skip(fold).step_by(n_folds).collect();
        episodes.sort_unstable();
        episodes
    };
    (0..n_folds).map(fold).collect()
}

fn of_row(actions: &ForcedActions, row: usize) -> impl Iterator<Item = f32> {
    actions.values()[row * actions.width()..][..actions.width()].iter().copied()
}

fn matrix(values: Vec<f32>, rows: usize) -> Tensor<2> {
    let width = values.len() / rows.max(1);
    Tensor::from_data(TensorData::new(values, [rows, width]), &Device::flex())
}
