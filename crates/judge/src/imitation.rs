//! [`imitation`]: an agent's actions next to the recorded ones, and next to three simple rules.

use overtone_core::{
    ActingMode, Episode,
    imitation::{Agreement, Difference, Imitation, Number},
};
use overtone_data::{ActionColumn, Dataset, StoredObservations};
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::forced::ForcedActions;
use crate::judge::Request;

/// Steps that are compared with similar observations, drawn at random: the comparison is with every
/// step of the recording.
const QUERIES: usize = 1000;

/// Similar observations of a step.
const NEIGHBORS: usize = 10;

/// Steps that are listed.
const LISTED: usize = 10;

/// An episode's place in the recording's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its position among the episodes.
    pub episode: usize,
    /// Its first row.
    pub row: usize,
}

/// The agent's actions in a mode, `acted`, next to the recorded ones, whose episodes stand at `places`;
/// `seed` draws steps. `None` if nothing can be compared: fewer than two episodes, or an action that
/// never changes.
pub fn imitation(
    of: &Request<'_>,
    mode: ActingMode,
    acted: &ForcedActions,
    places: &[Place],
    seed: u64,
) -> Option<Imitation> {
    let StoredObservations::Vectors { width, values, normalization } = of.data.observations()
    else {
        return None;
    };
    let episodes = of.data.episodes().as_slice();
    let compared = Compared::of(of, acted)?;
    if episodes.len() < 2 {
        return None;
    }
    let mut observations = values.clone();
    normalization.apply(&mut observations);
    let similar = Similar::of(&observations, *width, episodes, seed);

    let rows: Vec<usize> = (0..of.data.n_transitions()).collect();
    let mut later = Vec::with_capacity(rows.len());
    episodes.iter().for_each(|episode| later.extend(episode.range().skip(1)));
    let agent = |row: usize, number: usize| compared.agent[row * compared.width + number];
    let recorded = |row: usize, number: usize| compared.recorded[row * compared.width + number];
    let agreement = |numbers: &[usize]| Agreement {
        agent: compared.agreement(numbers, &rows, agent),
        constant: compared.constant,
        previous: compared.agreement(numbers, &later, |row, number| recorded(row - 1, number)),
        nearest: compared.agreement(numbers, &similar.queries, |row, number| {
            recorded(similar.nearest(row), number)
        }),
    };
    // What the agent repeats is the action before.
    let repeats = {
        let before: Vec<usize> = later.iter().map(|row| row - 1).collect();
        compared.agreement(&compared.numbers, &before, |row, number| agent(row + 1, number))
    };
    let rows_of = |quarter: usize| {
        let of_episode = |episode: &Episode| {
            let (start, length) = (episode.start, episode.length);
            (start + length * quarter / 4)..(start + length * (quarter + 1) / 4)
        };
        episodes.iter().flat_map(of_episode).collect()
    };
    // Episodes of one step have no quarters.
    let mut quarters: Vec<Vec<usize>> = (0..4).map(rows_of).collect();
    if quarters.iter().any(Vec::is_empty) {
        quarters.clear();
    }
    Some(Imitation {
        format: Imitation::FORMAT,
        run: of.run.to_owned(),
        step: of.step,
        mode,
        is_conditioned: of.is_conditioned,
        dataset: of.dataset.to_owned(),
        trained: of.trained,
        episodes: episodes.len(),
        steps: rows.len(),
        is_discrete: compared.is_discrete,
        numbers: compared
            .numbers
            .iter()
            .map(|&number| Number { number, agreement: agreement(&[number]) })
            .collect(),
        all: agreement(&compared.numbers),
        repeats,
        log_likelihood: compared.log_likelihood(acted),
        quarters: quarters
            .iter()
            .map(|rows| compared.agreement(&compared.numbers, rows, agent))
            .collect(),
        top_and_rest: top_and_rest(of.data)
            .map(|groups| groups.map(|rows| compared.agreement(&compared.numbers, &rows, agent))),
        departure: compared.departure(&similar),
        largest: compared.largest(of, acted, places),
    })
}

/// Rows of the tenth of the episodes with the highest returns, and of the others.
fn top_and_rest(data: &Dataset) -> Option<[Vec<usize>; 2]> {
    let episodes = data.episodes().as_slice();
    let returns: Vec<f32> = data.episode_returns().iter().collect();
    if episodes.len() < 10 || returns.iter().all(|other| *other == returns[0]) {
        return None;
    }
    let mut order: Vec<usize> = (0..episodes.len()).collect();
    order.sort_by(|&a, &b| returns[b].total_cmp(&returns[a]));
    let (top, rest) = order.split_at(episodes.len().div_ceil(10));
    Some([top, rest].map(|part| part.iter().flat_map(|&at| episodes[at].range()).collect()))
}

