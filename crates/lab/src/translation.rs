//! Translation of numbers, from German letters to English words, with softmax and Fourier
//! attention within both sequences and across: the shape of FourierFormer's experiment on IWSLT'14
//! (Section 4.5, Table 5).

pub mod bleu;
pub mod numbers;

use std::collections::BTreeSet;

use burn::{
    module::Module,
    nn::Linear,
    tensor::{Bool, Device, Int, Tensor, TensorData},
};
use overtone_core::seed;
use overtone_model::{Init, head::cross_entropy};
use rand::seq::SliceRandom;

use crate::comparison::{Comparison, Metric};
use crate::grid::Grid;
use crate::learning::{Order, Task};
use crate::report::Report;
use crate::study::{Study, StudyError, invalid, whole};
use crate::transformer::{Embeddings, Kind, Memory, Sight, Size, Transformer, linear};

const METRICS: [Metric; 3] = [
    Metric { name: "exact, %", digits: 1 },
    Metric { name: "BLEU", digits: 1 },
    Metric { name: "training loss, nats a word", digits: 4 },
];

/// Before a translation begins, and after it has ended: both are the same token.
const END: i32 = 0;

/// Pairs of sequences of tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// Letters of the German word, from 1; 0 is padding.
    pub sources: Vec<Vec<i32>>,
    /// English words, from 1, without the end.
    pub targets: Vec<Vec<i32>>,
}

/// Numbers to learn and others to be judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// To learn.
    pub train: Pairs,
    /// To be judged by.
    pub test: Pairs,
    /// Letters and padding.
    pub n_letters: usize,
    /// Words and the end.
    pub n_words: usize,
    /// The longest source and target, the end with it.
    pub longest: [usize; 2],
}

impl Corpus {
    /// Of the numbers below `below`, `n_test` are for the test and `n_train` others to learn.
    ///
    /// # Panics
    /// When they are not so many, or larger than can be spelled.
    pub fn draw(data_seed: u64, below: u32, n_train: usize, n_test: usize) -> Self {
        assert!(n_train + n_test <= below as usize, "{below} numbers are too few");
        let mut all: Vec<u32> = (0..below).collect();
        all.shuffle(&mut seed::generator(data_seed, "numbers"));
        let germans: Vec<String> = all.iter().map(|n| numbers::german(*n)).collect();
        let letters: BTreeSet<char> = germans.iter().flat_map(|word| word.chars()).collect();
        let words: BTreeSet<&str> = all.iter().flat_map(|n| numbers::english(*n)).collect();
        let (letters, words) = (Vec::from_iter(letters), Vec::from_iter(words));
        let place = |position: Result<usize, usize>| position.map_or(END, |place| place as i32 + 1);
        let source =
            |word: &String| word.chars().map(|c| place(letters.binary_search(&c))).collect();
        let target = |n: &u32| {
            numbers::english(*n).iter().map(|word| place(words.binary_search(word))).collect()
        };
        let pairs = |some: std::ops::Range<usize>| Pairs {
            sources: germans[some.clone()].iter().map(source).collect(),
            targets: all[some].iter().map(target).collect(),
        };
        let longest = |rows: &mut dyn Iterator<Item = usize>| rows.max().unwrap_or(0);
        Self {
            test: pairs(0..n_test),
            train: pairs(n_test..n_test + n_train),
            n_letters: letters.len() + 1,
            n_words: words.len() + 1,
            longest: [
                longest(&mut germans.iter().map(|word| word.chars().count())),
                longest(&mut all.iter().map(|n| numbers::english(*n).len())) + 1,
            ],
        }
    }
}

/// Rows of tokens, padded to the longest, `[rows, longest]`, and which are real.
fn padded(rows: &[&[i32]], device: &Device) -> (Tensor<2, Int>, Tensor<2, Bool>) {
    let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let (mut tokens, mut real) = (Vec::new(), Vec::new());
    for row in rows {
        tokens.extend((0..longest).map(|t| row.get(t).copied().unwrap_or(END)));
        real.extend((0..longest).map(|t| t < row.len()));
    }
    let shape = [rows.len(), longest];
    let tokens = Tensor::from_data(TensorData::new(tokens, shape), device);
    (tokens, Tensor::from_data(TensorData::new(real, shape), device))
}

/// An encoder of letters and a decoder of words.
#[derive(Module, Debug)]
pub struct Translator {
    letters: Embeddings,
    encoder: Transformer,
    words: Embeddings,
    decoder: Transformer,
    output: Linear,
}

impl Translator {
    /// For this corpus.
    pub fn new(kind: Kind, size: Size, corpus: &Corpus, init: &mut Init<'_>) -> Self {
        let d = size.d_model;
        Self {
            letters: Embeddings::new(corpus.n_letters, corpus.longest[0], d, init),
            encoder: Transformer::new(kind, size, Sight::All, init),
            words: Embeddings::new(corpus.n_words, corpus.longest[1], d, init),
            decoder: Transformer::new(kind, size, Sight::PastAndMemory, init),
            output: linear(d, corpus.n_words, init),
        }
    }

