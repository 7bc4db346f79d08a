//! [`Observer`] receives the progress of training as [`StepReport`]s.

use crate::checkpoint::Checkpoint;

/// What happened in the steps since the last report.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub n_updates: u64,
    /// Action labels seen.
    pub tokens: u64,
    /// What is minimised, the head's regulariser included, averaged over the steps reported.
    pub loss: f64,
    /// What else was measured ([`Algorithm::figures`](crate::Algorithm::figures)), by name,
    /// averaged over those of the steps that have it; NaN where none has.
    pub figures: Vec<(&'static str, f64)>,
    /// The last step's learning rate.
    pub learning_rate: f64,
    /// The last step's gradient norm before clipping.
    pub grad_norm: f64,
    /// Real timesteps trained on per second, since the last report.
    pub timesteps_per_s: f64,
    /// Share of this process's time so far that was spent waiting for data.
    pub waited_share: f64,
    /// Seconds of training, those of earlier processes up to their last report among them; those
    /// in which checkpoints were measured ([`Observer::measured`], and on held-out episodes) left
    /// out.
    pub seconds: f64,
}

/// Told of progress; does the printing. What it does not care for, it leaves as it is here.
pub trait Observer {
    /// After every step; the calls of several steps may come together.
    fn stepped(&mut self, step: u64, loss: f64) {
        let _ = (step, loss);
    }
    /// After every `log_every` steps.
    fn logged(&mut self, report: &StepReport) {
        let _ = report;
    }
    /// After a checkpoint was written.
    fn saved(&mut self, checkpoint: &Checkpoint) {
        let _ = checkpoint;
    }
    /// Whether a checkpoint is written after `step` so that it can be [`measured`](Self::measured),
    /// where none is planned. All processes of a run must say the same.
    fn wants(&self, step: u64) -> bool {
        let _ = step;
        false
    }
    /// After a checkpoint was written that was planned or [wanted](Self::wants): figures of it, by
    /// name, to be drawn beside the training curves. Training waits meanwhile, and that time is not
    /// counted as training.
    /// Asked again of the checkpoint that a run goes on from where it has no figures yet.
    ///
    /// `None`: it was asked to stop meanwhile. Then training stops here, and this checkpoint is
    /// measured when it goes on.
    fn measured(&mut self, checkpoint: &Checkpoint) -> Option<Vec<(String, f64)>> {
        let _ = checkpoint;
        Some(Vec::new())
    }
}

/// A closure receives each report.
impl<F: FnMut(&StepReport)> Observer for F {
    fn logged(&mut self, report: &StepReport) {
        self(report);
    }
}
