//! A character model of Shakespeare with softmax and Fourier attention: FourierFormer's experiment
//! on WikiText-103 (Section 4.1; Tables 1, 6, 7, 8 and 9) at a small scale.

pub mod text;

use std::f64::consts::LN_2;

use burn::{
    module::Module,
    nn::Linear,
    tensor::{Device, Int, Tensor},
};
use overtone_core::seed;
use overtone_eval::table::Table;
use overtone_model::{Init, head::cross_entropy};
use overtone_train::optimizer::scalar;

use crate::comparison::{Comparison, Mean, Metric};

use crate::grid::Grid;
use crate::learning::Task;
use crate::report::Report;
use crate::study::{Study, StudyError, datasets, invalid, whole};
use crate::transformer::{Embeddings, Kind, Sight, Size, Transformer, linear};
use text::{Text, random_starts, spread_starts, windows};

const METRICS: [Metric; 4] = [
    Metric { name: "validation, bits a character", digits: 3 },
    Metric { name: "validation, perplexity", digits: 2 },
    Metric { name: "training, bits a character", digits: 3 },
    Metric { name: "distance between heads", digits: 2 },
];

/// Windows of a part of the validation text that is passed through the network at once.
const PART: usize = 32;

/// Embeddings of characters and places, a decoder, and a linear head.
#[derive(Module, Debug)]
pub struct CharacterModel {
    characters: Embeddings,
    transformer: Transformer,
    output: Linear,
}

impl CharacterModel {
    /// A model of so many characters and positions.
    pub fn new(kind: Kind, size: Size, n: usize, context: usize, init: &mut Init<'_>) -> Self {
        let d = size.d_model;
        let characters = Embeddings::new(n, context, d, init);
        let transformer = Transformer::new(kind, size, Sight::Past, init);
        Self { characters, transformer, output: linear(d, n, init) }
    }

    /// Logits of what comes next, `[windows · context, characters]`.
    pub fn logits(&self, read: Tensor<2, Int>) -> Tensor<2> {
        let hidden = self.transformer.forward(self.characters.forward(read), None);
        let [n, context, d] = hidden.dims();
        self.output.forward(hidden.reshape([n * context, d]))
    }

    /// Mean cross-entropy in nats a character.
    pub fn loss(&self, (read, next): (Tensor<2, Int>, Tensor<1, Int>)) -> Tensor<1> {
        cross_entropy(self.logits(read), next).mean()
    }

    /// Bits a character of the windows that begin here.
    fn bits(&self, tokens: &[i32], starts: &[usize], context: usize) -> f64 {
        let part = |starts: &[usize]| {
            let windows = windows(tokens, starts, context, &Device::flex());
            starts.len() as f64 * scalar(self.loss(windows))
        };
        starts.chunks(PART).map(part).sum::<f64>() / (starts.len() as f64 * LN_2)
    }
}

/// A character model of Shakespeare with softmax and Fourier attention (FourierFormer: Tables 1,
/// 6 to 9)
#[derive(Clone, Debug, clap::Args)]
pub struct Language {
    /// Characters of a window; the paper has 256 words.
    #[arg(long, default_value = "64", value_parser = whole(2..=4096))]
    pub context: usize,
    /// Windows of the validation text.
    #[arg(long, default_value = "300", value_parser = whole(1..=100_000))]
    pub windows: usize,
    /// Optimizer steps: about one pass over the text.
    #[arg(long, default_value = "1000", value_parser = whole(1..=1_000_000))]
    pub updates: usize,
    /// The compared settings.
    #[command(flatten)]
    pub grid: Grid,
}

impl Language {
    fn check(&self, text: &Text) -> Result<(), StudyError> {
        self.grid.check()?;
        let fit = text::n_windows(&text.validation, self.context);
        if self.windows > fit {
            let expected =
                format!("of context={}, {fit} fit into the validation text", self.context);
            return Err(invalid("windows", self.windows, expected));
        }
        Ok(())
    }

    /// Trains and measures everything.
    fn compare(&self, text: &Text, tick: &(dyn Fn() + Sync)) -> Comparison {
        let starts = spread_starts(&text.validation, self.windows, self.context);
        let task = Reading { text, context: self.context, size: self.grid.network.size(), starts };
        self.grid.run(&task, &METRICS, self.updates, |kind| kind, tick)
    }
}

/// The next character of windows of a text.
struct Reading<'a> {
    text: &'a Text,
    context: usize,
    size: Size,
    /// Windows of the validation text.
    starts: Vec<usize>,
}

