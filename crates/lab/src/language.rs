//! A character model of Shakespeare with softmax and Fourier attention: FourierFormer's experiment
//! on WikiText-103 (Section 4.1; Tables 1, 6, 7, 8 and 9) at a small scale.

mod paper;
pub mod text;

use std::f64::consts::LN_2;

use burn::{
    module::{Module, ParamId},
    nn::Linear,
    tensor::{Device, Int, Tensor},
};
use overtone_core::seed;
use overtone_eval::table::Table;
use overtone_model::{Init, Matrices, head::cross_entropy};
use overtone_train::optimizer::scalar;

use crate::comparison::{Comparison, Mean, Metric, Run};
use crate::grid::Grid;
use crate::learning::{self, Cost, Training};
use crate::page::{Page, titled};
use crate::transformer::{Embeddings, Kind, Sight, Size, Transformer, linear};
use text::{Text, Windows, random_starts, spread_starts, windows};

const METRICS: [Metric; 4] = [
    Metric { name: "validation, bits a character", digits: 3, more_is_better: Some(false) },
    Metric { name: "validation, perplexity", digits: 2, more_is_better: Some(false) },
    Metric { name: "training, bits a character", digits: 3, more_is_better: None },
    Metric { name: "distance between heads", digits: 2, more_is_better: None },
];

/// Windows of a part of the validation text that is passed through the network at once.
const PART: usize = 32;

/// Embeddings of characters and places, a decoder, and a linear head.
#[derive(Module, Debug)]
pub struct Language {
    characters: Embeddings,
    transformer: Transformer,
    output: Linear,
}

impl Matrices for Language {
    fn matrices(&self) -> Vec<ParamId> {
        [self.transformer.matrices(), self.output.matrices()].concat()
    }
}

