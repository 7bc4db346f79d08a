//! `overtone-lab tempo`.

use anyhow::{Result, bail};
use overtone_lab::tempo::{self, Settings};

use super::{
    Options,
    learning::{size, training, updates},
    with_bar,
};

/// The options.
pub const OPTIONS: Options = Options {
    name: "tempo",
    full: r#"
# Fewer seeds, clips and updates.
quick = false
# Seed of the clips.
data_seed = 1
# Clips of each of 161 tempi to learn.
train_each = 4
# Clips of each tempo to be judged by.
test_each = 2
# Numbers of frequencies of the Fourier heads; the paper has 1 and 2.
frequencies = "1,2,8,16"
# Seeds of weights and batches.
seeds = "1,2,3,4"
# Width of a token.
d_model = 32
# Transformer blocks.
n_layers = 2
# Attention heads; must divide d_model.
n_heads = 4
# Optimizer steps.
updates = 1000
# Clips of a step.
batch = 32
# The highest.
learning_rate = "0.005"
# Of matrices.
weight_decay = 0.01
# Updates between looks at the test clips, for the curves.
look_every = 100
# Folder of the page, its tables and plots.
out = "runs/lab/tempo"
"#,
    quick: r#"
# Two have a spread, if a wide one.
seeds = "1,2"
# Enough to be above chance.
updates = 100
# Fewer to be judged by.
test_each = 1
"#,
};

/// `overtone-lab tempo [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let whole = |key, least, most| asked.whole(key, least, most).map(|n| n as usize);
    let frequencies = asked.list("frequencies", 1, tempo::clips::BINS as u64 - 1)?;
    let rate = asked.text("learning_rate");
    if rate.contains(',') {
        bail!("learning_rate={rate}: one rate, this experiment compares none");
    }
    let settings = Settings {
        data_seed: asked.whole("data_seed", 0, u64::MAX)?,
        train_each: whole("train_each", 1, 1000)?,
        test_each: whole("test_each", 1, 1000)?,
        frequencies: frequencies.into_iter().map(|n| n as usize).collect(),
        seeds: asked.list("seeds", 0, u64::MAX)?,
        size: size(&asked)?,
        training: training(&asked, updates(&asked)?)?,
    };
    asked.check_writable()?;
    let found = with_bar("runs", settings.units(), |tick| tempo::run(&settings, tick));
    say!("{}", found.comparison.table());
    asked.write(&found.page(&settings, &asked.command()))
}
