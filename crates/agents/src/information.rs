//! [`information`]: how much a return-to-go says about the recorded actions.
//!
//! A model that is told returns can learn to obey only what its data tells apart. Here a small
//! perceptron predicts the action from the observation, the timestep and the return-to-go, and a
//! second one is told the return-to-go of another episode in its place; both learn from the same
//! episodes, and are asked about others. Where the first is no better, returns of this data are
//! luck, or follow from what is observed anyway.
//!
//! Leaving the return out instead would be no fair comparison: a return-to-go tells a perceptron
//! which of the episodes it learns from it sees, and that costs it some of the loss on others,
//! 1 to 3 % on recordings of 50 to 150 episodes, more than many returns say. Another episode's
//! return costs the same and says nothing.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_data::{ActionColumn, Dataset, Split, StoredObservations};
use overtone_model::{
    Acted, Contexts, HeadConfig, Init, Model, ModelConfig, Observed, PerceptronConfig,
    head::{LinearConfig, PointwiseConfig},
};
use overtone_train::{BatchLoss, Learner, TrainConfig, TrainError};
use rand::{RngExt, seq::SliceRandom};
use serde::Serialize;

/// How the figure is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InformationOptions {
    /// Splits of the episodes, each with two perceptrons.
    pub splits: usize,
    /// Share of the episodes that are asked about.
    pub held_out: f64,
    /// Steps of each perceptron.
    pub updates: u64,
    /// Timesteps of each step.
    pub batch_size: usize,
    /// Width of its two hidden layers.
    pub width: usize,
    /// Of everything random.
    pub seed: u64,
}

impl Default for InformationOptions {
    /// Half a minute on two cores.
    fn default() -> Self {
        Self { splits: 10, held_out: 0.2, updates: 1500, batch_size: 256, width: 128, seed: 1 }
    }
}

/// Held-out loss of one split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SplitLosses {
    /// Told the return-to-go of another episode.
    pub without: f64,
    /// Told its own.
    pub with: f64,
}

impl SplitLosses {
    /// The share of the loss that the return-to-go takes away; of no loss nothing.
    fn gain(self) -> f64 {
        if self.without > 0.0 { 1.0 - self.with / self.without } else { 0.0 }
    }
}

/// What a return-to-go says about actions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Information {
    /// Unit of the losses.
    pub unit: &'static str,
    /// Each split's.
    pub splits: Vec<SplitLosses>,
    /// The mean share of the loss that the return-to-go takes away.
    pub gain: f64,
    /// Its 95 % interval. From −∞ to ∞, in JSON both `null`, where nothing is known of it: with one
    /// split, and where all actions are the same.
    pub interval: [f64; 2],
}

impl Information {
    /// Of these splits, of which each held out `ratio` times as many episodes as were learned.
    ///
    /// The interval is Student's with the variance of Nadeau & Bengio (2003),
    /// `s² (1/J + n_test/n_train)`: the splits share most of their episodes.
    fn of(unit: &'static str, splits: Vec<SplitLosses>, ratio: f64) -> Self {
        let gains: Vec<f64> = splits.iter().map(|split| split.gain()).collect();
        let n = gains.len().max(1) as f64;
        let gain = gains.iter().sum::<f64>() / n;
        let is_bounded = gains.len() > 1 && splits.iter().all(|split| split.without > 0.0);
        let half = if is_bounded {
            let variance = gains.iter().map(|x| (x - gain).powi(2)).sum::<f64>() / (n - 1.0);
            student(gains.len() - 1) * (variance * (1.0 / n + ratio)).sqrt()
        } else {
            f64::INFINITY
        };
        Self { unit, splits, gain, interval: [gain - half, gain + half] }
    }

    /// Whether returns were seen to say something about actions: the interval is above zero.
    pub fn returns_tell_actions(&self) -> bool {
        self.interval[0] > 0.0
    }
}

/// The 97.5 % quantile of Student's distribution with so many degrees of freedom, at least 1.
fn student(degrees: usize) -> f64 {
    const QUANTILES: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    // Beyond the table the last is a little too large, which errs on the safe side.
    QUANTILES[degrees.min(QUANTILES.len()) - 1]
}

