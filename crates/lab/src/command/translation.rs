//! `overtone-lab translation`.

use anyhow::{Result, bail};
use overtone_lab::translation::{self, Corpus, numbers::LARGEST};

use super::{Options, learning::grid, with_bar};

/// The options.
pub const OPTIONS: Options = Options {
    name: "translation",
    full: r#"
# Fewer seeds, updates and numbers.
quick = false
# Seed of which numbers are to learn and which to be judged by.
data_seed = 1
# Numbers from 0 to one less.
below = 10000
# Numbers to learn.
n_train = 3000
# Others to be judged by.
n_test = 256
# The first is what others are compared with: softmax, fourierP/Rx, fourierP/Rx/vector. The paper
# has power 2 and an R of 1 in this place.
attentions = "softmax,fourier2/R1,fourier4/R1"
# Each attention at each of them.
learning_rate = "0.003"
# Seeds of weights and batches.
seeds = "1,2,3,4"
# Width of a token.
d_model = 32
# Blocks of the encoder, and of the decoder; the paper has 12 in all.
n_layers = 2
# Attention heads; must divide d_model. The paper has 4.
n_heads = 4
# Optimizer steps.
updates = 400
# Numbers of a step.
batch = 32
# Of matrices.
weight_decay = 0.01
# Updates between looks at the test numbers, for the curves.
look_every = 100
# Folder of the page, its tables and plots.
out = "runs/lab/translation"
"#,
    quick: r#"
# Two have a spread, if a wide one.
seeds = "1,2"
# Shorter ones.
below = 1000
# Most of them.
n_train = 800
# The others.
n_test = 200
# Softmax and the paper's.
attentions = "softmax,fourier2/R1"
# Enough for some.
updates = 100
"#,
};

/// `overtone-lab translation [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let grid = grid(&asked)?;
    let below = asked.whole("below", 2, u64::from(LARGEST) + 1)?;
    let (n_train, n_test) = (asked.whole("n_train", 1, below)?, asked.whole("n_test", 1, below)?);
    if n_train + n_test > below {
        bail!(
            "n_train={n_train}: with n_test={n_test} they are more than the numbers below {below}"
        );
    }
    let data_seed = asked.whole("data_seed", 0, u64::MAX)?;
    let corpus = Corpus::draw(data_seed, below as u32, n_train as usize, n_test as usize);
    asked.check_writable()?;
    let found = with_bar("runs", grid.units(), |tick| translation::run(&grid, &corpus, tick));
    say!("{}", found.table());
    asked.write(&translation::page(&grid, &corpus, &found, &asked.command()))
}