    fn encode(&self, sources: &[&[i32]], device: &Device) -> Memory {
        let (tokens, valid) = padded(sources, device);
        let tokens = self.encoder.forward(self.letters.forward(tokens), Some(valid.clone()));
        Memory { tokens, valid }
    }

    /// Logits of the word after each, `[rows · time, words]`.
    fn logits(&self, words: Tensor<2, Int>, memory: &Memory) -> Tensor<2> {
        let hidden = self.decoder.forward_with(self.words.forward(words), memory);
        let [rows, time, d] = hidden.dims();
        self.output.forward(hidden.reshape([rows * time, d]))
    }

    /// Mean cross-entropy in nats a word, the end with them.
    pub fn loss(&self, pairs: &Pairs, rows: &[usize], device: &Device) -> Tensor<1> {
        let sources: Vec<&[i32]> = rows.iter().map(|&row| &pairs.sources[row][..]).collect();
        let between_ends = |target: &[i32]| [&[END], target, &[END]].concat();
        let targets: Vec<Vec<i32>> =
            rows.iter().map(|&row| between_ends(&pairs.targets[row])).collect();
        let cut = |from: usize| -> Vec<&[i32]> {
            targets.iter().map(|row| &row[from..from + row.len() - 1]).collect()
        };
        let memory = self.encode(&sources, device);
        let logits = self.logits(padded(&cut(0), device).0, &memory);
        let (next, real) = padded(&cut(1), device);
        let n = next.dims().iter().product::<usize>();
        let losses = cross_entropy(logits, next.reshape([n]));
        let real = real.reshape([n]).float();
        (losses * real.clone()).sum() / real.sum()
    }

    /// Translations, word by word the likeliest one.
    pub fn translate(&self, sources: &[Vec<i32>], longest: usize) -> Vec<Vec<i32>> {
        let device = Device::flex();
        let part = |sources: &[Vec<i32>]| -> Vec<Vec<i32>> {
            let memory =
                self.encode(&sources.iter().map(Vec::as_slice).collect::<Vec<_>>(), &device);
            let mut translations = vec![vec![END]; sources.len()];
            for time in 1..longest {
                let rows: Vec<&[i32]> = translations.iter().map(Vec::as_slice).collect();
                let logits = self.logits(padded(&rows, &device).0, &memory);
                let [_, n_words] = logits.dims();
                let last = logits.reshape([sources.len(), time, n_words]).narrow(1, time - 1, 1);
                let words: Vec<i32> = last.argmax(2).into_data().iter().collect();
                for (row, word) in translations.iter_mut().zip(words) {
                    row.push(word);
                }
            }
            translations
                .iter()
                .map(|row| row[1..].iter().copied().take_while(|word| *word != END).collect())
                .collect()
        };
        sources.chunks(128).flat_map(part).collect()
    }
}

/// Translation of numbers.
struct Numbers<'a> {
    corpus: &'a Corpus,
    size: Size,
}

impl Numbers<'_> {
    /// Exact translations in percent, and BLEU.
    fn scores(&self, network: &Translator) -> [f64; 2] {
        let Pairs { sources, targets } = &self.corpus.test;
        // One word more than the longest, so that a translation can be too long.
        let translations = network.translate(sources, self.corpus.longest[1] + 1);
        let exact = translations.iter().zip(targets).filter(|(a, b)| a == b).count();
        [100.0 * exact as f64 / targets.len() as f64, bleu::bleu(&translations, targets)]
    }
}

impl Task for Numbers<'_> {
    type Variant = Kind;
    type Network = Translator;

    fn network(&self, kind: Kind, init: &mut Init<'_>) -> Translator {
        Translator::new(kind, self.size, self.corpus, init)
    }

    fn loss(&self, seed: u64, batch: usize) -> impl FnMut(&Translator, &Device) -> Tensor<1> {
        let train = &self.corpus.train;
        let mut order = Order::new(train.sources.len(), seed);
        move |network, device| network.loss(train, &order.next(batch), device)
    }

    fn evaluate(&self, network: &Translator) -> f64 {
        self.scores(network)[0]
    }

    fn measure(&self, network: &Translator, loss: f64) -> (Vec<f64>, Vec<f64>) {
        let [exact, bleu] = self.scores(network);
        (vec![exact, bleu, loss], Vec::new())
    }
}