impl Language {
    /// Of so many characters and places.
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
    pub fn loss(&self, windows: Windows) -> Tensor<1> {
        cross_entropy(self.logits(windows.read), windows.next).mean()
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

/// What is trained, and how it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Kinds of attention, learning rates, seeds, size and training.
    pub grid: Grid,
    /// Characters of a window.
    pub context: usize,
    /// Windows of the validation text that are measured.
    pub windows: usize,
}

/// Trains and measures everything; `progress` is called after each of [`Grid::units`].
pub fn run(settings: &Settings, text: &Text, progress: &(dyn Fn() + Sync)) -> Comparison {
    let Settings { grid, context, .. } = settings;
    let n = text.alphabet.len();
    let starts = spread_starts(&text.validation, settings.windows, *context);
    let network = |kind, seed| {
        learning::network(seed, |init| Language::new(kind, grid.size, n, *context, init))
    };
    let loss = |training: Training, seed: u64| {
        let mut generator = seed::generator(seed, "batches");
        move |network: &Language, device: &Device| {
            let starts = random_starts(&text.train, training.batch, *context, &mut generator);
            network.loss(windows(&text.train, &starts, *context, device))
        }
    };
    let train = |kind, training: Training, seed| -> Run {
        // A fifth of the windows is enough for a curve.
        let few: Vec<usize> = starts.iter().step_by(5).copied().collect();
        let look = |network: &Language| network.bits(&text.validation, &few, *context);
        let trained = learning::train(network(kind, seed), training, loss(training, seed), look);
        let network = trained.network;
        let bits = network.bits(&text.validation, &starts, *context);
        let first = &starts[..starts.len().min(PART)];
        let read = windows(&text.validation, first, *context, &Device::flex()).read;
        let distances = network.transformer.head_distances(network.characters.forward(read));
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        Run {
            seed,
            scores: vec![bits, bits.exp2(), trained.loss / LN_2, mean],
            curve: trained.curve,
            detail: [distances, network.transformer.radii()].concat(),
        }
    };
    let cost = |kind, training: Training| -> Cost {
        learning::cost(network(kind, 0), training, loss(training, 0))
    };
    grid.run(&METRICS, &train, &cost, progress)
}

/// Of each layer: the distance between its heads, and the `R` that was learned.
fn layers(found: &Comparison, n_layers: usize) -> Table {
    let layer = |what: &str| (1..=n_layers).map(|i| format!("{what}, layer {i}")).collect();
    let [distances, radii]: [Vec<String>; 2] = ["distance", "mean learned R"].map(layer);
    let header: Vec<&str> =
        ["way"].into_iter().chain(distances.iter().chain(&radii).map(String::as_str)).collect();
    let mut table = Table::new(&header);
    for way in &found.ways {
        let n = way.runs.first().map_or(0, |run| run.detail.len());
        let cell = |i: usize| way.runs.iter().map(|run| run.detail[i]).collect::<Mean>().text(2);
        table.row(std::iter::once(way.name.clone()).chain((0..n).map(cell)).collect());
    }
    table
}

/// The page.
pub fn page(settings: &Settings, found: &Comparison, command: &str) -> Page {
    let Settings { grid, context, windows } = settings;
    let title = "A character model of Shakespeare with softmax and Fourier attention";
    let mut page = Page::new("language", &titled(title, grid.seeds.len(), "seed"), command);
    page.text(&format!(
        "A decoder reads windows of {context} characters of Shakespeare's plays \
         (`datasets/lab/README.md`) and says which comes next; nine tenths of the text are to \
         learn from, {windows} windows spread over the last tenth are what it is judged by. {} \
         It takes {}. Bits a character are of the network after the last update; nothing was chosen by it.",
        grid.describe(),
        grid.length()
    ));
    page.heading("Bits a character (Tables 1, 7 and 8)");
    found.write(&mut page, "language", "Validation, bits a character, while training");
    page.text(
        "The paper's Table 9, in milliseconds a sample of 256 tokens and GB on a GPU: softmax 5.41 \
         and 1.43 in training, 1.53 and 0.94 in inference; Fourier 6.00 and 1.43, 1.70 and 0.94.",
    );
    page.heading("Heads and radii (Table 6)");
    page.text(
        "The mean L2 distance between two heads' attention matrices on validation windows, layer \
         by layer, and the mean of the learned `R`. Softmax has no `R`.",
    );
    page.table("language-layers", &layers(found, grid.size.n_layers));
    page.text(
        "The paper's distances, over layers of networks of 16 layers, 8 heads and 256 tokens: \
         softmax 6.20 ± 2.30, Fourier 7.45 ± 2.50. A distance grows with the number of tokens.",
    );
    let d_head = grid.size.d_model / grid.size.n_heads;
    let depth = |power: f64, r: f64| -power * d_head as f64 * mean_log_sinc(r);
    page.text(&format!(
        "At first queries and keys are independent with a variance of 1/3 in each of {d_head} \
         dimensions, and the logarithm of a key's weight, `power Σ ln |sinc R(q − k)|`, is \
         −{:.1} on average for power 2 and `R` 1 if they are normal, −{:.1} for power 4, −{:.1} \
         and −{:.1} for power 4 and `R` 2 and 3. The larger, the more a query sees its \
         nearest key alone. Then any two heads are far apart because each sees something else by chance: a large \
         distance is no sign by itself that heads are useful.",
        depth(2.0, 1.0),
        depth(4.0, 1.0),
        depth(4.0, 2.0),
        depth(4.0, 3.0)
    ));
    page.heading("The paper's Tables 7 and 8");
    page.text(
        "Perplexity of a word on WikiText-103, 16 layers, 8 heads, keys of 128, 256 tokens; means \
         over 5 seeds without a spread. Its own setting is power 4 and a first `R` of 2, which is \
         `fourier4/R2` here. Words are not characters, and ours is thousands of times smaller: \
         levels cannot be compared.",
    );
    page.table("language-paper", &paper::table());
    page.heading("What may be concluded, and what not");
    let falling = match found.falling() {
        [n, all] if n == all => {
            "every curve still falls at the end, so what is compared is how quickly each attention \
             learns"
                .to_owned()
        }
        [n, all] => format!(
            "{n} of {all} curves still fall at the end; of these ways it is compared how quickly \
             they learn"
        ),
    };
    page.text(&format!(
        "The lines under the first table say which differences these seeds show after these \
         updates, which are few: {falling}. The paper finds every Fourier attention with an even \
         power ahead of softmax, power 6 about as good as 4 and both ahead of 2, an initial `R` of \
         1, 2 or 3 alike, and one `R` for each dimension slightly ahead.",
    ));
    page.text(
        "Nothing follows for networks that are trained to the end, for words, or for heads wider \
         than these: the paper sees its gain grow with the width of queries and keys. All ways have \
         the learning rates that the first line names; another rate might suit one of them better.",
    );
    page
}

/// The mean of `ln |sinc(r d)|` over a normal `d` of variance 2/3, by the midpoint rule: to three
/// digits, for the logarithm's poles at sinc's zeros are integrable.
fn mean_log_sinc(r: f64) -> f64 {
    let (sd, n) = ((2.0f64 / 3.0).sqrt(), 100_000);
    let step = 16.0 * sd / n as f64;
    let part = |place: usize| {
        let d = (place as f64 + 0.5) * step - 8.0 * sd;
        let x = r * d;
        (x.sin() / x).abs().ln() * (-0.5 * (d / sd).powi(2)).exp()
    };
    (0..n).map(part).sum::<f64>() * step / (sd * std::f64::consts::TAU.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_log_sinc_agrees_with_its_series() {
        // ln sinc x = −x²/6 − x⁴/180 − x⁶/2835 − …
        let (r, v) = (0.3f64, 2.0f64 / 3.0);
        let series = -r.powi(2) * v / 6.0
            - 3.0 * r.powi(4) * v.powi(2) / 180.0
            - 15.0 * r.powi(6) * v.powi(3) / 2835.0;
        assert!((mean_log_sinc(r) - series).abs() < 1e-6, "{} {series}", mean_log_sinc(r));
        // Across zeros, by other steps: their poles are integrable.
        assert!((mean_log_sinc(3.0) + 0.9538).abs() < 1e-3, "{}", mean_log_sinc(3.0));
    }

    #[test]
    fn a_repeated_word_is_learned_in_seconds() {
        // "abcabc…": what comes next is certain; unknowing, it is log₂ 3 bits.
        let tokens: Vec<i32> = (0..2000).map(|i| i % 3).collect();
        let text = Text {
            alphabet: vec!['a', 'b', 'c'],
            train: tokens.clone(),
            validation: tokens[..200].to_vec(),
        };
        let training = Training {
            updates: 40,
            batch: 4,
            learning_rate: 0.01,
            weight_decay: 0.0,
            look_every: 20,
        };
        let grid = Grid {
            kinds: ["softmax", "fourier4"].map(|word| word.parse().unwrap()).to_vec(),
            rates: vec![0.01],
            seeds: vec![1, 2],
            size: Size { d_model: 8, n_heads: 2, n_layers: 1 },
            training,
        };
        let settings = Settings { grid, context: 8, windows: 10 };
        let found = run(&settings, &text, &|| ());
        for way in &found.ways {
            for run in &way.runs {
                assert!(run.scores[0] < 0.3, "{}: {:?}", way.name, run.scores);
                assert!((run.scores[1] - run.scores[0].exp2()).abs() < 1e-12);
            }
        }
        // A distance, and a radius of Fourier attention.
        let lengths = [0, 1].map(|way: usize| found.ways[way].runs[0].detail.len());
        assert_eq!(lengths, [1, 2]);
        let page = page(&settings, &found, "just lab language");
        let text = page.markdown();
        assert!(text.contains("| fourier4/R1 |") && text.contains("(2 seeds, no"), "{text}");
        // 2 · 4 · 0.121 and so on: heads are four wide.
        assert!(text.contains("−1.0 on average for power 2 and `R` 1"), "{text}");
        assert!(text.contains("normal, −1.9 for power 4"), "{text}");
        let mut flat = found.clone();
        flat.ways[0].runs.iter_mut().for_each(|run| run.curve = vec![[20.0, 1.0], [40.0, 1.0]]);
        flat.ways[1].runs.iter_mut().for_each(|run| run.curve = vec![[20.0, 2.0], [40.0, 1.0]]);
        let text = super::page(&settings, &flat, "").markdown().to_owned();
        assert!(text.contains("1 of 2 curves still fall"), "{text}");
    }
}
