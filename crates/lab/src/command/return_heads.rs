//! `overtone-lab return-heads`.

use std::{path::PathBuf, time::Instant};

use anyhow::Result;
use overtone_lab::return_heads::{self, Settings, learner::Training, recording};

use super::Options;
use crate::progress;

/// The options.
pub const OPTIONS: Options = Options {
    name: "return-heads",
    full: r#"
# One split and fewer updates: 20 seconds.
quick = false
# A folder with recordings in HDF5, or one recording.
data = "datasets/starter/mujoco"
# Steps an episode may last, by which the average return still to come is told.
horizon = 1000
# Which heads, in the order of the tables.
heads = "fourier12,fourier12-margin,fourier12-half,softmax120,hl-gauss120,gmm5,gaussian,expectile99"
# Splits of the episodes of each file.
splits = 3
# Share of the episodes that are asked about.
held_out = 0.2
# Most held-out steps that are asked about.
asked = 4000
# Updates of each perceptron: a number fixed before any figure was seen.
updates = 1500
# Timesteps of an update.
batch = 256
# Width of the two hidden layers.
width = 256
# Of splits, weights and batches.
seed = 1
# Folder of the page, its tables and plots.
out = "runs/lab/return-heads"
"#,
    quick: r#"
# One.
splits = 1
# Not enough to rank heads.
updates = 300
"#,
};

/// `overtone-lab return-heads [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let size = |key, most| Ok::<_, anyhow::Error>(asked.whole(key, 1, most)? as usize);
    let settings = Settings {
        data: PathBuf::from(asked.text("data")),
        horizon: size("horizon", 1_000_000)?,
        heads: asked.names("heads")?,
        splits: size("splits", 100)?,
        held_out: asked.number("held_out", 0.01, 0.9)?,
        asked: size("asked", 1_000_000)?,
        training: Training {
            updates: size("updates", 1_000_000)?,
            batch_size: size("batch", 65_536)?,
            width: size("width", 4096)?,
        },
        seed: asked.whole("seed", 0, u64::MAX)?,
    };
    asked.check_writable()?;
    let n_runs = recording::paths(&settings.data)?.len() * settings.splits * settings.heads.len();
    let bar = progress::parts("runs", n_runs);
    let start = Instant::now();
    let found = return_heads::run(&settings, &|| bar.inc(1));
    bar.finish_and_clear();
    let found = found?;
    say!("{n_runs} runs in {:.0} s", start.elapsed().as_secs_f64());
    say!("{}", found.headline_table());
    say!("{}", found.verdict_text());
    asked.write(&found.page(&asked.command()))
}
