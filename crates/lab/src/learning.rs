//! The training loop of the experiments away from reinforcement learning, and what a step costs.

use std::time::Instant;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::seed::{self, Generator};
use overtone_model::Init;
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};
use rand::seq::SliceRandom;

use crate::memory;
use crate::run::Run;
use crate::study::{StudyError, check_distinct, invalid, number, whole};
use crate::transformer::Size;

/// The options that all studies of small networks have.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct NetworkOptions {
    /// Seeds of weights and batches.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4")]
    pub seeds: Vec<u64>,
    /// The highest learning rate; everything is compared at each of several.
    #[arg(long, value_delimiter = ',', default_value = "0.003", value_parser = number(1e-9..=1.0))]
    pub learning_rate: Vec<f64>,
    /// Width of a token.
    #[arg(long, default_value = "32", value_parser = whole(1..=1024))]
    pub d_model: usize,
    /// Transformer blocks (of an encoder, and of a decoder).
    #[arg(long, default_value = "2", value_parser = whole(1..=24))]
    pub n_layers: usize,
    /// Attention heads; must divide d_model.
    #[arg(long, default_value = "4", value_parser = whole(1..=64))]
    pub n_heads: usize,
    /// Sequences of a step.
    #[arg(long, default_value = "32", value_parser = whole(1..=4096))]
    pub batch: usize,
    /// Weight decay of matrices.
    #[arg(long, default_value = "0.01", value_parser = number(0.0..=10.0))]
    pub weight_decay: f64,
    /// Updates between evaluations on the test data, for the curves.
    #[arg(long, default_value = "100", value_parser = whole(1..=1_000_000))]
    pub evaluate_every: usize,
}

impl NetworkOptions {
    /// # Errors
    /// When a seed or rate appears twice, or the heads do not divide the width.
    pub fn check(&self) -> Result<(), StudyError> {
        check_distinct("seeds", &self.seeds)?;
        check_distinct("learning_rate", &self.learning_rate)?;
        if !self.d_model.is_multiple_of(self.n_heads) {
            let expected = format!("must divide d_model={}", self.d_model);
            return Err(invalid("n_heads", self.n_heads, expected));
        }
        Ok(())
    }

    /// The size of the network.
    pub fn size(&self) -> Size {
        Size { d_model: self.d_model, n_heads: self.n_heads, n_layers: self.n_layers }
    }

    /// A training of so many updates.
    pub fn training(&self, updates: usize, learning_rate: f64) -> Training {
        let Self { batch, weight_decay, evaluate_every, .. } = *self;
        Training { updates, batch, learning_rate, weight_decay, evaluate_every }
    }
}

/// How long, and how fast: AdamW with gradients clipped to norm 1; the learning rate rises over
/// the first tenth of the updates and falls to 0, both linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Optimizer steps.
    pub updates: usize,
    /// Sequences of a step.
    pub batch: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Decoupled weight decay of matrices.
    pub weight_decay: f64,
    /// Updates between evaluations on held-out data.
    pub evaluate_every: usize,
}

impl Training {
    /// The learning rate of the update before which so many were done.
    fn rate(&self, done: usize) -> f64 {
        let (done, all) = (done as f64, self.updates as f64);
        let rising = (done + 1.0) / (0.1 * all).max(1.0);
        let falling = (all - done) / (0.9 * all);
        self.learning_rate * rising.min(falling).min(1.0)
    }

    fn optimizer(&self) -> AdamW {
        AdamW::new(AdamWConfig { weight_decay: self.weight_decay, ..Default::default() })
    }
}

/// A network, its batches, and how it is measured.
pub trait Task: Sync {
    /// The setting that differs between the compared networks.
    type Variant: Copy + Sync;
    /// The network.
    type Network: Module;

