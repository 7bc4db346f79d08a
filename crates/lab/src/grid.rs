//! Kinds of attention times learning rates: the ways that most experiments compare.

use crate::comparison::{Comparison, Costs, Metric, Names, Run};
use crate::learning::{Cost, Training};
use crate::page::listed;
use crate::transformer::{Kind, Size};

/// What is compared, from which seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The first is what the others are compared with.
    pub kinds: Vec<Kind>,
    /// At each of them kinds are compared.
    pub rates: Vec<f64>,
    /// Of weights and batches.
    pub seeds: Vec<u64>,
    /// Of every network.
    pub size: Size,
    /// But for the learning rate.
    pub training: Training,
}

impl Grid {
    /// Trainings: the units of work of [`Self::run`].
    pub fn units(&self) -> usize {
        self.kinds.len() * self.rates.len() * self.seeds.len()
    }

    fn at(&self, i: usize) -> (Kind, Training) {
        let learning_rate = self.rates[i / self.kinds.len()];
        (self.kinds[i % self.kinds.len()], Training { learning_rate, ..self.training })
    }

    fn names(&self) -> Names {
        let name = |i: usize| {
            let (kind, training) = self.at(i);
            match self.rates.len() {
                1 => kind.to_string(),
                _ => format!("{kind}, rate {}", training.learning_rate),
            }
        };
        let against = |i: usize| i - i % self.kinds.len();
        let of = |i: usize| (name(i), (against(i) < i).then(|| name(against(i))));
        (0..self.kinds.len() * self.rates.len()).map(of).collect()
    }

    /// In a sentence's words.
    pub fn describe(&self) -> String {
        let rates: Vec<String> = self.rates.iter().map(f64::to_string).collect();
        format!(
            "A transformer of plain burn modules (`crates/lab/src/transformer.rs`), {}, is trained \
             with AdamW (weight decay {}), the learning rate rising to {} over the first tenth and \
             falling to 0. Seeds of weights and batches: {}. `fourierP/Rx` is Fourier attention \
             with power P, one learned `R` a layer, at first x; `vector`: one `R` for each \
             dimension, which heads share. Everything else is alike, updates and size too.",
            self.size,
            self.training.weight_decay,
            rates.join(" or "),
            listed(&self.seeds)
        )
    }

    /// How long, in a sentence's words.
    pub fn length(&self) -> String {
        format!("{} updates of {} sequences", self.training.updates, self.training.batch)
    }

    /// Every kind at every rate from every seed.
    pub fn run(
        &self,
        metrics: &[Metric],
        train: &(dyn Fn(Kind, Training, u64) -> Run + Sync),
        cost: &(dyn Fn(Kind, Training) -> Cost + Sync),
        progress: &(dyn Fn() + Sync),
    ) -> Comparison {
        let train = |i: usize, seed: u64| {
            let (kind, training) = self.at(i);
            train(kind, training, seed)
        };
        let cost = |i: usize| {
            let (kind, training) = self.at(i);
            cost(kind, training)
        };
        // A step costs as much at each rate.
        let costs = Costs { n: self.kinds.len(), of: &cost };
        Comparison::run(metrics, self.names(), &self.seeds, &train, costs, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_compared_at_the_same_rate() {
        let training =
            Training { updates: 1, batch: 1, learning_rate: 0.0, weight_decay: 0.0, look_every: 1 };
        let grid = Grid {
            kinds: ["softmax", "fourier4"].map(|word| word.parse().unwrap()).to_vec(),
            rates: vec![0.1, 0.2],
            seeds: vec![1, 2, 3],
            size: Size { d_model: 8, n_heads: 2, n_layers: 1 },
            training,
        };
        assert_eq!(grid.units(), 12);
        let names = grid.names();
        assert_eq!(names[0], ("softmax, rate 0.1".into(), None));
        assert_eq!(names[3], ("fourier4/R1, rate 0.2".into(), Some("softmax, rate 0.2".into())));
        assert_eq!(grid.at(3).1.learning_rate, 0.2);
        let one = Grid { rates: vec![0.1], ..grid };
        assert_eq!(one.names()[1], ("fourier4/R1".into(), Some("softmax".into())));
    }
}
