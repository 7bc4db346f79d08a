//! Which tempo has a metronome? The linear head against Fourier heads of one and two frequencies
//! (Fourier head, appendix C.1 and Figure 7).

pub mod clips;

use overtone_core::seed;
use overtone_eval::Smoothness;
use overtone_plot::{Line, LinePlot};
use rand::RngExt;

use crate::classifier::{Classification, likeliest};
use crate::comparison::{Comparison, Metric, Variant};
use crate::learning::NetworkOptions;
use crate::report::{LINEAR, Report, listed, plot};
use crate::study::{Study, StudyError, check_distinct, invalid, whole};
use crate::transformer::Kind;
use clips::{BIN, BINS, TEMPI};

const METRICS: [Metric; 5] = [
    Metric { name: "macro F1, %", digits: 1 },
    Metric { name: "within one bin, %", digits: 1 },
    Metric { name: "mean error, bins", digits: 2 },
    Metric { name: "smoothness (L²)", digits: 4 },
    Metric { name: "training loss, nats", digits: 3 },
];

/// The tempo of a metronome with linear and Fourier heads (Fourier head: Figure 7)
#[derive(Clone, Debug, clap::Args)]
pub struct Tempo {
    /// Seed of the clips.
    #[arg(long, default_value = "1")]
    pub data_seed: u64,
    /// Clips of each of 161 tempi for training.
    #[arg(long, default_value = "4", value_parser = whole(1..=1000))]
    pub train_each: usize,
    /// Clips of each tempo in the test set.
    #[arg(long, default_value = "2", value_parser = whole(1..=1000))]
    pub test_each: usize,
    /// Numbers of frequencies of the Fourier heads; the paper has 1 and 2.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8,16",
        value_parser = whole(1..=BINS as u64 - 1))]
    pub frequencies: Vec<usize>,
    /// Optimizer steps.
    #[arg(long, default_value = "1000", value_parser = whole(1..=1_000_000))]
    pub updates: usize,
    /// The networks.
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// All runs; `detail` is the distribution of the shown clip.
    pub comparison: Comparison,
    /// The bin of the shown clip.
    pub shown: usize,
}

/// The mean over classes of F1, in percent: twice the right ones over those that are of the class
/// plus those that are put there; 0 for a class where there is neither.
pub fn macro_f1(put: &[usize], classes: &[usize], n_classes: usize) -> f64 {
    let f1 = |class: usize| {
        let is = |of: &&usize| **of == class;
        let right = put.iter().zip(classes).filter(|(a, b)| is(a) && is(b)).count();
        let all = put.iter().filter(is).count() + classes.iter().filter(is).count();
        if all == 0 { 0.0 } else { 2.0 * right as f64 / all as f64 }
    };
    100.0 * (0..n_classes).map(f1).sum::<f64>() / n_classes as f64
}

/// Of the test set's distributions: all metrics but the training loss.
fn scores(probs: &[Vec<f64>], classes: &[usize], smoothness: &Smoothness) -> Vec<f64> {
    let put: Vec<usize> = probs.iter().map(|probs| likeliest(probs)).collect();
    let n = classes.len() as f64;
    let errors: Vec<usize> = put.iter().zip(classes).map(|(a, b)| a.abs_diff(*b)).collect();
    let near = errors.iter().filter(|error| **error <= 1).count();
    vec![
        macro_f1(&put, classes, BINS),
        100.0 * near as f64 / n,
        errors.iter().sum::<usize>() as f64 / n,
        probs.iter().map(|probs| smoothness.l2(probs)).sum::<f64>() / n,
    ]
}

impl Study for Tempo {
    const NAME: &'static str = "tempo";
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("learning_rate", "0.005")];
    const QUICK: &'static [&'static str] = &["seeds=1,2", "updates=100", "test_each=1"];
    type Results = Results;

    fn units(&self) -> usize {
        (1 + self.frequencies.len()) * self.network.seeds.len()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        self.network.check()?;
        check_distinct("frequencies", &self.frequencies)?;
        let [rate] = self.network.learning_rate[..] else {
            let rates = listed(&self.network.learning_rate);
            return Err(invalid("learning_rate", rates, "name one rate; this study compares none"));
        };
        let training = self.network.training(self.updates, rate);
        let split = clips::draw(self.data_seed, [self.train_each, self.test_each]);
        let generator = &mut seed::generator(self.data_seed, "shown");
        let shown = generator.random_range(0..split.test.classes.len());
        let smoothness = Smoothness::new(BINS);
        let scores = |probs: &[Vec<f64>]| scores(probs, &split.test.classes, &smoothness);
        let size = self.network.size();
        let task = Classification { split: &split, size, scores: &scores, shown: Some(shown) };
        let linear = "Linear".to_owned();
        let mut planned = vec![(linear.clone(), None, (Kind::Softmax, None), training)];
        for &n in &self.frequencies {
            let variant = (Kind::Softmax, Some(n));
            planned.push((format!("Fourier-{n}"), Some(linear.clone()), variant, training));
        }
        let n_ways = planned.len();
        let comparison =
            Comparison::run(&task, &METRICS, planned, &self.network.seeds, n_ways, tick);
        Ok(Results { comparison, shown: split.test.classes[shown] })
    }

    fn report(&self, results: &Results) -> Report {
        let mut report = Report::default();
        results.comparison.add(&mut report, Self::NAME, "Macro F1 on test clips while training");
        report.plot("tempo-example", results.distributions());
        report
    }
}

impl Results {
    /// Figure 7: what each head says of one clip, first seed.
    fn distributions(&self) -> LinePlot {
        let middle = |bin: usize| (TEMPI.start() + BIN * bin + BIN / 2) as f64;
        let line = |variant: &Variant| {
            let probs = variant.runs.first().map_or(&[][..], |run| &run.detail);
            let points = probs.iter().enumerate().map(|(bin, p)| [middle(bin), *p]);
            Line::new(&variant.name, points.collect())
        };
        plot(
            format!("One clip: its tempo is in the bin around {}", middle(self.shown)),
            ["beats a minute", "probability of the bin"],
            LINEAR,
            self.comparison.variants.iter().map(line).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_by_hand() {
        // Class 0: one of two found, nothing else put there: 2·1/(1 + 2) = 2/3. Class 1: two of
        // two found, one other put there: 2·2/(3 + 2) = 4/5. Class 2 is nowhere: 0.
        let f1 = macro_f1(&[0, 1, 1, 1], &[0, 0, 1, 1], 3);
        assert!((f1 - 100.0 * (2.0 / 3.0 + 0.8) / 3.0).abs() < 1e-12, "{f1}");
        assert_eq!(macro_f1(&[0, 1], &[0, 1], 2), 100.0);
        assert_eq!(macro_f1(&[1, 0], &[0, 1], 2), 0.0);
    }

    #[test]
    fn errors_are_in_bins() {
        let certain = |bin: usize| (0..BINS).map(|j| f64::from(u8::from(j == bin))).collect();
        let probs: Vec<Vec<f64>> = vec![certain(3), certain(4), certain(10)];
        let numbers = scores(&probs, &[3, 5, 6], &Smoothness::new(BINS));
        assert!((numbers[1] - 200.0 / 3.0).abs() < 1e-12);
        assert!((numbers[2] - 5.0 / 3.0).abs() < 1e-12);
        assert!(numbers[3] > 0.5, "a single bin is as rough as can be: {}", numbers[3]);
    }
}