/// Numbers from German to English with softmax and Fourier attention (FourierFormer: Table 5)
#[derive(Clone, Debug, clap::Args)]
pub struct Translation {
    /// Seed of the numbers for training and for the test.
    #[arg(long, default_value = "1")]
    pub data_seed: u64,
    /// Numbers from 0 to one less.
    #[arg(long, default_value = "10000", value_parser = whole(2..=numbers::LARGEST as u64 + 1))]
    pub below: usize,
    /// Numbers for training.
    #[arg(long, default_value = "3000", value_parser = whole(1..=1_000_000))]
    pub n_train: usize,
    /// Other numbers for the test.
    #[arg(long, default_value = "256", value_parser = whole(1..=1_000_000))]
    pub n_test: usize,
    /// Optimizer steps.
    #[arg(long, default_value = "400", value_parser = whole(1..=1_000_000))]
    pub updates: usize,
    /// What is compared.
    #[command(flatten)]
    pub grid: Grid,
}

impl Translation {
    /// Trains and measures everything.
    fn compare(&self, corpus: &Corpus, tick: &(dyn Fn() + Sync)) -> Comparison {
        let task = Numbers { corpus, size: self.grid.network.size() };
        self.grid.run(&task, &METRICS, self.updates, |kind| kind, tick)
    }
}

impl Study for Translation {
    const NAME: &'static str = "translation";
    // The paper has power 2 and an R of 1 in this place.
    const DEFAULTS: &'static [(&'static str, &'static str)] =
        &[("attentions", "softmax,fourier2/R1,fourier4/R1")];
    const QUICK: &'static [&'static str] = &[
        "seeds=1,2",
        "below=1000",
        "n_train=800",
        "n_test=200",
        "attentions=softmax,fourier2/R1",
        "updates=100",
    ];
    type Results = Comparison;

    fn units(&self) -> usize {
        self.grid.units()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Comparison, StudyError> {
        self.grid.check()?;
        let Self { data_seed, below, n_train, n_test, .. } = *self;
        if n_train + n_test > below {
            let expected =
                format!("with n_test={n_test} they are more than the numbers below {below}");
            return Err(invalid("n_train", n_train, expected));
        }
        let corpus = Corpus::draw(data_seed, below as u32, n_train, n_test);
        Ok(self.compare(&corpus, tick))
    }

    fn report(&self, comparison: &Comparison) -> Report {
        let mut report = Report::default();
        let title = "Exact translations of unseen numbers while training";
        comparison.add(&mut report, Self::NAME, title);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::tiny;
    use crate::learning;

    fn corpus() -> Corpus {
        Corpus::draw(1, 100, 60, 40)
    }

    #[test]
    fn no_number_is_in_both_parts() {
        let corpus = corpus();
        assert_eq!((corpus.train.sources.len(), corpus.test.targets.len()), (60, 40));
        assert!(corpus.test.sources.iter().all(|word| !corpus.train.sources.contains(word)));
        // 28 words: zero to nineteen, eight tens; the end is one more.
        assert_eq!(corpus.n_words, 29);
        // siebenundzwanzig has 16 letters, and sixty seven two words and the end.
        assert_eq!(corpus.longest, ["siebenundzwanzig".len(), 3]);
        assert_eq!(corpus, Corpus::draw(1, 100, 60, 40));
        assert_ne!(corpus, Corpus::draw(2, 100, 60, 40));
    }

    #[test]
    fn padding_does_not_move_the_loss() {
        let corpus = corpus();
        let size = Size { d_model: 8, n_heads: 2, n_layers: 1 };
        for kind in ["softmax", "fourier2"] {
            let kind = kind.parse().unwrap();
            let network =
                learning::network(3, |init| Translator::new(kind, size, &corpus, init)).valid();
            let loss = |rows: &[usize]| -> f64 {
                let loss: f32 = network.loss(&corpus.train, rows, &Device::flex()).into_scalar();
                let words: usize =
                    rows.iter().map(|row| corpus.train.targets[*row].len() + 1).sum();
                f64::from(loss) * words as f64
            };
            let rows: Vec<usize> = (0..12).collect();
            let alone: f64 = rows.iter().map(|row| loss(&[*row])).sum();
            assert!((loss(&rows) - alone).abs() < 1e-3, "{kind}: {} {alone}", loss(&rows));
        }
    }

    #[test]
    fn numbers_that_were_learned_are_translated() {
        let corpus = Corpus { test: corpus().train, ..corpus() };
        let mut grid = tiny(&["softmax", "fourier2"], &[0.01]);
        (grid.network.d_model, grid.network.batch, grid.network.seeds) = (16, 20, vec![1]);
        let study =
            Translation { data_seed: 1, below: 100, n_train: 60, n_test: 40, updates: 150, grid };
        let comparison = study.compare(&corpus, &|| ());
        for variant in &comparison.variants {
            let [exact, bleu, loss] = variant.runs[0].scores[..] else { panic!("three scores") };
            assert!(
                exact > 50.0 && bleu > 50.0 && loss < 1.0,
                "{}: {exact} {bleu} {loss}",
                variant.name
            );
        }
    }
}