/// Actions of an agent next to the recorded ones.
struct Compared {
    /// `[rows, width]`, in [-1, 1]; discrete actions as one index.
    recorded: Vec<f32>,
    /// The same of the agent.
    agent: Vec<f32>,
    width: usize,
    is_discrete: bool,
    /// The numbers that are not constant.
    numbers: Vec<usize>,
    /// `[width]`, of the recorded numbers.
    variances: Vec<f64>,
    /// The agreement of the mean action, or of the most frequent one.
    constant: f64,
}

impl Compared {
    fn of(of: &Request<'_>, acted: &ForcedActions) -> Option<Self> {
        let (recorded, agent, width, is_discrete) = match (of.data.actions(), acted) {
            (
                ActionColumn::Discrete { values, .. },
                ForcedActions::Probabilities { n, values: p },
            ) => {
                let chosen = p.chunks_exact(*n).map(|probs| {
                    let best = probs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
                    best.map_or(0.0, |(action, _)| action as f32)
                });
                let recorded = values.iter().map(|&action| f32::from(action)).collect();
                (recorded, chosen.collect(), 1, true)
            }
            (
                ActionColumn::Continuous { width, values },
                ForcedActions::Vectors { values: a, .. },
            ) => {
                let mut recorded = values.clone();
                if let Some(scale) = of.action_scale {
                    scale.to_unit(&mut recorded);
                }
                (recorded, a.clone(), *width, false)
            }
            _ => return None,
        };
        let recorded: Vec<f32> = recorded;
        let rows = recorded.len() / width;
        let variance = |number: usize| {
            let values = || recorded.iter().skip(number).step_by(width).map(|&x| f64::from(x));
            let mean = values().sum::<f64>() / rows.max(1) as f64;
            values().map(|x| (x - mean).powi(2)).sum::<f64>() / rows.max(1) as f64
        };
        let variances: Vec<f64> = (0..width).map(variance).collect();
        let numbers: Vec<usize> =
            (0..width).filter(|&number| variances[number] > SMALLEST_VARIANCE).collect();
        let constant = if is_discrete { largest_share(&recorded) } else { 0.0 };
        let is_comparable = !numbers.is_empty();
        is_comparable.then_some(Self {
            recorded,
            agent,
            width,
            is_discrete,
            numbers,
            variances,
            constant,
        })
    }

    /// Mean agreement of these numbers of the recorded actions of `rows` with `guess`, by row and number;
    /// without rows that of the constant action.
    fn agreement(
        &self,
        numbers: &[usize],
        rows: &[usize],
        guess: impl Fn(usize, usize) -> f32,
    ) -> f64 {
        if rows.is_empty() {
            return self.constant;
        }
        let n = rows.len() as f64;
        let of = |&number: &usize| {
            let pairs = rows.iter().map(|&row| {
                let recorded = self.recorded[row * self.width + number];
                (f64::from(recorded), f64::from(guess(row, number)))
            });
            match self.is_discrete {
                true => pairs.filter(|(recorded, guess)| recorded == guess).count() as f64 / n,
                false => {
                    let squares = pairs.map(|(recorded, guess)| (recorded - guess).powi(2));
                    1.0 - squares.sum::<f64>() / n / self.variances[number]
                }
            }
        };
        numbers.iter().map(of).sum::<f64>() / numbers.len() as f64
    }

    /// Distance of two actions: over numbers in recorded deviations; of discrete actions 0 or 1.
    fn distance(&self, one: &[f32], other: &[f32]) -> f64 {
        if self.is_discrete {
            return f64::from(u8::from(one[0] != other[0]));
        }
        let of = |&number: &usize| {
            let difference = f64::from(one[number]) - f64::from(other[number]);
            difference.powi(2) / self.variances[number]
        };
        self.numbers.iter().map(of).sum::<f64>().sqrt()
    }