/// Measures it on all of `dataset`.
///
/// # Errors
/// When the observations are no vectors, or there are too few episodes to hold some out.
pub fn information(
    dataset: &Dataset,
    options: &InformationOptions,
) -> Result<Information, TrainError> {
    let table = Table::of(dataset)?;
    let n_episodes = dataset.episodes().as_slice().len();
    let (mut splits, mut ratio) = (Vec::with_capacity(options.splits), 0.0);
    for nth in 0..options.splits as u64 {
        let split_seed = seed::derive_nth(options.seed, nth);
        let split = Split::draw(n_episodes, options.held_out, split_seed)?;
        // The same of all splits; a share of few episodes is rounded.
        ratio = split.held_out.len() as f64 / split.training.len() as f64;
        if table.has_one_action() {
            splits.push(SplitLosses { without: 0.0, with: 0.0 });
            continue;
        }
        let rows = |episodes: &[usize]| -> Vec<usize> {
            let episodes = episodes.iter().map(|&nth| dataset.episodes().as_slice()[nth]);
            episodes.flat_map(|episode| episode.range()).collect()
        };
        let parts = [rows(&split.training), rows(&split.held_out)];
        let other = table.returns_of_others(dataset, split_seed);
        let loss = |returns: &[f32]| table.held_out_loss(&parts, returns, options, split_seed);
        splits.push(SplitLosses { without: loss(&other)?, with: loss(&table.returns)? });
    }
    Ok(Information::of(table.unit(), splits, ratio))
}

/// A dataset's columns in units of their standard deviations.
struct Table {
    /// Numbers of an observation.
    width: usize,
    /// `[rows, width]`
    observations: Vec<f32>,
    actions: ActionColumn,
    /// `[rows]`
    timesteps: Vec<f32>,
    /// `[rows]`, to go.
    returns: Vec<f32>,
}

/// What a perceptron is told beside an observation: timestep and return-to-go.
const TOLD: usize = 2;

/// Measurements along the training, of which the lowest counts, for both perceptrons alike.
const MEASURED: u64 = 5;
/// Most held-out timesteps that are asked about.
const ASKED: usize = 10_000;

impl Table {
    fn of(dataset: &Dataset) -> Result<Self, TrainError> {
        let StoredObservations::Vectors { width, values, normalization } = dataset.observations()
        else {
            let reason = "information is measured on observations of numbers, and these are frames";
            return Err(overtone_data::DataError::Sampling { reason: reason.into() }.into());
        };
        let mut observations = values.clone();
        normalization.apply(&mut observations);
        let actions = match dataset.actions() {
            ActionColumn::Continuous { width, values } => {
                let mut values = values.clone();
                standardize(&mut values, *width);
                ActionColumn::Continuous { width: *width, values }
            }
            discrete @ ActionColumn::Discrete { .. } => discrete.clone(),
        };
        let episodes = dataset.episodes().as_slice().iter();
        let mut timesteps: Vec<f32> =
            episodes.flat_map(|episode| (0..episode.length).map(|t| t as f32)).collect();
        let mut returns = dataset.returns_to_go().to_vec();
        standardize(&mut timesteps, 1);
        standardize(&mut returns, 1);
        Ok(Self { width: *width, observations, actions, timesteps, returns })
    }

    /// For every row the return-to-go of another episode at that timestep; where that was over,
    /// its last.
    fn returns_of_others(&self, dataset: &Dataset, split_seed: u64) -> Vec<f32> {
        let episodes = dataset.episodes().as_slice();
        let mut order: Vec<usize> = (0..episodes.len()).collect();
        order.shuffle(&mut seed::generator(split_seed, "others"));
        // Each is told the next one's in a circle of random order: never its own.
        let mut of = vec![0; order.len()];
        for (place, &episode) in order.iter().enumerate() {
            of[episode] = order[(place + 1) % order.len()];
        }
        let told = episodes.iter().zip(&of).flat_map(|(episode, &other)| {
            let other = episodes[other];
            (0..episode.length).map(move |t| self.returns[other.start + t.min(other.length - 1)])
        });
        told.collect()
    }

    /// Whether all timesteps have the same action, of which there is nothing to tell.
    fn has_one_action(&self) -> bool {
        match &self.actions {
            // They are standardized: what never changes is 0.
            ActionColumn::Continuous { values, .. } => values.iter().all(|&x| x == 0.0),
            ActionColumn::Discrete { values, .. } => {
                values.windows(2).all(|pair| pair[0] == pair[1])
            }
        }
    }

