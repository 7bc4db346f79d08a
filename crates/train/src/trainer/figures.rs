//! What steps have measured: on the device until it is read, then summed up until it is reported.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;

use super::StepReport;
use crate::checkpoint::{TrainState, Unreported};

/// One step; its figures are on the device until they are read.
pub struct Step<F = Tensor<1>> {
    /// From 1.
    pub number: u64,
    pub learning_rate: f64,
    pub n_labels: u64,
    pub figures: F,
}

/// What a step has computed, in this order in its tensor.
pub struct Figures {
    pub loss: f64,
    /// Before clipping.
    pub grad_norm: f64,
    /// What [`Algorithm::figures`] names.
    pub others: Vec<f64>,
}

/// Takes all steps out of `unread`; their figures come from the device in one go.
pub fn read(unread: &mut Vec<Step>) -> Vec<Step<Figures>> {
    let figures = unread.iter().map(|step| step.figures.clone()).collect();
    let numbers: Vec<f64> = Tensor::cat(figures, 0).into_data().iter().collect();
    let each = numbers.len() / unread.len().max(1);
    let steps = unread.drain(..).zip(numbers.chunks_exact(each.max(1)));
    steps
        .map(|(step, numbers)| {
            let figures =
                Figures { loss: numbers[0], grad_norm: numbers[1], others: numbers[2..].to_vec() };
            let Step { number, learning_rate, n_labels, .. } = step;
            Step { number, learning_rate, n_labels, figures }
        })
        .collect()
}

/// Sums of the steps since the last report.
pub struct Accumulator {
    pub since: Instant,
    n_steps: u64,
    n_labels: u64,
    loss: f64,
    figures: Vec<(&'static str, f64)>,
    learning_rate: f64,
    grad_norm: f64,
}

impl Accumulator {
    /// Begins with what an earlier process has summed up.
    pub fn new(names: &[&'static str], earlier: Option<Unreported>) -> Self {
        let Unreported { steps, loss, figures } = earlier.unwrap_or_default();
        let figures = figures.into_iter().chain(std::iter::repeat(0.0));
        Self {
            since: Instant::now(),
            n_steps: steps,
            n_labels: 0,
            loss,
            figures: names.iter().copied().zip(figures).collect(),
            learning_rate: 0.0,
            grad_norm: 0.0,
        }
    }

    pub fn add(&mut self, step: &Step<Figures>) {
        self.n_steps += 1;
        self.n_labels += step.n_labels;
        self.loss += step.figures.loss;
        let sums = self.figures.iter_mut().zip(&step.figures.others);
        sums.for_each(|((_, sum), figure)| *sum += figure);
        self.learning_rate = step.learning_rate;
        self.grad_norm = step.figures.grad_norm;
    }

    pub fn unreported(&self) -> Option<Unreported> {
        let Self { n_steps: steps, loss, .. } = *self;
        let figures = self.figures.iter().map(|(_, sum)| *sum).collect();
        (steps > 0).then_some(Unreported { steps, loss, figures })
    }

    pub fn report(
        &self,
        state: &TrainState,
        n_updates: u64,
        waited: f64,
        started: Instant,
    ) -> StepReport {
        let mean = |sum: f64| sum / self.n_steps.max(1) as f64;
        let seconds = |duration: Duration| duration.as_secs_f64().max(1e-9);
        let total = seconds(started.elapsed());
        StepReport {
            step: state.step,
            n_updates,
            tokens: state.tokens,
            loss: mean(self.loss),
            figures: self.figures.iter().map(|&(name, sum)| (name, mean(sum))).collect(),
            learning_rate: self.learning_rate,
            grad_norm: self.grad_norm,
            timesteps_per_s: self.n_labels as f64 / seconds(self.since.elapsed()),
            waited_share: waited / total,
            seconds: total,
        }
    }
}
