//! What `overtone-lab density` and `overtone-lab likelihood` share.

use std::time::Instant;

use anyhow::Result;
use overtone_lab::toy::study::Settings;

use super::Asked;
use crate::progress;

/// Which runs, and how long.
pub fn settings(asked: &Asked) -> Result<Settings> {
    let size = |key, most| Ok::<_, anyhow::Error>(asked.whole(key, 1, most)? as usize);
    // The highest frequency must be below the number of bins, 50.
    let frequencies = asked.list("frequencies", 1, 49)?;
    Ok(Settings {
        datasets: asked.names("datasets")?,
        data_seeds: asked.list("data_seeds", 0, u64::MAX)?,
        weight_seeds: asked.list("weight_seeds", 0, u64::MAX)?,
        frequencies: frequencies.into_iter().map(|n| n as usize).collect(),
        epochs: size("epochs", 100_000)?,
        evaluate_every: size("evaluate_every", 100_000)?,
    })
}

/// Runs with a bar, and says how long it took.
pub fn with_bar<F>(n_runs: usize, run: impl FnOnce(&(dyn Fn() + Sync)) -> F) -> F {
    let bar = progress::parts("runs", n_runs);
    let start = Instant::now();
    let found = run(&|| bar.inc(1));
    bar.finish_and_clear();
    say!("{n_runs} runs in {:.0} s", start.elapsed().as_secs_f64());
    found
}
