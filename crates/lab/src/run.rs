//! [`Run`]: one training of an experiment.

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The seed of weights and batches.
    pub seed: u64,
    /// In the order of the metrics.
    pub scores: Vec<f64>,
    /// After how many updates what was seen.
    pub curve: Vec<[f64; 2]>,
    /// Other results of the experiment; empty without any.
    pub detail: Vec<f64>,
}
