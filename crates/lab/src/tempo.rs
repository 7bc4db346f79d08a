//! Which tempo has a metronome? The linear head against Fourier heads of one and two frequencies
//! (Fourier head, appendix C.1 and Figure 7).

pub mod clips;

use overtone_core::seed;
use overtone_eval::Smoothness;
use overtone_model::head::FourierHeadConfig;
use overtone_plot::{Line, LinePlot};
use rand::RngExt;

use crate::classifier::{self, Config, Split, likeliest};
use crate::comparison::{Comparison, Costs, Metric, Names, Run};
use crate::learning::Training;
use crate::page::{Page, listed, titled};
use crate::transformer::{Kind, Size};
use clips::{BIN, BINS, TEMPI};

const METRICS: [Metric; 5] = [
    Metric { name: "macro F1, %", digits: 1, more_is_better: Some(true) },
    Metric { name: "within one bin, %", digits: 1, more_is_better: Some(true) },
    Metric { name: "mean error, bins", digits: 2, more_is_better: Some(false) },
    Metric { name: "smoothness (L²)", digits: 4, more_is_better: Some(false) },
    Metric { name: "training loss, nats", digits: 3, more_is_better: None },
];

/// What is compared, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Of the clips.
    pub data_seed: u64,
    /// Clips of each tempo for training.
    pub train_each: usize,
    /// Clips of each tempo to be judged by.
    pub test_each: usize,
    /// Numbers of frequencies of the Fourier heads.
    pub frequencies: Vec<usize>,
    /// Of weights and batches.
    pub seeds: Vec<u64>,
    /// Of the transformer.
    pub size: Size,
    /// How long, and how fast.
    pub training: Training,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
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

impl Settings {
    /// Trainings: the units of work of [`run`].
    pub fn units(&self) -> usize {
        (1 + self.frequencies.len()) * self.seeds.len()
    }

    fn names(&self) -> Names {
        let linear = "Linear".to_owned();
        let fourier = |n: &usize| (format!("Fourier-{n}"), Some(linear.clone()));
        std::iter::once((linear.clone(), None))
            .chain(self.frequencies.iter().map(fourier))
            .collect()
    }

    fn config(&self, way: usize) -> Config {
        let frequencies = way.checked_sub(1).map(|i| self.frequencies[i]);
        Config {
            kind: Kind::Softmax,
            size: self.size,
            head: frequencies.map(FourierHeadConfig::new),
            n_classes: BINS,
        }
    }
}

/// Trains and measures everything; `progress` is called after each of [`Settings::units`].
pub fn run(settings: &Settings, progress: &(dyn Fn() + Sync)) -> Findings {
    let split: Split = clips::draw(settings.data_seed, [settings.train_each, settings.test_each]);
    let generator = &mut seed::generator(settings.data_seed, "shown");
    let shown = generator.random_range(0..split.test.classes.len());
    let smoothness = Smoothness::new(BINS);
    let scores = |probs: &[Vec<f64>]| scores(probs, &split.test.classes, &smoothness);
    let train = |way: usize, seed: u64| {
        let config = settings.config(way);
        let (run, network) = classifier::train(&config, &split, settings.training, seed, &scores);
        Run { detail: network.probs(&split.test).swap_remove(shown), ..run }
    };
    let cost = |way: usize| classifier::cost(&settings.config(way), &split, settings.training);
    let names = settings.names();
    let costs = Costs { n: names.len(), of: &cost };
    let comparison = Comparison::run(&METRICS, names, &settings.seeds, &train, costs, progress);
    Findings { comparison, shown: split.test.classes[shown] }
}

