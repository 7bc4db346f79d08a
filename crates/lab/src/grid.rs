//! Kinds of attention times learning rates: the ways that most studies compare.

use crate::comparison::{Comparison, Costs, Metric, Names, Run};
use crate::learning::{Cost, NetworkOptions, Training};
use crate::study::{StudyError, check_distinct};
use crate::transformer::Kind;

/// The options of a comparison of kinds of attention.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(rename_all = "snake_case")]
pub struct Grid {
    /// Kinds of attention: softmax, fourierP/Rx, fourierP/Rx/vector. The first is what the others
    /// are compared with.
    #[arg(long, value_delimiter = ',', default_value = "softmax,fourier4/R1,fourier4/R2")]
    pub attentions: Vec<Kind>,
    #[allow(missing_docs, reason = "documented in its type")]
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

    fn at(&self, i: usize) -> (Kind, f64) {
        let n = self.attentions.len();
        (self.attentions[i % n], self.network.learning_rate[i / n])
    }

    fn names(&self) -> Names {
        let n = self.attentions.len();
        let name = |i: usize| match (self.at(i), self.network.learning_rate.len()) {
            ((kind, _), 1) => kind.to_string(),
            ((kind, rate), _) => format!("{kind}, rate {rate}"),
        };
        let against = |i: usize| i - i % n;
        let of = |i: usize| (name(i), (against(i) < i).then(|| name(against(i))));
        (0..n * self.network.learning_rate.len()).map(of).collect()
    }

    /// Trains every kind at every rate from every seed, and measures what a step costs.
    pub fn run(
        &self,
        updates: usize,
        metrics: &[Metric],
        train: &(dyn Fn(Kind, Training, u64) -> Run + Sync),
        cost: &(dyn Fn(Kind, Training) -> Cost + Sync),
        tick: &(dyn Fn() + Sync),
    ) -> Comparison {
        let training = |i: usize| {
            let (kind, rate) = self.at(i);
            (kind, self.network.training(updates, rate))
        };
        let train = |i: usize, seed: u64| {
            let (kind, training) = training(i);
            train(kind, training, seed)
        };
        let cost = |i: usize| {
            let (kind, training) = training(i);
            cost(kind, training)
        };
        // A step costs as much at each rate.
        let costs = Costs { n: self.attentions.len(), of: &cost };
        Comparison::run(metrics, self.names(), &self.network.seeds, &train, costs, tick)
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
        look_every: 20,
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
        let names = grid.names();
        assert_eq!(names[0], ("softmax, rate 0.1".into(), None));
        assert_eq!(names[3], ("fourier4/R1, rate 0.2".into(), Some("softmax, rate 0.2".into())));
        assert_eq!(grid.at(3).1, 0.2);
        let one = tiny(&["softmax", "fourier4"], &[0.1]);
        assert_eq!(one.names()[1], ("fourier4/R1".into(), Some("softmax".into())));
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