    /// A new network.
    fn network(&self, variant: Self::Variant, init: &mut Init<'_>) -> Self::Network;

    /// The mean loss of a network on the next of the batches of a seed, `[1]`, on a device.
    fn loss(&self, seed: u64, batch: usize) -> impl FnMut(&Self::Network, &Device) -> Tensor<1>;

    /// The number of the curves.
    fn evaluate(&self, network: &Self::Network) -> f64;

    /// All numbers of a trained network with this training loss in nats, and what else is shown.
    fn measure(&self, network: &Self::Network, loss: f64) -> (Vec<f64>, Vec<f64>);
}

/// A network from a seed, on a device that knows gradients.
pub fn network<M>(weight_seed: u64, new: impl FnOnce(&mut Init<'_>) -> M) -> M {
    let generator = &mut seed::generator(weight_seed, "init");
    new(&mut Init::drawn(&Device::flex().autodiff(), generator))
}

/// Rows in a random order, over and over; each is drawn once before any is drawn again.
pub struct Order {
    rows: Vec<usize>,
    at: usize,
    generator: Generator,
}

impl Order {
    /// A batch of so many rows.
    pub fn new(n: usize, seed: u64) -> Self {
        Self { rows: (0..n).collect(), at: n, generator: seed::generator(seed, "batches") }
    }

    /// The next rows.
    pub fn next(&mut self, n: usize) -> Vec<usize> {
        (0..n)
            .map(|_| {
                if self.at == self.rows.len() {
                    self.at = 0;
                    self.rows.shuffle(&mut self.generator);
                }
                self.at += 1;
                self.rows[self.at - 1]
            })
            .collect()
    }
}

/// Descends a loss for so many updates, each at the `rate` of the number of updates before it.
/// `loss` computes the next batch's losses on the given device, each `[1]`: the differentiated
/// one and the recorded one. `after` receives the number of updates done and
/// the network. Returns the network without gradients, and the recorded losses.
pub fn descend<M: Module>(
    mut network: M,
    mut optimizer: AdamW,
    updates: usize,
    rate: impl Fn(usize) -> f64,
    mut loss: impl FnMut(&M, &Device) -> [Tensor<1>; 2],
    mut after: impl FnMut(usize, &M),
) -> (M, Vec<f64>) {
    let device = Device::flex().autodiff();
    let mut losses = Vec::with_capacity(updates);
    for done in 0..updates {
        let [total, recorded] = loss(&network, &device);
        losses.push(scalar(recorded.inner()));
        network = optimizer.step(network, total.backward(), rate(done)).0;
        after(done + 1, &network);
    }
    (network.valid(), losses)
}

/// Trains a network of a task from a seed and measures it.
pub fn train<T: Task>(task: &T, variant: T::Variant, training: Training, seed: u64) -> Run {
    let mut curve = Vec::new();
    let mut loss = task.loss(seed, training.batch);
    let twice = |network: &T::Network, device: &Device| {
        let loss = loss(network, device);
        [loss.clone(), loss]
    };
    let after = |done: usize, network: &T::Network| {
        if done.is_multiple_of(training.evaluate_every) || done == training.updates {
            curve.push([done as f64, task.evaluate(&network.valid())]);
        }
    };
    let network = network(seed, |init| task.network(variant, init));
    let rate = |done| training.rate(done);
    let (network, losses) =
        descend(network, training.optimizer(), training.updates, rate, twice, after);
    let last = &losses[losses.len() - losses.len().div_ceil(10)..];
    let loss = last.iter().sum::<f64>() / last.len().max(1) as f64;
    let (scores, detail) = task.measure(&network, loss);
    Run { seed, scores, curve, detail }
}

/// The cost of a step on one thread: the quickest of several, and the memory in addition to weights
/// and the optimizer's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Numbers that are learned.
    pub parameters: usize,
    /// Milliseconds of an update, for each sequence.
    pub train_ms: f64,
    /// Most bytes held in an update, above what is held before it.
    pub train_bytes: usize,
    /// Milliseconds of the loss without gradients, for each sequence.
    pub infer_ms: f64,
    /// Most bytes held for it.
    pub infer_bytes: usize,
}

impl Cost {
    /// The shorter times and the larger memory of two measurements of one network.
    pub fn better(self, other: Self) -> Self {
        Self {
            parameters: self.parameters,
            train_ms: self.train_ms.min(other.train_ms),
            train_bytes: self.train_bytes.max(other.train_bytes),
            infer_ms: self.infer_ms.min(other.infer_ms),
            infer_bytes: self.infer_bytes.max(other.infer_bytes),
        }
    }
}

/// Number of measured updates and losses; the quickest counts.
const TIMED: usize = 7;

/// Measures a new network. Nothing else may run in this process meanwhile.
pub fn cost<T: Task>(task: &T, variant: T::Variant, training: Training) -> Cost {
    let device = Device::flex().autodiff();
    let mut network = network(0, |init| task.network(variant, init));
    let mut loss = task.loss(0, training.batch);
    let mut optimizer = training.optimizer();
    let parameters = network.num_params();
    let mut train = [f64::INFINITY, 0.0];
    // The optimizer's memory of the first update stays.
    for update in 0..=TIMED {
        let (held, start) = (memory::restart(), Instant::now());
        let loss = loss(&network, &device);
        network = optimizer.step(network, loss.backward(), training.rate(update)).0;
        if update > 0 {
            note(&mut train, held, start);
        }
    }
    let mut infer = [f64::INFINITY, 0.0];
    let network = network.valid();
    for _ in 0..TIMED {
        let (held, start) = (memory::restart(), Instant::now());
        scalar(loss(&network, &Device::flex()));
        note(&mut infer, held, start);
    }
    let each = |[seconds, _]: [f64; 2]| 1e3 * seconds / training.batch as f64;
    Cost {
        parameters,
        train_ms: each(train),
        train_bytes: train[1] as usize,
        infer_ms: each(infer),
        infer_bytes: infer[1] as usize,
    }
}

fn note([seconds, bytes]: &mut [f64; 2], held: usize, start: Instant) {
    *seconds = seconds.min(start.elapsed().as_secs_f64());
    *bytes = bytes.max(memory::most_above(held) as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_rises_and_falls() {
        let training = Training {
            updates: 20,
            batch: 1,
            learning_rate: 9.0,
            weight_decay: 0.0,
            evaluate_every: 1,
        };
        // Over 2 of 20 updates it rises; each of the other 18 takes a half.
        let rates = [0, 1, 2, 10, 19].map(|done| training.rate(done));
        assert_eq!(rates, [4.5, 9.0, 9.0, 5.0, 0.5]);
    }

    #[test]
    fn every_row_comes_once_before_any_comes_again() {
        let mut order = Order::new(5, 1);
        let drawn = order.next(15);
        for round in drawn.chunks(5) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        assert_ne!(drawn[..5], drawn[5..10]);
        assert_eq!(Order::new(5, 1).next(15), drawn);
        assert_ne!(Order::new(5, 2).next(15), drawn);
    }
}
