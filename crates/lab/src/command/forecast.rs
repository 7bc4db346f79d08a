//! `overtone-lab forecast`.

use anyhow::{Result, bail};
use overtone_lab::forecast::{
    self, Settings, evaluation::SamplingConfig, series_file, training::TrainingConfig,
};

use super::{Options, datasets};
use crate::progress;

/// The options.
pub const OPTIONS: Options = Options {
    name: "forecast",
    full: r#"
# Fewer steps, seeds and frequencies: a minute.
quick = false
# Seeds of the weights and of the order of windows.
seeds = "1,2,3,4"
# Seed of the synthetic series.
data_seed = 1
# The real series: a description in datasets/series, without .toml.
series = "el-nino"
# Bins between -15 and 15; the paper has 4096.
bins = 1024
# Mixed-precision bins alone, and not uniform ones as well.
mixed_alone = false
# d: the share of mixed-precision bins outside the dense interval; the released code's.
sparse = 0.2
# Share of the scaled training values inside the dense interval.
dense = 0.99
# Numbers of frequencies of the Fourier heads; the paper has 64,128,256,550.
frequencies = "32,128"
# γ of the regularised heads; each is trained with 0 as well. The paper's.
gamma = 1e-6
# Values that are known; the paper has 512.
context = 64
# Values to forecast; the paper trains on 64.
horizon = 24
# Width of a token.
d_model = 64
# Transformer blocks.
n_layers = 2
# Attention heads; must divide d_model.
n_heads = 4
# Synthetic series to train on.
training_series = 4000
# Synthetic series to forecast.
test_series = 64
# Optimizer steps; the paper has 200,000.
steps = 400
# Windows of a step; the paper has 32 on each of 8 GPUs.
batch = 16
# Learning rate of the first step, from which it falls linearly to 0; the paper's is half.
learning_rate = 0.002
# Futures drawn for each window; Chronos draws as many.
samples = 20
# Draw among so many most probable bins, as Chronos does with 50; 0: among all.
top_k = 0
# Folder of the page, its tables and plots.
out = "runs/lab/forecast"
"#,
    quick: r#"
# One training alone has no spread; two have.
seeds = "1,2"
# The largest.
frequencies = "128"
# Enough to see the loss fall.
steps = 80
"#,
};

/// `overtone-lab forecast [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let whole = |key, least, most| asked.whole(key, least, most).map(|n| n as usize);
    let bins = asked.whole("bins", 8, 4096)?;
    // A density of as many frequencies as bins could be anything.
    let mut frequencies = asked.list("frequencies", 1, bins - 1)?;
    frequencies.sort_unstable();
    let settings = Settings {
        data_seed: asked.whole("data_seed", 0, u64::MAX)?,
        seeds: asked.list("seeds", 0, u64::MAX)?,
        bins: bins as usize,
        mixed_alone: asked.is("mixed_alone"),
        sparse: asked.number("sparse", 0.0, 0.99)?,
        dense: asked.number("dense", 0.1, 0.9999)?,
        frequencies: frequencies.into_iter().map(|n| n as usize).collect(),
        gamma: asked.number("gamma", 0.0, 1e6)?,
        context: whole("context", 2, 512)?,
        horizon: whole("horizon", 1, 128)?,
        d_model: whole("d_model", 1, 1024)?,
        n_layers: whole("n_layers", 1, 24)?,
        n_heads: whole("n_heads", 1, 64)?,
        training_series: whole("training_series", 4, 100_000)?,
        test_series: whole("test_series", 4, 10_000)?,
        training: TrainingConfig {
            steps: whole("steps", 1, 1_000_000)?,
            batch: whole("batch", 1, 4096)?,
            learning_rate: asked.number("learning_rate", 1e-9, 1.0)?,
        },
        sampling: SamplingConfig {
            samples: whole("samples", 1, 1000)?,
            top_k: whole("top_k", 0, 4096)?,
        },
    };
    let name = asked.text("series");
    let path = datasets()?.join("series").join(format!("{name}.toml"));
    let (card, real) = series_file::read(&path)?;
    let needed = settings.context + settings.horizon;
    if settings.context <= real.season {
        let season = real.season;
        bail!(
            "context={}: must be more than {season}, the values of a cycle of {name}, by which \
             MASE is scaled",
            settings.context
        );
    }
    if real.values.len() < needed {
        bail!("series={name}: it has {} values, a window {needed}", real.values.len());
    }
    asked.check_writable()?;
    let bar = progress::parts("training", settings.units());
    let found = forecast::run(&settings, &card, &real, &|| bar.inc(1));
    bar.finish_and_clear();
    let found = found?;
    say!("{}", found.table());
    say!("{}", found.claims_table());
    asked.write(&found.page(&asked.command()))
}
