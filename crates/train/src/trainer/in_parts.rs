//! A step whose batch is cut into parts ([`TrainConfig::micro_batches`]).
//!
//! A batch has `G` parts. Part g has `n_g` labels, a mean loss `L_g` and its own dropout seed. The
//! step descends `Σ n_g ∇L_g / Σ n_g`: the gradient of the mean over the whole batch's labels
//! (parts with more padding have fewer labels). Both sums are balanced binary trees ([`TreeSum`]),
//! over a process's parts on the device, over processes on the host. So their bits do not depend on
//! which process computed which part.
//!
//! [`TrainConfig::micro_batches`]: crate::TrainConfig::micro_batches

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use burn::tensor::Tensor;
use overtone_core::seed;
use overtone_data::Loader;

use super::{Trainer, figures::Step, team::Team, tree::TreeSum};
use crate::{
    algorithm::{Algorithm, PartFigures, StepAt, n_labels},
    error::TrainError,
    gradient::Gradient,
};

/// Steps between two comparisons of the processes' weights.
const COMPARED_EVERY: u64 = 100;

impl<A: Algorithm> Trainer<A> {
    /// One step; this process computes the parts `share`. Returns whether training must stop.
    pub(super) fn step_in_parts(
        &mut self,
        loader: &mut Loader,
        share: Range<usize>,
        team: &Team,
        stop: &AtomicBool,
    ) -> Result<(Step, bool), TrainError> {
        let n_figures = 1 + self.algorithm.figures().len();
        let Some(parts) = self.algorithm.parts() else {
            panic!("the algorithm supports steps in parts: checked when the trainer was created")
        };
        let at = self.at(&self.device);
        let mut sum = TreeSum::new(|earlier: Tensor<1>, later| earlier + later);
        let (mut n_here, mut present) = (0, Vec::new());
        for part in share {
            let mut batch = loader.next()?;
            let n_labels = n_labels(&self.algorithm, &batch);
            let seed = seed::derive_nth(at.seed, part as u64);
            let at = StepAt { seed, ..at };
            let PartFigures { loss, others, gradient } =
                parts.part(&self.learned, &mut batch, &self.data, &at);
            loader.recycle(batch);
            let numbers = [loss].into_iter().chain(others).chain([gradient.values]).collect();
            sum.push(Tensor::cat(numbers, 0) * n_labels as f64);
            n_here += n_labels;
            present.resize(gradient.present.len(), false);
            present.iter_mut().zip(gradient.present).for_each(|(any, is)| *any |= is);
        }
        let Some(sum) = sum.total() else { panic!("every process computes parts") };
        let learning_rate = at.learning_rate;
        let agreed = team.meet(n_here, stop.load(Ordering::Relaxed))?;
        let (sum, present) = team.sum(sum, present)?;
        // Without labels, all weights of the batch are 0.
        let mean = sum / agreed.n_labels.max(1) as f64;
        let [n] = mean.dims();
        let (measured, values) =
            (mean.clone().narrow(0, 0, n_figures), mean.narrow(0, n_figures, n - n_figures));
        let gradient = Gradient { values, present };
        let grad_norm = parts.descend(&mut self.learned, gradient, learning_rate);
        let n_drawn = self.state.n_drawn + self.config.batch_size as u64;
        let loss = measured.clone().narrow(0, 0, 1);
        let mut figures = vec![loss, grad_norm];
        if n_figures > 1 {
            figures.push(measured.narrow(0, 1, n_figures - 1));
        }
        let step = self.stepped(learning_rate, agreed.n_labels, n_drawn, Tensor::cat(figures, 0));
        // Also before every checkpoint, so that a checkpoint never contains what a dying process
        // sent only in part.
        let every = [COMPARED_EVERY, self.config.checkpoint_every];
        let is_due = every.into_iter().any(|every| step.number.is_multiple_of(every));
        if is_due || agreed.stops || step.number == self.n_updates {
            team.compare(step.number, || self.hash())?;
        }
        Ok((step, agreed.stops))
    }
}