impl Findings {
    /// Figure 7: what each head says of one clip, first seed.
    fn distributions(&self) -> LinePlot {
        let middle = |bin: usize| (TEMPI.start() + BIN * bin + BIN / 2) as f64;
        let line = |way: &crate::comparison::Way| {
            let probs = way.runs.first().map_or(&[][..], |run| &run.detail);
            let points = probs.iter().enumerate().map(|(bin, p)| [middle(bin), *p]);
            Line::new(&way.name, points.collect())
        };
        LinePlot {
            title: format!("One clip: its tempo is in the bin around {}", middle(self.shown)),
            x_label: "beats a minute".into(),
            y_label: "probability of the bin".into(),
            lines: self.comparison.ways.iter().map(line).collect(),
            ..Default::default()
        }
    }

    /// The relative difference in F1 of the paper's +118 %.
    fn gains(&self) -> String {
        let comparison = &self.comparison;
        let mean = |way| comparison.mean(way, 0).mean;
        let linear = comparison.ways.first().map_or(f64::NAN, mean);
        let gain = |way| {
            let way: &crate::comparison::Way = way;
            format!("{} {:+.0} %", way.name, 100.0 * (mean(way) / linear - 1.0))
        };
        comparison.ways.iter().skip(1).map(gain).collect::<Vec<_>>().join(", ")
    }

    /// The page.
    pub fn page(&self, settings: &Settings, command: &str) -> Page {
        let Settings { train_each, test_each, training, .. } = settings;
        let title = "The tempo of a metronome with linear and Fourier heads";
        let mut page = Page::new("tempo", &titled(title, settings.seeds.len(), "seed"), command);
        page.text(&format!(
            "Clips of 5.12 s are generated (`crates/lab/src/tempo/clips.rs`; data seed {}): clicks \
             at 50 to 210 beats a minute in noise, {train_each} of each tempo to learn, {test_each} \
             to be judged by. A small audio spectrogram transformer reads 32 tokens of 4 columns of \
             8 bands: {}, softmax attention, the mean over tokens, and a head on {BINS} bins of \
             {BIN} beats a minute each: a linear layer, or a Fourier head without regularisation. \
             {} updates of {} clips with AdamW (weight decay {}), the learning rate rising to {} \
             over the first tenth and falling to 0; everything but the head is alike. Seeds of \
             weights and batches: {}.",
            settings.data_seed,
            settings.size,
            training.updates,
            training.batch,
            training.weight_decay,
            training.learning_rate,
            listed(&settings.seeds)
        ));
        page.heading("F1");
        self.comparison.write(&mut page, "tempo", "Macro F1 on test clips while training");
        page.heading("One clip (Figure 7)");
        page.text("Drawn by the data's seed; networks of the first seed.");
        page.plot("tempo-example", &self.distributions());
        page.heading("What the paper finds");
        page.text(&format!(
            "A Fourier head has +118 % of the linear head's F1, the best one with a single \
             frequency; its F1 scores are not given. The paper tunes the whole Audio Spectrogram \
             Transformer, pretrained on AudioSet. Here, of the mean F1: {}.",
            self.gains()
        ));
        page.heading("What may be concluded, and what not");
        page.text(
            "The lines under the table say which differences in F1 these seeds show, for a small \
             network that begins from nothing and few clips. A head of N frequencies puts at most \
             (N + 1)/33 on one bin, so its cross-entropy cannot fall below ln(33/(N + 1)): 2.80 for \
             one frequency, 2.40 for two. A training loss well above that says that the head has \
             not learned what it could, and a low F1 is then one of too few updates, not of too \
             few frequencies.",
        );
        page.text(
            "Nothing follows for recordings of real metronomes or for a pretrained network. Bins \
             are in order here; where classes are not, neighbours have nothing to teach. The \
             intervals are over seeds of weights and batches on one set of clips.",
        );
        page
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
        let found = scores(&probs, &[3, 5, 6], &Smoothness::new(BINS));
        assert!((found[1] - 200.0 / 3.0).abs() < 1e-12);
        assert!((found[2] - 5.0 / 3.0).abs() < 1e-12);
        assert!(found[3] > 0.5, "a single bin is as rough as can be: {}", found[3]);
    }
}
