//! Measurements of steps: on the device until they are read, then summed until they are reported.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;

use super::StepReport;
use crate::checkpoint::{TrainState, Unreported};

/// One step; its figures are on the device until they are read.
pub struct Step<F = Tensor<1>> {
    /// Counted from 1.
    pub number: u64,
    /// Contexts drawn up to this step.
    pub n_drawn: u64,
    pub learning_rate: f64,
    pub n_labels: u64,
    pub figures: F,
}

/// Figures of a step, in the order of its tensor.
pub struct Figures {
    pub loss: f64,
    /// Gradient norm before clipping.
    pub grad_norm: f64,
    /// The figures of [`Algorithm::figures`]; NaN if the step does not have them.
    ///
    /// [`Algorithm::figures`]: crate::Algorithm::figures
    pub others: Vec<f64>,
}

/// Takes all steps out of `unread`, and reads their figures from the device in one transfer.
pub fn read(unread: &mut Vec<Step>) -> Vec<Step<Figures>> {
    let figures = unread.iter().map(|step| step.figures.clone()).collect();
    let numbers: Vec<f64> = Tensor::cat(figures, 0).into_data().iter().collect();
    let each = numbers.len() / unread.len().max(1);
    let steps = unread.drain(..).zip(numbers.chunks_exact(each.max(1)));
    steps
        .map(|(step, numbers)| {
            let figures =
                Figures { loss: numbers[0], grad_norm: numbers[1], others: numbers[2..].to_vec() };
            let Step { number, n_drawn, learning_rate, n_labels, .. } = step;
            Step { number, n_drawn, learning_rate, n_labels, figures }
        })
        .collect()
}

/// Clock of the training time, without pauses.
pub struct Clock {
    /// Training seconds of earlier processes.
    earlier: f64,
    started: Instant,
    reported: Instant,
}

impl Clock {
    pub fn start(earlier: f64) -> Self {
        let now = Instant::now();
        Self { earlier, started: now, reported: now }
    }

    /// Executes `work` in a pause.
    pub fn paused<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        let pause = began.elapsed();
        self.started += pause;
        self.reported += pause;
        done
    }

    /// Training seconds of this process.
    pub fn own_seconds(&self) -> f64 {
        seconds(self.started.elapsed())
    }

    /// Training seconds of the run.
    pub fn seconds(&self) -> f64 {
        self.earlier + self.own_seconds()
    }

    /// Seconds since the last report.
    fn since_report(&mut self) -> f64 {
        seconds(std::mem::replace(&mut self.reported, Instant::now()).elapsed())
    }
}

/// At least a tiny positive number, so that it can be a divisor.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().max(1e-9)
}

/// Sums of the steps since the last report.
pub struct Accumulator {
    n_steps: u64,
    n_labels: u64,
    loss: f64,
    figures: Vec<Sum>,
    learning_rate: f64,
    grad_norm: f64,
}

/// Sum of a figure over the steps that have it.
struct Sum {
    name: &'static str,
    sum: f64,
    n_steps: u64,
}

impl Accumulator {
    /// Starts with the sums of an earlier process.
    pub fn new(names: &[&'static str], earlier: Option<Unreported>) -> Self {
        let Unreported { steps, loss, figures, figure_steps } = earlier.unwrap_or_default();
        let figure = |(i, &name): (usize, &&'static str)| Sum {
            name,
            sum: figures.get(i).copied().unwrap_or(0.0),
            n_steps: figure_steps.get(i).copied().unwrap_or(0),
        };
        Self {
            n_steps: steps,
            n_labels: 0,
            loss,
            figures: names.iter().enumerate().map(figure).collect(),
            learning_rate: 0.0,
            grad_norm: 0.0,
        }
    }

    pub fn add(&mut self, step: &Step<Figures>) {
        self.n_steps += 1;
        self.n_labels += step.n_labels;
        self.loss += step.figures.loss;
        for (of, figure) in self.figures.iter_mut().zip(&step.figures.others) {
            if !figure.is_nan() {
                of.sum += figure;
                of.n_steps += 1;
            }
        }
        self.learning_rate = step.learning_rate;
        self.grad_norm = step.figures.grad_norm;
    }

    pub fn unreported(&self) -> Option<Unreported> {
        let Self { n_steps: steps, loss, .. } = *self;
        let figures = self.figures.iter().map(|figure| figure.sum).collect();
        let figure_steps = self.figures.iter().map(|figure| figure.n_steps).collect();
        (steps > 0).then_some(Unreported { steps, loss, figures, figure_steps })
    }

    pub fn report(
        &self,
        state: &TrainState,
        n_updates: u64,
        waited: f64,
        clock: &mut Clock,
    ) -> StepReport {
        StepReport {
            step: state.step,
            n_updates,
            tokens: state.tokens,
            loss: self.loss / self.n_steps.max(1) as f64,
            figures: self
                .figures
                .iter()
                .map(|figure| (figure.name, figure.sum / figure.n_steps as f64))
                .collect(),
            learning_rate: self.learning_rate,
            grad_norm: self.grad_norm,
            timesteps_per_s: self.n_labels as f64 / clock.since_report(),
            waited_share: waited / clock.own_seconds(),
            seconds: clock.seconds(),
        }
    }
}