impl Task for Reading<'_> {
    type Variant = Kind;
    type Network = CharacterModel;

    fn network(&self, kind: Kind, init: &mut Init<'_>) -> CharacterModel {
        CharacterModel::new(kind, self.size, self.text.alphabet.len(), self.context, init)
    }

    fn loss(&self, seed: u64, batch: usize) -> impl FnMut(&CharacterModel, &Device) -> Tensor<1> {
        let mut generator = seed::generator(seed, "batches");
        move |network, device| {
            let train = &self.text.train;
            let starts = random_starts(train, batch, self.context, &mut generator);
            network.loss(windows(train, &starts, self.context, device))
        }
    }

    /// A fifth of the windows is enough for a curve.
    fn evaluate(&self, network: &CharacterModel) -> f64 {
        let few: Vec<usize> = self.starts.iter().step_by(5).copied().collect();
        network.bits(&self.text.validation, &few, self.context)
    }

    fn measure(&self, network: &CharacterModel, loss: f64) -> (Vec<f64>, Vec<f64>) {
        let bits = network.bits(&self.text.validation, &self.starts, self.context);
        let first = &self.starts[..self.starts.len().min(PART)];
        let (read, _) = windows(&self.text.validation, first, self.context, &Device::flex());
        let distances = network.transformer.head_distances(network.characters.forward(read));
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let scores = vec![bits, bits.exp2(), loss / LN_2, mean];
        (scores, [distances, network.transformer.radii()].concat())
    }
}

impl Study for Language {
    const NAME: &'static str = "language";
    // Powers, an R at the start and one R for each dimension, as in the paper's Tables 7 and 8, but
    // around a first R of 1: the paper's own setting is fourier4/R2.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[
        (
            "attentions",
            "softmax,fourier2/R1,fourier4/R1,fourier6/R1,fourier4/R0.5,fourier4/R2,fourier4/R3,\
             fourier4/R1/vector",
        ),
        ("d_model", "64"),
        ("batch", "16"),
        ("evaluate_every", "200"),
    ];
    const QUICK: &'static [&'static str] = &[
        "seeds=1,2",
        "attentions=softmax,fourier4/R1",
        "updates=100",
        "evaluate_every=50",
        "windows=100",
    ];
    type Results = Comparison;

    fn units(&self) -> usize {
        self.grid.units()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Comparison, StudyError> {
        let text = text::read(&datasets()?.join("lab/shakespeare.txt"))?;
        self.check(&text)?;
        Ok(self.compare(&text, tick))
    }

    fn report(&self, comparison: &Comparison) -> Report {
        let mut report = Report::default();
        comparison.add(&mut report, Self::NAME, "Validation, bits a character, while training");
        report.csv("language-layers", layers(comparison, self.grid.network.n_layers));
        report
    }
}

/// The distance between the heads of each layer, and the learned `R`.
fn layers(comparison: &Comparison, n_layers: usize) -> Table {
    let layer = |what: &str| (1..=n_layers).map(|i| format!("{what}, layer {i}")).collect();
    let [distances, radii]: [Vec<String>; 2] = ["distance", "mean learned R"].map(layer);
    let mut table = Table::new(["way".to_owned()].into_iter().chain(distances).chain(radii));
    for variant in &comparison.variants {
        let n = variant.runs.first().map_or(0, |run| run.detail.len());
        let cell =
            |i: usize| variant.runs.iter().map(|run| run.detail[i]).collect::<Mean>().text(2);
        table.row(std::iter::once(variant.name.clone()).chain((0..n).map(cell)).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::tiny;

    #[test]
    fn a_repeated_word_is_learned_in_seconds() {
        // "abcabc…": what comes next is certain; unknowing, it is log₂ 3 bits.
        let tokens: Vec<i32> = (0..2000).map(|i| i % 3).collect();
        let text = Text {
            alphabet: vec!['a', 'b', 'c'],
            train: tokens.clone(),
            validation: tokens[..200].to_vec(),
        };
        let grid = tiny(&["softmax", "fourier4"], &[0.01]);
        let study = Language { context: 8, windows: 10, updates: 40, grid };
        let comparison = study.compare(&text, &|| ());
        for variant in &comparison.variants {
            for run in &variant.runs {
                assert!(run.scores[0] < 0.3, "{}: {:?}", variant.name, run.scores);
                assert!((run.scores[1] - run.scores[0].exp2()).abs() < 1e-12);
            }
        }
        // A distance, and a radius of Fourier attention.
        let lengths =
            [0, 1].map(|variant: usize| comparison.variants[variant].runs[0].detail.len());
        assert_eq!(lengths, [1, 2]);
        let names: Vec<String> =
            study.report(&comparison).tables().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["language"]);
    }
}
