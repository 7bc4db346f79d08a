//! Kinds of attention times learning rates: the ways that most studies compare.

use crate::comparison::{Comparison, Metric, Planned};
use crate::learning::{NetworkOptions, Task};
use crate::study::{StudyError, check_distinct};
use crate::transformer::Kind;

/// The options of a comparison of kinds of attention.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct Grid {
    /// Kinds of attention: softmax, fourierP/Rx, fourierP/Rx/vector. The first is what the others
    /// are compared with.
    #[arg(long, value_delimiter = ',', default_value = "softmax,fourier4/R1,fourier4/R2")]
    pub attentions: Vec<Kind>,
    /// The networks.
    #[command(flatten)]
    pub network: NetworkOptions,
}

impl Grid {
    /// # Errors
    /// When an option is invalid.
    pub fn check(&self) -> Result<(), StudyError> {
        check_distinct("attentions", &self.attentions)?;
        self.network.check()
    }

    /// Trainings: the units of work of [`Self::run`].
    pub fn units(&self) -> usize {
        self.attentions.len() * self.network.learning_rate.len() * self.network.seeds.len()
    }

    /// Every kind at every rate, each compared with the first kind at that rate.
    fn plan<W>(&self, updates: usize, variant: impl Fn(Kind) -> W) -> Vec<Planned<W>> {
        let mut planned = Vec::new();
        for &rate in &self.network.learning_rate {
            let name = |kind: Kind| match self.network.learning_rate.len() {
                1 => kind.to_string(),
                _ => format!("{kind}, rate {rate}"),
            };
            let training = self.network.training(updates, rate);
            for (i, &kind) in self.attentions.iter().enumerate() {
                let against = (i > 0).then(|| name(self.attentions[0]));
                planned.push((name(kind), against, variant(kind), training));
            }
        }
        planned
    }

    /// Trains every kind at every rate from every seed, and measures what a step costs: as much
    /// at each rate.
    pub fn run<T: Task>(
        &self,
        task: &T,
        metrics: &[Metric],
        updates: usize,
        variant: impl Fn(Kind) -> T::Variant,
        tick: &(dyn Fn() + Sync),
    ) -> Comparison {
        let (planned, n_kinds) = (self.plan(updates, variant), self.attentions.len());
        Comparison::run(task, metrics, planned, &self.network.seeds, n_kinds, tick)
    }
}

/// A small grid, for tests.
#[cfg(test)]
pub(crate) fn tiny(attentions: &[&str], learning_rate: &[f64]) -> Grid {
    let network = NetworkOptions {
        seeds: vec![1, 2],
        learning_rate: learning_rate.to_vec(),
        d_model: 8,
        n_layers: 1,
        n_heads: 2,
        batch: 4,
        weight_decay: 0.0,
        evaluate_every: 20,
    };
    let kinds = attentions.iter().map(|word| word.parse().expect("a kind of attention"));
    Grid { attentions: kinds.collect(), network }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_compared_at_the_same_rate() {
        let grid = tiny(&["softmax", "fourier4"], &[0.1, 0.2]);
        assert_eq!(grid.units(), 8);
        let planned = grid.plan(3, |kind| kind);
        let names = |i: usize| (planned[i].0.as_str(), planned[i].1.as_deref());
        assert_eq!(names(0), ("softmax, rate 0.1", None));
        assert_eq!(names(3), ("fourier4/R1, rate 0.2", Some("softmax, rate 0.2")));
        assert_eq!(planned[3].3.learning_rate, 0.2);
        let one = tiny(&["softmax", "fourier4"], &[0.1]).plan(3, |kind| kind);
        assert_eq!((one[1].0.as_str(), one[1].1.as_deref()), ("fourier4/R1", Some("softmax")));
    }

    #[test]
    fn nothing_is_compared_twice() {
        let refused = |grid: Grid| grid.check().unwrap_err().to_string();
        let twice = refused(tiny(&["fourier4", "fourier4/R1"], &[0.1]));
        assert_eq!(twice, "attentions=fourier4/R1,fourier4/R1: name each once");
        let mut grid = tiny(&["softmax"], &[0.1]);
        grid.network.n_heads = 5;
        assert_eq!(refused(grid), "n_heads=5: must divide d_model=8");
    }
}