    fn unit(&self) -> &'static str {
        match self.actions {
            ActionColumn::Continuous { .. } => "squared error, as a share of the actions' variance",
            ActionColumn::Discrete { .. } => "nats",
        }
    }

    /// The lowest held-out loss of a perceptron that learns `parts[0]` and is asked about
    /// `parts[1]`. Both perceptrons of a split learn the same timesteps in the same order.
    fn held_out_loss(
        &self,
        parts: &[Vec<usize>; 2],
        returns: &[f32],
        options: &InformationOptions,
        split_seed: u64,
    ) -> Result<f64, TrainError> {
        let plain = Device::flex();
        let device = plain.clone().autodiff();
        let (head, actions) = match self.actions {
            ActionColumn::Continuous { width, .. } => {
                (HeadConfig::Pointwise(PointwiseConfig {}), ActionSpace::unit(width))
            }
            ActionColumn::Discrete { n_actions, .. } => {
                (HeadConfig::Linear(LinearConfig {}), ActionSpace::numbered(n_actions))
            }
        };
        let config = PerceptronConfig {
            n_layers: 2,
            width: options.width,
            context_length: 1,
            dropout: 0.0,
            head,
            average_return: None,
            best_percents: Vec::new(),
        };
        let observations = ObservationSpace::Vectors { width: self.width + TOLD };
        let mut generator = seed::generator(split_seed, "init");
        let init = &mut Init::drawn(&device, &mut generator);
        let model = Model::init(&ModelConfig::Perceptron(config), &observations, &actions, init)?;
        let mut learned = Learner::new(model, &TrainConfig::default());

        let mut generator = seed::generator(split_seed, "rows");
        let [training, held_out] = parts;
        let mut draw = |from: &[usize], n: usize| -> Vec<usize> {
            (0..n).map(|_| from[generator.random_range(0..from.len())]).collect()
        };
        let asked = self.contexts(&draw(held_out, ASKED.min(held_out.len())), returns, &plain);
        let mut lowest = f64::INFINITY;
        for step in 1..=options.updates {
            let batch = self.contexts(&draw(training, options.batch_size), returns, &device);
            let total = learned.network.loss(&batch, None).total;
            let progress = (step - 1) as f64 / options.updates as f64;
            let rate = 1e-3 * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
            learned.descend(BatchLoss { total, figures: Vec::new() }, rate);
            if step.is_multiple_of((options.updates / MEASURED).max(1)) || step == options.updates {
                let loss: f64 = learned.network.valid().loss(&asked, None).action.into_scalar();
                lowest = lowest.min(loss);
            }
        }
        Ok(lowest)
    }

    /// These rows as contexts of one step, told these returns.
    fn contexts(&self, rows: &[usize], returns: &[f32], device: &Device) -> Contexts {
        let n = rows.len();
        let mut numbers = Vec::with_capacity(n * (self.width + TOLD));
        for &row in rows {
            numbers.extend(&self.observations[row * self.width..(row + 1) * self.width]);
            numbers.extend([self.timesteps[row], returns[row]]);
        }
        let numbers = TensorData::new(numbers, [n, 1, self.width + TOLD]);
        let actions = match &self.actions {
            ActionColumn::Continuous { width, values } => {
                let picked = rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]);
                let picked: Vec<f32> = picked.copied().collect();
                let picked = TensorData::new(picked, [n, 1, *width]);
                Acted::Continuous(Tensor::from_data(picked, device))
            }
            ActionColumn::Discrete { values, .. } => {
                let ids: Vec<i32> = rows.iter().map(|&row| i32::from(values[row])).collect();
                Acted::Discrete(Tensor::from_data(TensorData::new(ids, [n, 1]), device))
            }
        };
        Contexts {
            observations: Observed::Vectors(Tensor::from_data(numbers, device)),
            actions,
            returns_to_go: Tensor::zeros([n, 1], device),
            timesteps: vec![0; n],
            n_padding: vec![0; n],
            best: Vec::new(),
        }
    }
}