    /// See [`Imitation::departure`].
    fn departure(&self, similar: &Similar) -> f64 {
        let of = |actions: &'_ [f32], row: usize| -> Vec<f32> {
            actions[row * self.width..][..self.width].to_vec()
        };
        let [mut of_agent, mut among] = [0.0, 0.0];
        for (&row, neighbors) in similar.queries.iter().zip(&similar.neighbors) {
            let (agent, recorded) = (of(&self.agent, row), of(&self.recorded, row));
            let others: Vec<Vec<f32>> =
                neighbors.iter().map(|&other| of(&self.recorded, other)).collect();
            let to_others = others.iter().map(|other| self.distance(&agent, other));
            of_agent += to_others.fold(self.distance(&agent, &recorded), f64::min);
            let mean = others.iter().map(|other| self.distance(&recorded, other)).sum::<f64>();
            among += mean / others.len().max(1) as f64;
        }
        let n = similar.queries.len().max(1) as f64;
        if self.is_discrete { of_agent / n } else { of_agent / among.max(f64::MIN_POSITIVE) }
    }

    /// Mean log-likelihood of the recorded action: of the agent's probabilities, and of the actions'
    /// frequencies.
    fn log_likelihood(&self, acted: &ForcedActions) -> Option<[f64; 2]> {
        let ForcedActions::Probabilities { n, values } = acted else { return None };
        let mut counts = vec![0.0; *n];
        let (mut of_agent, rows) = (0.0, self.recorded.len() as f64);
        for (&action, probs) in self.recorded.iter().zip(values.chunks_exact(*n)) {
            let prob = f64::from(probs[action as usize]);
            counts[action as usize] += 1.0;
            of_agent += prob.ln();
        }
        let frequencies = counts.iter().filter(|&&count| count > 0.0);
        let of_frequencies = frequencies.map(|&count| count / rows * (count / rows).ln()).sum();
        of_agent.is_finite().then_some([of_agent / rows, of_frequencies])
    }

    /// The steps at which agent and recording differ most, one for each episode.
    fn largest(
        &self,
        of: &Request<'_>,
        acted: &ForcedActions,
        places: &[Place],
    ) -> Vec<Difference> {
        let action =
            |actions: &[f32], row: usize| actions[row * self.width..][..self.width].to_vec();
        let size = |row: usize| match acted {
            ForcedActions::Probabilities { n, values } => {
                let recorded = self.recorded[row] as usize;
                1.0 - f64::from(values[row * n + recorded])
            }
            ForcedActions::Vectors { .. } => {
                self.distance(&action(&self.agent, row), &action(&self.recorded, row))
            }
        };
        let episodes = of.data.episodes().as_slice().iter().zip(places);
        let largest_of = |(episode, place): (&Episode, &Place)| {
            let sizes = episode.range().map(|row| (row, size(row)));
            let (row, size) = sizes.max_by(|a, b| a.1.total_cmp(&b.1))?;
            let [mut agent, mut recorded] =
                [&self.agent, &self.recorded].map(|actions| action(actions, row));
            if let Some(scale) = of.action_scale {
                scale.from_unit(&mut agent);
                scale.from_unit(&mut recorded);
            }
            let row = place.row + row - episode.start;
            Some((size, Difference { episode: place.episode, row, agent, recorded }))
        };
        let mut all: Vec<(f64, Difference)> = episodes.filter_map(largest_of).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let differing = all.into_iter().filter(|(size, _)| *size > 0.0);
        differing.map(|(_, difference)| difference).take(LISTED).collect()
    }
}

/// A number of an action with a smaller variance is constant.
const SMALLEST_VARIANCE: f64 = 1e-12;

/// The share of the most frequent value.
fn largest_share(values: &[f32]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let longest = sorted.chunk_by(|a, b| a == b).map(<[f32]>::len).max();
    longest.unwrap_or(0) as f64 / values.len().max(1) as f64
}

/// Drawn steps, with the steps of other episodes whose observations are most similar.
struct Similar {
    /// Rows, in order.
    queries: Vec<usize>,
    /// For each of them, rows of other episodes, the most similar one first.
    neighbors: Vec<Vec<usize>>,
}

impl Similar {
    /// By squared distance of normalized observations, `[rows, width]`.
    fn of(observations: &[f32], width: usize, episodes: &[Episode], seed: u64) -> Self {
        let observation = |row: usize| &observations[row * width..][..width];
        let mut queries: Vec<usize> = (0..observations.len() / width).collect();
        queries.shuffle(&mut overtone_core::seed::generator(seed, "imitation"));
        queries.truncate(QUERIES);
        queries.sort_unstable();
        let neighbors = |&row: &usize| {
            let own = episodes.iter().find(|episode| episode.range().contains(&row));
            let is_own = |other: usize| own.is_some_and(|own| own.range().contains(&other));

            let mut nearest: Vec<(f32, usize)> = Vec::with_capacity(NEIGHBORS + 1);
            for other in (0..observations.len() / width).filter(|&other| !is_own(other)) {
                let pairs = observation(row).iter().zip(observation(other));
                let distance: f32 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
                if nearest.len() == NEIGHBORS && distance >= nearest[NEIGHBORS - 1].0 {
                    continue;
                }
                let place = nearest.partition_point(|(near, _)| *near <= distance);
                nearest.insert(place, (distance, other));
                nearest.truncate(NEIGHBORS);
            }
            nearest.into_iter().map(|(_, other)| other).collect()
        };
        let neighbors = queries.par_iter().map(neighbors).collect();
        Self { queries, neighbors }
    }

    /// The most similar step of another episode.
    fn nearest(&self, query: usize) -> usize {
        let at = self.queries.binary_search(&query).unwrap_or(0);
        self.neighbors[at][0]
    }
}
