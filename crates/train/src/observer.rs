//! [`Observer`] receives the progress of training as [`StepReport`]s.

use crate::checkpoint::Checkpoint;

/// Measurements of the steps since the last report.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Steps taken.
    pub step: u64,
    /// Total number of steps.
    pub n_updates: u64,
    /// Action labels seen.
    pub tokens: u64,
    /// The minimised loss, including the head's regulariser, averaged over the reported steps.
    pub loss: f64,
    /// The other figures ([`Algorithm::figures`](crate::Algorithm::figures)) by name, averaged over
    /// the steps that have them; NaN if no step has.
    pub figures: Vec<(&'static str, f64)>,
    /// The last step's learning rate.
    pub learning_rate: f64,
    /// The last step's gradient norm before clipping.
    pub grad_norm: f64,
    /// Real training timesteps per second since the last report.
    pub timesteps_per_s: f64,
    /// Fraction of this process's time so far that was spent waiting for data.
    pub waited_share: f64,
    /// Seconds of training, including earlier processes up to their last report. Measuring
    /// checkpoints ([`Observer::measured`], and on held-out episodes) does not count.
    pub seconds: f64,
}

/// Receives training progress. Every method has a default that does nothing.
pub trait Observer {
    /// Called after every step; the calls of several steps may come together.
    fn stepped(&mut self, step: u64, loss: f64) {
        let _ = (step, loss);
    }
    /// Called after every `log_every` steps.
    fn logged(&mut self, report: &StepReport) {
        let _ = report;
    }
    /// Called when steps are replayed on the GPU from a recording for the first time, after `step`
    /// steps. With an `error`, they cannot be, and run ordinarily.
    fn recorded(&mut self, step: u64, error: Option<&str>) {
        let _ = (step, error);
    }
    /// Called after a checkpoint was written.
    fn saved(&mut self, checkpoint: &Checkpoint) {
        let _ = checkpoint;
    }
    /// Whether to write an unplanned checkpoint after `step`, to be [`measured`](Self::measured).
    /// All processes of a run must return the same value.
    fn wants(&self, step: u64) -> bool {
        let _ = step;
        false
    }

    /// Figures of a planned or [wanted](Self::wants) checkpoint, by name, to draw next to the
    /// training curves.
    ///
    /// It is called after the checkpoint was written. Training waits, and this time does not count
    /// as training. When a run resumes from a checkpoint without figures, it is called for this
    /// checkpoint first.
    ///
    /// `None`: the user stopped the program in the meantime. Then training stops, and this
    /// checkpoint is measured when the run resumes.
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