/// Each of `width` columns minus its mean, divided by its standard deviation; one that never
/// changes becomes zeros.
fn standardize(values: &mut [f32], width: usize) {
    let n = (values.len() / width.max(1)).max(1) as f64;
    for column in 0..width {
        let of = |values: &[f32]| -> Vec<f64> {
            values.iter().skip(column).step_by(width).map(|&x| f64::from(x)).collect()
        };
        let own = of(values);
        let mean = own.iter().sum::<f64>() / n;
        let std = (own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        for x in values.iter_mut().skip(column).step_by(width) {
            let away = f64::from(*x) - mean;
            *x = if std > 1e-8 { (away / std) as f32 } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::{Episode, Outcome};
    use overtone_data::{Columns, DatasetOptions, ObservationColumn};

    /// Forty episodes of ten steps. Half of the policies earn 1 a step; where `obeys`, those act
    /// with the observation and the others against it, and else all of them with it.
    fn recorded(obeys: bool) -> Dataset {
        let mut generator = seed::generator(3, "episodes");
        let (mut observations, mut actions, mut rewards, mut episodes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for nth in 0..40 {
            let is_good = nth % 2 == 0;
            for _ in 0..10 {
                let x: f32 = generator.random_range(-1.0..1.0);
                let noise: f32 = generator.random_range(-0.2..0.2);
                observations.push(x);
                actions.push(noise + if is_good || !obeys { 0.5 * x } else { -0.5 * x });
                rewards.push(f32::from(is_good));
            }
            episodes.push(Episode { start: nth * 10, length: 10, outcome: Outcome::Truncated });
        }
        let observations = ObservationColumn::Vectors { width: 1, values: observations };
        let actions = ActionColumn::Continuous { width: 1, values: actions };
        let columns = Columns::new(observations, actions, rewards, episodes);
        Dataset::of(columns, &DatasetOptions::default()).unwrap()
    }

    /// By hand: with `obeys` the observation alone says nothing of the sign, and the return all.
    #[test]
    fn returns_that_tell_actions_are_told_from_luck() {
        let options =
            InformationOptions { splits: 5, updates: 300, width: 32, ..Default::default() };
        let teaches = information(&recorded(true), &options).unwrap();
        println!("{teaches:?}");
        assert!(teaches.returns_tell_actions() && teaches.gain > 0.5, "{teaches:?}");
        assert!(teaches.splits.iter().all(|split| split.without > 0.6), "{teaches:?}");
        let luck = information(&recorded(false), &options).unwrap();
        println!("{luck:?}");
        assert!(!luck.returns_tell_actions() && luck.gain < 0.02, "{luck:?}");
        assert_eq!(information(&recorded(false), &options).unwrap(), luck, "seeded");
    }

    /// Gains of 0.1, 0.2 and 0.3: mean 0.2, s² 0.01, and with a third held out half as many asked
    /// about as learned: 4.303 √(0.01 (1/3 + 1/2)).
    #[test]
    fn the_interval_by_hand() {
        let split = |with| SplitLosses { without: 1.0, with };
        let splits = vec![split(0.9), split(0.8), split(0.7)];
        let found = Information::of("nats", splits, 0.5);
        let half = 4.303 * (0.01f64 * (1.0 / 3.0 + 0.5)).sqrt();
        assert!((found.gain - 0.2).abs() < 1e-12);
        assert!((found.interval[0] - (0.2 - half)).abs() < 1e-12, "{found:?}");
        assert!((found.interval[1] - (0.2 + half)).abs() < 1e-12, "{found:?}");
        assert!(!found.returns_tell_actions());
    }

    const QUICK: InformationOptions = InformationOptions {
        splits: 3,
        held_out: 0.2,
        updates: 3,
        batch_size: 8,
        width: 4,
        seed: 1,
    };

    /// Of three episodes of two steps a fifth is one, which leaves two to learn from: 1/2.
    #[test]
    fn the_interval_counts_the_episodes_that_were_held_out() {
        let found = information(&three_episodes(different()), &QUICK).unwrap();
        let expected = Information::of(found.unit, found.splits.clone(), 0.5);
        assert_eq!(found, expected);
        assert!(found.interval[0] < found.gain && found.gain.is_finite(), "{found:?}");
    }

    #[test]
    fn of_one_split_the_interval_has_no_ends() {
        let one = InformationOptions { splits: 1, ..QUICK };
        let found = information(&three_episodes(different()), &one).unwrap();
        assert!(found.gain.is_finite());
        assert_eq!(found.interval, [f64::NEG_INFINITY, f64::INFINITY]);
        assert!(!found.returns_tell_actions());
    }

    #[test]
    fn of_one_action_nothing_is_told() {
        let same = |n_actions| ActionColumn::Discrete { n_actions, values: vec![0; 6] };
        for actions in
            [same(1), same(4), ActionColumn::Continuous { width: 1, values: vec![0.3; 6] }]
        {
            let found = information(&three_episodes(actions), &QUICK).unwrap();
            assert_eq!((found.gain, found.splits.len()), (0.0, 3));
            assert_eq!(found.interval, [f64::NEG_INFINITY, f64::INFINITY]);
            assert!(!found.returns_tell_actions());
            let written = serde_json::to_value(&found).unwrap();
            assert_eq!(written["gain"], 0.0);
        }
    }

    fn different() -> ActionColumn {
        ActionColumn::Continuous { width: 1, values: vec![-0.5, 0.3, 0.8, -0.2, 0.1, 0.6] }
    }

    /// Three episodes of two steps.
    fn three_episodes(actions: ActionColumn) -> Dataset {
        let observations =
            ObservationColumn::Vectors { width: 1, values: vec![0.1, 0.9, 0.4, 0.2, 0.5, 0.7] };
        let episode =
            |nth: usize| Episode { start: 2 * nth, length: 2, outcome: Outcome::Truncated };
        let episodes = (0..3).map(episode).collect();
        let rewards = vec![1.0, 2.0, 0.0, 1.0, 5.0, 0.0];
        let columns = Columns::new(observations, actions, rewards, episodes);
        Dataset::of(columns, &DatasetOptions::default()).unwrap()
    }
}
